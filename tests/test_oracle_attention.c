/* test_oracle_attention.c - attention, the index and the cache, against a formulation by position:
** keys are put in order of position and each query walks the range that its masks leave, with
** unnormalised weights. */
#include "tests/oracle_support.h"

enum { SEQS = 2, LEN = 12, T = 5, C = 32, H = 4, G = 2, DK = 3, DV = 2 };

/* Two sequences whose tokens lie in shuffled slots; the last tokens of each are the step's. */
typedef struct world {
    double q[T * H * DK], kc[C * G * DK], vc[C * G * DV], sinks[H];
    int64_t token_seq[T], token_pos[T], token_slot[T], slot_seq[C], slot_pos[C];
    int64_t slot_of[SEQS][LEN], len[SEQS];
} world;

static void make_world(world *w, const char *name)
{
    uint64_t seed = test_seed(name);
    int64_t order[C];
    fill_random(&seed, w->q, COUNT(w->q));
    fill_random(&seed, w->kc, COUNT(w->kc));
    fill_random(&seed, w->vc, COUNT(w->vc));
    fill_random(&seed, w->sinks, COUNT(w->sinks));
    for (int64_t i = 0; i < C; i++) {
        int64_t j = random_below(&seed, i + 1);
        order[i] = order[j];
        order[j] = i;
        w->slot_seq[i] = -1;
        w->slot_pos[i] = 0;
    }
    w->len[0] = LEN;
    w->len[1] = 7;
    int64_t next = 0;
    for (int64_t s = 0; s < SEQS; s++)
        for (int64_t p = 0; p < w->len[s]; p++) {
            int64_t slot = order[next++];
            w->slot_of[s][p] = slot;
            w->slot_seq[slot] = s;
            w->slot_pos[slot] = p;
        }
    static const int64_t seq[T] = {0, 1, 0, 1, 0}, back[T] = {3, 2, 2, 1, 1};
    for (int64_t t = 0; t < T; t++) {
        w->token_seq[t] = seq[t];
        w->token_pos[t] = w->len[seq[t]] - back[t];
        w->token_slot[t] = w->slot_of[seq[t]][w->token_pos[t]];
    }
    /* A free slot holds nothing that may be read. */
    for (int64_t i = 0; i < C; i++)
        for (int64_t j = 0; w->slot_seq[i] < 0 && j < G * DV; j++)
            w->vc[i * G * DV + j] = (double)INFINITY;
}

static void set_attention(node_case *k, world *w, double *y)
{
    case_init(k, PLM_OP_ATTENTION);
    k->c.token_seq = w->token_seq;
    k->c.token_pos = w->token_pos;
    k->c.token_slot = w->token_slot;
    k->c.slot_seq = w->slot_seq;
    k->c.slot_pos = w->slot_pos;
    k->c.n_seq = SEQS;
    case_int(k, PLM_ATTR_CAUSAL, 1);
    case_real(k, PLM_ATTR_SCALE, 0.7);
    case_in(k, 0, w->q, DIMS(T, H, DK));
    case_in(k, 1, w->kc, DIMS(C, G, DK));
    case_in(k, 2, w->vc, DIMS(C, G, DV));
    case_out(k, 0, y, DIMS(T, H, DV));
}

typedef struct mask {
    bool causal, sinks;
    int64_t window, chunk;
    double softcap, slope; /* slope of head 0, head h: slope^(h+1) */
} mask;

/* The other formulation. keep: NULL or, per token, LEN flags of positions. */
static void expect(const world *w, const mask *m, const bool *keep, double *y)
{
    for (int64_t t = 0; t < T; t++)
        for (int64_t h = 0; h < H; h++) {
            int64_t s = w->token_seq[t], p = w->token_pos[t], g = h / 2;
            int64_t lo = m->window > 0 && p - m->window + 1 > 0 ? p - m->window + 1 : 0;
            int64_t hi = m->causal ? p : w->len[s] - 1;
            if (m->chunk > 0) {
                lo = p - p % m->chunk > lo ? p - p % m->chunk : lo;
                hi = p - p % m->chunk + m->chunk - 1 < hi ? p - p % m->chunk + m->chunk - 1 : hi;
            }
            double num[DV] = {0}, den = m->sinks ? exp(w->sinks[h]) : 0;
            for (int64_t j = lo; j <= hi; j++) {
                const double *key = &w->kc[(w->slot_of[s][j] * G + g) * DK];
                const double *val = &w->vc[(w->slot_of[s][j] * G + g) * DV];
                const double *q = &w->q[(t * H + h) * DK];
                double e = 0.7 * (q[0] * key[0] + q[1] * key[1] + q[2] * key[2]);
                if (m->softcap > 0)
                    e = m->softcap * tanh(e / m->softcap);
                if (m->slope > 0)
                    e -= pow(m->slope, (double)(h + 1)) * (double)(p - j);
                if (keep != NULL && !keep[t * LEN + j])
                    continue;
                den += exp(e);
                for (int i = 0; i < DV; i++)
                    num[i] += exp(e) * val[i];
            }
            for (int i = 0; i < DV; i++)
                y[(t * H + h) * DV + i] = den > 0 ? num[i] / den : 0;
        }
}

static void masks_sinks_caps_and_biases(void **state)
{
    (void)state;
    static const mask masks[] = {
        {.causal = true},
        {.causal = false},
        {.causal = true, .window = 1},
        {.causal = true, .window = 4},
        {.causal = true, .window = 100},
        {.causal = true, .chunk = 4},
        {.causal = false, .chunk = 5},
        {.causal = true, .softcap = 0.5},
        {.causal = true, .sinks = true},
        {.causal = true, .sinks = true, .window = 3, .softcap = 2},
        {.causal = true, .slope = 0.25}, /* 4 heads: 2^-2, 2^-4, 2^-6, 2^-8 */
        {.causal = true, .slope = 0.25, .softcap = 1},
    };
    static world w;
    make_world(&w, "masks");
    for (size_t i = 0; i < COUNT(masks); i++) {
        double y[T * H * DV], want[T * H * DV];
        node_case k;
        set_attention(&k, &w, y);
        k.attrs[0].v.i = masks[i].causal;
        case_int(&k, PLM_ATTR_WINDOW, masks[i].window);
        case_int(&k, PLM_ATTR_CHUNK, masks[i].chunk);
        case_real(&k, PLM_ATTR_SOFTCAP, masks[i].softcap);
        case_int(&k, PLM_ATTR_ALIBI, masks[i].slope > 0);
        if (masks[i].sinks)
            case_in(&k, 3, w.sinks, DIMS(H));
        case_ok(&k, plm_oracle_attention);
        expect(&w, &masks[i], NULL, want);
        assert_all_close(y, want, COUNT(y), 1e-12, 1e-14);
    }
}

/* Bounded replay of a window (serving facts, section 11): with n = 1000 and window 64, query 999
** attends 936 .. 999, so with equal keys it sees the mean of their values. */
static void window_of_a_long_sequence(void **state)
{
    (void)state;
    enum { N = 1000 };
    static double kc[N], vc[N];
    static int64_t seq[N], pos[N];
    for (int i = 0; i < N; i++) {
        kc[i] = 1;
        vc[i] = i;
        pos[i] = i;
    }
    double q[1] = {3}, y[1];
    int64_t token_seq[1] = {0}, token_pos[1] = {999};
    node_case k;
    case_init(&k, PLM_OP_ATTENTION);
    k.c.token_seq = token_seq, k.c.token_pos = token_pos, k.c.slot_seq = seq, k.c.slot_pos = pos;
    case_int(&k, PLM_ATTR_WINDOW, 64);
    case_in(&k, 0, q, DIMS(1, 1, 1));
    case_in(&k, 1, kc, DIMS(N, 1, 1));
    case_in(&k, 2, vc, DIMS(N, 1, 1));
    case_out(&k, 0, y, DIMS(1, 1, 1));
    case_ok(&k, plm_oracle_attention);
    assert_close(y[0], (936 + 999) / 2.0, 1e-12, 0);
}

/* BE-01: a row that sees nothing is exactly 0, with a sink too; other rows are as before. */
static void row_without_keys_is_zero(void **state)
{
    (void)state;
    static world w;
    make_world(&w, "nothing");
    double y[T * H * DV], index[T * 2];
    for (int i = 0; i < T * 2; i++)
        index[i] = i < 2 ? -1 : 0;
    for (int sinks = 0; sinks < 2; sinks++) {
        node_case k;
        set_attention(&k, &w, y);
        if (sinks)
            case_in(&k, 3, w.sinks, DIMS(H));
        case_in(&k, 4, index, DIMS(T, 2));
        case_ok(&k, plm_oracle_attention);
        for (int i = 0; i < H * DV; i++)
            assert_true(y[i] == 0);
        assert_true(y[H * DV] != 0);
    }
    /* v = 1 2 3 4, all masked: 0, not their mean 2.5. */
    static const double v[] = {1, 2, 3, 4}, keys[] = {1, 1, 1, 1}, q[] = {1};
    const int64_t seq[] = {-1, -1, 1, 1}, pos[] = {0, 1, 2, 3}, token[] = {0};
    node_case k;
    case_init(&k, PLM_OP_ATTENTION);
    k.c.token_seq = k.c.token_pos = token;
    k.c.slot_seq = seq, k.c.slot_pos = pos;
    case_in(&k, 0, q, DIMS(1, 1, 1));
    case_in(&k, 1, keys, DIMS(4, 1, 1));
    case_in(&k, 2, v, DIMS(4, 1, 1));
    case_out(&k, 0, y, DIMS(1, 1, 1));
    case_ok(&k, plm_oracle_attention);
    assert_true(y[0] == 0);
    case_in(&k, 1, keys, DIMS(0, 1, 1)); /* no cache at all */
    case_in(&k, 2, v, DIMS(0, 1, 1));
    case_out(&k, 0, y, DIMS(1, 1, 1));
    case_ok(&k, plm_oracle_attention);
    assert_true(y[0] == 0);
    case_in(&k, 0, q, DIMS(0, 1, 1)); /* no tokens */
    case_out(&k, 0, y, DIMS(0, 1, 1));
    case_ok(&k, plm_oracle_attention);
}

/* BE-02: a score of -20000 on the one key that is left is still the only key. */
static void extreme_score_beats_no_sentinel(void **state)
{
    (void)state;
    static const double q[] = {-20000}, keys[] = {1, 0}, v[] = {1, 100};
    const int64_t slot_seq[] = {0, -1}, slot_pos[] = {0, 1}, seq[] = {0}, pos[] = {1};
    double y[1];
    node_case k;
    case_init(&k, PLM_OP_ATTENTION);
    k.c.token_seq = seq, k.c.token_pos = pos, k.c.slot_seq = slot_seq, k.c.slot_pos = slot_pos;
    case_real(&k, PLM_ATTR_SCALE, 1);
    case_in(&k, 0, q, DIMS(1, 1, 1));
    case_in(&k, 1, keys, DIMS(2, 1, 1));
    case_in(&k, 2, v, DIMS(2, 1, 1));
    case_out(&k, 0, y, DIMS(1, 1, 1));
    case_ok(&k, plm_oracle_attention);
    assert_true(y[0] == 1);
}

/* Values as the first columns of the keys, one latent head for all (MLA): the same as handing the
** columns over as a cache of their own. The scale is 1/sqrt(dk) when not given. */
static void values_inside_keys(void **state)
{
    (void)state;
    static world w;
    make_world(&w, "v_in_k");
    double y[T * H * 2], want[T * H * 2], head[C * DK], v[C * 2];
    for (int s = 0; s < C; s++)
        for (int i = 0; i < DK; i++) {
            head[s * DK + i] = w.kc[s * G * DK + i];
            if (i < 2)
                v[s * 2 + i] = head[s * DK + i];
        }
    node_case k;
    set_attention(&k, &w, want);
    k.attrs[1].v.f = 1 / sqrt(3);
    case_in(&k, 1, head, DIMS(C, 1, DK));
    case_in(&k, 2, v, DIMS(C, 1, 2));
    case_ok(&k, plm_oracle_attention);
    set_attention(&k, &w, y);
    k.attrs[1].v.f = 0;
    case_int(&k, PLM_ATTR_V_IN_K, 1);
    case_int(&k, PLM_ATTR_DV, 2);
    case_in(&k, 1, head, DIMS(C, 1, DK));
    case_in(&k, 2, NULL, DIMS(C, 1, 2));
    case_ok(&k, plm_oracle_attention);
    assert_all_close(y, want, COUNT(y), 1e-14, 0);
    k.attrs[3].v.i = DK + 1;
    case_refused(&k, plm_oracle_attention, "dv");
}

/* Positions listed by the index, and blocks of positions. */
static void index_selects_keys(void **state)
{
    (void)state;
    static world w;
    make_world(&w, "selected");
    uint64_t seed = test_seed("choice");
    const mask m = {.causal = true};
    for (int block = 1; block <= 3; block += 2) {
        double y[T * H * DV], want[T * H * DV], index[T * 3];
        bool keep[T * LEN];
        for (int64_t t = 0; t < T; t++)
            for (int64_t j = 0; j < 3; j++)
                index[t * 3 + j] = (double)(random_below(&seed, LEN / block + 1) - 1);
        for (int64_t t = 0; t < T; t++)
            for (int64_t p = 0; p < LEN; p++) {
                double name = (double)(p / block);
                keep[t * LEN + p] =
                    index[t * 3] == name || index[t * 3 + 1] == name || index[t * 3 + 2] == name;
            }
        node_case k;
        set_attention(&k, &w, y);
        case_int(&k, PLM_ATTR_SPARSE_TOP_K, 3 * block);
        case_in(&k, 4, index, DIMS(T, 3));
        case_ok(&k, plm_oracle_attention);
        expect(&w, &m, keep, want);
        assert_all_close(y, want, COUNT(y), 1e-12, 1e-14);
    }
}

/* Heads of 6: slopes of 4 (2^-2, 2^-4, 2^-6, 2^-8), then every other one of 8 (2^-1, 2^-3). */
static void alibi_slopes_off_a_power_of_two(void **state)
{
    (void)state;
    static const double want[] = {0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8, 0x1p-1, 0x1p-3};
    const int64_t slot_seq[] = {0, 0}, slot_pos[] = {0, 1}, seq[] = {0}, pos[] = {1};
    double q[6] = {0}, keys[2] = {0}, v[2] = {1, 0}, y[6];
    node_case k;
    case_init(&k, PLM_OP_ATTENTION);
    k.c.token_seq = seq, k.c.token_pos = pos, k.c.slot_seq = slot_seq, k.c.slot_pos = slot_pos;
    case_int(&k, PLM_ATTR_ALIBI, 1);
    case_in(&k, 0, q, DIMS(1, 6, 1));
    case_in(&k, 1, keys, DIMS(2, 1, 1));
    case_in(&k, 2, v, DIMS(2, 1, 1));
    case_out(&k, 0, y, DIMS(1, 6, 1));
    case_ok(&k, plm_oracle_attention);
    for (int h = 0; h < 6; h++) /* weight of the key one back: e^-s / (e^-s + 1) */
        assert_close(log(1 / y[h] - 1), want[h], 1e-12, 0);
}

static void attention_refuses_operands_that_differ(void **state)
{
    (void)state;
    static world w;
    make_world(&w, "refused");
    double y[T * H * DV];
    node_case k;
    set_attention(&k, &w, y);
    case_in(&k, 1, w.kc, DIMS(C, DK, G));
    case_refused(&k, plm_oracle_attention, "kcache");
    case_in(&k, 1, w.kc, DIMS(C * G / 3, 3, DK));
    case_refused(&k, plm_oracle_attention, "kcache");
    set_attention(&k, &w, y);
    case_in(&k, 2, NULL, DIMS(C, G, DV));
    case_refused(&k, plm_oracle_attention, "vcache");
    set_attention(&k, &w, y);
    case_in(&k, 3, w.sinks, DIMS(G));
    case_refused(&k, plm_oracle_attention, "sinks");
    set_attention(&k, &w, y);
    k.c.slot_pos = NULL;
    case_refused(&k, plm_oracle_attention, "batch");
    set_attention(&k, &w, y);
    plm_mem_fail_at(1, false);
    assert_int_equal(plm_oracle_attention(&k.c, k.in, k.out, &k.err), PLM_E_NO_MEMORY);
    plm_mem_fail_at(0, false);
    case_ok(&k, plm_oracle_attention);
}

/* ---- index ---- */

static void index_by_hand(void **state)
{
    (void)state;
    /* Two heads of width 1. Scores of positions 0..4 for q = (1, -1), w = (1, 2):
    ** relu(k) + 2 relu(-k): k = 3, -2, 1, 3, -9 -> 3, 4, 1, 3, 18; the token at 3 sees 0..3. */
    static const double q[] = {1, -1}, keys[] = {3, 3, -9, 1, -2, 100}, w[] = {1, 2};
    const int64_t slot_pos[] = {3, 0, 4, 2, 1, 1}, slot_seq[] = {0, 0, 0, 0, 0, 1};
    const int64_t seq[] = {0}, pos[] = {3};
    double y[6];
    node_case k;
    case_init(&k, PLM_OP_INDEX);
    k.c.token_seq = seq, k.c.token_pos = pos, k.c.slot_seq = slot_seq, k.c.slot_pos = slot_pos;
    case_in(&k, 0, q, DIMS(1, 2, 1));
    case_in(&k, 1, keys, DIMS(6, 1, 1));
    case_in(&k, 2, w, DIMS(1, 2));
    case_out(&k, 0, y, DIMS(1, 6));
    case_ok(&k, plm_oracle_index);
    assert_all_equal(y, (const double[]){1, 0, 3, 2, -1, -1}, 6); /* 0 before 3: equal scores */
    case_out(&k, 0, y, DIMS(1, 2));
    case_ok(&k, plm_oracle_index);
    assert_all_equal(y, (const double[]){1, 0}, 2);
    /* Blocks of 2: positions 0 1 score 4, positions 2 3 score 3. */
    case_int(&k, PLM_ATTR_BLOCK, 2);
    case_out(&k, 0, y, DIMS(1, 3));
    case_ok(&k, plm_oracle_index);
    assert_all_equal(y, (const double[]){0, 1, -1}, 3);
}

/* ---- cache ---- */

/* Feeding a sequence through kv_write and attention in one step or in any chunks gives the same. */
static void chunked_prefill_equals_whole(void **state)
{
    (void)state;
    enum { N = 11, SLOTS = 16 };
    uint64_t seed = test_seed("chunked");
    double q[N * H * DK], kk[N * G * DK], vv[N * G * DV], whole[N * H * DV], parts[N * H * DV];
    int64_t seq[N] = {0}, pos[N], slot[N], slot_seq[SLOTS], slot_pos[SLOTS] = {0};
    fill_random(&seed, q, COUNT(q));
    fill_random(&seed, kk, COUNT(kk));
    fill_random(&seed, vv, COUNT(vv));
    for (int64_t i = 0; i < N; i++) {
        pos[i] = i;
        slot[i] = (i * 7 + 3) % SLOTS; /* 7 and 16 have no common factor: all differ */
    }
    for (int round = 0; round < 12; round++) {
        double kc[SLOTS * G * DK], vc[SLOTS * G * DV], *y = round == 0 ? whole : parts;
        for (size_t i = 0; i < COUNT(kc); i++)
            kc[i] = NAN;
        for (size_t i = 0; i < COUNT(vc); i++)
            vc[i] = NAN;
        for (int64_t i = 0; i < SLOTS; i++)
            slot_seq[i] = -1;
        for (int64_t at = 0, n; at < N; at += n) {
            n = round == 0 ? N : 1 + random_below(&seed, N - at);
            for (int64_t i = at; i < at + n; i++) {
                slot_seq[slot[i]] = 0;
                slot_pos[slot[i]] = pos[i];
            }
            node_case k;
            case_init(&k, PLM_OP_KV_WRITE);
            k.c.token_slot = slot + at;
            case_in(&k, 0, kk + at * G * DK, DIMS(n, G, DK));
            case_in(&k, 1, kc, DIMS(SLOTS, G, DK));
            case_in(&k, 2, vv + at * G * DV, DIMS(n, G, DV));
            case_in(&k, 3, vc, DIMS(SLOTS, G, DV));
            k.out[0] = make_array(kc, DIMS(SLOTS, G, DK));
            k.out[1] = make_array(vc, DIMS(SLOTS, G, DV));
            case_ok(&k, plm_oracle_kv_write);
            case_init(&k, PLM_OP_ATTENTION);
            k.c.token_seq = seq + at, k.c.token_pos = pos + at;
            k.c.slot_seq = slot_seq, k.c.slot_pos = slot_pos;
            case_int(&k, PLM_ATTR_WINDOW, 6);
            case_in(&k, 0, q + at * H * DK, DIMS(n, H, DK));
            case_in(&k, 1, kc, DIMS(SLOTS, G, DK));
            case_in(&k, 2, vc, DIMS(SLOTS, G, DV));
            case_out(&k, 0, y + at * H * DV, DIMS(n, H, DV));
            case_ok(&k, plm_oracle_attention);
        }
        if (round > 0)
            assert_all_equal(parts, whole, COUNT(whole));
    }
}

/* With ratio 4 the tokens at positions 3, 7, .. write; attention then sees whole groups only. */
static void compressed_entries(void **state)
{
    (void)state;
    enum { N = 10 };
    double x[N], cache[4] = {-1, -1, -1, -1}, next[4], q[N], y[N];
    int64_t pos[N], slot[N], seq[N] = {0};
    for (int64_t i = 0; i < N; i++) {
        x[i] = (double)i;
        pos[i] = i;
        slot[i] = i % 4 == 3 ? 2 - i / 4 : -1;
        q[i] = 0;
    }
    node_case k;
    case_init(&k, PLM_OP_KV_WRITE);
    k.c.token_slot = slot, k.c.token_pos = pos;
    case_int(&k, PLM_ATTR_RATIO, 4);
    case_in(&k, 0, x, DIMS(N, 1, 1));
    case_in(&k, 1, cache, DIMS(4, 1, 1));
    case_out(&k, 0, next, DIMS(4, 1, 1));
    case_ok(&k, plm_oracle_kv_write);
    assert_all_equal(next, (const double[]){-1, 7, 3, -1}, 4);
    const int64_t slot_seq[] = {-1, 0, 0, -1}, slot_pos[] = {0, 7, 3, 0};
    case_init(&k, PLM_OP_ATTENTION);
    k.c.token_seq = seq, k.c.token_pos = pos, k.c.slot_seq = slot_seq, k.c.slot_pos = slot_pos;
    case_int(&k, PLM_ATTR_RATIO, 4);
    case_int(&k, PLM_ATTR_V_IN_K, 1);
    case_in(&k, 0, q, DIMS(N, 1, 1));
    case_in(&k, 1, next, DIMS(4, 1, 1));
    case_out(&k, 0, y, DIMS(N, 1, 1));
    case_ok(&k, plm_oracle_attention);
    assert_all_equal(y, (const double[]){0, 0, 0, 3, 3, 3, 3, 5, 5, 5}, N);
}

/* Entries of 4 tokens beside the last 3 tokens as they are, as DeepSeek-V4 attends: the window
** binds the tokens, the index the entries. Equal keys, so the answer is a mean of values. */
static void entries_beside_a_window(void **state)
{
    (void)state;
    const int64_t slot_seq[] = {0, 0, 0, 0, 0, 0, 0, 0}, slot_pos[] = {3, 7, 11, 6, 7, 8, 9, 10};
    const int64_t slot_tokens[] = {4, 4, 4, 1, 1, 1, 1, 1}, seq[] = {0}, pos[] = {9};
    static const double keys[8] = {0}, v[] = {1000, 2000, 9e9, 1, 2, 4, 8, 16}, q[] = {0};
    double y[1];
    node_case k;
    case_init(&k, PLM_OP_ATTENTION);
    k.c.token_seq = seq, k.c.token_pos = pos, k.c.slot_seq = slot_seq, k.c.slot_pos = slot_pos;
    k.c.slot_tokens = slot_tokens;
    case_int(&k, PLM_ATTR_RATIO, 4);
    case_int(&k, PLM_ATTR_WINDOW, 3);
    case_in(&k, 0, q, DIMS(1, 1, 1));
    case_in(&k, 1, keys, DIMS(8, 1, 1));
    case_in(&k, 2, v, DIMS(8, 1, 1));
    case_out(&k, 0, y, DIMS(1, 1, 1));
    case_ok(&k, plm_oracle_attention);
    assert_close(y[0], (1000 + 2000 + 2 + 4 + 8) / 5.0, 1e-15, 0);
    case_in(&k, 4, (const double[]){7, -1}, DIMS(1, 2));
    case_int(&k, PLM_ATTR_SPARSE_TOP_K, 2);
    case_ok(&k, plm_oracle_attention);
    assert_close(y[0], (2000 + 2 + 4 + 8) / 4.0, 1e-15, 0);
}

static void kv_write_keeps_out_and_refuses(void **state)
{
    (void)state;
    double x[2] = {5, 6}, cache[3] = {1, 2, 3}, next[3];
    int64_t slot[2] = {-1, 2};
    node_case k;
    case_init(&k, PLM_OP_KV_WRITE);
    k.c.token_slot = slot;
    case_in(&k, 0, x, DIMS(2, 1, 1));
    case_in(&k, 1, cache, DIMS(3, 1, 1));
    case_out(&k, 0, next, DIMS(3, 1, 1));
    case_ok(&k, plm_oracle_kv_write);
    assert_all_equal(next, (const double[]){1, 2, 6}, 3);
    slot[1] = 3;
    case_refused(&k, plm_oracle_kv_write, "batch");
    slot[1] = 2;
    case_in(&k, 2, x, DIMS(2, 1, 1));
    case_refused(&k, plm_oracle_kv_write, "vcache");
}

static void kv_copy_does_not_chain(void **state)
{
    (void)state;
    double cache[8] = {0, 1, 10, 11, 20, 21, 30, 31};
    static const double pairs[] = {0, 1, 1, 2, 2, 3, 3, 3};
    node_case k;
    case_init(&k, PLM_OP_KV_COPY);
    case_in(&k, 0, cache, DIMS(4, 1, 2));
    case_in(&k, 1, pairs, DIMS(4, 2));
    k.out[0] = make_array(cache, DIMS(4, 1, 2)); /* in place */
    case_ok(&k, plm_oracle_kv_copy);
    assert_all_equal(cache, (const double[]){0, 1, 0, 1, 10, 11, 30, 31}, 8);
    case_in(&k, 1, (const double[]){0, 4}, DIMS(1, 2));
    case_refused(&k, plm_oracle_kv_copy, "pairs");
    case_in(&k, 1, pairs, DIMS(0, 2));
    case_ok(&k, plm_oracle_kv_copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_sinks_caps_and_biases),
        cmocka_unit_test(window_of_a_long_sequence),
        cmocka_unit_test(row_without_keys_is_zero),
        cmocka_unit_test(extreme_score_beats_no_sentinel),
        cmocka_unit_test(values_inside_keys),
        cmocka_unit_test(index_selects_keys),
        cmocka_unit_test(alibi_slopes_off_a_power_of_two),
        cmocka_unit_test(attention_refuses_operands_that_differ),
        cmocka_unit_test(index_by_hand),
        cmocka_unit_test(chunked_prefill_equals_whole),
        cmocka_unit_test(compressed_entries),
        cmocka_unit_test(entries_beside_a_window),
        cmocka_unit_test(kv_write_keeps_out_and_refuses),
        cmocka_unit_test(kv_copy_does_not_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
