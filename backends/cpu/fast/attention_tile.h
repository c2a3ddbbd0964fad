/* attention_tile.h - attention over the paged cache, over lanes. After exp_tile.h. */

#define TILE_KEYS 32 /* positions of a tile: two vectors of scores */
#define TILE_ROWS 24 /* rows (token, head of the group) of a piece of work */

/* Sixteen numbers from number i of a head; those past n are 0. */
LANE vf cache_load(plm_backend_dtype type, const unsigned char *head, int64_t i, int n)
{
    unsigned char part[64] = {0};
    if (type == PLM_BACKEND_DT_F32) {
        if (n >= 16)
            return vf_load((const float *)(const void *)(head + 4 * i));
        memcpy(part, head + 4 * i, 4 * (size_t)n);
        return vf_load((const float *)(const void *)part);
    }
    if (type == PLM_BACKEND_DT_Q8_0) { /* heads are whole blocks */
        const unsigned char *b = head + i / 32 * 34;
        return vf_mul(vf_s8(b + 2 + i % 32), vf_set1(plm_half_to_float(plm_u16_at(b))));
    }
    const unsigned char *p = head + 2 * i;
    if (n < 16) {
        memcpy(part, p, 2 * (size_t)n);
        p = part;
    }
    return type == PLM_BACKEND_DT_F16 ? vf_f16(p) : vf_bf16(p);
}

/* One tile of one kv head, as floats. */
typedef struct kv_tile {
    float k[PLM_CPU_HEAD_MAX + 16][TILE_KEYS]; /* transposed */
    float v[TILE_KEYS][PLM_CPU_HEAD_MAX + 16]; /* rows padded with 0 to a multiple of 32 */
    float p[TILE_ROWS][TILE_KEYS];             /* scores, then weights */
    bool finite;                               /* all of v */
} kv_tile;

typedef struct attn_piece {
    const plm_cpu_attention *a;
    int64_t s, g, first, rows; /* rows first .. of the sequence's (token, head of the group) */
    int64_t lo, hi;            /* positions */
    float *y[TILE_ROWS];
    float most[TILE_ROWS], sum[TILE_ROWS]; /* of the softmax so far */
    int64_t pos[TILE_ROWS];
} attn_piece;

/* Where the heads of positions p0 .. of a tile stand in a cache of head size d; NULL for positions that
** the piece does not look at. */
static void find_heads(const attn_piece *w, const unsigned char *cache, int64_t d, int64_t p0,
                       const unsigned char *head[TILE_KEYS])
{
    const plm_cpu_attention *a = w->a;
    const int32_t *block = a->block + w->s * a->block_stride + p0 / a->block_tokens;
    int64_t bytes = plm_cpu_cache_bytes(a->cache, d), within = p0 % a->block_tokens;
    for (int64_t p = p0; p < p0 + TILE_KEYS; p++, within++) {
        if (within == a->block_tokens) {
            within = 0;
            block++;
        }
        head[p - p0] = p >= w->lo && p < w->hi
                           ? cache + ((*block * a->block_tokens + within) * a->G + w->g) * bytes
                           : NULL;
    }
}

/* Asks for the next tile's heads: they lie apart, so the hardware does not see them coming. */
static void ask_for_tile(const attn_piece *w, const unsigned char *cache, int64_t d, int64_t p0)
{
    const unsigned char *head[TILE_KEYS];
    int64_t bytes = plm_cpu_cache_bytes(w->a->cache, d);
    find_heads(w, cache, d, p0, head);
    for (int j = 0; j < TILE_KEYS; j++)
        for (int64_t i = 0; head[j] != NULL && i < bytes; i += 64)
            __builtin_prefetch(head[j] + i);
}

static const float *query(const attn_piece *w, int64_t r)
{
    const plm_cpu_attention *a = w->a;
    int64_t group = a->H / a->G, i = w->first + r;
    int64_t t = a->seq_token[w->s] + i / group, h = w->g * group + i % group;
    return a->q + (t * a->H + h) * a->dk;
}

/* whole: every position has a head, and heads are multiples of 16 numbers. */
LANE void load_keys(const attn_piece *w, plm_backend_dtype type, bool whole,
                    const unsigned char *const *head, kv_tile *t)
{
    int64_t dk = w->a->dk;
    for (int half = 0; half < TILE_KEYS; half += 16)
        for (int64_t i = 0; i < dk; i += 16) {
            int n = whole || dk - i >= 16 ? 16 : (int)(dk - i);
            vf x[16];
            UNROLL
            for (int j = 0; j < 16; j++)
                x[j] = whole || head[half + j] != NULL ? cache_load(type, head[half + j], i, n)
                                                      : vf_zero();
            vf_transpose(x);
            UNROLL
            for (int j = 0; j < 16; j++) /* the array has room for lanes past dk */
                vf_store(&t->k[i + j][half], x[j]);
        }
}

LANE void load_values(const attn_piece *w, plm_backend_dtype type, bool whole,
                      const unsigned char *const *head, kv_tile *t)
{
    int64_t dv = w->a->dv;
    vi most = vi_zero();
    for (int j = 0; j < TILE_KEYS; j++)
        for (int64_t i = 0; i < (whole ? dv : plm_round_up(dv, 32)); i += 16) {
            int n = whole || dv - i >= 16 ? 16 : dv - i < 0 ? 0 : (int)(dv - i);
            vf x = whole || (head[j] != NULL && n > 0) ? cache_load(type, head[j], i, n) : vf_zero();
            if (n < 16) {
                float part[16] = {0}; /* of v_in_k the lanes past dv are the key's */
                vf_store_part(part, x, n);
                x = vf_load(part);
            }
            most = vi_max(most, vi_abs_bits(x));
            vf_store(&t->v[j][i], x);
        }
    t->finite = vi_greatest(most) < 0x7f800000;
}

/* Scores of the single token of a step: dot products along the head, the sixteen of as many positions
** added up by one transposition, which costs less than transposing the keys for a few rows. */
LANE void score_dots(const attn_piece *w, plm_backend_dtype type, bool whole,
                     const unsigned char *const *head, int64_t r, kv_tile *t)
{
    int64_t dk = w->a->dk;
    const float *q = query(w, r);
    for (int half = 0; half < TILE_KEYS; half += 16) {
        vf s[16];
        UNROLL
        for (int j = 0; j < 16; j++)
            s[j] = vf_zero();
        for (int64_t i = 0; i < dk; i += 16) {
            int n = whole || dk - i >= 16 ? 16 : (int)(dk - i);
            vf x = n == 16 ? vf_load(q + i) : vf_load_part(q + i, n);
            UNROLL
            for (int j = 0; j < 16; j++)
                if (whole || head[half + j] != NULL)
                    s[j] = vf_fma(cache_load(type, head[half + j], i, n), x, s[j]);
        }
        vf_transpose(s);
        UNROLL
        for (int j = 8; j > 0; j /= 2)
            for (int i = 0; i < j; i++)
                s[i] = vf_add(s[i], s[i + j]);
        vf_store(&t->p[r][half], s[0]);
    }
}

/* A step of one token: its few rows take score_dots. The choice looks at the sequence alone. */
static bool takes_dots(const attn_piece *w)
{
    const plm_cpu_attention *a = w->a;
    return a->seq_token[w->s + 1] - a->seq_token[w->s] == 1 && a->H / a->G <= 4;
}

LANE void fill_tile(const attn_piece *w, plm_backend_dtype type, bool whole,
                    const unsigned char *const *keys, const unsigned char *const *values, kv_tile *t)
{
    bool dots = takes_dots(w);
    if (!dots)
        load_keys(w, type, whole, keys, t);
    for (int64_t r = 0; dots && r < w->rows; r++)
        score_dots(w, type, whole, keys, r, t);
    load_values(w, type, whole, values, t);
}

LANE void load_tile_of(const attn_piece *w, plm_backend_dtype type, int64_t p0, kv_tile *t)
{
    const plm_cpu_attention *a = w->a;
    const unsigned char *keys[TILE_KEYS], *values[TILE_KEYS];
    find_heads(w, a->k, a->dk, p0, keys);
    ask_for_tile(w, a->k, a->dk, p0 + TILE_KEYS);
    if (a->v != NULL) {
        find_heads(w, a->v, a->dv, p0, values);
        ask_for_tile(w, a->v, a->dv, p0 + TILE_KEYS);
    }
    const unsigned char *const *v = a->v != NULL ? values : keys;
    /* 32, as value_rows takes two vectors at once */
    if (p0 >= w->lo && p0 + TILE_KEYS <= w->hi && a->dk % 32 == 0 && a->dv % 32 == 0)
        fill_tile(w, type, true, keys, v, t);
    else
        fill_tile(w, type, false, keys, v, t);
}

static void load_tile(const attn_piece *w, int64_t p0, kv_tile *t)
{
    switch (w->a->cache) {
    case PLM_BACKEND_DT_F16: load_tile_of(w, PLM_BACKEND_DT_F16, p0, t); return;
    case PLM_BACKEND_DT_BF16: load_tile_of(w, PLM_BACKEND_DT_BF16, p0, t); return;
    case PLM_BACKEND_DT_Q8_0: load_tile_of(w, PLM_BACKEND_DT_Q8_0, p0, t); return;
    default: load_tile_of(w, PLM_BACKEND_DT_F32, p0, t); return;
    }
}

/* p[r][..] = q k^T of `rows` rows. */
LANE void score_rows(const attn_piece *w, kv_tile *t, int64_t first, int rows)
{
    const float *q[6];
    vf s[6][2];
    UNROLL
    for (int r = 0; r < rows; r++) {
        q[r] = query(w, first + r);
        s[r][0] = s[r][1] = vf_zero();
    }
    for (int64_t i = 0; i < w->a->dk; i++) {
        vf k0 = vf_load(&t->k[i][0]), k1 = vf_load(&t->k[i][16]);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf x = vf_set1(q[r][i]);
            s[r][0] = vf_fma(x, k0, s[r][0]);
            s[r][1] = vf_fma(x, k1, s[r][1]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        vf_store(&t->p[first + r][0], s[r][0]);
        vf_store(&t->p[first + r][16], s[r][1]);
    }
}

/* y[r] = keep[r] y[r] + p[r] v of `rows` rows. */
LANE void value_rows(const attn_piece *w, const kv_tile *t, int64_t first, int rows,
                     const float *keep)
{
    for (int64_t i = 0; i < w->a->dv; i += 32) {
        int n0 = w->a->dv - i < 16 ? (int)(w->a->dv - i) : 16;
        int n1 = w->a->dv - i - 16 < 0 ? 0 : w->a->dv - i < 32 ? (int)(w->a->dv - i - 16) : 16;
        vf s[6][2];
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf by = vf_set1(keep[first + r]);
            s[r][0] = vf_mul(vf_load_part(w->y[first + r] + i, n0), by);
            s[r][1] = n1 > 0 ? vf_mul(vf_load_part(w->y[first + r] + i + 16, n1), by) : vf_zero();
        }
        for (int j = 0; j < TILE_KEYS; j++) {
            vf v0 = vf_load(&t->v[j][i]), v1 = vf_load(&t->v[j][i + 16]);
            UNROLL
            for (int r = 0; r < rows; r++) {
                vf x = vf_set1(t->p[first + r][j]);
                s[r][0] = vf_fma(x, v0, s[r][0]);
                s[r][1] = vf_fma(x, v1, s[r][1]);
            }
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf_store_part(w->y[first + r] + i, s[r][0], n0);
            if (n1 > 0)
                vf_store_part(w->y[first + r] + i + 16, s[r][1], n1);
        }
    }
}

/* As value_rows for one row, where a value is no finite number: what weighs 0 is not touched. */
static void value_row_slow(const attn_piece *w, const kv_tile *t, int64_t r, const float *keep)
{
    for (int64_t i = 0; i < w->a->dv; i++) {
        float s = w->y[r][i] * keep[r];
        for (int j = 0; j < TILE_KEYS; j++)
            if (t->p[r][j] != 0)
                s += t->p[r][j] * t->v[j][i];
        w->y[r][i] = s;
    }
}

static void score_all(const attn_piece *w, kv_tile *t)
{
    int64_t r = 0;
    for (; w->rows - r >= 6; r += 6)
        score_rows(w, t, r, 6);
    for (; w->rows - r >= 2; r += 2)
        score_rows(w, t, r, 2);
    for (; r < w->rows; r++)
        score_rows(w, t, r, 1);
}

static void value_all(const attn_piece *w, const kv_tile *t, const float *keep)
{
    int64_t r = 0;
    for (; t->finite && w->rows - r >= 6; r += 6)
        value_rows(w, t, r, 6, keep);
    for (; t->finite && w->rows - r >= 2; r += 2)
        value_rows(w, t, r, 2, keep);
    for (; t->finite && r < w->rows; r++)
        value_rows(w, t, r, 1, keep);
    for (; r < w->rows; r++)
        value_row_slow(w, t, r, keep);
}

/* First and one past the last of the tile's 32 positions that row r attends. */
static void row_range(const attn_piece *w, int64_t r, int64_t p0, int *lo, int *hi)
{
    const plm_cpu_attention *a = w->a;
    int64_t q = w->pos[r], from = w->lo, to = w->hi;
    if (a->causal && q + 1 < to)
        to = q + 1;
    if (a->window > 0 && q - a->window + 1 > from)
        from = q - a->window + 1;
    if (a->chunk > 0) {
        int64_t start = q / a->chunk * a->chunk;
        from = start > from ? start : from;
        to = start + a->chunk < to ? start + a->chunk : to;
    }
    *lo = from < p0 ? 0 : from - p0 > TILE_KEYS ? TILE_KEYS : (int)(from - p0);
    *hi = to < p0 ? 0 : to - p0 > TILE_KEYS ? TILE_KEYS : (int)(to - p0);
}

/* Scores of row r become weights relative to the greatest so far; returns what the sums before are
** multiplied by. */
static float weigh_row(attn_piece *w, kv_tile *t, int64_t r, int64_t p0)
{
    const plm_cpu_attention *a = w->a;
    int64_t group = a->H / a->G, h = w->g * group + (w->first + r) % group;
    int lo, hi;
    vf s[2];
    row_range(w, r, p0, &lo, &hi);
    for (int i = 0; i < 2; i++) {
        s[i] = vf_mul(vf_load(&t->p[r][16 * i]), vf_set1(a->scale));
        if (a->softcap > 0)
            s[i] = vf_cap(s[i], a->softcap);
        if (a->slopes != NULL) {
            static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
            vf away = vf_add(vf_load(lane), vf_set1((float)(p0 + 16 * i - w->pos[r])));
            s[i] = vf_fma(away, vf_set1(a->slopes[h]), s[i]);
        }
        s[i] = vf_within(s[i], lo - 16 * i, hi - 16 * i);
    }
    float most = fmaxf(w->most[r], vf_greatest(vf_max(s[0], s[1])));
    if (most == -INFINITY || lo >= hi) {
        vf_store(&t->p[r][0], vf_zero());
        vf_store(&t->p[r][16], vf_zero());
        return 1;
    }
    s[0] = vf_exp(vf_sub(s[0], vf_set1(most)));
    s[1] = vf_exp(vf_sub(s[1], vf_set1(most)));
    vf_store(&t->p[r][0], s[0]);
    vf_store(&t->p[r][16], s[1]);
    float keep = expf(w->most[r] - most);
    w->most[r] = most;
    w->sum[r] = w->sum[r] * keep + vf_sum(vf_add(s[0], s[1]));
    return keep;
}

/* The sink joins the denominator; y becomes the mean. No weight at all: 0. */
static void finish_row(const plm_cpu_attention *a, int64_t h, float most, float sum, float *y)
{
    float sink = a->sinks != NULL ? a->sinks[h] : -INFINITY, all = fmaxf(most, sink);
    float by = all == -INFINITY ? 0 : expf(most - all) /
                                          (sum * expf(most - all) + expf(sink - all));
    for (int64_t i = 0; i < a->dv; i++)
        y[i] *= by;
}

/* Pieces of sequence s: row tiles times kv heads. */
static int64_t seq_tiles(const plm_cpu_attention *a, int64_t s)
{
    int64_t rows = (a->seq_token[s + 1] - a->seq_token[s]) * (a->H / a->G);
    return (rows + TILE_ROWS - 1) / TILE_ROWS;
}

/* Partial results of a split: dv sums, greatest score, sum of weights. */
static float *split_at(const plm_cpu_attention *a, int64_t t, int64_t h, int64_t split)
{
    return a->scratch + ((t * a->H + h) * a->splits + split) * (a->dv + 2);
}

static void run_piece(attn_piece *w)
{
    kv_tile t;
    for (int64_t p0 = w->lo / TILE_KEYS * TILE_KEYS; p0 < w->hi; p0 += TILE_KEYS) {
        float keep[TILE_ROWS];
        load_tile(w, p0, &t);
        if (!takes_dots(w))
            score_all(w, &t);
        for (int64_t r = 0; r < w->rows; r++)
            keep[r] = weigh_row(w, &t, r, p0);
        value_all(w, &t, keep);
    }
}

/* Positions that some row of the piece may attend, cut to the split. */
static void set_range(attn_piece *w, int64_t split)
{
    const plm_cpu_attention *a = w->a;
    int64_t len = a->seq_past[w->s] + a->seq_token[w->s + 1] - a->seq_token[w->s];
    int64_t first = w->pos[0], last = w->pos[w->rows - 1];
    int64_t lo = a->window > 0 && first - a->window + 1 > 0 ? first - a->window + 1 : 0;
    if (a->chunk > 0 && first / a->chunk * a->chunk > lo)
        lo = first / a->chunk * a->chunk;
    int64_t hi = a->causal ? last + 1 : len;
    if (a->chunk > 0 && last / a->chunk * a->chunk + a->chunk < hi)
        hi = last / a->chunk * a->chunk + a->chunk;
    int64_t step = plm_round_up((len + a->splits - 1) / a->splits, TILE_KEYS);
    w->lo = lo > split * step ? lo : split * step;
    w->hi = hi < (split + 1) * step ? hi : (split + 1) * step;
}

static void attention_body(void *arg, int64_t from, int64_t to)
{
    const plm_cpu_attention *a = arg;
    int64_t group = a->H / a->G;
    for (int64_t u = from; u < to; u++) {
        int64_t split = u % a->splits, left = u / a->splits;
        attn_piece w = {.a = a};
        while (left >= seq_tiles(a, w.s) * a->G)
            left -= seq_tiles(a, w.s++) * a->G;
        int64_t tokens = a->seq_token[w.s + 1] - a->seq_token[w.s];
        w.g = left % a->G;
        w.first = left / a->G * TILE_ROWS;
        w.rows = tokens * group - w.first < TILE_ROWS ? tokens * group - w.first : TILE_ROWS;
        for (int64_t r = 0; r < w.rows; r++) {
            int64_t i = w.first + r, t = a->seq_token[w.s] + i / group;
            int64_t h = w.g * group + i % group;
            w.pos[r] = a->seq_past[w.s] + i / group;
            w.most[r] = -INFINITY;
            w.y[r] = a->splits > 1 ? split_at(a, t, h, split) : a->y + (t * a->H + h) * a->dv;
            memset(w.y[r], 0, (size_t)a->dv * sizeof(float));
        }
        set_range(&w, split);
        run_piece(&w);
        for (int64_t r = 0; r < w.rows; r++) {
            if (a->splits > 1) {
                w.y[r][a->dv] = w.most[r];
                w.y[r][a->dv + 1] = w.sum[r];
            } else {
                finish_row(a, w.g * group + (w.first + r) % group, w.most[r], w.sum[r], w.y[r]);
            }
        }
    }
}

/* Rows [from, to) of (token, head): splits joined in order. */
static void join_body(void *arg, int64_t from, int64_t to)
{
    const plm_cpu_attention *a = arg;
    for (int64_t i = from; i < to; i++) {
        float *y = a->y + i * a->dv, most = -INFINITY, sum = 0;
        memset(y, 0, (size_t)a->dv * sizeof *y);
        for (int64_t s = 0; s < a->splits; s++)
            most = fmaxf(most, split_at(a, i / a->H, i % a->H, s)[a->dv]);
        for (int64_t s = 0; s < a->splits; s++) {
            const float *part = split_at(a, i / a->H, i % a->H, s);
            if (part[a->dv + 1] == 0)
                continue;
            float by = expf(part[a->dv] - most);
            sum += by * part[a->dv + 1];
            for (int64_t j = 0; j < a->dv; j++)
                y[j] += by * part[j];
        }
        finish_row(a, i % a->H, most, sum, y);
    }
}

static void attention(const plm_cpu_attention *a, const plm_cpu_par *par)
{
    int64_t units = 0;
    union { /* bodies only read it */
        const plm_cpu_attention *in;
        void *arg;
    } u = {a};
    for (int64_t s = 0; s < a->n_seqs; s++)
        units += seq_tiles(a, s) * a->G;
    plm_cpu_run(par, units * a->splits, 1, attention_body, u.arg);
    if (a->splits > 1)
        plm_cpu_run(par, a->seq_token[a->n_seqs] * a->H, 64, join_body, u.arg);
}

/* ---- writing the cache ---- */

LANE void write_q8(const float *x, unsigned char *to)
{
    vf a = vf_load(x), b = vf_load(x + 16);
    int32_t bits = vi_greatest(vi_max(vi_abs_bits(a), vi_abs_bits(b)));
    float most;
    memcpy(&most, &bits, 4);
    float d = most / 127, by = d >= 0x1p-100f && most < INFINITY ? 1 / d : 0;
    uint16_t h = plm_float_to_half(most < INFINITY ? d : NAN);
    memcpy(to, &h, 2);
    vi_store_s8((signed char *)to + 2, vi_nearest(vf_mul(a, vf_set1(by))));
    vi_store_s8((signed char *)to + 18, vi_nearest(vf_mul(b, vf_set1(by))));
}

typedef struct write_job {
    const float *x;
    int64_t n;
    const int32_t *slot;
    plm_backend_dtype type;
    unsigned char *data;
} write_job;

static void write_body(void *arg, int64_t from, int64_t to)
{
    const write_job *j = arg;
    int64_t bytes = plm_cpu_cache_bytes(j->type, j->n);
    for (int64_t t = from; t < to; t++) {
        const float *x = j->x + t * j->n;
        unsigned char *row = j->data + (j->slot[t] < 0 ? 0 : j->slot[t]) * bytes;
        if (j->slot[t] < 0)
            continue;
        if (j->type == PLM_BACKEND_DT_F32)
            memcpy(row, x, (size_t)bytes);
        else if (j->type == PLM_BACKEND_DT_BF16)
            round_row(x, j->n, row);
        else if (j->type == PLM_BACKEND_DT_Q8_0)
            for (int64_t i = 0; i < j->n; i += 32)
                write_q8(x + i, row + i / 32 * 34);
        else
            for (int64_t i = 0; i < j->n; i += 16) {
                int n = j->n - i < 16 ? (int)(j->n - i) : 16;
                unsigned char part[32];
                vf_store_f16(part, vf_load_part(x + i, n));
                memcpy(row + 2 * i, part, 2 * (size_t)n);
            }
    }
}

static void kv_write(const float *x, int64_t tokens, int64_t n, const int32_t *slot,
                     plm_backend_dtype cache, unsigned char *data, const plm_cpu_par *par)
{
    write_job j = {x, n, slot, cache, data};
    plm_cpu_run(par, tokens, 1 + 16384 / (n + 1), write_body, &j);
}
