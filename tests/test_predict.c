/* test_predict.c - one configuration: roofline figures worked by hand, llama-bench's meaning of its
** four numbers, memory, plans, cost, closed loop, explanation. */
#include "core/base/mem.h"
#include "sim/plan/config.h"
#include "sim/plan/plan.h"
#include "tests/session_support.h"

static plm_query query(const char *model, const char *device, const char *engine, const char *quant)
{
    plm_query q;
    plm_query_init(&q);
    q.model = model;
    q.device = device;
    q.engine = engine;
    q.quant = quant;
    return q;
}

static plm_answer predict(const plm_query *q)
{
    plm_answer a;
    assert_ok(plm_predict(session, q, &a, &err), err);
    return a;
}

static void assert_refused(const plm_query *q, plm_status code, const char *part)
{
    plm_answer a;
    assert_int_equal(plm_predict(session, q, &a, &err), code);
    if (strstr(err.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
}

/* ---- the roofline of Llama-3.1-8B in bf16 on an H100, serving facts sections 1 and 4 ---- */

/* The ideal engine on a device of 3.35 TB/s (the facts' figure; the record has the exact clock's)
 *and
 ** 989.4 TFLOP/s, whole-prompt logits when asked. */
static const plm_program *roofline(bool all_logits, plm_machine *m)
{
    const plm_machine *have;
    const plm_arch *arch;
    const plm_program *p;
    plm_build b;
    assert_ok(plm_session_machine(session, "h100_sxm_80", "ideal", &have, &err), err);
    assert_ok(plm_session_model(session, "llama-3.1-8b", &arch, &err), err);
    plm_device d = have->dev;
    d.bandwidth_bytes_s = 3.35e12;
    d.l2_bytes = d.l3_bytes = 1e12; /* the facts count no traffic of activations */
    assert_ok(plm_machine_bind(&d, &have->prof, m, &err), err);
    plm_build_init(&b);
    b.all_logits = all_logits;
    assert_ok(plm_session_program(session, arch, &b, &m->prof, &p, &err), err);
    return p;
}

/* Sums over the rows whose name begins with "linear" or "attention", and over the rest. */
static void sum_rows(const plm_program *p, const plm_machine *m, const plm_segment *seg,
                     plm_step_row *main_rows, plm_step_row *linear, double *other_s)
{
    plm_step_row rows[128];
    plm_batch b = {.seg = seg, .n_seg = 1, .logit_rows = -1};
    size_t n = plm_step_rows(p, m, &b, rows, 128);
    memset(main_rows, 0, sizeof *main_rows);
    memset(linear, 0, sizeof *linear);
    *other_s = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_linear = strncmp(rows[i].name, "linear", 6) == 0;
        if (is_linear) {
            linear->flop += rows[i].flop;
            linear->time_s += rows[i].time_s;
        }
        if (is_linear || strncmp(rows[i].name, "attention", 9) == 0) {
            main_rows->flop += rows[i].flop;
            main_rows->time_s += rows[i].time_s;
        } else {
            *other_s += rows[i].time_s;
        }
    }
}

/* The facts count weights (15,009,849,344 B) and the cached keys and values. The program also reads
** the new token's (131,072 B a sequence) and has norms and rotary embedding: under 0.3 % in all. */
static void decode_floor_of_8b(void **state)
{
    (void)state;
    plm_machine m;
    const plm_program *p = roofline(false, &m);
    const int64_t batch[] = {1, 8, 32, 64, 128, 256};
    const double want_ms[] = {4.561, 5.122, 7.045, 9.609, 14.737, 24.994};
    plm_step_row all, linear;
    double other;
    for (int i = 0; i < 6; i++) {
        plm_segment seg = {1, 2048, batch[i]};
        sum_rows(p, &m, &seg, &all, &linear, &other);
        double own = (double)batch[i] * 131072 / 3.35e12;
        assert_close((all.time_s - own) * 1e3, want_ms[i], 0, 6e-4);
        assert_true(other < 0.003 * all.time_s);
    }
    plm_segment empty = {1, 0, 1};
    sum_rows(p, &m, &empty, &all, &linear, &other);
    /* W holds 65 norms of 4096 numbers besides; they are read by ops of their own. */
    assert_close(linear.time_s * 3.35e12 + 65 * 4096 * 2, 15009849344.0, 1e-9, 0);
    assert_close(15009849344.0 / 3.35e12 * 1e3, 4.4806, 0, 5e-5);
    assert_close(plm_device_peak(&m.dev, PLM_MATH_BF16) / 3.35e12, 295.34, 5e-4, 0);
}

/* An 8,192-token prompt is 140.55 TFLOP; chunks of it at half of 989.4 TFLOP/s. */
static void chunks_of_8b(void **state)
{
    (void)state;
    plm_machine m;
    const plm_program *p = roofline(true, &m);
    plm_step_row all, linear;
    double other;
    plm_segment whole = {8192, 0, 1};
    sum_rows(p, &m, &whole, &all, &linear, &other);
    /* The program counts softmax outside the tensor units too: under 0.7 % of the whole. */
    assert_close(all.flop / 1e12, 140.55, 7e-3, 0);
    const double half = 0.5 * 989.4e12;
    const int64_t chunk[] = {256, 512, 1024, 2048};
    const double linear_ms[] = {7.767, 15.535, 31.070, 62.139};
    const double last_ms[] = {9.955, 19.841, 39.404, 77.697};
    for (int i = 0; i < 4; i++) {
        plm_segment seg = {chunk[i], 8192 - chunk[i], 1};
        sum_rows(p, &m, &seg, &all, &linear, &other);
        assert_close(linear.flop / half * 1e3, linear_ms[i], 7e-3, 0);
        assert_close(all.flop / half * 1e3, last_ms[i], 1e-2, 0);
    }
}

/* ---- prompt, gen, batch, depth ---- */

static void decode_starts_at_depth(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "rtx_4090_24", "llama.cpp", "q4_k_m");
    plm_answer both = predict(&q);
    assert_close(both.decode.context_tokens, 63.5, 0, 1e-9);
    assert_close(both.prefill.tokens, 512, 0, 0);
    q.prompt = 0;
    plm_answer alone = predict(&q);
    assert_close(alone.decode.time_s.value, both.decode.time_s.value, 1e-12, 0);
    assert_close(alone.prefill.time_s.value, 0, 0, 0);
    q.depth = 16384;
    plm_answer deep = predict(&q);
    assert_true(deep.decode.time_s.value > alone.decode.time_s.value * 1.1);
    q.prompt = 512;
    plm_answer late = predict(&q);
    assert_true(late.prefill.time_s.value > both.prefill.time_s.value * 1.1);
    /* Rates are tokens over time, and the interval of one is the other's turned round. */
    assert_close(both.prefill.tok_s.value * both.prefill.time_s.value, 512, 1e-12, 0);
    assert_close(both.prefill.tok_s.lo * both.prefill.time_s.hi, 512, 1e-12, 0);
    assert_true(both.decode.tok_s.lo < both.decode.tok_s.value);
    assert_true(both.decode.tok_s.value < both.decode.tok_s.hi);
}

/* The mean over steps equals the sum of single steps. */
static void decode_is_a_mean(void **state)
{
    (void)state;
    plm_query q = query("gemma-3-1b", "rtx_4090_24", "llama.cpp", "q8_0"); /* windows of 512 */
    q.prompt = 0;
    q.gen = 64;
    q.depth = 3000;
    double mean = predict(&q).decode.time_s.value, sum = 0;
    q.gen = 1;
    for (int i = 0; i < 64; i++) {
        q.depth = 3000 + i;
        sum += predict(&q).decode.time_s.value;
    }
    assert_close(mean, sum / 64, 1e-4, 0);
}

static void prefill_goes_in_chunks(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "rtx_4090_24", "llama.cpp", "q4_k_m");
    q.gen = 0;
    q.prompt = 1200;
    q.ubatch = 512;
    double whole = predict(&q).prefill.time_s.value, parts = 0;
    const int64_t at[] = {0, 512, 1024}, n[] = {512, 512, 176};
    for (int i = 0; i < 3; i++) {
        q.depth = at[i];
        q.prompt = n[i];
        parts += predict(&q).prefill.time_s.value;
    }
    assert_close(whole, parts, 5e-3, 0); /* inner chunks have no logits */
    /* Many chunks are sampled; the result is that of taking each. */
    q.depth = 0;
    q.prompt = 66 * 512;
    double sampled = predict(&q).prefill.time_s.value;
    parts = 0;
    q.prompt = 33 * 512;
    parts += predict(&q).prefill.time_s.value;
    q.depth = 33 * 512;
    parts += predict(&q).prefill.time_s.value;
    assert_close(sampled, parts, 5e-3, 0);
}

/* ---- memory ---- */

static void no_speed_without_room(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-70b", "rtx_4090_24", "llama.cpp", "bf16");
    plm_answer a = predict(&q);
    assert_false(a.memory.fits);
    assert_string_equal(a.memory.limit, "weights");
    assert_close(a.decode.tok_s.value, 0, 0, 0);
    assert_close(a.prefill.tok_s.value, 0, 0, 0);
    assert_false(a.has_cost || a.has_serving);
    assert_true(a.memory.total_bytes > a.memory.capacity_bytes);
}

static void a_given_file_size_scales_weights(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "rtx_4090_24", "llama.cpp", "q4_k_m");
    q.prompt = 0;
    plm_answer own = predict(&q);
    q.weights_bytes = 2 * own.model_weights_bytes;
    plm_answer twice = predict(&q);
    assert_close((double)twice.memory.weights_bytes, 2.0 * (double)own.memory.weights_bytes, 1e-6,
                 0);
    assert_int_equal(twice.model_weights_bytes, q.weights_bytes);
    assert_true(twice.decode.time_s.value > 1.5 * own.decode.time_s.value);
    assert_true(twice.decode.time_s.value < 2.0 * own.decode.time_s.value);
    q.weights_bytes = own.model_weights_bytes;
    assert_close(predict(&q).decode.time_s.value, own.decode.time_s.value, 1e-9, 0);
}

static void attention_without_fusion(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "rtx_4090_24", "llama.cpp", "q4_k_m");
    q.depth = 8192;
    q.flash_attn = 1;
    plm_answer fused = predict(&q);
    q.flash_attn = 0;
    plm_answer plain = predict(&q);
    assert_true(plain.prefill.time_s.value > 1.1 * fused.prefill.time_s.value);
    assert_true(plain.decode.time_s.value > fused.decode.time_s.value);
    /* One layer's scores: 32 heads x 512 x context of 8,832 in float32, beside four hidden rows; else
    ** logits and a hidden row of each token of a chunk. */
    assert_close((double)plain.memory.activation_bytes,
                 32.0 * 512 * 8832 * 4 + 4.0 * 512 * 4096 * 4, 1e-9, 0);
    assert_close((double)fused.memory.activation_bytes, 512.0 * (128256 + 4096) * 4, 1e-9, 0);
}

static void types_of_the_cache(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "rtx_4090_24", "llama.cpp", "q4_k_m");
    assert_int_equal(predict(&q).memory.kv_bytes_per_token, 131072);
    q.kv_type = "q8_0"; /* 34 bytes for 32 numbers */
    assert_int_equal(predict(&q).memory.kv_bytes_per_token, 131072 / 2 * 34 / 32);
    q.kv_type = "f16,q8_0";
    plm_answer a = predict(&q);
    assert_int_equal(a.memory.kv_bytes_per_token, 65536 + 65536 / 2 * 34 / 32);
    assert_string_equal(a.kv_type, "f16,q8_0");
    q.kv_type = "fp8";
    assert_int_equal(predict(&q).memory.kv_bytes_per_token, 65536);
    q.kv_type = "awq4";
    assert_refused(&q, PLM_E_INVALID, "--kv-type");
    q.kv_type = "f16,nonsense";
    assert_refused(&q, PLM_E_INVALID, "nonsense");
    q.kv_type = "a_name_far_too_long_to_be_any_type_at_all_of_a_cache";
    assert_refused(&q, PLM_E_INVALID, "--kv-type");
}

/* ---- plans ---- */

static void a_layer_split_does_not_speed_one_stream(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "rtx_4090_24", "llama.cpp", "q4_k_m");
    plm_answer one = predict(&q);
    q.device = "rtx_4090_24:2";
    plm_answer two = predict(&q);
    assert_int_equal(two.devices, 2);
    assert_int_equal(two.par.pp, 2);
    assert_int_equal(two.par.tp, 1);
    assert_close(two.decode.time_s.value, one.decode.time_s.value, 0.05, 0);
    assert_close(two.prefill.time_s.value, one.prefill.time_s.value, 0.05, 0);
    assert_true((double)two.memory.weights_bytes < 0.7 * (double)one.memory.weights_bytes);
}

static void tensor_ranks_are_chosen_for_servers(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-70b", "h100_sxm_80:8", "vllm", "bf16");
    plm_answer a = predict(&q);
    assert_int_equal(a.par.tp, 8);
    assert_int_equal(a.par.pp, 1);
    q.par.tp = 4; /* the rest becomes stages */
    a = predict(&q);
    assert_int_equal(a.par.pp, 2);
    assert_int_equal(a.devices, 8);
    q.device = "h100_sxm_80"; /* no count: what the ranks take */
    a = predict(&q);
    assert_int_equal(a.devices, 4);
    q.device = "h100_sxm_80:16"; /* two nodes */
    q.par.tp = 0;
    a = predict(&q);
    assert_int_equal(a.par.tp, 8);
    assert_int_equal(a.par.pp, 2);
    q.device = "h100_sxm_80:8";
    q.par.tp = 3;
    assert_refused(&q, PLM_E_INVALID, "does not divide");
    q.device = "h100_sxm_80";
    assert_refused(&q, PLM_E_INVALID, "1, 2, 4, 8");
    q.device = "h100_sxm_80:8";
    q.par.tp = 4;
    q.par.pp = 1;
    assert_refused(&q, PLM_E_INVALID, "8");
}

static void more_ranks_are_faster(void **state)
{
    (void)state;
    double last = 1e9;
    for (int32_t tp = 2; tp <= 8; tp *= 2) {
        plm_query q = query("llama-3.1-70b", "h100_sxm_80", "vllm", "bf16");
        q.par.tp = tp;
        plm_answer a = predict(&q);
        assert_true(a.decode.time_s.value < last);
        last = a.decode.time_s.value;
    }
}

/* Micro-batches fill the stages of a server: a large batch on two stages takes about the time that
 *half
 ** of it takes on half the layers, twice. */
static void stages_overlap_for_batches(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "h100_sxm_80", "vllm", "bf16");
    q.batch = 128;
    q.depth = 1024;
    q.prompt = 0;
    q.par.pp = 2;
    double two = predict(&q).decode.time_s.value;
    q.par.pp = 1;
    q.batch = 64;
    double half = predict(&q).decode.time_s.value;
    assert_true(two < 1.25 * half && two > 0.95 * half);
}

/* Inner stages share a program where their layers are alike; the whole is as with one of each. */
static void equal_stages_share_a_program(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "h100_sxm_80", "vllm", "bf16");
    static plm_config c;
    plm_parallel par = {.pp = 8};
    assert_ok(plm_config_init(session, &q, &c, &err), err);
    assert_ok(plm_config_plan(&c, &par, 0, &err), err);
    assert_ok(plm_config_build(session, &c, false, &err), err);
    assert_ptr_equal(c.program[2], c.program[3]);
    assert_ptr_not_equal(c.program[0], c.program[1]);
    assert_ptr_not_equal(c.program[6], c.program[7]);
    plm_step sum, one;
    double each = 0;
    const plm_segment seg = {1, 1000, 4};
    const plm_batch b = {.seg = &seg, .n_seg = 1, .logit_rows = -1};
    double whole = plm_stages_time(&c.stages, &b, &sum, NULL);
    for (int i = 0; i < 8; i++) {
        plm_step_time(c.program[i], i == 0 ? &c.machine : &c.rest, &b, &one);
        each += one.time_s;
    }
    assert_close(whole, each, 1e-12, 0);
    assert_close(sum.time_s, each, 1e-12, 0);
    /* K-quant mixes give layers different types: no sharing across them. */
    q = query("llama-3.1-8b", "rtx_4090_24", "llama.cpp", "q4_k_m");
    assert_ok(plm_config_init(session, &q, &c, &err), err);
    assert_ok(plm_config_plan(&c, &par, 0, &err), err);
    assert_ok(plm_config_build(session, &c, true, &err), err);
    int64_t bytes = 0;
    for (int i = 0; i < 8; i++)
        bytes += plm_program_weight_bytes(c.program[i]);
    assert_int_equal(bytes, c.model_weights_bytes);
}

/* ---- cost ---- */

static void cost_of_tokens(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "h100_sxm_80:2", "vllm", "bf16");
    q.price_usd = 3;
    q.utilisation = 0.5;
    plm_answer a = predict(&q);
    assert_true(a.has_cost);
    assert_close(a.usd_per_hour, 6, 1e-12, 0);
    double second = 6.0 / 3600 / 0.5;
    assert_close(a.usd_per_mtok_input, second / a.prefill.tok_s.value * 1e6, 1e-9, 0);
    assert_close(a.usd_per_mtok_output, second / a.decode.tok_s.value * 1e6, 1e-9, 0);
    assert_true(strlen(a.price_source) > 0);
    q.price_usd = -1;
    a = predict(&q);
    assert_true(a.has_cost && a.usd_per_hour > 2 && strstr(a.price_source, "20") != NULL);
    /* With a closed loop what a request costs is the deployment's time over the requests. */
    q.price_usd = 3;
    q.utilisation = 0;
    q.concurrency = 32;
    q.prompt = 1000;
    q.gen = 200;
    a = predict(&q);
    double request = a.usd_per_mtok_input * 1000 + a.usd_per_mtok_output * 200;
    assert_close(request, 6.0 / 3600 / a.serving.requests_s.value * 1e6, 1e-9, 0);
}

static void no_price_is_said(void **state)
{
    (void)state;
    const plm_catalog *c = plm_session_catalog(session);
    const char *unpriced = NULL;
    for (size_t i = 0; i < plm_catalog_count(c, "devices") && unpriced == NULL; i++) {
        plm_price p;
        plm_device d;
        const char *id = plm_catalog_at(c, "devices", i)->id;
        if (plm_price_find(c, id, NULL, &p, NULL) != PLM_OK &&
            plm_device_load(c, id, &d, NULL) == PLM_OK && strcmp(d.cls, "gpu") == 0 &&
            d.memory_bytes > 10e9 && d.bandwidth_bytes_s > 0 &&
            plm_device_peak(&d, PLM_MATH_F16) > 0)
            unpriced = id;
    }
    assert_non_null(unpriced);
    plm_query q = query("llama-3.2-1b", unpriced, NULL, "q8_0");
    plm_answer a = predict(&q);
    assert_true(a.memory.fits);
    assert_false(a.has_cost);
    assert_true(strstr(a.note, "price") != NULL);
}

/* ---- closed loop ---- */

static void closed_loop(void **state)
{
    (void)state;
    double last = 0;
    for (int64_t n = 1; n <= 1024; n *= 4) {
        plm_query q = query("llama-3.1-8b", "h100_sxm_80", "vllm", "bf16");
        q.prompt = 2000;
        q.gen = 300;
        q.concurrency = n;
        plm_answer a = predict(&q);
        const plm_serving *v = &a.serving;
        assert_true(a.has_serving);
        double clients = v->requests_s.value * (v->ttft_s.value + 299 * v->itl_s.value);
        assert_close(clients, (double)n, 5e-3, 0);
        assert_close(v->running + v->waiting, (double)n, 1e-9, 0);
        assert_close(v->output_tok_s.value, 300 * v->requests_s.value, 1e-9, 0);
        assert_close(v->total_tok_s.value, 2300 * v->requests_s.value, 1e-9, 0);
        assert_close(v->e2e_s.value, v->ttft_s.value + 299 * v->itl_s.value, 1e-12, 0);
        assert_true(v->ttft_s.lo < v->ttft_s.value && v->ttft_s.value < v->ttft_s.hi);
        assert_true(v->output_tok_s.value >= 0.999 * last);
        last = v->output_tok_s.value;
        if (n == 1024) { /* 60 GB hold some 200 of them; vLLM admits 256 */
            assert_true(v->waiting > 500);
            assert_true(strcmp(v->bound, "kv") == 0 || strcmp(v->bound, "max_seqs") == 0);
        }
    }
}

static void two_pools(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-70b", "h100_sxm_80", "vllm", "fp8");
    q.mode = "disagg";
    q.par.tp = 2;
    q.prefill_par.tp = 4;
    q.prefill_workers = 1;
    q.decode_workers = 2;
    q.prompt = 3000;
    q.gen = 300;
    double last = 0;
    for (int64_t n = 1; n <= 512; n *= 8) {
        q.concurrency = n;
        plm_answer a = predict(&q);
        assert_int_equal(a.devices, 8);
        const plm_serving *v = &a.serving;
        assert_close(v->requests_s.value * (v->ttft_s.value + 299 * v->itl_s.value), (double)n,
                     1e-3, 0);
        assert_true(v->requests_s.value >= last);
        last = v->requests_s.value;
    }
    /* One prefill worker sets the pace: two carry more. */
    q.prefill_workers = 2;
    assert_true(predict(&q).serving.requests_s.value > 1.3 * last);
    q.device = "h100_sxm_80:8"; /* not what the workers take */
    assert_refused(&q, PLM_E_INVALID, "12");
    q.device = "h100_sxm_80";
    q.mode = "sideways";
    assert_refused(&q, PLM_E_INVALID, "sideways");
    q.mode = "disagg";
    q.concurrency = 0;
    assert_refused(&q, PLM_E_INVALID, "closed loop");
    q.concurrency = 1;
    q.prefill_par.tp = 1;
    q.quant = "bf16";
    q.par.tp = 4;
    assert_refused(&q, PLM_E_INFEASIBLE, "prefill worker");
}

/* ---- explanation ---- */

static void elasticities_sum_to_one(void **state)
{
    (void)state;
    static plm_explanation e;
    plm_query q = query("llama-3.1-8b", "h100_sxm_80", "vllm", "bf16");
    for (int decode = 0; decode < 2; decode++) {
        q.prompt = 4096;
        assert_ok(plm_explain(session, &q, decode, &e, &err), err);
        double sum = 0, time = 0;
        for (int i = 0; i < PLM_BOUND_COUNT; i++) {
            assert_true(e.elasticity[i] > -1e-6 && e.elasticity[i] < 1.001);
            sum += e.elasticity[i];
        }
        for (size_t i = 0; i < e.n_rows; i++)
            time += e.rows[i].time_s;
        assert_close(sum, 1, 0.02, 0);
        assert_true(time <= e.time_s * 1.0001 && time > 0.7 * e.time_s);
        assert_true(e.elasticity[decode ? PLM_BOUND_MEMORY : PLM_BOUND_TENSOR] > 0.5);
        assert_close(e.ridge_flop_per_byte, 295.2, 2e-3, 0);
    }
    q.engine = "ideal";
    q.gen = 1;
    q.depth = 2048;
    assert_ok(plm_explain(session, &q, true, &e, &err), err);
    assert_close(e.elasticity[PLM_BOUND_MEMORY], 1, 1e-3, 0);
    q.gen = 0;
    assert_int_equal(plm_explain(session, &q, true, &e, &err), PLM_E_INVALID);
    q = query("llama-3.1-70b", "rtx_4090_24", "llama.cpp", "bf16");
    assert_int_equal(plm_explain(session, &q, true, &e, &err), PLM_E_INFEASIBLE);
}

/* ---- bad input, caches, memory ---- */

static void bad_queries(void **state)
{
    (void)state;
    plm_query q = query("llama-3.1-8b", "h100_sxm_80", "vllm", "bf16");
    const plm_query good = q;
    q.prompt = INT64_MAX;
    assert_refused(&q, PLM_E_INVALID, "prompt");
    q = good;
    q.batch = 0;
    assert_refused(&q, PLM_E_INVALID, "batch");
    q = good;
    q.depth = -1;
    assert_refused(&q, PLM_E_INVALID, "depth");
    q = good;
    q.quant = "q99_x";
    assert_refused(&q, PLM_E_INVALID, "q99_x");
    q = good;
    q.model = NULL;
    assert_refused(&q, PLM_E_INVALID, "model");
    q = good;
    q.device = "h100_sxm_81";
    assert_refused(&q, PLM_E_NOT_FOUND, "h100_sxm_81");
    q = good;
    q.model = "llama-3.1-9b";
    assert_refused(&q, PLM_E_NOT_FOUND, "llama-3.1-9b");
    q = good;
    q.engine = "vllmm";
    assert_refused(&q, PLM_E_NOT_FOUND, "vllmm");
    q = good;
    q.memory_fraction = 1.5;
    assert_refused(&q, PLM_E_INVALID, "share");
    q = good;
    q.par.pp = 1000;
    assert_refused(&q, PLM_E_LIMIT, "stages");
    q = good;
    q.concurrency = 4;
    q.gen = 0;
    assert_refused(&q, PLM_E_INVALID, "gen");
    q = good;
    q.prompt = q.gen = 1000000000; /* as large as it goes: an answer, not a crash */
    assert_false(predict(&q).memory.fits);
}

/* More programs than the session keeps: answers stay the same when they are made again. */
static void programs_come_and_go(void **state)
{
    (void)state;
    double first[120];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 120; i++) {
            plm_query q = query("smollm2-135m", "rtx_4090_24", "llama.cpp", "q8_0");
            q.ubatch = 16 + i;
            double t = predict(&q).prefill.time_s.value;
            if (round == 0)
                first[i] = t;
            assert_close(t, first[i], 0, 0);
        }
}

/* Each allocation fails in turn (a sample of them): a clean error and nothing left behind. */
static void memory_runs_out(void **state)
{
    (void)state;
    plm_mem_init();
    plm_answer a;
    plm_query q = query("smollm2-135m", "rtx_4090_24", "llama.cpp", "q8_0");
    q.concurrency = 4;
    int failures = 0;
    for (uint64_t n = 1; n < 1000000; n += 1 + n / 12) {
        plm_session *s = NULL;
        int64_t live = plm_mem_live();
        plm_mem_fail_at(n, true);
        plm_status status = plm_session_create(NULL, &s, &err);
        if (status == PLM_OK)
            status = plm_predict(s, &q, &a, &err);
        plm_mem_fail_at(0, false);
        plm_session_destroy(s);
        assert_int_equal(plm_mem_live(), live);
        if (status == PLM_OK) {
            assert_true(failures > 20);
            return;
        }
        assert_int_equal(status, PLM_E_NO_MEMORY);
        failures++;
    }
    fail();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_floor_of_8b),
        cmocka_unit_test(chunks_of_8b),
        cmocka_unit_test(decode_starts_at_depth),
        cmocka_unit_test(decode_is_a_mean),
        cmocka_unit_test(prefill_goes_in_chunks),
        cmocka_unit_test(no_speed_without_room),
        cmocka_unit_test(a_given_file_size_scales_weights),
        cmocka_unit_test(attention_without_fusion),
        cmocka_unit_test(types_of_the_cache),
        cmocka_unit_test(a_layer_split_does_not_speed_one_stream),
        cmocka_unit_test(tensor_ranks_are_chosen_for_servers),
        cmocka_unit_test(more_ranks_are_faster),
        cmocka_unit_test(stages_overlap_for_batches),
        cmocka_unit_test(equal_stages_share_a_program),
        cmocka_unit_test(cost_of_tokens),
        cmocka_unit_test(no_price_is_said),
        cmocka_unit_test(closed_loop),
        cmocka_unit_test(two_pools),
        cmocka_unit_test(elasticities_sum_to_one),
        cmocka_unit_test(bad_queries),
        cmocka_unit_test(programs_come_and_go),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("predict", tests, open_session, close_session);
}
