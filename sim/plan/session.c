/* session.c - the catalog and what was made from it so far. */
#include "sim/plan/session.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "sim/plan/config.h"

#define MODELS_MAX 4096u
#define MACHINES_MAX 16384u
#define PROGRAMS_MAX 65536u
#define PROGRAMS_KEPT 48u /* between two answers: some tens of MB */

typedef struct loaded_model {
    char *name;
    plm_arch arch;
    plm_params params;
    bool counted;
} loaded_model;

typedef struct bound_machine {
    char *device, *engine; /* engine "" = usual */
    plm_machine machine;
} bound_machine;

#define KEY_WORDS 24
typedef struct cached_program {
    int64_t key[KEY_WORDS];
    const plm_arch *arch;
    plm_program *program;
    uint64_t used; /* clock of the last use */
} cached_program;

struct plm_session {
    plm_catalog *catalog;
    PLM_VEC(loaded_model *) models;
    PLM_VEC(bound_machine *) machines;
    PLM_VEC(cached_program) programs;
    uint64_t clock;
};

plm_status plm_session_create(const char *catalog_dir, plm_session **out, plm_error *err)
{
    *out = NULL;
    plm_session *s = plm_calloc(1, sizeof *s);
    if (s == NULL)
        return plm_fail_memory(err, "session");
    plm_status status = plm_catalog_create(catalog_dir, &s->catalog, err);
    if (status != PLM_OK) {
        plm_free(s);
        return status;
    }
    *out = s;
    return PLM_OK;
}

static void free_model(loaded_model *m)
{
    plm_arch_fini(&m->arch);
    plm_free(m->name);
    plm_free(m);
}

static void free_machine(bound_machine *m)
{
    plm_free(m->device);
    plm_free(m->engine);
    plm_free(m);
}

void plm_session_destroy(plm_session *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->programs.count; i++)
        plm_program_destroy(s->programs.items[i].program);
    for (size_t i = 0; i < s->models.count; i++)
        free_model(s->models.items[i]);
    for (size_t i = 0; i < s->machines.count; i++)
        free_machine(s->machines.items[i]);
    plm_vec_fini(&s->programs);
    plm_vec_fini(&s->models);
    plm_vec_fini(&s->machines);
    plm_catalog_destroy(s->catalog);
    plm_free(s);
}

const plm_catalog *plm_session_catalog(const plm_session *s)
{
    return s->catalog;
}

plm_status plm_session_model(plm_session *s, const char *name, const plm_arch **out, plm_error *err)
{
    for (size_t i = 0; i < s->models.count; i++)
        if (strcmp(s->models.items[i]->name, name) == 0) {
            *out = &s->models.items[i]->arch;
            return PLM_OK;
        }
    loaded_model *m = plm_calloc(1, sizeof *m);
    if (m == NULL)
        return plm_fail_memory(err, "model");
    plm_arch_init(&m->arch);
    plm_status status = plm_model_load(s->catalog, name, &m->arch, err);
    if (status == PLM_OK) {
        m->name = plm_strdup(name);
        if (m->name == NULL || !plm_vec_push(&s->models, m, MODELS_MAX))
            status = plm_fail_memory(err, "model");
    }
    if (status != PLM_OK) {
        free_model(m);
        return status;
    }
    *out = &m->arch;
    return PLM_OK;
}

plm_status plm_session_machine(plm_session *s, const char *device, const char *engine,
                               const plm_machine **out, plm_error *err)
{
    const char *wanted = engine != NULL ? engine : "";
    for (size_t i = 0; i < s->machines.count; i++) {
        const bound_machine *m = s->machines.items[i];
        if (strcmp(m->device, device) == 0 && strcmp(m->engine, wanted) == 0) {
            *out = &m->machine;
            return PLM_OK;
        }
    }
    plm_device d;
    plm_profile p;
    PLM_TRY(plm_device_load(s->catalog, device, &d, err));
    PLM_TRY(
        plm_profile_load(s->catalog, engine != NULL ? engine : plm_profile_usual(&d), &d, &p, err));
    bound_machine *m = plm_calloc(1, sizeof *m);
    if (m == NULL)
        return plm_fail_memory(err, "machine");
    plm_status status = plm_machine_bind(&d, &p, &m->machine, err);
    if (status == PLM_OK) {
        m->device = plm_strdup(device);
        m->engine = plm_strdup(wanted);
        if (m->device == NULL || m->engine == NULL || !plm_vec_push(&s->machines, m, MACHINES_MAX))
            status = plm_fail_memory(err, "machine");
    }
    if (status != PLM_OK) {
        free_machine(m);
        return status;
    }
    *out = &m->machine;
    return PLM_OK;
}

plm_status plm_session_params(plm_session *s, const plm_arch *a, const plm_params **out,
                              plm_error *err)
{
    for (size_t i = 0; i < s->models.count; i++) {
        loaded_model *m = s->models.items[i];
        if (&m->arch != a)
            continue;
        if (!m->counted)
            PLM_TRY(plm_count_params(a, &m->params, err));
        m->counted = true;
        *out = &m->params;
        return PLM_OK;
    }
    return plm_fail(err, PLM_E_INTERNAL,
                    "session, model %s: not loaded by this session; load it "
                    "with plm_session_model",
                    a->id);
}

/* ---- programs ---- */

static void make_key(const plm_build *b, uint64_t fuse, int64_t key[KEY_WORDS])
{
    const int64_t words[KEY_WORDS] = {
        b->par.tp,       b->par.pp,       b->par.ep,       b->par.dp,
        b->par.cp,       b->par.per_node, b->stage,        b->act,
        b->kv_k,         b->kv_v,         b->mla_expanded, b->fuse_qkv,
        b->fuse_gate_up, b->all_logits,   b->mtp,          b->vocab_pad,
        b->max_tokens,   b->max_seqs,     b->max_slots,    (int64_t)(intptr_t)b->recipe,
        (int64_t)fuse,
    };
    memcpy(key, words, sizeof words);
}

/* Most experts a token is routed to in any layer. */
static int32_t most_top_k(const plm_arch *a)
{
    int32_t k = 0;
    for (int32_t i = 0; i < a->n_kinds; i++)
        if (a->kind[i].experts > 0 && a->kind[i].top_k > k)
            k = a->kind[i].top_k;
    return k;
}

plm_status plm_session_program(plm_session *s, const plm_arch *a, const plm_build *b,
                               const plm_profile *p, const plm_program **out, plm_error *err)
{
    cached_program c = {.arch = a, .used = ++s->clock};
    make_key(b, p->fuse, c.key);
    for (size_t i = 0; i < s->programs.count; i++) {
        cached_program *have = &s->programs.items[i];
        if (have->arch == a && memcmp(have->key, c.key, sizeof c.key) == 0) {
            have->used = s->clock;
            *out = have->program;
            return PLM_OK;
        }
    }
    plm_graph g;
    plm_status status = plm_build_graph(a, b, &g, err);
    if (status == PLM_OK)
        status = plm_program_create(&g, p->fuse, most_top_k(a), &c.program, err);
    plm_graph_fini(&g);
    if (status != PLM_OK)
        return status;
    if (!plm_vec_push(&s->programs, c, PROGRAMS_MAX)) {
        plm_program_destroy(c.program);
        return plm_fail_memory(err, "cost program");
    }
    *out = c.program;
    return PLM_OK;
}

/* Drops the programs used longest ago until few are left. */
void plm_session_trim(plm_session *s)
{
    while (s->programs.count > PROGRAMS_KEPT) {
        size_t oldest = 0;
        for (size_t i = 1; i < s->programs.count; i++)
            if (s->programs.items[i].used < s->programs.items[oldest].used)
                oldest = i;
        plm_program_destroy(s->programs.items[oldest].program);
        s->programs.items[oldest] = s->programs.items[--s->programs.count];
    }
}
