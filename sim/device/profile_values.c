/* profile_values.c - the values of an engine profile: one table of names, types and bounds, and the
** reading of each type from JSON. */
#include "sim/device/profile_values.h"

#include <stddef.h>
#include <string.h>

#include "core/base/json.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef enum kind { REAL, SIZE32, SIZE64, TRUTH, NAME, STORE, RULE, CLASSES, TYPES, BANDS, FUSIONS }
    kind;

typedef struct field {
    const char *key;
    kind kind;
    size_t offset;
    double lo, hi;
} field;

#define P(f) offsetof(plm_profile, f)
#define BIG 1e15
static const field fields[] = {
    {"mem_eff", CLASSES, P(mem_eff), 0.001, 1},
    {"tensor_eff", CLASSES, P(tensor_eff), 0.001, 1},
    {"vector_eff", REAL, P(vector_eff), 0.001, 1},
    {"exp_eff", REAL, P(exp_eff), 0.001, 2}, /* above 1: part of the exps on the FMA units */
    {"weight_eff", TYPES, P(weight_eff), 0, 4},
    {"weight_math", TYPES, P(weight_math), 0, 8},
    {"launch_s", REAL, P(launch_s), 0, 1},
    {"kernel_s", CLASSES, P(kernel_s), 0, 1},
    {"weight_s", TYPES, P(weight_s), 0, 1},
    {"launch_clk", REAL, P(launch_clk), 0, 1e9},
    {"step_s", REAL, P(step_s), 0, 10},
    {"seq_s", REAL, P(seq_s), 0, 1},
    {"layer_s", REAL, P(layer_s), 0, 1},
    {"host_layer_s", REAL, P(host_layer_s), 0, 1},
    {"chunk_layer_s", REAL, P(chunk_layer_s), 0, 1},
    {"ramp_bytes", REAL, P(ramp_bytes), 0, 1e12},
    {"kernel_floor_s", REAL, P(kernel_floor_s), 0, 1},
    {"tile_quant", TRUTH, P(tile_quant), 0, 0},
    {"tile_m", SIZE32, P(tile_m), 0, 65536},
    {"tile_n", SIZE32, P(tile_n), 0, 65536},
    {"skinny_m", REAL, P(skinny_m), 0, 1e6},
    {"skinny_eff", REAL, P(skinny_eff), 0, 1},
    {"weight_clk", REAL, P(weight_clk), 0, 1e6},
    {"row_clk", REAL, P(row_clk), 0, 1e6},
    {"unfused_eff", REAL, P(unfused_eff), 0, 1},
    {"unfused_tensor", REAL, P(unfused_tensor), 0, 1},
    {"power_flop_j", REAL, P(power_flop_j), 0, 1e16},
    {"attn_decode_eff", REAL, P(attn_decode_eff), 0, 1},
    {"link_eff", REAL, P(link_eff), 0.001, 1.5}, /* in-switch reduction exceeds the line rate */
    {"link_latency_s", REAL, P(link_latency_s), 0, 1},
    {"link_one_shot_bytes", REAL, P(link_one_shot_bytes), 0, 1e12},
    {"moe_eff_small", REAL, P(moe_eff_small), 0, 1},
    {"expert_popularity", REAL, P(expert_popularity), 0, 1e6},
    {"acc16", TRUTH, P(acc16), 0, 0},
    {"int8_dot", TRUTH, P(int8_dot), 0, 0},
    {"fuse", FUSIONS, P(fuse), 0, 0},
    {"absorb_mla", TRUTH, P(absorb_mla), 0, 0},
    {"ubatch", SIZE64, P(ubatch), 1, 1e9},
    {"pipeline", SIZE64, P(pipeline), 0, 1e6},
    {"max_seqs", SIZE64, P(max_seqs), 1, 1e9},
    {"chunked_prefill", TRUTH, P(chunked_prefill), 0, 0},
    {"overlap_schedule", TRUTH, P(overlap_schedule), 0, 0},
    {"ttft_host_s", REAL, P(ttft_host_s), 0, 100},
    {"burst_share", REAL, P(burst_share), 0, 1},
    {"fixed_bunch", REAL, P(fixed_bunch), 0, 1e9},
    {"memory_rule", RULE, P(memory_rule), 0, 0},
    {"memory_fraction", REAL, P(memory_fraction), 0.01, 1},
    {"context_bytes", REAL, P(context_bytes), 0, BIG},
    {"graph_bytes", REAL, P(graph_bytes), 0, BIG},
    {"reserve_bytes", REAL, P(reserve_bytes), 0, BIG},
    {"reserve_output", TRUTH, P(reserve_output), 0, 0},
    {"state_share", REAL, P(state_share), 0, 0.99},
    {"state_copies", REAL, P(state_copies), 0, 1000},
    {"comm_bytes", REAL, P(comm_bytes), 0, BIG},
    {"logit_bytes", REAL, P(logit_bytes), 0, 1e6},
    {"kv_block", SIZE64, P(kv_block), 1, 1e6},
    {"kv_pad", SIZE64, P(kv_pad), 1, 1e6},
    {"window_slack", SIZE64, P(window_slack), -1, 1e9},
    {"tail_bytes", SIZE64, P(tail_bytes), 0, 8},
    {"matrices_apart", TRUTH, P(matrices_apart), 0, 0},
    {"windows_full", TRUTH, P(windows_full), 0, 0},
    {"all_logits", TRUTH, P(all_logits), 0, 0},
    {"ubatch_logits", TRUTH, P(ubatch_logits), 0, 0},
    {"embed_on_host", TRUTH, P(embed_on_host), 0, 0},
    {"kv_head_copy", TRUTH, P(kv_head_copy), 0, 0},
    {"vocab_pad", SIZE64, P(vocab_pad), 1, 65536},
    {"kv_default", STORE, P(kv_default), 0, 0},
    {"kv_narrow", STORE, P(kv_narrow), 0, 0},
    {"act_default", STORE, P(act_default), 0, 0},
    {"quant_default", NAME, P(quant_default), 0, 0},
    {"band", BANDS, P(band), 0.01, 100},
};

static const char *const class_names[PLM_CLASS_COUNT] = {
#define CLASS_NAME(id, name) [PLM_CLASS_##id] = name,
    PLM_CLASS_MAP(CLASS_NAME)
#undef CLASS_NAME
};
static const char *const regime_names[PLM_REGIME_COUNT] = {
#define REGIME_NAME(id, name) [PLM_REGIME_##id] = name,
    PLM_REGIME_MAP(REGIME_NAME)
#undef REGIME_NAME
};
static const char *const rule_names[] = {
    [PLM_MEMORY_ALL] = "all", [PLM_MEMORY_FRACTION] = "fraction", [PLM_MEMORY_FREE] = "free"};

size_t plm_profile_find(const char *const *names, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

plm_status plm_profile_unknown(const char *what, const char *name, const char *where,
                               plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID,
                    "unknown %s \"%.60s\", %s: a profile has no such; see catalog/README.md", what,
                    name, where);
}

plm_status plm_profile_wrong(const char *key, const char *want, const char *where, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "bad value of \"%.60s\", %s: want %s; correct it", key,
                    where, want);
}

/* ---- values ---- */
/* {"linear": 0.8, ...}; "all" sets every class first. A plain number does too. */
static plm_status read_classes(json_t *v, const field *f, const char *where, double *out,
                               plm_error *err)
{
    double all = 0;
    if (json_is_object(v))
        PLM_TRY(plm_json_double(v, "all", false, f->lo, f->hi, where, &all, err));
    else if (json_is_number(v) && json_number_value(v) >= f->lo && json_number_value(v) <= f->hi)
        all = json_number_value(v);
    else
        return plm_profile_wrong(f->key, "a share, or an object of shares by class", where, err);
    for (size_t i = 0; all > 0 && i < PLM_CLASS_COUNT; i++)
        out[i] = all;
    const char *key;
    json_t *unused;
    json_object_foreach(v, key, unused) {
        size_t i = plm_profile_find(class_names, PLM_CLASS_COUNT, key);
        if (i == PLM_CLASS_COUNT && strcmp(key, "all") != 0)
            return plm_profile_unknown("class of ops", key, where, err);
        if (i < PLM_CLASS_COUNT)
            PLM_TRY(plm_json_double(v, key, true, f->lo, f->hi, where, &out[i], err));
    }
    return PLM_OK;
}

/* {"q4_k": 0.9, ...} by storage type. */
static plm_status read_types(json_t *v, const field *f, const char *where, double *out,
                             plm_error *err)
{
    if (!json_is_object(v))
        return plm_profile_wrong(f->key, "an object of factors by storage type", where, err);
    const char *key;
    json_t *unused;
    json_object_foreach(v, key, unused) {
        plm_dtype t = plm_dtype_by_name(key);
        if (t == PLM_DT_COUNT)
            return plm_profile_unknown("storage type", key, where, err);
        PLM_TRY(plm_json_double(v, key, true, f->lo, f->hi, where, &out[t], err));
    }
    return PLM_OK;
}

/* {"decode": [0.7, 1.4], ...}: a pair around 1. */
static plm_status read_bands(json_t *v, const field *f, const char *where, plm_profile *p,
                             plm_error *err)
{
    if (!json_is_object(v))
        return plm_profile_wrong(f->key, "an object of [low, high] by regime", where, err);
    const char *key;
    json_t *pair;
    json_object_foreach(v, key, pair) {
        size_t r = plm_profile_find(regime_names, PLM_REGIME_COUNT, key);
        if (r == PLM_REGIME_COUNT)
            return plm_profile_unknown("regime", key, where, err);
        double lo = json_number_value(json_array_get(pair, 0));
        double hi = json_number_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || lo < f->lo || hi > f->hi || lo > 1 || hi < 1)
            return plm_profile_wrong(key, "[low, high] with 0.01 <= low <= 1 <= high <= 100", where,
                                     err);
        p->band[r][0] = lo;
        p->band[r][1] = hi;
    }
    return PLM_OK;
}

/* "all", "none", or a list of pattern names of core/ir/fuse.c. */
static plm_status read_fusions(json_t *v, const field *f, const char *where, uint64_t *out,
                               plm_error *err)
{
    size_t n = plm_fusion_count();
    const char *text = json_string_value(v);
    if (text != NULL && strcmp(text, "all") == 0) {
        *out = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
        return PLM_OK;
    }
    *out = 0;
    if (text != NULL && strcmp(text, "none") == 0)
        return PLM_OK;
    if (!json_is_array(v))
        return plm_profile_wrong(f->key, "\"all\", \"none\" or a list of patterns", where, err);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_array_get(v, i));
        size_t k = 0;
        while (name != NULL && k < n && strcmp(plm_fusion_name(k), name) != 0)
            k++;
        if (name == NULL || k >= n || k >= 64)
            return plm_profile_unknown("fusion pattern", name != NULL ? name : "?", where, err);
        *out |= UINT64_C(1) << k;
    }
    return PLM_OK;
}

static plm_status read_word(const json_t *obj, const field *f, const char *where, void *at,
                            plm_error *err)
{
    const char *text = NULL;
    PLM_TRY(plm_json_text(obj, f->key, true, where, &text, err));
    if (f->kind == NAME) {
        size_t room = sizeof((plm_profile *)0)->quant_default;
        if (strlen(text) >= room)
            return plm_profile_wrong(f->key, "a shorter name", where, err);
        memcpy(at, text, strlen(text) + 1);
    } else if (f->kind == STORE) {
        plm_dtype t = plm_dtype_by_name(text);
        if (t == PLM_DT_COUNT)
            return plm_profile_unknown("storage type", text, where, err);
        memcpy(at, &t, sizeof t);
    } else {
        size_t r = plm_profile_find(rule_names, COUNT(rule_names), text);
        if (r == COUNT(rule_names))
            return plm_profile_unknown("memory rule", text, where, err);
        plm_memory_rule rule = (plm_memory_rule)r;
        memcpy(at, &rule, sizeof rule);
    }
    return PLM_OK;
}

static plm_status read_value(json_t *obj, json_t *v, const field *f, const char *where,
                             plm_profile *p, plm_error *err)
{
    char *at = (char *)p + f->offset;
    double real = 0;
    int64_t whole = 0;
    int32_t whole32;
    bool truth = false;
    uint64_t mask = 0;
    switch (f->kind) {
    case REAL:
        PLM_TRY(plm_json_double(obj, f->key, true, f->lo, f->hi, where, &real, err));
        memcpy(at, &real, sizeof real);
        return PLM_OK;
    case SIZE32:
    case SIZE64:
        PLM_TRY(
            plm_json_int(obj, f->key, true, (int64_t)f->lo, (int64_t)f->hi, where, &whole, err));
        whole32 = (int32_t)(f->kind == SIZE32 ? whole : 0);
        memcpy(at, f->kind == SIZE32 ? (void *)&whole32 : (void *)&whole,
               f->kind == SIZE32 ? sizeof whole32 : sizeof whole);
        return PLM_OK;
    case TRUTH:
        PLM_TRY(plm_json_bool(obj, f->key, true, where, &truth, err));
        memcpy(at, &truth, sizeof truth);
        return PLM_OK;
    case NAME:
    case STORE:
    case RULE: return read_word(obj, f, where, at, err);
    case CLASSES: return read_classes(v, f, where, (double *)(void *)at, err);
    case TYPES: return read_types(v, f, where, (double *)(void *)at, err);
    case BANDS: return read_bands(v, f, where, p, err);
    case FUSIONS:
        PLM_TRY(read_fusions(v, f, where, &mask, err));
        memcpy(at, &mask, sizeof mask);
        return PLM_OK;
    }
    return PLM_OK;
}

/* Every key of a set of values; keys of `also` are the caller's business. */
plm_status plm_profile_read(json_t *obj, const char *const *also, size_t n_also,
                              const char *where, plm_profile *p, plm_error *err)
{
    const char *key;
    json_t *v;
    json_object_foreach(obj, key, v) {
        if (plm_profile_find(also, n_also, key) < n_also)
            continue;
        size_t i = 0;
        while (i < COUNT(fields) && strcmp(fields[i].key, key) != 0)
            i++;
        if (i == COUNT(fields))
            return plm_profile_unknown("key", key, where, err);
        PLM_TRY(read_value(obj, v, &fields[i], where, p, err));
    }
    return PLM_OK;
}

/* What a value is when no record sets it: neutral. */
void plm_profile_neutral(plm_profile *p)
{
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < PLM_CLASS_COUNT; i++)
        p->mem_eff[i] = p->tensor_eff[i] = 1;
    for (size_t i = 0; i < PLM_REGIME_COUNT; i++)
        p->band[i][0] = p->band[i][1] = 1;
    p->vector_eff = p->exp_eff = p->link_eff = 1;
    p->ubatch = 512;
    p->max_seqs = 256;
    p->memory_fraction = 1;
    p->kv_block = p->kv_pad = p->vocab_pad = 1;
    p->kv_default = p->act_default = PLM_DT_F16;
    p->kv_narrow = PLM_DT_COUNT;
}
