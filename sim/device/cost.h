/* cost.h - work of an op on a device under an engine profile -> seconds, and what bound it. */
#ifndef PLM_SIM_COST_H
#define PLM_SIM_COST_H
#include "sim/device/profile.h"

typedef enum plm_bound {
#define PLM_BOUND_MAP(X)                                                                           \
    X(TENSOR, "tensor") X(VECTOR, "vector") X(EXP, "exp") X(MEMORY, "memory") X(LINK, "link")      \
    X(OVERHEAD, "overhead")
#define PLM_BOUND_ENUM(id, name) PLM_BOUND_##id,
    PLM_BOUND_MAP(PLM_BOUND_ENUM)
#undef PLM_BOUND_ENUM
    PLM_BOUND_COUNT
} plm_bound;

const char *plm_bound_name(plm_bound b);

/* Device + profile, resolved once: every look-up and division that does not depend on the op. */
typedef struct plm_machine {
    plm_device dev;
    plm_profile prof;
    double inv_bandwidth;               /* s a byte at eff 1 */
    double inv_peak[PLM_MATH_COUNT];    /* s a FLOP at eff 1 */
    double inv_vector, inv_exp;         /* at the profile's eff */
    double inv_memory[PLM_CLASS_COUNT]; /* s a byte at the class's eff */
    double inv_skinny, inv_attn_decode, inv_moe_small;
    double inv_row;                     /* s a byte of weights and row past the first */
    double launch_s;                    /* a kernel, clocks included */
    double inv_tensor[PLM_CLASS_COUNT]; /* 1 / eff, as are the next two */
    double inv_weight[PLM_DT_COUNT], inv_math[PLM_DT_COUNT];
    double cache_bytes;                 /* last cache */
    double link_alpha_s, net_alpha_s;
    bool mesh, nvls;                    /* one link to each peer; reduction in the switch */
    /* what-if factors for elasticities, all 1: time of that resource is divided by it */
    double scale[PLM_BOUND_COUNT];
} plm_machine;
plm_status plm_machine_bind(const plm_device *d, const plm_profile *p, plm_machine *out,
                            plm_error *err) PLM_MUST_USE;

typedef struct plm_op_time {
    double part_s[PLM_BOUND_COUNT]; /* time each resource alone would take */
    double time_s;                  /* overhead + max of the rest */
    plm_bound bound;                /* overhead, or rest_bound */
    plm_bound rest_bound;           /* the greatest of the rest */
} plm_op_time;
/* Time of one op (cost.c has the rules). Pure; no allocation; well under 100 ns. */
void plm_op_cost(const plm_machine *m, plm_class cls, const plm_work *w, plm_op_time *out);
/* The same for an op of a step of which `resident` (0 .. 1) of the weights, KV and state stay in the
** last cache from step to step; see plm_cache_share. */
void plm_op_cost_resident(const plm_machine *m, plm_class cls, const plm_work *w, double resident,
                          plm_op_time *out);
/* Share of a set of bytes, used over and over, that a cache of cache_bytes serves: 1 up to half of
** it, 0 from all of it on, linear between (other data pass through it too). */
double plm_cache_share(double bytes, double cache_bytes);
/* Arithmetic of products of weights and activations of these types: narrow only when both are, or
** when the profile multiplies int8; else weights are decoded to the activations' type. weight
** PLM_DT_COUNT: both operands are activations. */
plm_math plm_cost_math(const plm_profile *p, plm_dtype weight, plm_dtype act);

/* ---- parts, exported for tests and docs (gemm.c, collective.c) ---- */
/* Tiles, waves and efficiency of a tiled GEMM; hw_facts d.2. */
typedef struct plm_tiling {
    double tiles, waves, eff_wave, eff_tile, eff;  /* eff = data-parallel */
    double eff_stream_k;
} plm_tiling;
plm_tiling plm_gemm_tiling(double m, double n, double k, double bm, double bn, double bk,
                           double sm);
/* Share of tensor_eff that a GEMM of this shape keeps on this device: best of a list of tiles, each
** with and without split-K (gemm.c). *workspace_bytes: partial sums written by a split. */
double plm_gemm_eff(const plm_machine *m, const plm_work *w, double *workspace_bytes);
/* Seconds of a collective over n ranks of `bytes` (size of the reduced / gathered array); bw: bytes/s
** each direction; alpha: s a hop. hw_facts e.3. */
double plm_ring_all_reduce_s(double n, double bytes, double alpha, double bw);
double plm_tree_all_reduce_s(double n, double bytes, double alpha, double bw);
double plm_one_shot_s(double n, double bytes, double alpha, double bw);
double plm_two_shot_s(double n, double bytes, double alpha, double bw);
double plm_all_gather_s(double n, double bytes, double alpha, double bw);
/* In-switch reduction: (n + 1) / n of the array crosses each link. */
double plm_nvls_all_reduce_s(double n, double bytes, double alpha, double bw);
/* Best algorithm for the machine's topology, nodes > 1 for hierarchical groups. */
double plm_link_s(const plm_machine *m, plm_link_kind kind, double ranks, double nodes,
                  double bytes);
#endif
