/* linear_tile.h - the linear kernels, written over lanes; each level_*.c includes it once.
**
** Loops over constant bounds are unrolled by hand-set pragmas, so that sums stay in registers.
** A sum runs over k in one order everywhere: blocks of 32 (int8) or pairs of columns (floats), one
** multiply-add each, so the result of a row is the same in every path. */
#include <math.h>
#include <string.h>

#ifndef LEVEL_BF16
#define LEVEL_BF16 0
#endif

/* Blocks of a slice of k in the matrix-matrix path: 64 * 32 columns * 32 rows = 64 KiB of codes, which
** stream out of the second cache at 16 bytes a cycle; shorter ones load and store sums more often (16
** blocks: 9 % slower). */
#define SLICE 64
/* Bytes ahead of the read that the matrix-vector path asks for: about 80 ns at 40 GB/s. */
#define AHEAD 4096

/* ---- one block of codes and its scales ---- */

/* w[s]: step s (columns 4 s .. 4 s + 3 of 16 rows) of the block at p. */
LANE void load_codes(const unsigned char *p, int bits, plm_book book, vb w[8])
{
    if (bits == 8) {
        UNROLL
        for (int s = 0; s < 8; s++)
            w[s] = vb_load(p + 64 * s);
        return;
    }
    UNROLL
    for (int s = 0; s < 4; s++) {
        vb x = vb_load(p + 64 * s);
        w[s] = vb_and(x, 15);
        w[s + 4] = vb_and(vb_right4(x), 15);
    }
    if (bits == 5) {
        UNROLL
        for (int s = 0; s < 8; s++)
            w[s] = vb_add16_at(w[s], p + 256 + 8 * s);
    }
    if (bits == 6) {
        UNROLL
        for (int h = 0; h < 2; h++) {
            vb x = vb_load(p + 256 + 64 * h);
            w[4 * h] = vb_or(w[4 * h], vb_and(vb_left4(x), 48));
            w[4 * h + 1] = vb_or(w[4 * h + 1], vb_and(vb_left2(x), 48));
            w[4 * h + 2] = vb_or(w[4 * h + 2], vb_and(x, 48));
            w[4 * h + 3] = vb_or(w[4 * h + 3], vb_and(vb_right2(x), 48));
        }
    }
    if (book != PLM_BOOK_NONE) {
        UNROLL
        for (int s = 0; s < 8; s++)
            w[s] = vb_book(book == PLM_BOOK_IQ4 ? plm_book_iq4 : plm_book_e2m1, w[s]);
    }
}

/* Scales d[0] (and d[1] of the second 16 columns, K16) and minimum of block b. */
LANE void load_scales(const unsigned char *head, int64_t b, plm_scale_form form, vf d[2], vf *min)
{
    const unsigned char *h;
    float e[16];
    switch (form) {
    case PLM_SCALE_F16: d[0] = vf_f16(head + 32 * b); return;
    case PLM_SCALE_F16_MIN:
        d[0] = vf_f16(head + 64 * b);
        *min = vf_sub(vf_zero(), vf_f16(head + 64 * b + 32));
        return;
    case PLM_SCALE_K:
        h = head + b / 8 * 320;
        d[0] = vf_mul(vf_f16(h), vf_u8(h + 64 + 32 * (b % 8)));
        *min = vf_mul(vf_f16(h + 32), vf_u8(h + 80 + 32 * (b % 8)));
        return;
    case PLM_SCALE_K16:
        h = head + b / 8 * 288;
        d[0] = vf_mul(vf_f16(h), vf_s8(h + 32 + 32 * (b % 8)));
        d[1] = vf_mul(vf_f16(h), vf_s8(h + 48 + 32 * (b % 8)));
        return;
    case PLM_SCALE_KS:
        h = head + b / 8 * 160;
        d[0] = vf_mul(vf_f16(h), vf_s8(h + 32 + 16 * (b % 8)));
        return;
    case PLM_SCALE_E8M0:
        for (int i = 0; i < 16; i++) /* 2^(e-128): a normal number but for e < 2 */
            e[i] = plm_e8m0_half(head[16 * b + i]);
        d[0] = vf_load(e);
        return;
    case PLM_SCALE_NONE: return;
    }
}

/* ---- matrix times few vectors ---- */

/* y[r][lane] of `rows` rows for one panel: sums over all of k. */
LANE void matvec_tile(const unsigned char *panel, int64_t k, const plm_i8_block *x, int64_t stride, int rows,
                      int bits, int z, plm_scale_form form, plm_book book, int64_t head_bytes,
                      vf *y)
{
    const unsigned char *p = panel + head_bytes;
    bool wide = bits == 8 || book == PLM_BOOK_IQ4;
    vf sum[4];
    UNROLL
    for (int r = 0; r < rows; r++)
        sum[r] = vf_zero();
    for (int64_t b = 0; b < k / 32; b++, p += 64 * bits) {
        vb w[8];
        vf d[2], min = vf_zero();
        UNROLL
        for (int s = 0; s < bits; s++)
            __builtin_prefetch(p + AHEAD + 64 * s);
        load_codes(p, bits, book, w);
        load_scales(panel, b, form, d, &min);
        UNROLL
        for (int r = 0; r < rows; r++) {
            const plm_i8_block *xb = x + r * stride + b;
            vf dx = vf_set1(xb->d);
            if (form == PLM_SCALE_K16) {
                UNROLL
                for (int h = 0; h < 2; h++) {
                    vi i = vi_shl(vi_set1(xb->nsum16[h]), z);
                    UNROLL
                    for (int s = 4 * h; s < 4 * h + 4; s++)
                        i = vi_dot(i, w[s], xb->q + 4 * s, wide);
                    sum[r] = vf_fma(vf_from_i(i), vf_mul(d[h], dx), sum[r]);
                }
                continue;
            }
            vi i = z < 0 ? vi_zero() : vi_shl(vi_set1(xb->nsum), z);
            UNROLL
            for (int s = 0; s < 8; s++)
                i = vi_dot(i, w[s], xb->q + 4 * s, wide);
            sum[r] = vf_fma(vf_from_i(i), vf_mul(d[0], dx), sum[r]);
            if (z < 0)
                sum[r] = vf_fnma(min, vf_set1(xb->dsum), sum[r]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        y[r] = sum[r];
}

/* ---- slices of panels for the matrix-matrix path ---- */

/* Panels of SLICE blocks: codes as bytes, scales (of halves for K16) and minima as floats: 92 KiB. */
typedef struct slice {
    unsigned char codes[I8_PANELS][SLICE * 512];
    float d[I8_PANELS][SLICE * 2 * 16], min[I8_PANELS][SLICE * 16];
} slice;

/* Blocks [b, b + count) of a panel into panel `at` of the slice. */
LANE void decode_slice(const unsigned char *panel, int64_t head_bytes, int64_t b, int count,
                       int bits, plm_scale_form form, plm_book book, slice *to, int at)
{
    const unsigned char *p = panel + head_bytes + b * 64 * bits;
    int parts = form == PLM_SCALE_K16 ? 2 : 1;
    for (int c = 0; c < count; c++, p += 64 * bits) {
        vb w[8];
        vf d[2], min = vf_zero();
        load_codes(p, bits, book, w);
        load_scales(panel, b + c, form, d, &min);
        UNROLL
        for (int s = 0; s < 8; s++)
            vb_store(&to->codes[at][c * 512 + 64 * s], w[s]);
        UNROLL
        for (int h = 0; h < parts; h++)
            vf_store(&to->d[at][(c * parts + h) * 16], d[h]);
        vf_store(&to->min[at][c * 16], min);
    }
}

/* One function a form for each path, chosen by type. */
typedef struct form_code {
    void (*matvec)(const unsigned char *panel, int64_t k, int64_t head_bytes, const plm_i8_block *x, int64_t stride,
                   int rows, vf *y);
    void (*decode)(const unsigned char *panel, int64_t head_bytes, int64_t b, int count, slice *to,
                   int at);
} form_code;

#define FORM_FUNCTIONS(t, block, bytes, bits, z, scale, book)                                      \
    static void matvec_##t(const unsigned char *panel, int64_t k, int64_t head_bytes,              \
                           const plm_i8_block *x, int64_t stride, int rows, vf *y)                                   \
    {                                                                                              \
        if (rows == 4)                                                                             \
            matvec_tile(panel, k, x, stride, 4, bits, z, PLM_SCALE_##scale, PLM_BOOK_##book, head_bytes,   \
                        y);                                                                        \
        else if (rows == 2)                                                                        \
            matvec_tile(panel, k, x, stride, 2, bits, z, PLM_SCALE_##scale, PLM_BOOK_##book, head_bytes,   \
                        y);                                                                        \
        else                                                                                       \
            matvec_tile(panel, k, x, stride, 1, bits, z, PLM_SCALE_##scale, PLM_BOOK_##book, head_bytes,   \
                        y);                                                                        \
    }                                                                                              \
    static void decode_##t(const unsigned char *panel, int64_t head_bytes, int64_t b, int count,   \
                           slice *to, int at)                                                      \
    {                                                                                              \
        decode_slice(panel, head_bytes, b, count, bits, PLM_SCALE_##scale, PLM_BOOK_##book, to,    \
                     at);                                                                          \
    }
PLM_FORM_MAP(FORM_FUNCTIONS)
#undef FORM_FUNCTIONS

static const form_code *form_code_of(plm_backend_dtype type)
{
    static const form_code codes[PLM_BACKEND_DTYPES] = {
#define FORM_ROW(t, block, bytes, bits, z, scale, book)                                            \
    [PLM_BACKEND_DT_##t] = {matvec_##t, decode_##t},
        PLM_FORM_MAP(FORM_ROW)
#undef FORM_ROW
    };
    return &codes[type];
}

/* ---- int8 tile: rows x I8_PANELS panels, `count` blocks ---- */

/* Adds the slice's blocks from b0 on to sum[r][p]. steps: those of a scale, 8 or 4 (K16). */
LANE void i8_tile(const slice *w, const plm_i8_block *x, int64_t stride, int rows, int64_t b0, int count, bool min,
                  int steps, int z, bool wide, vf sum[][I8_PANELS])
{
    x += b0;
    for (int c = 0; c < count; c++, x++) {
        UNROLL
        for (int r = 0; r < rows; r++) /* of the next tile, which may lie outside: harmless */
            __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)((r + rows) * stride * 64)));
        for (int h = 0; h < 8 / steps; h++) {
            vi i[I8_ROWS][I8_PANELS];
            UNROLL
            for (int r = 0; r < rows; r++) {
                vi first = min ? vi_zero()
                               : vi_shl(vi_set1(steps == 4 ? x[r * stride].nsum16[h] : x[r * stride].nsum),
                                        z);
                UNROLL
                for (int p = 0; p < I8_PANELS; p++)
                    i[r][p] = first;
            }
            UNROLL
            for (int s = 0; s < steps; s++) {
                int at = s + 4 * h;
                vb codes[I8_PANELS];
                UNROLL
                for (int p = 0; p < I8_PANELS; p++)
                    codes[p] = vb_load(&w->codes[p][c * 512 + 64 * at]);
                UNROLL
                for (int r = 0; r < rows; r++) {
                    UNROLL
                    for (int p = 0; p < I8_PANELS; p++)
                        i[r][p] = vi_dot(i[r][p], codes[p], x[r * stride].q + 4 * at, wide);
                }
            }
            UNROLL
            for (int p = 0; p < I8_PANELS; p++) {
                vf d = vf_load(&w->d[p][(c * (8 / steps) + h) * 16]);
                UNROLL
                for (int r = 0; r < rows; r++)
                    sum[r][p] =
                        vf_fma(vf_from_i(i[r][p]), vf_mul(d, vf_set1(x[r * stride].d)), sum[r][p]);
            }
        }
        if (min) {
            UNROLL
            for (int p = 0; p < I8_PANELS; p++) {
                vf m = vf_load(&w->min[p][c * 16]);
                UNROLL
                for (int r = 0; r < rows; r++)
                    sum[r][p] = vf_fnma(m, vf_set1(x[r * stride].dsum), sum[r][p]);
            }
        }
    }
}

/* Where a tile's sums come from and go to. lanes: columns of the output that the panels have. */
typedef struct tile_out {
    float *y;
    int64_t ldy;
    const float *bias; /* NULL but for the last slice */
    int lanes;
    bool first; /* sums start at 0 */
} tile_out;

LANE void tile_begin(const tile_out *o, int rows, int panels, vf *sum)
{
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int p = 0; p < panels; p++) {
            int n = o->lanes - 16 * p;
            sum[r * panels + p] = o->first ? vf_zero()
                                  : n >= 16
                                      ? vf_load(o->y + r * o->ldy + 16 * p)
                                      : vf_load_part(n > 0 ? o->y + r * o->ldy + 16 * p : o->y,
                                                     n > 0 ? n : 0);
        }
    }
}

LANE void tile_end(const tile_out *o, int rows, int panels, const vf *sum)
{
    UNROLL
    for (int p = 0; p < panels; p++) {
        int n = o->lanes - 16 * p;
        if (n <= 0)
            continue;
        vf bias = o->bias == NULL ? vf_zero() : vf_load_part(o->bias + 16 * p, n);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf v = sum[r * panels + p];
            if (o->bias != NULL)
                v = vf_add(v, bias);
            if (n >= 16)
                vf_store(o->y + r * o->ldy + 16 * p, v);
            else
                vf_store_part(o->y + r * o->ldy + 16 * p, v, n);
        }
    }
}

LANE void i8_rows(const slice *w, const plm_i8_block *x, int64_t stride, int rows, int64_t b0, int count,
                  const plm_form *f, const tile_out *o)
{
    vf sum[I8_ROWS][I8_PANELS];
    tile_begin(o, rows, I8_PANELS, sum[0]);
    if (f->z < 0)
        i8_tile(w, x, stride, rows, b0, count, true, 8, 0, false, sum);
    else if (f->scale == PLM_SCALE_K16)
        i8_tile(w, x, stride, rows, b0, count, false, 4, f->z, false, sum);
    else if (f->z == 7)
        i8_tile(w, x, stride, rows, b0, count, false, 8, 7, true, sum);
    else
        i8_tile(w, x, stride, rows, b0, count, false, 8, f->z, false, sum);
    tile_end(o, rows, I8_PANELS, sum[0]);
}
static void i8_rows_all(const slice *w, const plm_i8_block *x, int64_t stride, int64_t b0, int count, const plm_form *f,
                      const tile_out *o)
{
    i8_rows(w, x, stride, I8_ROWS, b0, count, f, o);
}
static void i8_rows_1(const slice *w, const plm_i8_block *x, int64_t stride, int64_t b0, int count, const plm_form *f,
                      const tile_out *o)
{
    i8_rows(w, x, stride, 1, b0, count, f, o);
}
#if I8_ROWS > 2
static void i8_rows_2(const slice *w, const plm_i8_block *x, int64_t stride, int64_t b0, int count, const plm_form *f,
                      const tile_out *o)
{
    i8_rows(w, x, stride, 2, b0, count, f, o);
}
#endif

/* ---- what a piece of the work is ---- */

typedef struct job {
    const plm_cpu_weight *w; /* n_experts of them */
    const plm_cpu_acts *x;
    const int64_t *offsets; /* rows of each expert */
    const float *bias;
    float *y;
    int64_t ldy, n_experts, groups; /* of panels, in an expert */
    int panels;                     /* of a group */
} job;

/* Rows [from, to) of panels `first` .. of expert e. */
typedef struct piece {
    const unsigned char *panel[4]; /* the last one again where there are fewer */
    int64_t from, to;
    const float *bias;
    float *y; /* row 0, first column of the group */
    int lanes;
} piece;

/* Unit u counts groups of the experts that have rows. */
static piece piece_at(const job *j, int64_t u)
{
    int64_t e = -1, skip = u / j->groups, g = u % j->groups;
    do
        e++;
    while (j->offsets[e] == j->offsets[e + 1] || skip-- > 0);
    const plm_cpu_weight *w = &j->w[e];
    int64_t bytes = plm_panel_bytes(w->type, w->k), first = g * j->panels;
    int64_t last = plm_cpu_panels(w->n) - 1, left = w->n - first * 16;
    piece p = {.from = j->offsets[e],
               .to = j->offsets[e + 1],
               .bias = j->bias != NULL ? j->bias + e * w->n + first * 16 : NULL,
               .y = j->y + first * 16,
               .lanes = (int)(left < 16 * j->panels ? left : 16 * j->panels)};
    for (int i = 0; i < j->panels; i++)
        p.panel[i] = w->data + (first + i < last ? first + i : last) * bytes;
    return p;
}

static const plm_i8_block *block_row(const plm_cpu_acts *x, int64_t r)
{
    return (const plm_i8_block *)(const void *)x->data + r * (x->k / 32);
}

static void matvec_piece(const job *j, const piece *p)
{
    const plm_form *f = plm_form_of(j->w->type);
    const form_code *code = form_code_of(f->type);
    int64_t k = j->x->k, head = plm_head_bytes(f, k);
    for (int64_t r = p->from; r < p->to;) {
        int rows = p->to - r >= 4 ? 4 : p->to - r >= 2 ? 2 : 1;
        vf y[4];
        code->matvec(p->panel[0], k, head, block_row(j->x, r), k / 32, rows, y);
        for (int i = 0; i < rows; i++, r++) {
            if (p->bias != NULL)
                y[i] = vf_add(y[i], vf_load_part(p->bias, p->lanes));
            vf_store_part(p->y + r * j->ldy, y[i], p->lanes);
        }
    }
}

static void matmul_piece(const job *j, const piece *p)
{
    const plm_form *f = plm_form_of(j->w->type);
    const form_code *code = form_code_of(f->type);
    int64_t k = j->x->k, kb = k / 32, head = plm_head_bytes(f, k);
    slice s;
    for (int64_t b = 0; b < kb || b == 0; b += SLICE) {
        int count = kb - b < SLICE ? (int)(kb - b) : SLICE;
        for (int i = 0; i < I8_PANELS; i++)
            code->decode(p->panel[i], head, b, count, &s, i);
        for (int64_t r = p->from; r < p->to;) {
            int64_t left = p->to - r;
            int rows = left >= I8_ROWS ? I8_ROWS : I8_ROWS > 2 && left >= 2 ? 2 : 1;
            const plm_i8_block *x = block_row(j->x, r);
            tile_out o = {p->y + r * j->ldy, j->ldy, b + SLICE >= kb ? p->bias : NULL, p->lanes,
                          b == 0};
            if (rows == I8_ROWS)
                i8_rows_all(&s, x, kb, b, count, f, &o);
#if I8_ROWS > 2
            else if (rows == 2)
                i8_rows_2(&s, x, kb, b, count, f, &o);
#endif
            else
                i8_rows_1(&s, x, kb, b, count, f, &o);
            r += rows;
        }
    }
}

/* ---- floats ---- */

/* Weights of columns 2 c and 2 c + 1 (or the pair itself) of a panel. */
LANE void load_pair(plm_backend_dtype type, const unsigned char *p, int64_t c, vf *even, vf *odd)
{
    if (type == PLM_BACKEND_DT_F32) {
        const float *w = (const float *)(const void *)(p + 128 * c);
        *even = vf_load(w);
        *odd = vf_load(w + 16);
    } else if (type == PLM_BACKEND_DT_F16) {
        *even = vf_f16(p + 64 * c);
        *odd = vf_f16(p + 64 * c + 32);
    } else {
        vf_bf16_pairs(p + 64 * c, even, odd);
    }
}

/* Adds pairs [c0, c1) to sum[r][p]. */
LANE void float_tile(plm_backend_dtype type, const unsigned char *const *panel,
                     const unsigned char *const *x, int rows, int64_t c0, int64_t c1,
                     vf sum[][F_PANELS])
{
    for (int64_t c = c0; c < c1; c++) {
#if LEVEL_BF16
        if (type == PLM_BACKEND_DT_BF16) {
            vb w[F_PANELS];
            UNROLL
            for (int p = 0; p < F_PANELS; p++)
                w[p] = vb_load(panel[p] + 64 * c);
            UNROLL
            for (int r = 0; r < rows; r++) {
                UNROLL
                for (int p = 0; p < F_PANELS; p++)
                    sum[r][p] = vf_dot_bf16(sum[r][p], w[p], x[r] + 4 * c);
            }
            continue;
        }
#endif
        vf even[F_PANELS], odd[F_PANELS];
        UNROLL
        for (int p = 0; p < F_PANELS; p++)
            load_pair(type, panel[p], c, &even[p], &odd[p]);
        UNROLL
        for (int r = 0; r < rows; r++) {
            const float *xr = (const float *)(const void *)x[r];
            vf x0 = vf_set1(xr[2 * c]);
            UNROLL
            for (int p = 0; p < F_PANELS; p++)
                sum[r][p] = vf_fma(even[p], x0, sum[r][p]);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            const float *xr = (const float *)(const void *)x[r];
            vf x1 = vf_set1(xr[2 * c + 1]);
            UNROLL
            for (int p = 0; p < F_PANELS; p++)
                sum[r][p] = vf_fma(odd[p], x1, sum[r][p]);
        }
    }
}

LANE void float_rows(plm_backend_dtype type, const piece *p, const unsigned char *const *x,
                     int rows, int64_t c0, int64_t c1, const tile_out *o)
{
    vf sum[F_ROWS][F_PANELS];
    tile_begin(o, rows, F_PANELS, sum[0]);
    float_tile(type, p->panel, x, rows, c0, c1, sum);
    tile_end(o, rows, F_PANELS, sum[0]);
}
#define FLOAT_ROWS(name, type)                                                                     \
    static void name(const piece *p, const unsigned char *const *x, int rows, int64_t c0,          \
                     int64_t c1, const tile_out *o)                                                \
    {                                                                                              \
        if (rows == F_ROWS)                                                                        \
            float_rows(type, p, x, F_ROWS, c0, c1, o);                                             \
        else if (rows == 2)                                                                        \
            float_rows(type, p, x, 2, c0, c1, o);                                                  \
        else                                                                                       \
            float_rows(type, p, x, 1, c0, c1, o);                                                  \
    }
FLOAT_ROWS(rows_f32, PLM_BACKEND_DT_F32)
FLOAT_ROWS(rows_f16, PLM_BACKEND_DT_F16)
FLOAT_ROWS(rows_bf16, PLM_BACKEND_DT_BF16)

/* A group of F_PANELS panels is read once a tile of rows; a slice of k keeps it within 32 KiB. */
static void float_piece(const job *j, const piece *p)
{
    plm_backend_dtype type = j->w->type;
    int64_t pairs = (j->x->k + 1) / 2, row_bytes = plm_cpu_acts_row(j->x->kind, j->x->k);
    int64_t step = p->to - p->from <= F_ROWS ? pairs
                                             : 32768 / (F_PANELS * 32 * plm_float_bytes(type));
    for (int64_t c = 0; c < pairs || c == 0; c += step) {
        int64_t end = pairs - c < step ? pairs : c + step;
        for (int64_t r = p->from; r < p->to;) {
            int64_t left = p->to - r;
            int rows = left >= F_ROWS ? F_ROWS : left >= 2 ? 2 : 1;
            const unsigned char *x[F_ROWS];
            tile_out o = {p->y + r * j->ldy, j->ldy, end == pairs ? p->bias : NULL, p->lanes,
                          c == 0};
            for (int i = 0; i < rows; i++)
                x[i] = j->x->data + (r + i) * row_bytes;
            (type == PLM_BACKEND_DT_F32   ? rows_f32
             : type == PLM_BACKEND_DT_F16 ? rows_f16
                                          : rows_bf16)(p, x, rows, c, end, &o);
            r += rows;
        }
        if (step == 0)
            break;
    }
}

/* ---- the functions of the table ---- */

static void linear_body(void *arg, int64_t from, int64_t to)
{
    const job *j = arg;
    for (int64_t u = from; u < to; u++) {
        piece p = piece_at(j, u);
        if (j->x->kind != PLM_CPU_I8)
            float_piece(j, &p);
        else if (j->panels == 1 && (I8_PANELS > 1 || p.to - p.from <= 8))
            matvec_piece(j, &p);
        else
            matmul_piece(j, &p);
    }
}

static void linear_grouped(const plm_cpu_weight *w, int64_t n_experts, const int64_t *offsets,
                           const plm_cpu_acts *x, const float *bias, float *y, int64_t ldy,
                           const plm_cpu_par *par)
{
    int64_t active = 0, most = 0;
    for (int64_t e = 0; e < n_experts; e++) {
        int64_t rows = offsets[e + 1] - offsets[e];
        active += rows > 0;
        most = rows > most ? rows : most;
    }
    if (active == 0 || w->n == 0)
        return;
    job j = {w, x, offsets, bias, y, ldy, n_experts, 0, F_PANELS};
    if (x->kind == PLM_CPU_I8)
        j.panels = most <= 8 ? 1 : I8_PANELS;
    j.groups = (plm_cpu_panels(w->n) + j.panels - 1) / j.panels;
    /* At least 64 KiB of weights to a thread: waking one costs some microseconds. */
    int64_t bytes = plm_panel_bytes(w->type, w->k) * j.panels * (most < 64 ? most + 1 : 64) / 2;
    plm_cpu_run(par, active * j.groups, 1 + 65536 / (bytes + 1), linear_body, &j);
}

static void linear(const plm_cpu_weight *w, const plm_cpu_acts *x, const float *bias, float *y,
                   int64_t ldy, const plm_cpu_par *par)
{
    int64_t offsets[2] = {0, x->m};
    linear_grouped(w, 1, offsets, x, bias, y, ldy, par);
}

static plm_cpu_kind linear_kind(plm_backend_dtype type)
{
    if (plm_float_bytes(type) == 0)
        return PLM_CPU_I8;
    return LEVEL_BF16 && type == PLM_BACKEND_DT_BF16 ? PLM_CPU_BF16 : PLM_CPU_F32;
}
