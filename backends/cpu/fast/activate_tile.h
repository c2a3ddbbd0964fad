/* activate_tile.h - activations of a linear: int8 blocks, bf16 or float rows. Over lanes. */

LANE void quantise_block(const float *x, plm_i8_block *to)
{
    vf x0 = vf_load(x), x1 = vf_load(x + 16);
    int32_t bits = vi_greatest(vi_max(vi_abs_bits(x0), vi_abs_bits(x1)));
    float most;
    memcpy(&most, &bits, 4);
    float inverse = most >= 0x1p-100f && most < INFINITY ? 127 / most : 0;
    vf by = vf_set1(inverse);
    vi q0 = vi_nearest(vf_mul(x0, by)), q1 = vi_nearest(vf_mul(x1, by));
    if (!(most < INFINITY))
        q0 = q1 = vi_zero(); /* their scale is NaN */
    int32_t s0 = vi_sum(q0), s1 = vi_sum(q1);
    vi_store_s8(to->q, q0);
    vi_store_s8(to->q + 16, q1);
    to->d = !(most < INFINITY) ? NAN : inverse > 0 ? most / 127 : 0;
    to->dsum = to->d * (float)(s0 + s1);
    to->nsum = -(s0 + s1);
    to->nsum16[0] = -s0;
    to->nsum16[1] = -s1;
    memset(to->unused, 0, sizeof to->unused);
}

static void quantise_row(const float *x, int64_t k, unsigned char *to)
{
    for (int64_t b = 0; b < k / 32; b++)
        quantise_block(x + 32 * b, (plm_i8_block *)(void *)to + b);
}

/* Nearest bf16, ties to even; a NaN stays one. */
static void round_row(const float *x, int64_t k, unsigned char *to)
{
    uint16_t *y = (uint16_t *)(void *)to;
    for (int64_t i = 0; i < k; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        uint32_t up = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        y[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16 | 64) : up);
    }
}

typedef struct activate_job {
    const float *x;
    int64_t ldx;
    plm_cpu_acts *a;
} activate_job;

static void activate_body(void *arg, int64_t from, int64_t to)
{
    const activate_job *j = arg;
    int64_t k = j->a->k, row_bytes = plm_cpu_acts_row(j->a->kind, k);
    for (int64_t r = from; r < to; r++) {
        const float *x = j->x + r * j->ldx;
        unsigned char *row = j->a->data + r * row_bytes;
        if (j->a->kind == PLM_CPU_I8) {
            quantise_row(x, k, row);
        } else if (j->a->kind == PLM_CPU_BF16) {
            round_row(x, k, row);
            if (k % 2 != 0)
                memset(row + 2 * k, 0, 2);
        } else {
            memcpy(row, x, (size_t)k * 4);
            if (k % 2 != 0)
                memset(row + 4 * k, 0, 4);
        }
    }
}

static void activate(const float *x, int64_t ldx, plm_cpu_acts *a, const plm_cpu_par *par)
{
    activate_job j = {x, ldx, a};
    plm_cpu_run(par, a->m, 1 + 16384 / (a->k + 1), activate_body, &j);
}
