/* test_cases.c - the acceptance records of tests/data/cases.jsonl, each through the library.
**
** A record names an operation, its inputs, what must come out and how closely, and the public
** report it comes from. An operation that nobody here or in the list of other programs knows is a
** failure, so is a record that no check looked at.
*/
#include "tests/support.h"

#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/load.h"
#include "sim/market/price.h"
#include "sim/step/closed.h"
#include "sim/step/memory.h"

static const double gib = 1073741824.0;
static plm_error err;

/* The record at hand. */
static const char *id;
static const json_t *in, *want, *tolerance;
static int checks; /* comparisons made for it */

/* ---- reading and comparing ---- */
static double number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_number(v))
        fail_msg("%s: no number \"%s\"", id, key);
    return json_number_value(v);
}

static int64_t count(const json_t *o, const char *key)
{
    double v = number(o, key);
    if (v != floor(v))
        fail_msg("%s: \"%s\" is no whole number", id, key);
    return (int64_t)v;
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    if (s == NULL)
        fail_msg("%s: no text \"%s\"", id, key);
    return s;
}

static bool truth(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

/* Allowed distance from `value`: the record's rel or abs, nothing when it says exact. */
static double slack(double value)
{
    const json_t *rel = json_object_get(tolerance, "rel");
    const json_t *abs_ = json_object_get(tolerance, "abs");
    if (json_is_true(json_object_get(tolerance, "exact")))
        return 0;
    if (rel == NULL && abs_ == NULL)
        fail_msg("%s: a tolerance this program does not read", id);
    return rel != NULL ? json_number_value(rel) * fabs(value) : json_number_value(abs_);
}

static void compare(const char *what, double got, double expected, double allowed)
{
    checks++;
    if (!(fabs(got - expected) <= allowed))
        fail_msg("%s: %s is %.10g, want %.10g within %g", id, what, got, expected, allowed);
}

/* got against the expected value of that key, by the record's tolerance. */
static void expect(const char *key, double got)
{
    double v = number(want, key);
    compare(key, got, v, slack(v));
}

static void ok(plm_status s)
{
    if (s != PLM_OK)
        fail_msg("%s: %s", id, err.text);
}

static plm_dtype dtype(const char *name)
{
    plm_dtype t = plm_dtype_by_name(name);
    if (t >= PLM_DT_COUNT)
        fail_msg("%s: type %s is not known", id, name);
    return t;
}

/* ---- KV ---- */
static void read_arch(const json_t *o, plm_arch *a)
{
    plm_layer l = {.attn = PLM_ATTN_FULL, .kv_shared_layer = -1};
    plm_arch_init(a);
    a->layers = (int32_t)count(o, "layers_kv");
    if (strcmp(text(o, "attn"), "mla") == 0) {
        l.attn = PLM_ATTN_MLA;
        l.kv_lora = (int32_t)count(o, "kv_lora_rank");
        l.rope_dim = (int32_t)count(o, "rope_dim");
    } else {
        l.kv_heads = (int32_t)count(o, "kv_heads");
        l.heads = l.kv_heads;
        l.dk = (int32_t)count(o, "k_dim");
        l.dv = (int32_t)count(o, "v_dim");
    }
    plm_arch_add_kind(a, &l);
}

static void op_kv_bytes(void)
{
    plm_arch a;
    int64_t each, all;
    plm_kv_options o = {.k = dtype(text(in, "k_dtype")), .v = dtype(text(in, "v_dtype"))};
    read_arch(json_object_get(in, "arch"), &a);
    ok(plm_kv_bytes_per_token(&a, &o, &each, &err));
    ok(plm_kv_bytes(&a, &o, count(in, "tokens"), &all, NULL, NULL, &err));
    expect("bytes_per_token", (double)each);
    expect("bytes", (double)all);
}

static void op_kv_bytes_rank(void)
{
    plm_arch a;
    int64_t each;
    plm_kv_options o = {.k = dtype(text(in, "dtype")), .v = dtype(text(in, "dtype")),
                        .tp = (int32_t)count(in, "tp")};
    read_arch(json_object_get(in, "arch"), &a);
    ok(plm_kv_bytes_per_token(&a, &o, &each, &err));
    expect("bytes", (double)each);
}

/* One layer of each kind with f16 rows of the sizes given. */
static void two_layers(plm_arch *a, int64_t full_bytes, int64_t window_bytes, int64_t window)
{
    plm_layer full = {.attn = PLM_ATTN_FULL, .heads = 1, .kv_heads = 1, .kv_shared_layer = -1};
    plm_layer win;
    full.dk = full.dv = (int32_t)(full_bytes / 4);
    win = full;
    win.attn = PLM_ATTN_SLIDING;
    win.window = (int32_t)window;
    win.dk = win.dv = (int32_t)(window_bytes / 4);
    plm_arch_init(a);
    a->layers = 2;
    plm_arch_add_kind(a, &full);
    plm_arch_add_kind(a, &win);
    a->layer_kind[1] = 1;
}

static void op_kv_bytes_swa(void)
{
    plm_arch a;
    int64_t all, full, window, cell = count(in, "window_bytes_per_cell");
    plm_kv_options o = {.k = PLM_DT_F16, .v = PLM_DT_F16, .window_slack = count(in, "ubatch"),
                        .window_pad = count(in, "pad")};
    two_layers(&a, count(in, "full_bytes_per_token"), cell, count(in, "window"));
    ok(plm_kv_bytes(&a, &o, count(in, "ctx"), &all, &full, &window, &err));
    expect("cells", (double)window / (double)cell);
    expect("full_bytes", (double)full);
    expect("window_bytes", (double)window);
    expect("total", (double)all);
}

static void op_max_tokens_swa(void)
{
    plm_arch a;
    int64_t tokens, each, budget = count(in, "budget_bytes");
    plm_kv_options o = {.k = PLM_DT_F16, .v = PLM_DT_F16};
    two_layers(&a, count(in, "full_bytes_per_token"), count(in, "window_bytes_per_cell"),
               count(in, "cells"));
    ok(plm_kv_max_tokens(&a, &o, budget, &tokens, &err));
    ok(plm_kv_bytes_per_token(&a, &o, &each, &err));
    expect("tokens", (double)tokens);
    expect("wrong_linear", (double)(budget / each)); /* what dividing would have said */
}

static void op_kv_budget(void)
{
    const json_t *parts = json_object_get(in, "subtract_gib");
    plm_arch a;
    plm_layer l = {.attn = PLM_ATTN_FULL, .heads = 1, .kv_heads = 1, .kv_shared_layer = -1};
    plm_device d = {.memory_bytes = number(in, "total_gib") * gib};
    plm_profile p = {.memory_rule = PLM_MEMORY_FRACTION,
                     .memory_fraction = number(in, "utilisation"),
                     .kv_block = count(in, "block"), .absorb_mla = true};
    plm_ledger led;
    double blocks = number(tolerance, "blocks");
    l.dk = l.dv = (int32_t)(count(in, "bytes_per_token") / 4);
    plm_arch_init(&a);
    a.layers = 1;
    plm_arch_add_kind(&a, &l);
    p.context_bytes = json_number_value(json_array_get(parts, 1)) * gib;
    plm_ledger_query q = {.arch = &a, .dev = &d, .prof = &p, .par = plm_parallel_one(),
                          .kv_k = PLM_DT_F16, .kv_v = PLM_DT_F16,
                          .weights_bytes =
                              (int64_t)(json_number_value(json_array_get(parts, 0)) * gib),
                          .activation_bytes =
                              (int64_t)(json_number_value(json_array_get(parts, 2)) * gib),
                          .context_tokens = count(in, "requested_len"), .batch = 1};
    ok(plm_ledger_make(&q, &led, &err));
    compare("kv_gib", (double)led.kv_pool_bytes / gib, number(want, "kv_gib"),
            number(tolerance, "abs_gib"));
    compare("blocks", (double)led.kv_blocks, number(want, "log_blocks"), blocks);
    compare("tokens", (double)plm_blocks_to_tokens(led.kv_blocks, p.kv_block),
            number(want, "tokens"), blocks * (double)p.kv_block);
    compare("fits", led.fits, truth(want, "fits"), 0);
}

static void op_blocks_to_tokens(void)
{
    expect("tokens", (double)plm_blocks_to_tokens(count(in, "blocks"), count(in, "block")));
}

static void op_max_concurrency(void)
{
    expect("value", plm_max_concurrency(number(in, "kv_tokens"), number(in, "tokens_per_request")));
}

static void op_lease_bound(void)
{
    expect("demand", (double)plm_blocks_to_tokens(count(in, "requests"), count(in, "tokens")));
    expect("fits", (double)plm_requests_held(count(in, "pool"), count(in, "tokens")));
}

static void op_scheduler_block(void)
{
    const json_t *groups = json_object_get(in, "groups");
    int64_t block[16], lcm;
    size_t n = json_array_size(groups);
    assert_in_range(n, 1, 16);
    for (size_t i = 0; i < n; i++)
        block[i] = (int64_t)json_number_value(json_array_get(groups, i));
    lcm = plm_common_block(block, n);
    expect("block", (double)lcm);
    expect("hits", (double)plm_requests_held(count(in, "prompt"), lcm));
}

/* ---- legality ---- */
static void op_valid_tp(void)
{
    const json_t *list = json_object_get(want, "tp");
    size_t at = 0;
    for (int64_t tp = 1; tp <= count(in, "max_tp"); tp++)
        if (plm_tp_heads_legal(count(in, "heads"), count(in, "kv_heads"), tp)) {
            compare("tp", (double)tp, json_number_value(json_array_get(list, at)), 0);
            at++;
        }
    compare("number of tp", (double)at, (double)json_array_size(list), 0);
}

static void op_tp_divides_heads(void)
{
    int64_t heads = count(in, "heads");
    compare("ok", plm_tp_heads_legal(heads, heads, count(in, "tp")), truth(want, "ok"), 0);
}

static void op_gqa_fields(void)
{
    const json_t *kv = json_object_get(want, "if_kv_heads");
    const json_t *gr = json_object_get(want, "if_group");
    int64_t k = count(in, "value"), g = 0;
    assert_true(plm_gqa_fields(count(in, "heads"), &k, &g));
    compare("group", (double)g, number(kv, "group"), 0);
    compare("kv_heads", (double)k, number(kv, "kv_heads"), 0);
    k = 0;
    g = count(in, "value");
    assert_true(plm_gqa_fields(count(in, "heads"), &k, &g));
    compare("group", (double)g, number(gr, "group"), 0);
    compare("kv_heads", (double)k, number(gr, "kv_heads"), 0);
    k = g = count(in, "value"); /* both at once do not make 32 */
    assert_false(plm_gqa_fields(count(in, "heads"), &k, &g));
}

/* ---- weights ---- */
static int32_t optional(const json_t *o, const char *key)
{
    return json_object_get(o, key) != NULL ? (int32_t)count(o, key) : 0;
}

/* A Llama-like model with an optional MoE and MLA, as the records describe them. */
static void read_config(const json_t *c, plm_arch *a)
{
    plm_layer l = {.attn = PLM_ATTN_FULL, .heads = optional(c, "heads"),
                   .kv_heads = optional(c, "kv_heads"), .dk = optional(c, "head_dim"),
                   .kv_shared_layer = -1, .glu = true, .act = PLM_FN_SILU, .norms = 2,
                   .ffn = optional(c, "ffn"), .rope = {.theta = 10000}};
    int32_t first_dense = optional(c, "dense_layers");
    l.dv = l.rope.dims = l.dk;
    if (truth(c, "qk_norm"))
        l.qk_norm = PLM_QK_HEAD;
    if (json_object_get(c, "kv_lora") != NULL) {
        l.attn = PLM_ATTN_MLA;
        l.kv_heads = l.heads;
        l.q_lora = optional(c, "q_lora");
        l.kv_lora = optional(c, "kv_lora");
        l.nope = optional(c, "nope");
        l.rope_dim = l.rope.dims = optional(c, "rope");
        l.dk = l.nope + l.rope_dim;
        l.dv = optional(c, "v_dim");
    }
    plm_layer dense = l;
    dense.ffn = first_dense > 0 ? optional(c, "dense_ffn") : l.ffn;
    l.experts = optional(c, "experts");
    l.top_k = optional(c, "top_k");
    l.expert_ffn = optional(c, "moe_ffn");
    l.shared_experts = optional(c, "shared");
    l.shared_ffn = l.shared_experts * l.expert_ffn;
    l.router_fn = l.experts > 0 ? PLM_FN_SOFTMAX : PLM_FN_NONE;
    l.router_bias = truth(c, "router_bias");
    plm_arch_init(a);
    a->layers = optional(c, "layers");
    a->hidden = optional(c, "hidden");
    a->vocab = optional(c, "vocab");
    a->tied_head = truth(c, "tied");
    plm_arch_add_kind(a, &l);
    if (first_dense > 0)
        memset(a->layer_kind, plm_arch_add_kind(a, &dense), (size_t)first_dense);
}

static void op_param_count(void)
{
    plm_arch a;
    plm_params p;
    read_config(json_object_get(in, "config"), &a);
    ok(plm_count_params(&a, &p, &err));
    expect("params", (double)p.total);
    if (json_object_get(want, "head_matrix") != NULL)
        expect("head_matrix", (double)p.embed);
    if (json_object_get(want, "if_untied") != NULL) {
        a.tied_head = false;
        ok(plm_count_params(&a, &p, &err));
        expect("if_untied", (double)p.total);
    }
}

static void op_moe_params(void)
{
    plm_arch a;
    plm_params p;
    read_config(json_object_get(in, "config"), &a);
    ok(plm_count_params(&a, &p, &err));
    expect("total", (double)p.total);
    expect("active_incl_embed", (double)p.active);
    if (json_object_get(want, "active_excl_embed") != NULL)
        expect("active_excl_embed", (double)p.active_no_embed);
    if (json_object_get(want, "if_shared_forgotten") != NULL) {
        a.kind[0].shared_experts = a.kind[0].shared_ffn = 0;
        ok(plm_count_params(&a, &p, &err));
        expect("if_shared_forgotten", (double)p.active);
    }
}

static void op_dedupe_tied(void)
{
    expect("params", (double)plm_params_tied(count(in, "checkpoint_params"), count(in, "vocab"),
                                             count(in, "dim")));
}

static void op_bpw(void)
{
    expect("bpw", plm_bits_per_weight(number(in, "gib") * gib, number(in, "params")));
}

static void op_params_from_bytes(void)
{
    expect("params", plm_params_from_bytes(number(in, "bytes"), dtype(text(in, "dtype"))));
    /* a flat 4 bits, as the tool in the report assumed */
    expect("wrong_if_q4_assumed", plm_params_from_bytes(number(in, "bytes"), PLM_DT_I4));
}

static void op_tensor_bytes(void)
{
    const json_t *ne = json_object_get(in, "ne");
    plm_dtype t = dtype(text(in, "type"));
    int64_t bytes, cols = (int64_t)json_number_value(json_array_get(ne, 0));
    compare("block", plm_dtype_get(t)->block, number(in, "block"), 0);
    compare("block_bytes", plm_dtype_get(t)->block_bytes, number(in, "block_bytes"), 0);
    ok(plm_dtype_bytes(t, (int64_t)json_number_value(json_array_get(ne, 1)), cols, &bytes, &err));
    expect("bytes", (double)bytes);
}

static void op_row_ok(void)
{
    int64_t bytes, cols = count(in, "ne0");
    assert_int_equal(plm_dtype_get(PLM_DT_Q4_K)->block, count(in, "block"));
    plm_status s = plm_dtype_bytes(PLM_DT_Q4_K, 1, cols, &bytes, &err);
    compare("ok", s == PLM_OK, truth(want, "ok"), 0);
    compare("refusal", s == PLM_E_INVALID, !truth(want, "ok"), 0);
    /* the whole blocks fit, the remainder is what does not */
    ok(plm_dtype_bytes(PLM_DT_Q4_K, 1, cols - count(want, "remainder"), &bytes, &err));
}

static void op_logits_bytes(void)
{
    expect("bytes", (double)plm_logits_bytes(count(in, "rows"), count(in, "vocab"),
                                             count(in, "bytes")));
}

static void op_image_tokens(void)
{
    expect("tokens",
           (double)plm_image_tokens(count(in, "max_pixels"), count(in, "pixels_per_token")));
}

/* The records count 694 and 604 tensors of 1,298; the set passes, a part missing or foreign does
** not. */
static void op_split_rules(void)
{
    const json_t *tensors = json_object_get(in, "tensors");
    int64_t base = count(in, "split_no_base"), all = count(in, "split_tensors_count");
    plm_split_part part[4];
    size_t n = json_array_size(tensors);
    assert_in_range(n, 2, 4);
    for (size_t i = 0; i < n; i++)
        part[i] = (plm_split_part){base + (int64_t)i, (int64_t)n, all,
                                   (int64_t)json_number_value(json_array_get(tensors, i))};
    ok(plm_split_check(part, n, &err));
    compare("part missing", plm_split_check(part, n - 1, &err) != PLM_OK, 1, 0);
    part[1].tensors_total++;
    compare("foreign part", plm_split_check(part, n, &err) != PLM_OK, 1, 0);
    part[1].tensors_total--;
    part[1].no = part[0].no;
    compare("part twice", plm_split_check(part, n, &err) != PLM_OK, 1, 0);
}

/* ---- rotary tables ---- */
static void op_yarn_mla(void)
{
    plm_rope r = {.theta = 10000, .dims = 64, .scaling = PLM_ROPE_YARN,
                  .factor = number(in, "factor"), .mscale = number(in, "mscale"),
                  .mscale_all = number(in, "mscale_all_dim")};
    double cos_sin, softmax;
    plm_rope_scales(&r, &cos_sin, &softmax);
    expect("cos_sin_scale", cos_sin);
    expect("softmax_scale_mult", softmax);
    expect("get_mscale", plm_yarn_mscale(r.factor, r.mscale));
    expect("one_over_1p0_1ln40", 1.0 / plm_yarn_mscale(r.factor, 1.0));
}

static void op_longrope_switch(void)
{
    plm_rope r = {.theta = 10000, .dims = 96, .scaling = PLM_ROPE_LONGROPE, .factor = 32,
                  .orig_ctx = number(in, "original")};
    float lo[48], hi[48];
    double before[48], after[48];
    plm_arch a = {.rope_short = lo, .rope_long = hi};
    r.n_factors = 48;
    for (int i = 0; i < 48; i++) {
        lo[i] = 1.0f;
        hi[i] = 2.0f + (float)i;
    }
    int64_t at = plm_longrope_switch(&r);
    expect("switch_at_length", (double)at);
    /* Keys cached before the switch were rotated otherwise: every pair changes, so recompute. */
    plm_rope_inv_freq(&a, &r, at - 1, before);
    plm_rope_inv_freq(&a, &r, at, after);
    for (int i = 0; i < 48; i++)
        compare("kv_recompute", before[i] != after[i], truth(want, "kv_recompute"), 0);
}

/* ---- roofline and rates ---- */
static void op_bandwidth_fraction(void)
{
    double achieved = number(in, "achieved_gb_s") * 1e9;
    expect("fraction", plm_bandwidth_share(achieved, number(in, "peak_gb_s") * 1e9));
    expect("gb_per_token", plm_bytes_per_token(achieved, number(in, "tok_s")) / 1e9);
}

static void op_roofline_flag(void)
{
    plm_roofline r = plm_roofline_check(number(in, "params") * number(in, "bytes_per_param"),
                                        number(in, "peak_gb_s") * 1e9,
                                        number(in, "measured_tok_s"));
    expect("roofline_tok_s", r.tok_s);
    expect("fraction", r.fraction);
    compare("flag", r.above, truth(want, "flag"), 0);
}

static void op_affine_prefill(void)
{
    const json_t *p = json_object_get(in, "points"), *a = json_array_get(p, 0),
                 *b = json_array_get(p, 1);
    double n1 = json_number_value(json_array_get(a, 0));
    double r1 = json_number_value(json_array_get(a, 1));
    double n2 = json_number_value(json_array_get(b, 0));
    double r2 = json_number_value(json_array_get(b, 1));
    double fit = number(tolerance, "fit"), near = number(tolerance, "prediction_rel");
    plm_affine f = plm_affine_fit(n1, n1 / r1, n2, n2 / r2);
    double t = plm_affine_s(f, number(in, "predict"));
    compare("fixed_s", f.fixed_s, number(want, "fixed_s"), fit);
    compare("ms_per_token", 1000 * f.s_per_token, number(want, "ms_per_token"), fit);
    compare("predicted_s", t, number(want, "predicted_s"), fit);
    compare("measured_s", t, number(want, "measured_s"), near * number(want, "measured_s"));
}

static void op_gpu_offload_threshold(void)
{
    expect("threshold", plm_expert_offload_rows(number(in, "experts"), number(in, "active"),
                                                number(in, "base")));
}

static void op_tp_decode(void)
{
    double bound = plm_layer_tp_decode(number(in, "single_tok_s"), number(in, "tp"),
                                       number(in, "layers"), number(in, "allreduce_per_layer"),
                                       number(in, "allreduce_us") * 1e-6);
    expect("upper_bound_tok_s", bound);
    compare("measured is under it", number(want, "measured") <= bound, 1, 0);
    compare("slower than one device", bound < number(in, "single_tok_s"), 1, 0);
}

/* The machine of the report, two Xeon Gold 5218: six channels of DDR4-2666, 128 GB/s a socket, and
** two UPI links of 10.4 GT/s, 41.6 GB/s each way (Intel ARK). */
static void op_numa_decode(void)
{
    const json_t *range = json_object_get(want, "ratio");
    double ratio = plm_numa_slowdown(number(in, "sockets"), 6 * 8 * 2.666e9, 2 * 20.8e9);
    double lo = json_number_value(json_array_get(range, 0));
    double hi = json_number_value(json_array_get(range, 1));
    compare("ratio", ratio, (lo + hi) / 2, (hi - lo) / 2);
    compare("one node is preferred", ratio > 1, strcmp(text(want, "prefer"), "one node") == 0, 0);
    compare("measured ratio", number(in, "pinned_tok_s") / number(in, "both_tok_s"), (lo + hi) / 2,
            (hi - lo) / 2);
}

static void op_spec_time(void)
{
    plm_spec_run r = plm_spec_time(number(in, "out_tokens"), number(in, "target_only"),
                                   number(in, "target_tok_s"), number(in, "drafted"),
                                   number(in, "draft_tok_s"), number(in, "verify_tok_s"));
    expect("seconds", r.seconds);
    expect("tok_s", r.tok_s);
    /* counting rejected drafts as output gives the maintainer's figure */
    expect("wrong_if_rejected_counted",
           (number(in, "target_only") + number(in, "drafted")) / r.seconds);
}

static void op_spec_expected_tokens(void)
{
    expect("tokens", plm_spec_expected_tokens(number(in, "alpha"), number(in, "k")));
}

static void op_transfer_ms(void)
{
    double gbit = number(in, "link_gbit_s");
    expect("ms", 1000 * plm_transfer_s(number(in, "bytes"), gbit));
    expect("gb_s", 1e-9 / plm_transfer_s(1, gbit));
    expect("wrong_if_gbyte", 1000 * plm_transfer_s(number(in, "bytes"), 8 * gbit));
}

/* ---- scheduling ---- */
static void burst(bool batched)
{
    const json_t *ttft = json_object_get(want, "ttft");
    int64_t n = count(in, "n");
    double s = number(in, "service_s");
    for (int64_t i = 0; i < n; i++)
        compare("ttft", plm_burst_ttft(n, i, s, batched),
                json_number_value(json_array_get(ttft, (size_t)i)), 0);
    expect("mean", plm_burst_mean_ttft(n, s, batched));
}

static void op_burst_fcfs(void)
{
    burst(false);
}

static void op_burst_batched(void)
{
    burst(true);
}

static void op_prefill_steps(void)
{
    expect("steps", (double)plm_prefill_steps(count(in, "prompt"), count(in, "chunk")));
}

/* ---- cost ---- */
static void op_usd_per_mtok(void)
{
    expect("value", plm_usd_per_mtok(number(in, "usd_per_hour"), number(in, "tok_s"),
                                     number(in, "utilisation")));
}

static void op_usd_per_mtok_job(void)
{
    double usd = number(in, "seconds") * number(in, "usd_per_s");
    double rate = number(in, "tokens") / number(in, "seconds");
    expect("usd", usd);
    compare("per_mtok", plm_usd_per_munit(usd, number(in, "tokens")), number(want, "per_mtok"),
            0.005); /* printed to a cent */
    compare("per_mtok by the hour", plm_usd_per_mtok(number(in, "usd_per_s") * 3600, rate, 1),
            number(want, "per_mtok"), 0.005);
    expect("per_mpages", plm_usd_per_munit(usd, number(in, "pages")));
}

static void op_breakeven_tokens(void)
{
    expect("tokens",
           plm_breakeven_tokens(number(in, "usd_per_month"), number(in, "api_usd_per_mtok")));
}

static void op_input_tokens(void)
{
    expect("input",
           (double)plm_input_tokens(count(in, "cache_read"), count(in, "cache_write")));
}

/* ---- dispatch ---- */
static const struct {
    const char *op;
    void (*run)(void);
    const char *elsewhere; /* program that checks such records itself */
} ops[] = {
    {"kv_bytes", op_kv_bytes, NULL},
    {"kv_bytes_per_token_per_rank", op_kv_bytes_rank, NULL},
    {"kv_bytes_swa", op_kv_bytes_swa, NULL},
    {"max_tokens_swa", op_max_tokens_swa, NULL},
    {"kv_budget", op_kv_budget, NULL},
    {"blocks_to_tokens", op_blocks_to_tokens, NULL},
    {"max_concurrency", op_max_concurrency, NULL},
    {"lease_bound", op_lease_bound, NULL},
    {"scheduler_block", op_scheduler_block, NULL},
    {"valid_tp", op_valid_tp, NULL},
    {"tp_divides_heads", op_tp_divides_heads, NULL},
    {"gqa_fields", op_gqa_fields, NULL},
    {"param_count", op_param_count, NULL},
    {"moe_params", op_moe_params, NULL},
    {"dedupe_tied", op_dedupe_tied, NULL},
    {"bpw", op_bpw, NULL},
    {"params_from_bytes", op_params_from_bytes, NULL},
    {"tensor_bytes", op_tensor_bytes, NULL},
    {"row_ok", op_row_ok, NULL},
    {"logits_bytes", op_logits_bytes, NULL},
    {"image_tokens", op_image_tokens, NULL},
    {"split_rules", op_split_rules, NULL},
    {"yarn_mla", op_yarn_mla, NULL},
    {"longrope_switch", op_longrope_switch, NULL},
    {"bandwidth_fraction", op_bandwidth_fraction, NULL},
    {"roofline_flag", op_roofline_flag, NULL},
    {"affine_prefill", op_affine_prefill, NULL},
    {"gpu_offload_threshold", op_gpu_offload_threshold, NULL},
    {"tp_decode", op_tp_decode, NULL},
    {"spec_time", op_spec_time, NULL},
    {"spec_expected_tokens", op_spec_expected_tokens, NULL},
    {"transfer_ms", op_transfer_ms, NULL},
    {"burst_fcfs", op_burst_fcfs, NULL},
    {"burst_batched", op_burst_batched, NULL},
    {"prefill_steps", op_prefill_steps, NULL},
    {"usd_per_mtok", op_usd_per_mtok, NULL},
    {"usd_per_mtok_job", op_usd_per_mtok_job, NULL},
    {"breakeven_tokens", op_breakeven_tokens, NULL},
    {"input_tokens", op_input_tokens, NULL},
    {"softmax_row", NULL, "tests/test_oracle_*.c"},
    {"attention_all_masked", NULL, "tests/test_oracle_*.c"},
    {"attention", NULL, "tests/test_oracle_*.c"},
    {"groups", NULL, "tests/test_oracle_*.c"},
    {"permuted_sum", NULL, "tests/test_oracle_*.c"},
    {"qmatmul_shapes", NULL, "tests/test_oracle_*.c"},
    {"zero_size", NULL, "tests/test_oracle_*.c"},
    {"lane_reduce", NULL, "tests/test_oracle_*.c"},
    {"tp_compare_pcie", NULL, "tests/test_cases_predict.c"},
    {"numa_decode", op_numa_decode, NULL},
    {"pd_second_decode_gain", NULL, "tests/test_cases_predict.c"},
};
#define OPS (sizeof ops / sizeof ops[0])

static void run_record(const char *line, size_t bytes, int *here, int *elsewhere)
{
    json_t *r = NULL;
    size_t k = 0;
    ok(plm_json_parse(line, bytes, "tests/data/cases.jsonl", &r, &err));
    id = text(r, "id");
    in = json_object_get(r, "inputs");
    want = json_object_get(r, "expected");
    tolerance = json_object_get(r, "tolerance");
    checks = 0;
    const char *op = text(in, "op");
    while (k < OPS && strcmp(ops[k].op, op) != 0)
        k++;
    if (k == OPS)
        fail_msg("%s: operation %s is not known", id, op);
    if (ops[k].run != NULL) {
        ops[k].run();
        if (checks == 0)
            fail_msg("%s: nothing was compared", id);
        ++*here;
    } else {
        print_message("%s: %s, elsewhere: %s\n", id, op, ops[k].elsewhere);
        ++*elsewhere;
    }
    json_decref(r);
}

static void test_records(void **state)
{
    (void)state;
    char *all = NULL;
    size_t bytes = 0;
    int here = 0, elsewhere = 0;
    id = "tests/data/cases.jsonl";
    ok(plm_file_read(PLM_ROOT "/tests/data/cases.jsonl", 1 << 20, &all, &bytes, &err));
    for (char *at = all, *end; at < all + bytes; at = end + 1) {
        end = strchr(at, '\n');
        if (end == NULL)
            end = all + bytes;
        if (end > at)
            run_record(at, (size_t)(end - at), &here, &elsewhere);
    }
    print_message("%d records checked here, %d elsewhere\n", here, elsewhere);
    assert_int_equal(here + elsewhere, 118);
    assert_int_equal(elsewhere, 13);
    plm_free(all);
}

/* The closed forms refuse what has no answer. */
static void test_refusals(void **state)
{
    (void)state;
    static const int64_t bad[] = {4, 0};
    static const int64_t huge[] = {INT64_MAX, INT64_MAX - 1};
    assert_int_equal(plm_blocks_to_tokens(-1, 16), -1);
    assert_int_equal(plm_blocks_to_tokens(INT64_MAX, 16), -1);
    assert_true(isnan(plm_max_concurrency(1, 0)));
    assert_int_equal(plm_requests_held(1, 0), -1);
    assert_int_equal(plm_common_block(bad, 2), -1);
    assert_int_equal(plm_common_block(huge, 2), -1);
    assert_int_equal(plm_common_block(bad, 0), -1);
    assert_int_equal(plm_logits_bytes(INT64_MAX, 2, 1), -1);
    assert_int_equal(plm_image_tokens(1, 0), -1);
    assert_int_equal(plm_params_tied(10, 4, 4), -1);
    assert_true(isnan(plm_bits_per_weight(1, 0)));
    assert_true(isnan(plm_params_from_bytes(1, PLM_DT_COUNT)));
    assert_true(isnan(plm_roofline_check(0, 1, 1).tok_s));
    assert_true(isnan(plm_affine_fit(1, 2, 1, 3).fixed_s));
    assert_true(isnan(plm_numa_slowdown(2, 0, 1)));
    assert_true(isnan(plm_layer_tp_decode(0, 2, 1, 2, 1)));
    assert_true(isnan(plm_spec_expected_tokens(1.5, 2)));
    assert_true(isnan(plm_spec_time(1, 1, 0, 1, 1, 1).seconds));
    assert_true(isnan(plm_burst_ttft(2, 2, 1, false)));
    assert_int_equal(plm_prefill_steps(1, 0), -1);
    assert_int_equal(plm_input_tokens(-1, 2), -1);
    assert_true(isnan(plm_breakeven_tokens(1, 0)));
}

/* serving_facts S7: expected tokens and speed-up of speculative decoding. */
static void test_speculation(void **state)
{
    (void)state;
    static const double row[][5] = {
        {.8, 4, .10, 3.3616, 2.4011}, {.7, 4, .10, 2.7731, 1.9808}, {.6, 5, .05, 2.3834, 1.9067},
        {.8, 5, .02, 3.6893, 3.3539}, {.9, 1, .05, 1.9000, 1.8095}, {.85, 1, .05, 1.8500, 1.7619}};
    for (size_t i = 0; i < 6; i++) {
        assert_close(plm_spec_expected_tokens(row[i][0], row[i][1]), row[i][3], 0, 5.1e-5);
        assert_close(plm_spec_speedup(row[i][0], row[i][1], row[i][2], 0), row[i][4], 0, 5.1e-5);
    }
    assert_close(plm_spec_expected_tokens(1.0, 4), 5, 0, 0);
    assert_close(plm_spec_expected_tokens(0.0, 4), 1, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_speculation),
    };
    return cmocka_run_group_tests_name("cases", tests, NULL, NULL);
}
