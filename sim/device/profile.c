/* profile.c - the loader of engine profiles; catalog/README.md describes their form.
**
** A record is read in this order: its base (the same way, for the same device), then the record's
** own values, then those "where" clauses whose conditions the device meets. Any key that is no
*value
** (profile_values.c has their table) is refused by name, so a typo is an error.
*/
#include "sim/device/profile.h"

#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "sim/device/profile_values.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MAX_BASES 8 /* depth of "base", so that a ring of records ends */

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
            return plm_profile_wrong(key, "a text or a list of texts", where, err);
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
            PLM_TRY(
                test_condition(v, key, conditions[i].have, conditions[i].how, where, &met, err));
        } else if (strcmp(key, "min_memory_GiB") == 0) {
            double least = 0;
            PLM_TRY(plm_json_double(clause, key, true, 0, 1e6, where, &least, err));
            met = met && d->memory_bytes >= least * 1073741824.0;
        } else if (strcmp(key, "set") != 0 && strcmp(key, "comment") != 0) {
            return plm_profile_unknown("condition", key, where, err);
        }
    }
    json_t *set = json_object_get(clause, "set");
    if (!json_is_object(set))
        return plm_profile_wrong("set", "an object of values in each clause", where, err);
    plm_profile ignored = *p; /* a clause that does not apply is checked all the same */
    return plm_profile_read(set, NULL, 0, where, met ? p : &ignored, err);
}

/* ---- records ---- */
static plm_status apply_record(const plm_catalog *c, const char *id, const plm_device *d, int depth,
                               plm_profile *p, plm_error *err);

static plm_status apply_root(const plm_catalog *c, json_t *root, const plm_device *d, int depth,
                             const char *where, plm_profile *p, plm_error *err)
{
    static const char *const also[] = {"id",       "engine", "base", "where",
                                       "comments", "family", "doc"};
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
        return plm_profile_wrong("id", "shorter names", where, err);
    memcpy(p->id, id, strlen(id) + 1);
    if (engine != NULL)
        memcpy(p->engine, engine, strlen(engine) + 1);
    PLM_TRY(plm_profile_read(root, also, COUNT(also), where, p, err));
    json_t *clauses = json_object_get(root, "where");
    if (clauses != NULL && !json_is_array(clauses))
        return plm_profile_wrong("where", "a list of clauses", where, err);
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

/* ---- names ---- */
/* Backend of the llama.cpp family usual on a device, NULL = it has none. Polaris and older AMD
** parts have no ROCm; Intel and Qualcomm GPUs run the Vulkan backend. */
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
    plm_profile_neutral(&p);
    PLM_TRY(apply_record(c, full, d, 0, &p, err));
    *out = p;
    return PLM_OK;
}
