/* kernels.h - the CPU kernel library: pure functions on raw pointers.
**
** Nothing here allocates, locks, prints or knows a graph. The caller owns every buffer, says its shape,
** and lends its threads (plm_cpu_par). All arrays are row-major; "x[m,k] ldx" has row r at x + r * ldx.
** Pointers need the alignment of their element alone; packed weights and activations are quickest at
** 64 bytes. Outputs may not overlap inputs unless a kernel says so.
**
** LEVELS. One table of functions a level of the instruction set; plm_cpu_table picks the best that this
** machine has, tests ask for each by name. All levels compute the same formula in the same order of
** blocks, so they differ by the rounding of their multiply-adds and exponentials alone.
**
** THREADS. A kernel splits its outputs over plm_cpu_par; no sum is split, so the number of threads
** changes no bit. The result of a row depends on that row alone: not on the other rows of the batch, nor
** on whether the matrix-vector (m <= 8) or the matrix-matrix path is taken.
**
** NUMERICS (plm_backend_numerics): quantised weights: I8_B32, weights exact, activations int8 in blocks
** of 32. bf16 weights: BF16 where the CPU multiplies bf16 pairs, else F32. f16, f32 weights: F32.
**
** ROOFLINE of the machine in mind, 2 cores of Zen 5 at 3.4 GHz: int8 1780 GOP/s, bf16 890, f32 433
** GFLOP/s, memory 37-65 GB/s. So a linear is bound by memory below m = 14 (q8_0: 2 m operations for
** 1.06 bytes) and by its multiplier above. */
#ifndef PLM_CPU_KERNELS_H
#define PLM_CPU_KERNELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/backend.h"

/* ---- threads ---- */
/* body(arg, from, to) over [0, n) in pieces of at least `grain`, all done on return. run NULL: the
** calling thread does everything. As plm_backend_host.parallel_for. */
typedef struct plm_cpu_par {
    void *ctx;
    void (*run)(void *ctx, int64_t n, int64_t grain,
                void (*body)(void *arg, int64_t from, int64_t to), void *arg);
} plm_cpu_par;
/* par or par->run NULL: one call of body. */
void plm_cpu_run(const plm_cpu_par *par, int64_t n, int64_t grain,
                 void (*body)(void *arg, int64_t from, int64_t to), void *arg);
/* OpenMP's threads, `threads` of them (0 = as many as OpenMP thinks). Without OpenMP: one. */
plm_cpu_par plm_cpu_openmp(int threads);

/* ---- levels ---- */
typedef enum plm_cpu_level {
    PLM_CPU_GENERIC = 0,    /* C alone: any machine */
    PLM_CPU_AVX2 = 1,       /* AVX2, FMA, F16C */
    PLM_CPU_AVX512 = 2,     /* AVX-512 F BW DQ VL VNNI */
    PLM_CPU_AVX512BF16 = 3, /* the same and AVX512-BF16 */
    PLM_CPU_NEON = 4,       /* a slot: no kernels yet, plm_cpu_table answers NULL */
    PLM_CPU_LEVELS
} plm_cpu_level;

/* ---- packed weights ----
** A weight w[n,k] is laid out once in panels of 16 rows, so that one vector register holds four codes
** (or one float, or two bf16) of each of them. Panel p: scales of all blocks first, codes after, each
** rounded up to 64 bytes; rows past n are zero. Codes are unsigned (zero point 2^z added), so that they
** can be the unsigned side of the dot product instruction. Forms, planes and sizes: forms.h. The bytes
** are those of the source but for q4_k and q5_k (+3 %), iq4_xs (+1.5 %) and the padding. */
#define PLM_CPU_PANEL 16
typedef struct plm_cpu_weight {
    const unsigned char *data; /* plm_cpu_pack_bytes of them */
    int64_t n, k;
    plm_backend_dtype type;
} plm_cpu_weight;

/* Bytes of a packed w[n,k]; -1 when the type has no packed form, k is no multiple of its block, or the
** size overflows. Types: f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_k q5_k q6_k iq4_nl iq4_xs mxfp4. */
int64_t plm_cpu_pack_bytes(plm_backend_dtype type, int64_t n, int64_t k);
/* Packs panels [from, to) of w[n,k], rows in the type's file layout; all panels: 0, plm_cpu_panels(n). */
void plm_cpu_pack(plm_backend_dtype type, int64_t n, int64_t k, const void *rows,
                  unsigned char *packed, int64_t from, int64_t to);
int64_t plm_cpu_panels(int64_t n);
/* Row `row` of a packed weight as numbers y[k]: weight exact, one rounding to float. Oracle: plm_decode
** (core/ir/codec.h); rows of an embedding table: plm_oracle_embed. */
void plm_cpu_unpack_row(const plm_cpu_weight *w, int64_t row, float *y);

/* ---- activations of a linear ----
** What the multiplier takes: int8 blocks of 32, bf16 (rounded to even), or float32. Made once from
** x[m,k] and shared by all weights of the same kind that multiply it. */
typedef enum plm_cpu_kind { PLM_CPU_I8 = 0, PLM_CPU_BF16 = 1, PLM_CPU_F32 = 2 } plm_cpu_kind;
typedef struct plm_cpu_acts {
    plm_cpu_kind kind;
    int64_t m, k;
    unsigned char *data; /* plm_cpu_acts_bytes; rows of plm_cpu_acts_row */
} plm_cpu_acts;
/* Bytes of one row, a multiple of 64. */
int64_t plm_cpu_acts_row(plm_cpu_kind kind, int64_t k);
/* Bytes of m rows; -1 when it overflows. */
int64_t plm_cpu_acts_bytes(plm_cpu_kind kind, int64_t m, int64_t k);

/* ---- the table ---- */
typedef struct plm_cpu_kernels {
    plm_cpu_level level;
    const char *name;

    /* Kind of activations that this level multiplies a weight type by. */
    plm_cpu_kind (*kind)(plm_backend_dtype type);

    /* x[m,k] ldx -> a (its kind, m, k, data set by the caller; k a multiple of 32 for I8). I8: d =
    ** max |x| / 127 a block, code = nearest integer to x * (127 / max), ties to even; a block below
    ** 2^-100 is 0, one with an infinity or NaN makes every product with it NaN. One pass, bound by
    ** memory. Oracle: plm_quant_row with i8 and block 32, but for ties and the rounded reciprocal. */
    void (*activate)(const float *x, int64_t ldx, plm_cpu_acts *a, const plm_cpu_par *par);

    /* y[m,n] ldy = x[m,k] w[n,k]^T + bias?[n]. x->kind must be kind(w->type) and x->k == w->k.
    ** m <= 8: for each panel, for each block: codes decoded in registers, m dot products; reads the
    ** weights once (m <= 4) at memory speed. Larger m: two panels of a slice of k are decoded to
    ** bytes on the stack (24 KiB, L1), then all rows in tiles of 6 x 32; per block of 32 and tile:
    ** 96 dot products, 12 (24 with minima) multiply-adds, 12 multiplications = 80 % (73 %) of int8
    ** peak at best. Floats: tiles of 6 x 64 from the packed panels. Oracle: plm_oracle_linear on
    ** plm_decode'd weights. */
    void (*linear)(const plm_cpu_weight *w, const plm_cpu_acts *x, const float *bias, float *y,
                   int64_t ldy, const plm_cpu_par *par);

    /* Rows offsets[e] .. offsets[e+1] of y[E,n] = those of x times w[e]^T + bias?[X,n]. The X weights
    ** have one n, k and type. Rows of no expert are left alone. One parallel loop over all (expert
    ** with rows, panels). Oracle: plm_oracle_linear_grouped. */
    void (*linear_grouped)(const plm_cpu_weight *w, int64_t n_experts, const int64_t *offsets,
                           const plm_cpu_acts *x, const float *bias, float *y, int64_t ldy,
                           const plm_cpu_par *par);
} plm_cpu_kernels;

/* True when this machine has the level's instructions and the build its kernels. */
bool plm_cpu_has(plm_cpu_level level);
/* The table of a level; NULL when plm_cpu_has says no. */
const plm_cpu_kernels *plm_cpu_table(plm_cpu_level level);
/* That of the best level there is. */
const plm_cpu_kernels *plm_cpu_best(void);
const char *plm_cpu_level_name(plm_cpu_level level);

#endif
