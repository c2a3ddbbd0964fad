/* pointwise_tile.h - rows of numbers and recurrences, over lanes. After exp_tile.h.
**
** A loop takes 16 numbers a turn; the last turn of a row loads and stores what is left of it. */

#define LANES(i, n) ((n) - (i) < 16 ? (int)((n) - (i)) : 16)
/* Numbers that a thread should have at least. */
#define GRAIN 16384

typedef struct rows_job {
    const float *a, *b, *c;
    float *y, *z;
    int32_t *index;
    int64_t n, ld, k, heads, taps;
    float eps, offset, limit, alpha;
    plm_backend_fn fn;
    bool flag;
} rows_job;

/* ---- norm ---- */

static void rms_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    for (int64_t r = from; r < to; r++) {
        const float *x = j->a + r * j->n, *add = j->b != NULL ? j->b + r * j->n : NULL;
        float *sum = j->z != NULL ? j->z + r * j->n : NULL, *y = j->y + r * j->n;
        vf square = vf_zero();
        for (int64_t i = 0; i < j->n; i += 16) {
            vf v = vf_load_part(x + i, LANES(i, j->n));
            if (add != NULL)
                v = vf_add(v, vf_load_part(add + i, LANES(i, j->n)));
            if (sum != NULL)
                vf_store_part(sum + i, v, LANES(i, j->n));
            vf_store_part(y + i, v, LANES(i, j->n));
            square = vf_fma(v, v, square);
        }
        float by = 1 / sqrtf(vf_sum(square) / (float)j->n + j->eps);
        for (int64_t i = 0; i < j->n; i += 16) {
            vf v = vf_mul(vf_load_part(y + i, LANES(i, j->n)), vf_set1(by));
            if (j->c != NULL)
                v = vf_mul(v, vf_add(vf_load_part(j->c + i, LANES(i, j->n)), vf_set1(j->offset)));
            vf_store_part(y + i, v, LANES(i, j->n));
        }
    }
}

static void rms_norm(const float *x, const float *add, const float *w, float eps, float offset,
                     int64_t rows, int64_t n, float *sum, float *y, const plm_cpu_par *par)
{
    rows_job j = {.a = x, .b = add, .c = w, .y = y, .z = sum, .n = n, .eps = eps, .offset = offset};
    plm_cpu_run(par, rows, 1 + GRAIN / (n + 1), rms_body, &j);
}

/* ---- rotary embedding ---- */

static void rotate_halves(float *x, int64_t half, const float *c, const float *s)
{
    for (int64_t i = 0; i < half; i += 16) {
        int n = LANES(i, half);
        vf a = vf_load_part(x + i, n), b = vf_load_part(x + half + i, n);
        vf ci = vf_load_part(c + i, n), si = vf_load_part(s + i, n);
        vf_store_part(x + i, vf_fnma(b, si, vf_mul(a, ci)), n);
        vf_store_part(x + half + i, vf_fma(b, ci, vf_mul(a, si)), n);
    }
}

static void rotate_pairs(float *x, int64_t half, const float *c, const float *s)
{
    for (int64_t i = 0; i < half; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * c[i] - b * s[i];
        x[2 * i + 1] = a * s[i] + b * c[i];
    }
}

static void rope_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    int64_t half = j->k / 2;
    for (int64_t t = from; t < to; t++)
        for (int64_t h = 0; h < j->heads; h++)
            (j->flag ? rotate_pairs : rotate_halves)(j->y + t * j->ld + h * j->n, half,
                                                     j->a + t * half, j->b + t * half);
}

static void rope(float *x, int64_t ldt, int64_t tokens, int64_t heads, int64_t d, int64_t dims,
                 bool interleaved, const float *cos_t, const float *sin_t, const plm_cpu_par *par)
{
    rows_job j = {.a = cos_t, .b = sin_t, .y = x, .n = d, .ld = ldt, .k = dims, .heads = heads,
                  .flag = interleaved};
    plm_cpu_run(par, tokens, 1 + GRAIN / (heads * d + 1), rope_body, &j);
}

/* ---- functions of one number ---- */

static bool fn_is_known(plm_backend_fn fn)
{
    switch (fn) {
    case PLM_BACKEND_FN_NONE:
    case PLM_BACKEND_FN_SILU:
    case PLM_BACKEND_FN_GELU_TANH:
    case PLM_BACKEND_FN_GELU_ERF:
    case PLM_BACKEND_FN_SIGMOID:
    case PLM_BACKEND_FN_SOFTPLUS:
    case PLM_BACKEND_FN_TANH:
    case PLM_BACKEND_FN_EXP:
    case PLM_BACKEND_FN_RELU:
    case PLM_BACKEND_FN_RELU2:
    case PLM_BACKEND_FN_SQRT_SOFTPLUS: return true;
    default: return false;
    }
}

/* x / (1 + e^-x): 0, not NaN, for -infinity. */
LANE vf vf_silu(vf x, vf inner)
{
    vf low = vf_max(vf_set1(-3e38f), x); /* a NaN stays: it is the second operand */
    return vf_mul(low, vf_sigmoid(inner));
}

static float fn_slow(plm_backend_fn fn, float x)
{
    float plus = fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    switch (fn) {
    case PLM_BACKEND_FN_GELU_ERF: return x < -30 ? 0 : 0.5f * x * erfcf(-x * 0.707106781f);
    case PLM_BACKEND_FN_SOFTPLUS: return x != x ? x : plus;
    case PLM_BACKEND_FN_TANH: return tanhf(x);
    case PLM_BACKEND_FN_SQRT_SOFTPLUS: return x != x ? x : sqrtf(plus);
    default: return x;
    }
}

/* fn of 16 numbers. gelu_tanh: 0.5 (1 + tanh u) = sigmoid(2 u), 2 sqrt(2 / pi) = 1.5957691. */
LANE vf vf_fn(plm_backend_fn fn, vf x)
{
    float y[16];
    switch (fn) {
    case PLM_BACKEND_FN_NONE: return x;
    case PLM_BACKEND_FN_SILU: return vf_silu(x, x);
    case PLM_BACKEND_FN_GELU_TANH: {
        vf cube = vf_mul(vf_mul(x, x), x);
        vf u = vf_fma(cube, vf_set1(0.044715f), x);
        return vf_silu(x, vf_mul(u, vf_set1(1.59576912f)));
    }
    case PLM_BACKEND_FN_SIGMOID: return vf_sigmoid(x);
    case PLM_BACKEND_FN_EXP: return vf_exp(x);
    case PLM_BACKEND_FN_RELU: return vf_max(vf_zero(), x);
    case PLM_BACKEND_FN_RELU2: {
        vf up = vf_max(vf_zero(), x);
        return vf_mul(up, up);
    }
    default:
        vf_store(y, x);
        for (int i = 0; i < 16; i++)
            y[i] = fn_slow(fn, y[i]);
        return vf_load(y);
    }
}

static void unary_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    for (int64_t b = from; b < to; b++) {
        int n = LANES(16 * b, j->n);
        vf_store_part(j->y + 16 * b, vf_fn(j->fn, vf_load_part(j->a + 16 * b, n)), n);
    }
}

static bool unary(plm_backend_fn fn, const float *x, int64_t n, float *y, const plm_cpu_par *par)
{
    rows_job j = {.a = x, .y = y, .n = n, .fn = fn};
    if (!fn_is_known(fn))
        return false;
    plm_cpu_run(par, (n + 15) / 16, GRAIN / 16, unary_body, &j);
    return true;
}

static void softcap_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    for (int64_t b = from; b < to; b++) {
        int n = LANES(16 * b, j->n);
        vf_store_part(j->y + 16 * b, vf_cap(vf_load_part(j->a + 16 * b, n), j->limit), n);
    }
}

static void softcap(float limit, const float *x, int64_t n, float *y, const plm_cpu_par *par)
{
    rows_job j = {.a = x, .y = y, .n = n, .limit = limit};
    plm_cpu_run(par, (n + 15) / 16, GRAIN / 16, softcap_body, &j);
}

static void glu_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    for (int64_t r = from; r < to; r++)
        for (int64_t i = 0; i < j->n; i += 16) {
            int n = LANES(i, j->n);
            vf g = vf_load_part(j->a + r * j->ld + i, n), u = vf_load_part(j->b + r * j->ld + i, n);
            if (j->limit > 0) {
                g = vf_min(vf_set1(j->limit), g);
                u = vf_max(vf_set1(-j->limit), vf_min(vf_set1(j->limit), u));
            }
            vf y = j->fn == PLM_BACKEND_FN_SWIGLU_OAI
                       ? vf_mul(vf_silu(g, vf_mul(g, vf_set1(j->alpha))), vf_add(u, vf_set1(1)))
                       : vf_mul(vf_fn(j->fn, g), u);
            vf_store_part(j->y + r * j->n + i, y, n);
        }
}

static bool glu(plm_backend_fn fn, float limit, float alpha, const float *gate, const float *up,
                int64_t ld, int64_t rows, int64_t n, float *y, const plm_cpu_par *par)
{
    rows_job j = {.a = gate, .b = up, .y = y, .n = n, .ld = ld, .limit = limit, .fn = fn,
                  .alpha = alpha > 0 ? alpha : 1.702f};
    if (fn != PLM_BACKEND_FN_SWIGLU_OAI && !fn_is_known(fn))
        return false;
    plm_cpu_run(par, rows, 1 + GRAIN / 4 / (n + 1), glu_body, &j);
    return true;
}

static void add_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    for (int64_t b = from; b < to; b++) {
        int n = LANES(16 * b, j->n);
        vf x = vf_load_part(j->a + 16 * b, n), z = vf_load_part(j->b + 16 * b, n);
        vf_store_part(j->y + 16 * b, j->flag ? vf_mul(x, z) : vf_add(x, z), n);
    }
}
static void add(const float *a, const float *b, int64_t n, float *y, const plm_cpu_par *par)
{
    rows_job j = {.a = a, .b = b, .y = y, .n = n};
    plm_cpu_run(par, (n + 15) / 16, GRAIN / 16, add_body, &j);
}
static void mul(const float *a, const float *b, int64_t n, float *y, const plm_cpu_par *par)
{
    rows_job j = {.a = a, .b = b, .y = y, .n = n, .flag = true};
    plm_cpu_run(par, (n + 15) / 16, GRAIN / 16, add_body, &j);
}

/* ---- rows ---- */

static void softmax_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    for (int64_t r = from; r < to; r++) {
        const float *x = j->a + r * j->n;
        float *y = j->y + r * j->n, most = -INFINITY;
        vf sum = vf_zero();
        for (int64_t i = 0; i < j->n; i++)
            most = x[i] > most ? x[i] : most;
        if (most == -INFINITY) /* nothing, or NaN which the exponential keeps */
            most = 0;
        for (int64_t i = 0; i < j->n; i += 16) {
            int n = LANES(i, j->n);
            vf e = vf_exp(vf_sub(vf_load_part(x + i, n), vf_set1(most)));
            e = vf_within(e, 0, n);
            vf_store_part(y + i, e, n);
            sum = vf_add(sum, vf_max(vf_zero(), e)); /* lanes past the row are -infinity */
        }
        float all = vf_sum(sum), by = all == 0 ? 0 : 1 / all;
        for (int64_t i = 0; i < j->n; i += 16)
            vf_store_part(y + i, vf_mul(vf_load_part(y + i, LANES(i, j->n)), vf_set1(by)),
                          LANES(i, j->n));
    }
}
static void softmax(const float *x, int64_t rows, int64_t n, float *y, const plm_cpu_par *par)
{
    rows_job j = {.a = x, .y = y, .n = n};
    plm_cpu_run(par, rows, 1 + GRAIN / 4 / (n + 1), softmax_body, &j);
}

static void argmax_body(void *arg, int64_t from, int64_t to)
{
    const rows_job *j = arg;
    for (int64_t r = from; r < to; r++) {
        const float *x = j->a + r * j->n;
        int64_t best = j->n > 0 ? 0 : -1;
        for (int64_t i = 1; i < j->n; i++)
            if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i]))
                best = i;
        j->index[r] = (int32_t)best;
    }
}
static void argmax(const float *x, int64_t rows, int64_t n, int32_t *index, const plm_cpu_par *par)
{
    rows_job j = {.a = x, .index = index, .n = n};
    plm_cpu_run(par, rows, 1 + GRAIN / (n + 1), argmax_body, &j);
}

/* ---- recurrences ---- */

typedef struct delta_job {
    const float *q, *k, *v, *g, *beta;
    bool by_channel;
    float scale;
    int64_t t0, t1, Hk, Hv, dk, dv;
    float *state, *y;
} delta_job;

/* One token of one head. S[dk,dv] <- decay S and known = S^T k in one pass; then S += k step^T and
** y = S^T (scale q) in another, step = beta (v - known). */
static void delta_token(const delta_job *j, int64_t t, int64_t h)
{
    int64_t dk = j->dk, dv = j->dv, key = (t * j->Hk + h / (j->Hv / j->Hk)) * dk;
    int64_t at = t * j->Hv + h;
    const float *k = j->k + key, *q = j->q + key, *g = j->g + (j->by_channel ? at * dk : at);
    float *S = j->state + h * dk * dv, *y = j->y + at * dv, step[PLM_CPU_HEAD_MAX + 16];
    float decay = j->by_channel ? 1 : expf(*g);
    for (int64_t c = 0; c < dv; c += 16)
        vf_store(step + c, vf_zero());
    for (int64_t i = 0; i < dk; i++) {
        vf d = vf_set1(j->by_channel ? expf(g[i]) : decay), ki = vf_set1(k[i]);
        for (int64_t c = 0; c < dv; c += 16) {
            int n = LANES(c, dv);
            vf s = vf_mul(vf_load_part(S + i * dv + c, n), d);
            vf_store_part(S + i * dv + c, s, n);
            vf_store(step + c, vf_fma(s, ki, vf_load(step + c)));
        }
    }
    for (int64_t c = 0; c < dv; c += 16) {
        vf v = vf_load_part(j->v + at * dv + c, LANES(c, dv));
        vf_store(step + c, vf_mul(vf_sub(v, vf_load(step + c)), vf_set1(j->beta[at])));
        vf_store_part(y + c, vf_zero(), LANES(c, dv));
    }
    for (int64_t i = 0; i < dk; i++) {
        vf ki = vf_set1(k[i]), qi = vf_set1(q[i] * j->scale);
        for (int64_t c = 0; c < dv; c += 16) {
            int n = LANES(c, dv);
            vf s = vf_fma(vf_load(step + c), ki, vf_load_part(S + i * dv + c, n));
            vf_store_part(S + i * dv + c, s, n);
            vf_store_part(y + c, vf_fma(s, qi, vf_load_part(y + c, n)), n);
        }
    }
}

static void delta_body(void *arg, int64_t from, int64_t to)
{
    const delta_job *j = arg;
    for (int64_t h = from; h < to; h++)
        for (int64_t t = j->t0; t < j->t1; t++)
            delta_token(j, t, h);
}

static void gated_delta(const float *q, const float *k, const float *v, const float *g,
                        bool by_channel, const float *beta, float scale, int64_t t0, int64_t t1,
                        int64_t Hk, int64_t Hv, int64_t dk, int64_t dv, float *state, float *y,
                        const plm_cpu_par *par)
{
    delta_job j = {q, k, v, g, beta, by_channel, scale, t0, t1, Hk, Hv, dk, dv, state, y};
    plm_cpu_run(par, Hv, 1, delta_body, &j);
}

typedef struct conv_job {
    const float *x, *w, *bias;
    bool silu;
    int64_t t0, t1, c, taps;
    float *tail, *y;
} conv_job;

/* Channels [from, to): input `back` tokens before t, out of the step or of the tail. */
static float conv_input(const conv_job *j, int64_t ch, int64_t t, int64_t back)
{
    int64_t at = t - back;
    return at >= j->t0 ? j->x[at * j->c + ch]
                       : j->tail[ch * (j->taps - 1) + j->taps - 1 + (at - j->t0)];
}

static void conv_body(void *arg, int64_t from, int64_t to)
{
    const conv_job *j = arg;
    int64_t past = j->taps - 1;
    for (int64_t t = j->t0; t < j->t1; t++)
        for (int64_t ch = from; ch < to; ch++) {
            float sum = j->bias != NULL ? j->bias[ch] : 0;
            for (int64_t i = 0; i < j->taps; i++)
                sum += j->w[ch * j->taps + i] * conv_input(j, ch, t, past - i);
            j->y[t * j->c + ch] = sum;
        }
    for (int64_t t = j->t0; j->silu && t < j->t1; t++)
        for (int64_t ch = from; ch < to; ch += 16) {
            float *y = j->y + t * j->c + ch;
            vf v = vf_load_part(y, LANES(ch, to));
            vf_store_part(y, vf_silu(v, v), LANES(ch, to));
        }
    /* The next tail: each of its inputs lies at or after where it is read from. */
    for (int64_t ch = from; ch < to && j->t1 > j->t0; ch++)
        for (int64_t i = 0; i < past; i++)
            j->tail[ch * past + i] = conv_input(j, ch, j->t1, past - i);
}

static void conv_causal(const float *x, const float *w, const float *bias, bool silu, int64_t t0,
                        int64_t t1, int64_t c, int64_t taps, float *tail, float *y,
                        const plm_cpu_par *par)
{
    conv_job j = {x, w, bias, silu, t0, t1, c, taps, tail, y};
    plm_cpu_run(par, c, 256, conv_body, &j);
}
