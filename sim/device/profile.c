/* profile.c - the loader of engine profiles; catalog/README.md describes their form.
**
** A record is read in this order: its base (the same way, for the same device), then the record's own
** values, then those "where" clauses whose conditions the device meets. One table below names every
** value with its type and bounds; any other key is refused by name, so a typo is an error.
*/
#include "sim/device/profile.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MAX_BASES 8 /* depth of "base", so that a ring of records ends */

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
    {"step_s", REAL, P(step_s), 0, 10},
    {"seq_s", REAL, P(seq_s), 0, 1},
    {"layer_s", REAL, P(layer_s), 0, 1},
    {"ramp_bytes", REAL, P(ramp_bytes), 0, 1e12},
    {"kernel_floor_s", REAL, P(kernel_floor_s), 0, 1},
    {"tile_quant", TRUTH, P(tile_quant), 0, 0},
    {"tile_m", SIZE32, P(tile_m), 0, 65536},
    {"tile_n", SIZE32, P(tile_n), 0, 65536},
    {"skinny_m", REAL, P(skinny_m), 0, 1e6},
    {"skinny_eff", REAL, P(skinny_eff), 0, 1},
    {"attn_decode_eff", REAL, P(attn_decode_eff), 0, 1},
    {"link_eff", REAL, P(link_eff), 0.001, 1.5}, /* in-switch reduction exceeds the line rate */
    {"link_latency_s", REAL, P(link_latency_s), 0, 1},
    {"link_one_shot_bytes", REAL, P(link_one_shot_bytes), 0, 1e12},
    {"moe_eff_small", REAL, P(moe_eff_small), 0, 1},
    {"int8_dot", TRUTH, P(int8_dot), 0, 0},
    {"fuse", FUSIONS, P(fuse), 0, 0},
    {"absorb_mla", TRUTH, P(absorb_mla), 0, 0},
    {"ubatch", SIZE64, P(ubatch), 1, 1e9},
    {"max_seqs", SIZE64, P(max_seqs), 1, 1e9},
    {"chunked_prefill", TRUTH, P(chunked_prefill), 0, 0},
    {"overlap_schedule", TRUTH, P(overlap_schedule), 0, 0},
    {"ttft_host_s", REAL, P(ttft_host_s), 0, 100},
    {"memory_rule", RULE, P(memory_rule), 0, 0},
    {"memory_fraction", REAL, P(memory_fraction), 0.01, 1},
    {"context_bytes", REAL, P(context_bytes), 0, BIG},
    {"graph_bytes", REAL, P(graph_bytes), 0, BIG},
    {"reserve_bytes", REAL, P(reserve_bytes), 0, BIG},
    {"kv_block", SIZE64, P(kv_block), 1, 1e6},
    {"kv_pad", SIZE64, P(kv_pad), 1, 1e6},
    {"window_slack", SIZE64, P(window_slack), -1, 1e9},
    {"windows_full", TRUTH, P(windows_full), 0, 0},
    {"all_logits", TRUTH, P(all_logits), 0, 0},
    {"embed_on_host", TRUTH, P(embed_on_host), 0, 0},
    {"kv_head_copy", TRUTH, P(kv_head_copy), 0, 0},
    {"vocab_pad", SIZE64, P(vocab_pad), 1, 65536},
    {"kv_default", STORE, P(kv_default), 0, 0},
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

static size_t find_name(const char *const *names, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static plm_status unknown(const char *what, const char *name, const char *where, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID,
                    "unknown %s \"%.60s\", %s: a profile has no such; see catalog/README.md", what,
                    name, where);
}

static plm_status wrong(const char *key, const char *want, const char *where, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "bad value of \"%.60s\", %s: want %s; correct it", key, where,
                    want);
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
        return wrong(f->key, "a share, or an object of shares by class", where, err);
    for (size_t i = 0; all > 0 && i < PLM_CLASS_COUNT; i++)
        out[i] = all;
    const char *key;
    json_t *unused;
    json_object_foreach(v, key, unused) {
        size_t i = find_name(class_names, PLM_CLASS_COUNT, key);
        if (i == PLM_CLASS_COUNT && strcmp(key, "all") != 0)
            return unknown("class of ops", key, where, err);
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
        return wrong(f->key, "an object of factors by storage type", where, err);
    const char *key;
    json_t *unused;
    json_object_foreach(v, key, unused) {
        plm_dtype t = plm_dtype_by_name(key);
        if (t == PLM_DT_COUNT)
            return unknown("storage type", key, where, err);
        PLM_TRY(plm_json_double(v, key, true, f->lo, f->hi, where, &out[t], err));
    }
    return PLM_OK;
}

/* {"decode": [0.7, 1.4], ...}: a pair around 1. */
static plm_status read_bands(json_t *v, const field *f, const char *where, plm_profile *p,
                             plm_error *err)
{
    if (!json_is_object(v))
        return wrong(f->key, "an object of [low, high] by regime", where, err);
    const char *key;
    json_t *pair;
    json_object_foreach(v, key, pair) {
        size_t r = find_name(regime_names, PLM_REGIME_COUNT, key);
        if (r == PLM_REGIME_COUNT)
            return unknown("regime", key, where, err);
        double lo = json_number_value(json_array_get(pair, 0));
        double hi = json_number_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || lo < f->lo || hi > f->hi || lo > 1 || hi < 1)
            return wrong(key, "[low, high] with 0.01 <= low <= 1 <= high <= 100", where, err);
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
        return wrong(f->key, "\"all\", \"none\" or a list of patterns", where, err);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_array_get(v, i));
        size_t k = 0;
        while (name != NULL && k < n && strcmp(plm_fusion_name(k), name) != 0)
            k++;
        if (name == NULL || k >= n || k >= 64)
            return unknown("fusion pattern", name != NULL ? name : "?", where, err);
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
            return wrong(f->key, "a shorter name", where, err);
        memcpy(at, text, strlen(text) + 1);
    } else if (f->kind == STORE) {
        plm_dtype t = plm_dtype_by_name(text);
        if (t == PLM_DT_COUNT)
            return unknown("storage type", text, where, err);
        memcpy(at, &t, sizeof t);
    } else {
        size_t r = find_name(rule_names, COUNT(rule_names), text);
        if (r == COUNT(rule_names))
            return unknown("memory rule", text, where, err);
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
        PLM_TRY(plm_json_int(obj, f->key, true, (int64_t)f->lo, (int64_t)f->hi, where, &whole, err));
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
static plm_status read_values(json_t *obj, const char *const *also, size_t n_also,
                              const char *where, plm_profile *p, plm_error *err)
{
    const char *key;
    json_t *v;
    json_object_foreach(obj, key, v) {
        if (find_name(also, n_also, key) < n_also)
            continue;
        size_t i = 0;
        while (i < COUNT(fields) && strcmp(fields[i].key, key) != 0)
            i++;
        if (i == COUNT(fields))
            return unknown("key", key, where, err);
        PLM_TRY(read_value(obj, v, &fields[i], where, p, err));
    }
    return PLM_OK;
}

/* ---- where clauses ---- */
typedef enum match { EQUAL, PREFIX } match;
static bool text_matches(const char *have, const char *want, match how)
{
    return how == EQUAL ? plm_id_equal(have, want) : strncmp(have, want, strlen(want)) == 0;
}

/* One condition: a text or a list of texts, any of which may match. */
static plm_status test_condition(const json_t *v, const char *key, const char *have, match how,
                                 const char *where, bool *met, plm_error *err)
{
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const char *want = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);
        if (want == NULL || *want == '\0')
            return wrong(key, "a text or a list of texts", where, err);
        any = any || text_matches(have, want, how);
    }
    *met = *met && any;
    return PLM_OK;
}

/* {"vendor", "arch", "class", "target", "device", "min_memory_GiB": conditions, all of which must
** hold; "set": values; "comment"}. arch and target match by prefix. */
static plm_status read_clause(json_t *clause, const plm_device *d, const char *where,
                              plm_profile *p, plm_error *err)
{
    const struct {
        const char *key, *have;
        match how;
    } conditions[] = {{"vendor", d->vendor, EQUAL}, {"arch", d->arch, PREFIX},
                      {"class", d->cls, EQUAL},     {"target", d->target, PREFIX},
                      {"device", d->id, EQUAL}};
    bool met = true;
    const char *key;
    json_t *v;
    json_object_foreach(clause, key, v) {
        size_t i = 0;
        while (i < COUNT(conditions) && strcmp(conditions[i].key, key) != 0)
            i++;
        if (i < COUNT(conditions)) {
            PLM_TRY(test_condition(v, key, conditions[i].have, conditions[i].how, where, &met, err));
        } else if (strcmp(key, "min_memory_GiB") == 0) {
            double least = 0;
            PLM_TRY(plm_json_double(clause, key, true, 0, 1e6, where, &least, err));
            met = met && d->memory_bytes >= least * 1073741824.0;
        } else if (strcmp(key, "set") != 0 && strcmp(key, "comment") != 0) {
            return unknown("condition", key, where, err);
        }
    }
    json_t *set = json_object_get(clause, "set");
    if (!json_is_object(set))
        return wrong("set", "an object of values in each clause", where, err);
    plm_profile ignored = *p; /* a clause that does not apply is checked all the same */
    return read_values(set, NULL, 0, where, met ? p : &ignored, err);
}

/* ---- records ---- */
static plm_status apply_record(const plm_catalog *c, const char *id, const plm_device *d, int depth,
                               plm_profile *p, plm_error *err);

static plm_status apply_root(const plm_catalog *c, json_t *root, const plm_device *d, int depth,
                             const char *where, plm_profile *p, plm_error *err)
{
    static const char *const also[] = {"id", "engine", "base", "where", "comments", "family", "doc"};
    const char *base = NULL, *engine = NULL, *id = NULL;
    if (!json_is_object(root))
        return plm_fail(err, PLM_E_INVALID,
                        "bad record, %s: not an object; see catalog/README.md for its form", where);
    PLM_TRY(plm_json_text(root, "id", true, where, &id, err));
    PLM_TRY(plm_json_text(root, "engine", false, where, &engine, err));
    PLM_TRY(plm_json_text(root, "base", false, where, &base, err));
    if (base != NULL)
        PLM_TRY(apply_record(c, base, d, depth + 1, p, err));
    if (strlen(id) >= sizeof p->id || (engine != NULL && strlen(engine) >= sizeof p->engine))
        return wrong("id", "shorter names", where, err);
    memcpy(p->id, id, strlen(id) + 1);
    if (engine != NULL)
        memcpy(p->engine, engine, strlen(engine) + 1);
    PLM_TRY(read_values(root, also, COUNT(also), where, p, err));
    json_t *clauses = json_object_get(root, "where");
    if (clauses != NULL && !json_is_array(clauses))
        return wrong("where", "a list of clauses", where, err);
    for (size_t i = 0; i < json_array_size(clauses); i++)
        PLM_TRY(read_clause(json_array_get(clauses, i), d, where, p, err));
    return PLM_OK;
}

static plm_status apply_record(const plm_catalog *c, const char *id, const plm_device *d, int depth,
                               plm_profile *p, plm_error *err)
{
    const plm_record *r = plm_catalog_find(c, "engines", id);
    char where[96];
    if (r == NULL || depth > MAX_BASES)
        return plm_fail(err, r == NULL ? PLM_E_NOT_FOUND : PLM_E_INVALID,
                        "base \"%.60s\", engine profile: %s; correct \"base\" in its record", id,
                        r == NULL ? "no such record" : "the bases form a ring");
    snprintf(where, sizeof where, "engine %.80s", r->id);
    json_t *root = NULL;
    PLM_TRY(plm_json_parse(r->text, r->bytes, where, &root, err));
    plm_status status = apply_root(c, root, d, depth, where, p, err);
    json_decref(root);
    return status;
}

/* What a value is when no record sets it: neutral. */
static void set_neutral(plm_profile *p)
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
}

/* ---- names ---- */
/* Backend of the llama.cpp family usual on a device, NULL = it has none. Polaris and older AMD parts
** have no ROCm; Intel and Qualcomm GPUs run the Vulkan backend. */
static const char *usual_backend(const plm_device *d)
{
    if (strcmp(d->cls, "cpu") == 0)
        return "cpu";
    if (strcmp(d->cls, "gpu") != 0 && strcmp(d->cls, "apu") != 0)
        return NULL;
    if (strcmp(d->vendor, "nvidia") == 0)
        return "cuda";
    if (strcmp(d->vendor, "apple") == 0)
        return "metal";
    if (strcmp(d->vendor, "amd") == 0 && strncmp(d->target, "gfx8", 4) != 0)
        return "hip";
    return "vulkan";
}

const char *plm_profile_usual(const plm_device *d)
{
    static const struct {
        const char *backend, *engine;
    } engines[] = {{"cpu", "llama.cpp-cpu"},     {"cuda", "llama.cpp-cuda"},
                   {"metal", "llama.cpp-metal"}, {"hip", "llama.cpp-hip"},
                   {"vulkan", "llama.cpp-vulkan"}};
    if (d->datacenter)
        return "vllm";
    const char *backend = usual_backend(d);
    for (size_t i = 0; backend != NULL && i < COUNT(engines); i++)
        if (strcmp(engines[i].backend, backend) == 0)
            return engines[i].engine;
    return "ideal"; /* dataflow parts that no engine of the catalog serves */
}

/* "family": true marks a record that stands for its backends ("llama.cpp"). */
static plm_status is_family(const plm_record *r, bool *out, plm_error *err)
{
    json_t *root = NULL;
    *out = false;
    PLM_TRY(plm_json_parse(r->text, r->bytes, r->id, &root, err));
    plm_status status = plm_json_bool(root, "family", false, r->id, out, err);
    json_decref(root);
    return status;
}

static plm_status refuse_name(const plm_catalog *c, const char *id, plm_error *err)
{
    const char *near = plm_catalog_nearest(c, "engines", id);
    return plm_fail(err, PLM_E_NOT_FOUND,
                    "unknown engine, %.60s: no such profile in the catalog%s%s%s; use ideal, vllm, "
                    "sglang, trtllm, mlx, llama.cpp or llama.cpp-BACKEND",
                    id, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                    near != NULL ? "?)" : "");
}

plm_status plm_profile_load(const plm_catalog *c, const char *id, const plm_device *d,
                            plm_profile *out, plm_error *err)
{
    char full[96];
    snprintf(full, sizeof full, "%.80s", id);
    const plm_record *r = strlen(id) < sizeof full ? plm_catalog_find(c, "engines", full) : NULL;
    if (r == NULL)
        return refuse_name(c, id, err);
    bool family = false;
    PLM_TRY(is_family(r, &family, err));
    if (family) {
        const char *backend = usual_backend(d);
        snprintf(full, sizeof full, "%.60s-%s", r->id, backend != NULL ? backend : "none");
        if (backend == NULL || plm_catalog_find(c, "engines", full) == NULL)
            return plm_fail(err, PLM_E_UNSUPPORTED,
                            "engine %.40s, device %s: it has no backend for this device; name "
                            "another, as plimsoll predict --engine %s",
                            r->id, d->id, plm_profile_usual(d));
    }
    plm_profile p;
    set_neutral(&p);
    PLM_TRY(apply_record(c, full, d, 0, &p, err));
    *out = p;
    return PLM_OK;
}
