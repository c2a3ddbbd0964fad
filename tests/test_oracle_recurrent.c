/* test_oracle_recurrent.c - convolution, delta rule, state space scan and pooling: against closed
** forms and explicit matrices, and fed in one step or in random chunks of interleaved sequences. */
#include "tests/oracle_support.h"

enum { SEQS = 2, N = 13 };

/* Tokens of two sequences in an order that mixes them, split at random into steps. */
typedef struct stream {
    int64_t seq[N], pos[N];
} stream;

static void make_stream(stream *s, uint64_t *seed)
{
    int64_t next[SEQS] = {0};
    for (int64_t t = 0; t < N; t++) {
        s->seq[t] = random_below(seed, SEQS);
        s->pos[t] = next[s->seq[t]]++;
    }
}

/* Runs an op over the stream in steps. Operands per_token[i] > 0 are cut by step (that many
** numbers a token); the state is carried in place. */
typedef struct run {
    plm_oracle_fn oracle;
    node_case k;
    uint32_t state;    /* its operand */
    int64_t out_token; /* numbers a token of output 0 */
    int64_t per_token[PLM_IN_MAX];
} run;

static void run_steps(run *r, const stream *s, uint64_t *seed, bool whole, double *y)
{
    node_case k = r->k;
    k.c.g = &k.g, k.c.n = &k.n;
    k.g.attrs = k.attrs, k.g.values = k.values;
    plm_array full[PLM_IN_MAX], out = r->k.out[0];
    memcpy(full, k.in, sizeof full);
    for (int64_t at = 0, n; at < N; at += n) {
        n = whole ? N : 1 + random_below(seed, N - at);
        for (uint32_t i = 0; i < k.n.n_in; i++) {
            if (r->per_token[i] == 0)
                continue;
            k.in[i].data = full[i].data + at * r->per_token[i];
            k.in[i].dim[0] = n;
        }
        k.out[0] = out;
        k.out[0].data = y + at * r->out_token;
        k.out[0].dim[0] = n;
        k.out[1] = k.in[r->state];
        k.c.token_seq = s->seq + at;
        k.c.token_pos = s->pos + at;
        assert_ok(r->oracle(&k.c, k.in, k.out, &k.err), k.err);
    }
}

/* Whole, then in ten random splits, each from a state of zeros: equal results and equal last
 * states. */
static void check_splits(run *r, const stream *s, uint64_t *seed, double rel)
{
    plm_array state = r->k.in[r->state];
    size_t state_count = (size_t)plm_array_count(&state), out_count = (size_t)(N * r->out_token);
    double *y = calloc(2 * out_count, sizeof *y), *last = calloc(state_count, sizeof *last);
    assert_true(y != NULL && last != NULL);
    memset(state.data, 0, state_count * sizeof *state.data);
    run_steps(r, s, seed, true, y);
    memcpy(last, state.data, state_count * sizeof *last);
    for (int round = 0; round < 10; round++) {
        memset(state.data, 0, state_count * sizeof *state.data);
        run_steps(r, s, seed, false, y + out_count);
        assert_all_close(y + out_count, y, out_count, rel, rel);
        assert_all_close(state.data, last, state_count, rel, rel);
    }
    free(y);
    free(last);
}

static void conv_against_the_whole_history(void **state)
{
    (void)state;
    enum { CH = 3, TAPS = 4 };
    uint64_t seed = test_seed("conv");
    double x[N * CH], w[CH * TAPS], bias[CH], tail[SEQS * CH * (TAPS - 1)] = {0}, y[N * CH];
    stream s;
    make_stream(&s, &seed);
    fill_random(&seed, x, COUNT(x));
    fill_random(&seed, w, COUNT(w));
    fill_random(&seed, bias, COUNT(bias));
    run r = {.oracle = plm_oracle_conv_causal, .state = 2, .out_token = CH, .per_token = {CH}};
    case_init(&r.k, PLM_OP_CONV_CAUSAL);
    case_int(&r.k, PLM_ATTR_FN, PLM_FN_SILU);
    case_in(&r.k, 0, x, DIMS(N, CH));
    case_in(&r.k, 1, w, DIMS(CH, TAPS));
    case_in(&r.k, 2, tail, DIMS(SEQS, CH, TAPS - 1));
    case_in(&r.k, 3, bias, DIMS(CH));
    r.k.out[0] = make_array(y, DIMS(N, CH));
    r.k.n.n_out = 2;
    run_steps(&r, &s, &seed, true, y);
    /* The direct sum: every earlier token of the sequence, weighted by its distance. */
    for (int t = 0; t < N; t++)
        for (int c = 0; c < CH; c++) {
            double sum = bias[c];
            for (int u = 0; u <= t; u++) {
                int64_t back = s.pos[t] - s.pos[u];
                if (s.seq[u] == s.seq[t] && back < TAPS)
                    sum += w[c * TAPS + TAPS - 1 - back] * x[u * CH + c];
            }
            assert_close(y[t * CH + c], sum / (1 + exp(-sum)), 1e-13, 1e-15);
        }
    check_splits(&r, &s, &seed, 0);
}

static void conv_by_hand_and_refusals(void **state)
{
    (void)state;
    /* Tail 1 2, taps 100 10 1: 3 -> 100 + 20 + 3; next tail 2 3. A single tap has no tail. */
    double x[1] = {3}, w[3] = {100, 10, 1}, tail[2] = {1, 2}, next[2], y[1];
    const int64_t seq[1] = {0};
    node_case k;
    case_init(&k, PLM_OP_CONV_CAUSAL);
    k.c.token_seq = seq;
    case_in(&k, 0, x, DIMS(1, 1));
    case_in(&k, 1, w, DIMS(1, 3));
    case_in(&k, 2, tail, DIMS(1, 1, 2));
    case_out(&k, 0, y, DIMS(1, 1));
    case_out(&k, 1, next, DIMS(1, 1, 2));
    case_ok(&k, plm_oracle_conv_causal);
    assert_true(y[0] == 123 && next[0] == 2 && next[1] == 3 && tail[0] == 1);
    case_in(&k, 2, tail, DIMS(1, 1, 1));
    case_refused(&k, plm_oracle_conv_causal, "tail");
    case_in(&k, 1, w, DIMS(1, 1));
    case_in(&k, 2, tail, DIMS(1, 1, 0));
    case_out(&k, 1, next, DIMS(1, 1, 0));
    case_ok(&k, plm_oracle_conv_causal);
    assert_true(y[0] == 300);
    case_in(&k, 2, tail, DIMS(0, 1, 0)); /* no state for the token's sequence */
    case_out(&k, 1, next, DIMS(0, 1, 0));
    case_refused(&k, plm_oracle_conv_causal, "batch");
    case_in(&k, 0, x, DIMS(0, 1)); /* no tokens */
    case_out(&k, 0, y, DIMS(0, 1));
    case_ok(&k, plm_oracle_conv_causal);
}

/* The recurrence as matrices: S_t = (I - beta k k^T) diag(e^g) S_{t-1} + beta k v^T, y = scale S^T
** q, the product of the two matrices made explicitly. */
static void expect_delta(const stream *s, int hk, int hv, int dk, int dv, const double *q,
                         const double *k, const double *v, const double *g, bool by_channel,
                         const double *beta, double scale, double *y)
{
    double S[SEQS][4][16] = {{{0}}}; /* hv <= 4, dk dv <= 16 */
    for (int t = 0; t < N; t++)
        for (int h = 0; h < hv; h++) {
            const double *kt = &k[(t * hk + h / (hv / hk)) * dk], *vt = &v[(t * hv + h) * dv];
            const double *qt = &q[(t * hk + h / (hv / hk)) * dk];
            double A[16], next[16], *old = S[s->seq[t]][h], b = beta[t * hv + h];
            for (int i = 0; i < dk; i++)
                for (int j = 0; j < dk; j++) {
                    double e = exp(by_channel ? g[(t * hv + h) * dk + j] : g[t * hv + h]);
                    A[i * dk + j] = ((i == j) - b * kt[i] * kt[j]) * e;
                }
            for (int i = 0; i < dk; i++)
                for (int j = 0; j < dv; j++) {
                    next[i * dv + j] = b * kt[i] * vt[j];
                    for (int m = 0; m < dk; m++)
                        next[i * dv + j] += A[i * dk + m] * old[m * dv + j];
                }
            memcpy(old, next, sizeof next);
            for (int j = 0; j < dv; j++) {
                y[(t * hv + h) * dv + j] = 0;
                for (int i = 0; i < dk; i++)
                    y[(t * hv + h) * dv + j] += scale * qt[i] * old[i * dv + j];
            }
        }
}

static void gated_delta_against_matrices(void **state)
{
    (void)state;
    enum { HK = 2, HV = 4, DK = 3, DV = 4 };
    uint64_t seed = test_seed("gated_delta");
    stream s;
    make_stream(&s, &seed);
    for (int by_channel = 0; by_channel < 2; by_channel++) {
        double q[N * HK * DK], k[N * HK * DK], v[N * HV * DV], g[N * HV * DK], beta[N * HV];
        double S[SEQS * HV * DK * DV] = {0}, y[N * HV * DV], want[N * HV * DV];
        fill_random(&seed, q, COUNT(q));
        fill_random(&seed, k, COUNT(k));
        fill_random(&seed, v, COUNT(v));
        fill_random(&seed, g, COUNT(g));
        fill_random(&seed, beta, COUNT(beta));
        for (size_t i = 0; i < COUNT(g); i++)
            g[i] = g[i] - 1; /* log decays are negative */
        run r = {.oracle = plm_oracle_gated_delta, .state = 5, .out_token = HV * DV};
        const int64_t cut[] = {HK * DK, HK * DK, HV * DV, by_channel ? HV * DK : HV, HV, 0};
        memcpy(r.per_token, cut, sizeof cut);
        case_init(&r.k, PLM_OP_GATED_DELTA);
        if (by_channel)
            case_real(&r.k, PLM_ATTR_SCALE, 0.3);
        case_in(&r.k, 0, q, DIMS(N, HK, DK));
        case_in(&r.k, 1, k, DIMS(N, HK, DK));
        case_in(&r.k, 2, v, DIMS(N, HV, DV));
        if (by_channel)
            case_in(&r.k, 3, g, DIMS(N, HV, DK));
        else
            case_in(&r.k, 3, g, DIMS(N, HV));
        case_in(&r.k, 4, beta, DIMS(N, HV));
        case_in(&r.k, 5, S, DIMS(SEQS, HV, DK, DV));
        r.k.out[0] = make_array(y, DIMS(N, HV, DV));
        r.k.n.n_out = 2;
        run_steps(&r, &s, &seed, true, y);
        expect_delta(&s, HK, HV, DK, DV, q, k, v, g, by_channel, beta,
                     by_channel ? 0.3 : 1 / sqrt(3), want);
        assert_all_close(y, want, COUNT(y), 1e-12, 1e-13);
        check_splits(&r, &s, &seed, 0);
    }
}

/* Orthonormal keys, no decay, beta 1: the state stores each value and gives it back whole; writing
** a key again replaces its value. */
static void gated_delta_is_a_memory(void **state)
{
    (void)state;
    static const double k[] = {1, 0, 0, 1, 1, 0, 0, 1}, v[] = {5, 7, -2, 0}, zero[4] = {0};
    static const double q[] = {1, 0, 1, 0, 1, 0, 0, 1}, one[] = {1, 1, 1, 0};
    static const int64_t seq[4] = {0};
    double S[2] = {0}, next[2], y[4];
    node_case c;
    case_init(&c, PLM_OP_GATED_DELTA);
    c.c.token_seq = seq;
    case_real(&c, PLM_ATTR_SCALE, 1);
    case_in(&c, 0, q, DIMS(4, 1, 2));
    case_in(&c, 1, k, DIMS(4, 1, 2));
    case_in(&c, 2, v, DIMS(4, 1, 1));
    case_in(&c, 3, zero, DIMS(4, 1));
    case_in(&c, 4, one, DIMS(4, 1));
    case_in(&c, 5, S, DIMS(1, 1, 2, 1));
    case_out(&c, 0, y, DIMS(4, 1, 1));
    case_out(&c, 1, next, DIMS(1, 1, 2, 1));
    case_ok(&c, plm_oracle_gated_delta);
    assert_all_equal(y, (const double[]){5, 5, -2, 7}, 4);
    assert_all_equal(next, (const double[]){-2, 7}, 2);
    assert_true(S[0] == 0 && S[1] == 0); /* version 0 is not written */
    case_in(&c, 2, v, DIMS(1, 4, 1));
    case_refused(&c, plm_oracle_gated_delta, "v");
}

/* The closed form of a scan: y_t = sum over u <= t of e^(A sum of dt after u) dt_u (b_u . c_t) x_u,
** plus d x_t. */
static void ssm_scan_against_the_closed_form(void **state)
{
    (void)state;
    enum { HEADS = 4, D = 2, GR = 2, ST = 3 };
    uint64_t seed = test_seed("ssm_scan");
    stream s;
    make_stream(&s, &seed);
    double x[N * HEADS * D], dt[N * HEADS], b[N * GR * ST], c[N * GR * ST], a_log[HEADS], d[HEADS];
    double S[SEQS * HEADS * D * ST] = {0}, y[N * HEADS * D];
    fill_random(&seed, x, COUNT(x));
    fill_random(&seed, dt, COUNT(dt));
    fill_random(&seed, b, COUNT(b));
    fill_random(&seed, c, COUNT(c));
    fill_random(&seed, a_log, COUNT(a_log));
    fill_random(&seed, d, COUNT(d));
    for (size_t i = 0; i < COUNT(dt); i++)
        dt[i] = fabs(dt[i]);
    run r = {.oracle = plm_oracle_ssm_scan,
             .state = 6,
             .out_token = HEADS * D,
             .per_token = {HEADS * D, HEADS, GR * ST, GR * ST}};
    case_init(&r.k, PLM_OP_SSM_SCAN);
    case_in(&r.k, 0, x, DIMS(N, HEADS, D));
    case_in(&r.k, 1, dt, DIMS(N, HEADS));
    case_in(&r.k, 2, b, DIMS(N, GR, ST));
    case_in(&r.k, 3, c, DIMS(N, GR, ST));
    case_in(&r.k, 4, a_log, DIMS(HEADS));
    case_in(&r.k, 5, d, DIMS(HEADS));
    case_in(&r.k, 6, S, DIMS(SEQS, HEADS, D, ST));
    r.k.out[0] = make_array(y, DIMS(N, HEADS, D));
    r.k.n.n_out = 2;
    run_steps(&r, &s, &seed, true, y);
    for (int t = 0; t < N; t++)
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < D; i++) {
                double want = d[h] * x[(t * HEADS + h) * D + i], passed = 0;
                for (int u = t; u >= 0; u--) {
                    if (s.seq[u] != s.seq[t])
                        continue;
                    double bc = 0;
                    for (int j = 0; j < ST; j++)
                        bc += b[(u * GR + h / 2) * ST + j] * c[(t * GR + h / 2) * ST + j];
                    want += exp(-exp(a_log[h]) * passed) * dt[u * HEADS + h] * bc *
                            x[(u * HEADS + h) * D + i];
                    passed += dt[u * HEADS + h];
                }
                assert_close(y[(t * HEADS + h) * D + i], want, 1e-12, 1e-13);
            }
    check_splits(&r, &s, &seed, 0);
}

/* Each whole group against its plain softmax; open groups give 0. The tail starts as garbage. */
static void kv_pool_against_softmax_of_groups(void **state)
{
    (void)state;
    enum { D = 2 };
    uint64_t seed = test_seed("kv_pool");
    stream s;
    make_stream(&s, &seed);
    for (int ratio = 1; ratio <= 4; ratio++) {
        double x[N * D], gate[N * D], tail[SEQS * 4 * D], y[N * D];
        fill_random(&seed, x, COUNT(x));
        fill_random(&seed, gate, COUNT(gate));
        for (size_t i = 0; i < COUNT(tail); i++)
            tail[i] = 1e6;
        run r = {.oracle = plm_oracle_kv_pool, .state = 2, .out_token = D, .per_token = {D, D}};
        case_init(&r.k, PLM_OP_KV_POOL);
        case_int(&r.k, PLM_ATTR_RATIO, ratio);
        case_in(&r.k, 0, x, DIMS(N, D));
        case_in(&r.k, 1, gate, DIMS(N, D));
        case_in(&r.k, 2, tail, DIMS(SEQS, ratio, D));
        r.k.out[0] = make_array(y, DIMS(N, D));
        r.k.n.n_out = 2;
        run_steps(&r, &s, &seed, true, y);
        for (int t = 0; t < N; t++)
            for (int i = 0; i < D; i++) {
                double num = 0, den = 0;
                for (int u = 0; u <= t; u++)
                    if (s.seq[u] == s.seq[t] && s.pos[u] / ratio == s.pos[t] / ratio) {
                        num += exp(gate[u * D + i]) * x[u * D + i];
                        den += exp(gate[u * D + i]);
                    }
                double want = s.pos[t] % ratio == ratio - 1 ? num / den : 0;
                assert_close(y[t * D + i], want, 1e-13, 1e-15);
            }
        check_splits(&r, &s, &seed, 1e-14);
    }
}

static void kv_pool_of_masked_gates(void **state)
{
    (void)state;
    const double inf = (double)INFINITY, gate[] = {-inf, 3, -inf, -inf}, x[] = {9, 4, 5, 6};
    static const int64_t seq[4] = {0}, pos[] = {0, 1, 2, 3};
    double tail[2] = {0}, next[2], y[4];
    node_case k;
    case_init(&k, PLM_OP_KV_POOL);
    case_int(&k, PLM_ATTR_RATIO, 2);
    k.c.token_seq = seq, k.c.token_pos = pos;
    case_in(&k, 0, x, DIMS(4, 1));
    case_in(&k, 1, gate, DIMS(4, 1));
    case_in(&k, 2, tail, DIMS(1, 2, 1));
    case_out(&k, 0, y, DIMS(4, 1));
    case_out(&k, 1, next, DIMS(1, 2, 1));
    case_ok(&k, plm_oracle_kv_pool);
    assert_all_equal(y, (const double[]){0, 4, 0, 0}, 4);
    case_in(&k, 2, tail, DIMS(2, 1, 1));
    case_refused(&k, plm_oracle_kv_pool, "tail");
}

/* Equal gates, and places whose biases are 0 and ln 3: weights of a quarter and three quarters. */
static void kv_pool_weighs_places(void **state)
{
    (void)state;
    const double gate[4] = {0}, x[] = {8, 4, 0, 100}, place[] = {0, log(3.0)};
    static const int64_t seq[4] = {0}, pos[] = {0, 1, 2, 3};
    double tail[2] = {0}, next[2], y[4];
    node_case k;
    case_init(&k, PLM_OP_KV_POOL);
    case_int(&k, PLM_ATTR_RATIO, 2);
    k.c.token_seq = seq, k.c.token_pos = pos;
    case_in(&k, 0, x, DIMS(4, 1));
    case_in(&k, 1, gate, DIMS(4, 1));
    case_in(&k, 2, tail, DIMS(1, 2, 1));
    case_in(&k, 3, place, DIMS(2, 1));
    case_out(&k, 0, y, DIMS(4, 1));
    case_out(&k, 1, next, DIMS(1, 2, 1));
    case_ok(&k, plm_oracle_kv_pool);
    assert_close(y[1], 5, 1e-12, 0);
    assert_close(y[3], 75, 1e-12, 0);
    case_in(&k, 3, place, DIMS(1, 2));
    case_refused(&k, plm_oracle_kv_pool, "bias");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_against_the_whole_history),
        cmocka_unit_test(conv_by_hand_and_refusals),
        cmocka_unit_test(gated_delta_against_matrices),
        cmocka_unit_test(gated_delta_is_a_memory),
        cmocka_unit_test(ssm_scan_against_the_closed_form),
        cmocka_unit_test(kv_pool_against_softmax_of_groups),
        cmocka_unit_test(kv_pool_of_masked_gates),
        cmocka_unit_test(kv_pool_weighs_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
