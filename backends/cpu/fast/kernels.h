/* kernels.h - the CPU kernel library: pure functions on raw pointers.
**
** Nothing here allocates, locks, prints or knows a graph. The caller owns every buffer, says its shape,
** and lends its threads (plm_cpu_par). All arrays are row-major; "x[m,k] ldx" has row r at x + r * ldx.
** The stack of each thread needs 256 KiB. Pointers need the alignment of their element alone; packed weights and activations are quickest at
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

/* ---- attention ----
** Caches are f32, f16, bf16 or q8_0 (head dims then multiples of 32), kcache[C,G,dk], vcache[C,G,dv]; the
** slot of position p of sequence s is block[s * block_stride + p / block_tokens] * block_tokens +
** p % block_tokens, as in plm_backend_step. */
#define PLM_CPU_HEAD_MAX 576 /* greatest dk and dv: the latent heads of DeepSeek-V3 */
typedef struct plm_cpu_attention {
    int64_t n_seqs, H, G, dk, dv; /* H a multiple of G */
    const float *q;               /* [T,H,dk] */
    plm_backend_dtype cache;      /* of both caches */
    const unsigned char *k, *v;   /* v NULL: the first dv numbers of a key are its value (v_in_k) */
    const int32_t *seq_token;     /* [S+1] tokens of each sequence */
    const int32_t *seq_past;      /* [S] positions before the step; the step's own keys are written */
    const int32_t *block;         /* [S,block_stride] */
    int64_t block_stride, block_tokens;
    float scale, softcap;  /* softcap 0: none */
    int64_t window, chunk; /* 0: none */
    bool causal;
    const float *sinks;  /* [H] or NULL */
    const float *slopes; /* [H] or NULL: slope * (key position - query position) is added (ALiBi) */
    float *y;            /* [T,H,dv] */
    int64_t splits;      /* of the positions of a sequence, each by its own piece of work; 1 or more */
    float *scratch;      /* plm_cpu_attention_scratch floats; NULL when splits is 1 */
} plm_cpu_attention;
/* Floats of scratch; 0 for splits 1. */
int64_t plm_cpu_attention_scratch(int64_t tokens, int64_t heads, int64_t dv, int64_t splits);
/* Bytes of n numbers of a cache; -1 for a type that is none, or n no multiple of its block. */
int64_t plm_cpu_cache_bytes(plm_backend_dtype cache, int64_t n);

/* cos[T,dims/2] and sin of pos[t] * inv_freq[i], times mscale: computed in double, rounded once. Every
** scaling of rotary embeddings is a set of frequencies (plm_oracle_rope_freq). */
void plm_cpu_rope_table(const int32_t *pos, int64_t tokens, const double *inv_freq, int64_t dims,
                        double mscale, float *cos_t, float *sin_t);

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
    ** weights once (m <= 4) at memory speed. Larger m: two panels of up to 2048 columns are decoded to
    ** bytes on the stack (92 KiB), then all rows in tiles of 6 x 32; per block of 32 and tile: 96 dot
    ** products, 12 (24 with minima) multiply-adds, 12 multiplications = 80 % (73 %) of int8
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

    /* ---- attention over the paged cache ----
    ** softmax(scale q k^T, capped, biased, masked) v for every token and head. Work: (sequence, kv head,
    ** 24 rows of (token, head of the group), split). For each 32 positions: keys to floats, transposed
    ** (dk x 32); scores in tiles of 6 x 32; online softmax; values to floats; tiles of 6 x 32 of
    ** weights times values. Tiles start at multiples of 32 of the position, masked ones weigh exactly 0,
    ** so chunked and whole prefill give equal bits, and so does any placement of blocks. Rows that
    ** attend nothing give 0. A step of one token with at most 4 heads a kv head adds its scores up along
    ** the head instead of transposing keys: its sums differ from a prompt's by rounding, and by nothing
    ** from one step of one token to the next. What unattended slots hold never shows. 4 dk flops a key and head for 2 dk
    ** bytes of f16 key and value: bound by memory while a kv head has few query rows, by f32
    ** multiply-adds in prefill. Oracle: plm_oracle_attention (without index and ratio). */
    void (*attention)(const plm_cpu_attention *a, const plm_cpu_par *par);

    /* x[T,n] -> row slot[t] of cache[C,n] (n = heads * head dim), rounded to the cache's type; slot -1:
    ** nowhere. Oracle: plm_oracle_kv_write, q8_0 as plm_quant_row. */
    void (*kv_write)(const float *x, int64_t tokens, int64_t n, const int32_t *slot,
                     plm_backend_dtype cache, unsigned char *data, const plm_cpu_par *par);

    /* ---- rows of numbers, bound by memory or by exponentials ---- */
    /* s = x + add?; sum? = s; y = s / sqrt(mean(s^2) + eps) * (w? + offset). All [rows,n]; y and sum may
    ** be x or add. Oracle: plm_oracle_rms_norm (and plm_oracle_add before it). */
    void (*rms_norm)(const float *x, const float *add, const float *w, float eps, float offset,
                     int64_t rows, int64_t n, float *sum, float *y, const plm_cpu_par *par);
    /* In place on x[T,H,d], token stride ldt: the first dims of each head, pairs (i, i + dims/2), or
    ** (2i, 2i+1) when interleaved, turned by cos_t, sin_t [T,dims/2]. Oracle: plm_oracle_rope. */
    void (*rope)(float *x, int64_t ldt, int64_t tokens, int64_t heads, int64_t d, int64_t dims,
                 bool interleaved, const float *cos_t, const float *sin_t, const plm_cpu_par *par);
    /* y[rows,n] = fn(gate) * up; gate and up with row strides ld (halves of one [rows,2n]: up = gate + n,
    ** ld = 2n). limit, alpha 0: not given. False: fn is no gate function. Oracle: plm_oracle_glu. */
    bool (*glu)(plm_backend_fn fn, float limit, float alpha, const float *gate, const float *up,
                int64_t ld, int64_t rows, int64_t n, float *y, const plm_cpu_par *par);
    /* y[n] = fn(x[n]), y may be x. False: no function of one number. Oracle: plm_oracle_unary. */
    bool (*unary)(plm_backend_fn fn, const float *x, int64_t n, float *y, const plm_cpu_par *par);
    /* y[n] = limit * tanh(x / limit). Oracle: plm_oracle_softcap. */
    void (*softcap)(float limit, const float *x, int64_t n, float *y, const plm_cpu_par *par);
    /* Softmax of each row of x[rows,n], y may be x; a row of -inf gives 0. Oracle: plm_oracle_softmax. */
    void (*softmax)(const float *x, int64_t rows, int64_t n, float *y, const plm_cpu_par *par);
    /* y = a + b, y = a * b of n numbers; y may be either. Oracles: plm_oracle_add, plm_oracle_mul. */
    void (*add)(const float *a, const float *b, int64_t n, float *y, const plm_cpu_par *par);
    void (*mul)(const float *a, const float *b, int64_t n, float *y, const plm_cpu_par *par);
    /* index[r] of the greatest of x[r,n], the lowest of equals, NaN below all; -1 when n is 0. Oracle:
    ** plm_oracle_argmax. */
    void (*argmax)(const float *x, int64_t rows, int64_t n, int32_t *index, const plm_cpu_par *par);

    /* ---- recurrences; tokens [t0, t1) of one sequence, in order, on its state in place ---- */
    /* q,k[T,Hk,dk], v[T,Hv,dv], g[T,Hv] (or [T,Hv,dk]: by_channel), beta[T,Hv], state[Hv,dk,dv],
    ** y[T,Hv,dv]. One pass over a head's state to decay it and read S^T k, one to write and read S^T q;
    ** a state of 64 KiB stays in the second cache. dv <= PLM_CPU_HEAD_MAX. Oracle:
    ** plm_oracle_gated_delta. */
    void (*gated_delta)(const float *q, const float *k, const float *v, const float *g,
                        bool by_channel, const float *beta, float scale, int64_t t0, int64_t t1,
                        int64_t Hk, int64_t Hv, int64_t dk, int64_t dv, float *state, float *y,
                        const plm_cpu_par *par);
    /* x[T,c], w[c,taps], bias?[c], tail[c,taps-1] -> y[T,c] = fn of the convolution (fn none or silu),
    ** tail. y may not be x. Oracle: plm_oracle_conv_causal. */
    void (*conv_causal)(const float *x, const float *w, const float *bias, bool silu, int64_t t0,
                        int64_t t1, int64_t c, int64_t taps, float *tail, float *y,
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
