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
    double inv_vector, inv_exp;
    /* what-if factors for elasticities, all 1 */
    double scale[PLM_BOUND_COUNT];
} plm_machine;
plm_status plm_machine_bind(const plm_device *d, const plm_profile *p, plm_machine *out,
                            plm_error *err) PLM_MUST_USE;

typedef struct plm_op_time {
    double part_s[PLM_BOUND_COUNT]; /* time each resource alone would take */
    double time_s;                  /* overhead + max of the rest */
    plm_bound bound;
} plm_op_time;
/* count: how often the op occurs in the step (for cache residency of its operands).
** Pure; no allocation; well under 100 ns. */
void plm_op_cost(const plm_machine *m, plm_class cls, const plm_work *w, plm_op_time *out);

/* ---- parts, exported for tests and docs (gemm.c, collective.c) ---- */
/* Tiles, waves and efficiency of a tiled GEMM; hw_facts d.2. */
typedef struct plm_tiling {
    double tiles, waves, eff_wave, eff_tile, eff;  /* eff = data-parallel */
    double eff_stream_k;
} plm_tiling;
plm_tiling plm_gemm_tiling(double m, double n, double k, double bm, double bn, double bk,
                           double sm);
/* Seconds of a collective over n ranks of `bytes` (size of the reduced / gathered array); bw: bytes/s
** each direction; alpha: s a hop. hw_facts e.3. */
double plm_ring_all_reduce_s(double n, double bytes, double alpha, double bw);
double plm_tree_all_reduce_s(double n, double bytes, double alpha, double bw);
double plm_one_shot_s(double n, double bytes, double alpha, double bw);
double plm_two_shot_s(double n, double bytes, double alpha, double bw);
double plm_all_gather_s(double n, double bytes, double alpha, double bw);
/* Best algorithm for the machine's topology, nodes > 1 for hierarchical groups. */
double plm_link_s(const plm_machine *m, plm_link_kind kind, double ranks, double nodes,
                  double bytes);
#endif
