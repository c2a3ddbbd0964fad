/* Attention and cache writes of every level against their oracles. */
#include "tests/cpu_support.h"
#include "tests/oracle_support.h"

enum { SEQS = 3, BLOCK = 4, SLOTS_MAX = 400 };

typedef struct setting {
    int64_t H, G, dk, dv;
    plm_dtype cache;
    int64_t tokens[SEQS], past[SEQS];
    float softcap;
    int64_t window, chunk;
    bool causal, sinks, alibi, v_in_k, loud;
    int64_t splits;
} setting;

/* One step laid out for both sides. */
typedef struct scene {
    int64_t T, C;
    int32_t seq_token[SEQS + 1], seq_past[SEQS], block[SEQS * 64];
    int64_t token_seq[128], token_pos[128], slot_seq[SLOTS_MAX], slot_pos[SLOTS_MAX];
    float *q, *sinks, *slopes;
    unsigned char *k, *v;
    double *kd, *vd, *want;
} scene;

/* Blocks of the sequences in turn, in an order of the seed's. */
static void place(uint64_t *seed, const setting *s, scene *c)
{
    int32_t order[SLOTS_MAX / BLOCK], n = SLOTS_MAX / BLOCK, used = 0;
    for (int32_t i = 0; i < n; i++)
        order[i] = i;
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t j = (int32_t)random_below(seed, i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    c->C = SLOTS_MAX;
    for (int64_t i = 0; i < c->C; i++)
        c->slot_seq[i] = -1, c->slot_pos[i] = 0;
    c->T = 0;
    for (int q = 0; q < SEQS; q++) {
        int64_t len = s->past[q] + s->tokens[q];
        c->seq_token[q] = (int32_t)c->T;
        c->seq_past[q] = (int32_t)s->past[q];
        for (int64_t p = 0; p < len; p++) {
            if (p % BLOCK == 0)
                c->block[q * 64 + p / BLOCK] = order[used++];
            int64_t slot = c->block[q * 64 + p / BLOCK] * BLOCK + p % BLOCK;
            c->slot_seq[slot] = q;
            c->slot_pos[slot] = p;
        }
        for (int64_t i = 0; i < s->tokens[q]; i++, c->T++) {
            c->token_seq[c->T] = q;
            c->token_pos[c->T] = s->past[q] + i;
        }
    }
    c->seq_token[SEQS] = (int32_t)c->T;
    assert_true(used <= n && c->T <= 128);
}

/* Random rows of the cache; slots that nobody owns hold NaN (all ones), which must not show. */
static void fill_cache(uint64_t *seed, const scene *c, plm_dtype type, int64_t n, unsigned char **raw,
                       double **value)
{
    plm_error err;
    int64_t bytes = plm_cpu_cache_bytes((plm_backend_dtype)type, n);
    *raw = cpu_alloc((size_t)(c->C * bytes));
    *value = cpu_alloc((size_t)(c->C * n) * sizeof(double));
    fill_weights(seed, type, c->C * n, *raw);
    for (int64_t i = 0; i < c->C * n / 32 && type == PLM_DT_Q8_0; i++) {
        uint16_t d = plm_half_encode(0.01);
        memcpy(*raw + 34 * i, &d, 2);
    }
    for (int64_t s = 0; s < c->C; s++)
        if (c->slot_seq[s] < 0)
            memset(*raw + s * bytes, 0xff, (size_t)bytes);
    assert_ok(plm_decode(type, *raw, c->C * n, *value, &err), err);
}

static void run_oracle(const setting *s, scene *c)
{
    node_case k;
    double *q = cpu_alloc((size_t)(c->T * s->H * s->dk) * 8), sinks[64];
    for (int64_t i = 0; i < c->T * s->H * s->dk; i++)
        q[i] = (double)c->q[i];
    for (int64_t i = 0; i < s->H; i++)
        sinks[i] = (double)c->sinks[i];
    case_init(&k, PLM_OP_ATTENTION);
    k.c.token_seq = c->token_seq, k.c.token_pos = c->token_pos;
    k.c.slot_seq = c->slot_seq, k.c.slot_pos = c->slot_pos, k.c.n_seq = SEQS;
    case_in(&k, 0, q, DIMS(c->T, s->H, s->dk));
    case_in(&k, 1, c->kd, DIMS(c->C, s->G, s->dk));
    if (!s->v_in_k)
        case_in(&k, 2, c->vd, DIMS(c->C, s->G, s->dv));
    if (s->sinks)
        case_in(&k, 3, sinks, DIMS(s->H));
    case_int(&k, PLM_ATTR_DV, s->dv);
    case_int(&k, PLM_ATTR_V_IN_K, s->v_in_k);
    case_int(&k, PLM_ATTR_CAUSAL, s->causal);
    case_int(&k, PLM_ATTR_WINDOW, s->window);
    case_int(&k, PLM_ATTR_CHUNK, s->chunk);
    case_int(&k, PLM_ATTR_ALIBI, s->alibi);
    case_real(&k, PLM_ATTR_SOFTCAP, (double)s->softcap);
    case_real(&k, PLM_ATTR_SCALE, 0.25);
    c->want = cpu_alloc((size_t)(c->T * s->H * s->dv) * 8);
    case_out(&k, 0, c->want, DIMS(c->T, s->H, s->dv));
    case_ok(&k, plm_oracle_attention);
    free(q);
}

static plm_cpu_attention call_of(const setting *s, const scene *c, float *y, float *scratch)
{
    return (plm_cpu_attention){
        .n_seqs = SEQS, .H = s->H, .G = s->G, .dk = s->dk, .dv = s->dv, .q = c->q,
        .cache = (plm_backend_dtype)s->cache, .k = c->k, .v = s->v_in_k ? NULL : c->v,
        .seq_token = c->seq_token, .seq_past = c->seq_past, .block = c->block, .block_stride = 64,
        .block_tokens = BLOCK, .scale = 0.25f, .softcap = s->softcap, .window = s->window,
        .chunk = s->chunk, .causal = s->causal, .sinks = s->sinks ? c->sinks : NULL,
        .slopes = s->alibi ? c->slopes : NULL, .y = y, .splits = s->splits, .scratch = scratch};
}

static void open_scene(uint64_t *seed, const setting *s, scene *c)
{
    place(seed, s, c);
    fill_cache(seed, c, s->cache, s->G * s->dk, &c->k, &c->kd);
    fill_cache(seed, c, s->cache, s->G * s->dv, &c->v, &c->vd);
    c->q = cpu_alloc((size_t)(c->T * s->H * s->dk) * 4);
    c->sinks = cpu_alloc((size_t)s->H * 4);
    c->slopes = cpu_alloc((size_t)s->H * 4);
    fill_normal(seed, c->q, c->T * s->H * s->dk);
    for (int64_t i = 0; s->loud && i < c->T * s->H * s->dk; i++)
        c->q[i] *= 60; /* scores of some hundreds: e^score alone would overflow */
    fill_normal(seed, c->sinks, s->H);
    for (int64_t h = 0; h < s->H; h++) /* of a power of two of heads: arXiv 2108.12409 */
        c->slopes[h] = powf(2, -8.0f * (float)(h + 1) / (float)s->H);
}

static void close_scene(scene *c)
{
    free(c->q), free(c->sinks), free(c->slopes), free(c->k), free(c->v);
    free(c->kd), free(c->vd), free(c->want);
}

static const setting settings[] = {
    {.H = 4, .G = 2, .dk = 16, .dv = 16, .cache = PLM_DT_F32, .tokens = {7, 0, 1}, .past = {0, 3, 30},
     .causal = true, .splits = 1},
    {.H = 2, .G = 2, .dk = 32, .dv = 64, .cache = PLM_DT_F32, .tokens = {1, 35, 1}, .past = {97, 40, 64},
     .causal = true, .loud = true, .splits = 1},
    {.H = 8, .G = 1, .dk = 32, .dv = 32, .cache = PLM_DT_F16, .tokens = {13, 1, 33}, .past = {0, 63, 7},
     .causal = true, .splits = 1},
    {.H = 3, .G = 3, .dk = 64, .dv = 64, .cache = PLM_DT_Q8_0, .tokens = {1, 1, 2}, .past = {0, 127, 31},
     .causal = true, .splits = 3},
    {.H = 6, .G = 2, .dk = 40, .dv = 24, .cache = PLM_DT_BF16, .tokens = {31, 5, 1}, .past = {64, 0, 32},
     .causal = true, .window = 9, .splits = 1},
    {.H = 4, .G = 4, .dk = 7, .dv = 3, .cache = PLM_DT_F16, .tokens = {3, 2, 1}, .past = {1, 62, 127},
     .causal = true, .softcap = 5, .splits = 2},
    {.H = 8, .G = 2, .dk = 13, .dv = 33, .cache = PLM_DT_F32, .tokens = {33, 3, 1}, .past = {0, 31, 65},
     .causal = false, .sinks = true, .splits = 1},
    {.H = 8, .G = 1, .dk = 96, .dv = 64, .cache = PLM_DT_Q8_0, .tokens = {5, 1, 1}, .past = {60, 5, 100},
     .causal = true, .v_in_k = true, .splits = 4},
    {.H = 8, .G = 1, .dk = 576, .dv = 512, .cache = PLM_DT_F16, .tokens = {2, 1, 7}, .past = {33, 0, 0},
     .causal = true, .v_in_k = true, .splits = 1},
    {.H = 4, .G = 2, .dk = 32, .dv = 32, .cache = PLM_DT_F16, .tokens = {40, 1, 1}, .past = {0, 70, 16},
     .causal = true, .chunk = 16, .sinks = true, .splits = 1},
    {.H = 4, .G = 2, .dk = 31, .dv = 17, .cache = PLM_DT_F32, .tokens = {9, 9, 0}, .past = {0, 70, 16},
     .causal = true, .alibi = true, .splits = 2},
    {.H = 64, .G = 2, .dk = 16, .dv = 16, .cache = PLM_DT_BF16, .tokens = {2, 1, 1}, .past = {0, 40, 90},
     .causal = true, .window = 32, .sinks = true, .softcap = 30, .splits = 1},
};

static void equals_oracle(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("equals_oracle");
    for (size_t i = 0; i < COUNT(settings); i++) {
        const setting *s = &settings[i];
        scene c;
        open_scene(&seed, s, &c);
        run_oracle(s, &c);
        for (size_t l = 0; l < n_levels; l++) {
            char what[64];
            snprintf(what, sizeof what, "%s setting %d", levels[l]->name, (int)i);
            int64_t n = c.T * s->H * s->dv;
            guarded y = guard_open(n, (int)(i % 3));
            guarded scratch = guard_open(plm_cpu_attention_scratch(c.T, s->H, s->dv, s->splits), 0);
            plm_cpu_attention a = call_of(s, &c, y.y, scratch.y);
            levels[l]->attention(&a, i % 2 != 0 ? &backwards : NULL);
            for (int64_t j = 0; j < n; j++)
                if (!(fabs((double)y.y[j] - c.want[j]) <= (s->loud ? 1e-3 : 3e-5)))
                    fail_msg("%s: element %d is %g, want %g", what, (int)j, (double)y.y[j], c.want[j]);
            guard_close(&y, what);
            guard_close(&scratch, what);
        }
        close_scene(&c);
    }
}

/* Another placement of the blocks, and a prompt in two chunks: equal to the bit. */
static void placement_and_chunks_change_nothing(void **state)
{
    (void)state;
    enum { H = 6, G = 2, D = 32, N = 50, CUT = 21, ROW = G * D };
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("placement");
    float q[N * H * D], k[N * ROW], y[3][N * H * D];
    fill_normal(&seed, q, N * H * D);
    fill_normal(&seed, k, N * ROW);
    for (size_t l = 0; l < n_levels; l++) {
        for (int way = 0; way < 3; way++) { /* in order; reversed; reversed in two chunks */
            unsigned char *cache = cpu_alloc(SLOTS_MAX * ROW * 2);
            int32_t block[16], slot[N];
            for (int b = 0; b < 16; b++)
                block[b] = way == 0 ? b : 90 - 3 * b;
            for (int p = 0; p < N; p++)
                slot[p] = block[p / BLOCK] * BLOCK + p % BLOCK;
            levels[l]->kv_write(k, N, ROW, slot, PLM_BACKEND_DT_F16, cache, NULL);
            for (int part = 0; part < (way == 2 ? 2 : 1); part++) {
                int32_t past = part == 1 ? CUT : 0, to = way == 2 && part == 0 ? CUT : N;
                int32_t seq_token[2] = {0, to - past};
                plm_cpu_attention a = {
                    .n_seqs = 1, .H = H, .G = G, .dk = D, .dv = D, .q = q + past * H * D,
                    .cache = PLM_BACKEND_DT_F16, .k = cache, .v = cache, .seq_token = seq_token,
                    .seq_past = &past, .block = block, .block_stride = 16, .block_tokens = BLOCK,
                    .scale = 0.2f, .causal = true, .window = 30, .y = y[way] + past * H * D,
                    .splits = 1};
                levels[l]->attention(&a, NULL);
            }
            free(cache);
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        assert_memory_equal(y[0], y[2], sizeof y[0]);
    }
}

/* An infinite value of a later token does not reach the tokens before it. */
static void later_values_do_not_leak(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    float q[3 * 16], k[3 * 16], v[3 * 16], y[3 * 16];
    int32_t seq_token[2] = {0, 3}, past = 0, block = 0;
    uint64_t seed = test_seed("leak");
    fill_normal(&seed, q, 48), fill_normal(&seed, k, 48), fill_normal(&seed, v, 48);
    k[33] = NAN;
    v[40] = INFINITY;
    for (size_t l = 0; l < n_levels; l++) {
        plm_cpu_attention a = {.n_seqs = 1, .H = 1, .G = 1, .dk = 16, .dv = 16, .q = q,
                               .cache = PLM_BACKEND_DT_F32, .k = (const unsigned char *)k,
                               .v = (const unsigned char *)v, .seq_token = seq_token,
                               .seq_past = &past, .block = &block, .block_stride = 1,
                               .block_tokens = 16, .scale = 1, .causal = true, .y = y, .splits = 1};
        levels[l]->attention(&a, NULL);
        for (int i = 0; i < 32; i++)
            assert_true(isfinite(y[i]));
        assert_true(isnan(y[40]));
    }
}

/* Every type against its encoder in double; -1 leaves the cache alone. */
static void writes_round_as_told(void **state)
{
    (void)state;
    static const plm_dtype types[] = {PLM_DT_F32, PLM_DT_F16, PLM_DT_BF16, PLM_DT_Q8_0};
    static const int32_t slot[5] = {3, -1, 0, 6, 2};
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("writes");
    for (size_t ti = 0; ti < COUNT(types); ti++)
        for (int wide = 0; wide < 2; wide++) {
            int64_t n = types[ti] == PLM_DT_Q8_0 ? 96 : wide ? 37 : 64;
            int64_t bytes = plm_cpu_cache_bytes((plm_backend_dtype)types[ti], n);
            float x[5 * 96];
            double got[7 * 96], want[96];
            plm_error err;
            fill_normal(&seed, x, 5 * n);
            for (int64_t i = 0; i < n; i++)
                x[2 * n + i] *= powf(10, (float)(i % 12 - 7)); /* subnormal halves too */
            for (size_t l = 0; l < n_levels; l++) {
                unsigned char cache[7 * 96 * 4], before[96 * 4];
                memset(cache, 0x55, sizeof cache);
                memset(before, 0x55, sizeof before);
                levels[l]->kv_write(x, 5, n, slot, (plm_backend_dtype)types[ti], cache, &backwards);
                assert_ok(plm_decode(types[ti], cache, 7 * n, got, &err), err);
                for (int t = 0; t < 5; t++) {
                    if (slot[t] < 0)
                        continue;
                    for (int64_t i = 0; i < n; i++)
                        want[i] = (double)x[t * n + i];
                    if (types[ti] == PLM_DT_Q8_0)
                        assert_ok(plm_quant_row(PLM_DT_Q8_0, want, n, 0, 0, &err), err);
                    for (int64_t i = 0; i < n; i++) {
                        double w = want[i];
                        if (types[ti] != PLM_DT_Q8_0)
                            assert_ok(plm_round_to(types[ti], w, &w, &err), err);
                        assert_close(got[slot[t] * n + i], w, 1e-7, types[ti] == PLM_DT_Q8_0 ? 1e-9 : 0);
                    }
                }
                assert_memory_equal(cache + 1 * bytes, before, (size_t)bytes);
                assert_memory_equal(cache + 4 * bytes, before, (size_t)bytes);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_oracle),
        cmocka_unit_test(placement_and_chunks_change_nothing),
        cmocka_unit_test(later_values_do_not_leak),
        cmocka_unit_test(writes_round_as_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
