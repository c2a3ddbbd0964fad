/* libFuzzer: any bytes as a record of the catalog. The first byte names the kind: D device, M model,
** E engine profile, P price list. What is accepted must do: a model gives a graph and its cost, a
** device and an engine give the time of a step, finite and not negative. */
#define _GNU_SOURCE /* mkdtemp */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/model/load.h"
#include "sim/market/price.h"
#include "sim/step/step.h"

#define LAYERS_BUILT 16 /* a graph of more layers says nothing new */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];
static plm_catalog *catalog;
static plm_device h100;
static plm_profile ideal;
static plm_program *small;

static void need(bool ok)
{
    if (!ok)
        abort();
}

static void remove_folder(void)
{
    static const char *const names[] = {"/engines/fuzz.json", "/prices.csv", "/engines", ""};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        remove(path);
    }
}

/* Program of one rank; NULL when the model cannot be built in this way, with a reason. */
static plm_program *build(const plm_arch *a, const plm_build *b)
{
    plm_graph g;
    plm_program *p = NULL;
    plm_error err = {PLM_OK, ""};
    plm_status status = plm_build_graph(a, b, &g, &err);
    if (status == PLM_OK)
        status = plm_program_create(&g, ideal.fuse, 1, &p, &err);
    need(status != PLM_E_INTERNAL);
    need(status == PLM_OK || err.text[0] != '\0');
    plm_graph_fini(&g);
    return p;
}

static void set_up(void)
{
    static plm_arch a;
    plm_build b;
    char path[80];
    plm_mem_init();
    snprintf(folder, sizeof folder, "/tmp/plm_fuzz_XXXXXX");
    need(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/engines", folder);
    need(mkdir(path, 0700) == 0 && atexit(remove_folder) == 0);
    need(plm_catalog_create(NULL, &catalog, NULL) == PLM_OK);
    need(plm_device_load(catalog, "h100_sxm_80", &h100, NULL) == PLM_OK);
    need(plm_profile_load(catalog, "ideal", &h100, &ideal, NULL) == PLM_OK);
    need(plm_model_load(catalog, "gemma-3-270m", &a, NULL) == PLM_OK);
    plm_build_init(&b);
    small = build(&a, &b);
    need(small != NULL);
    plm_arch_fini(&a);
}

static void time_steps(const plm_program *p, const plm_device *d, const plm_profile *profile)
{
    static plm_machine m;
    if (plm_machine_bind(d, profile, &m, NULL) != PLM_OK)
        return;
    const plm_segment seg[] = {{1, 100, 3}, {64, 64, 1}};
    for (uint32_t i = 0; i < 2; i++) {
        plm_batch batch = {.seg = &seg[i], .n_seg = 1, .logit_rows = -1};
        plm_step step;
        plm_step_time(p, &m, &batch, &step);
        need(isfinite(step.time_s) && step.time_s >= 0);
    }
}

static void try_device(const char *text, size_t size)
{
    plm_device d;
    if (plm_device_from_record(text, size, "fuzz", &d, NULL) == PLM_OK &&
        plm_device_check(&d, NULL) == PLM_OK)
        time_steps(small, &d, &ideal);
}

static void try_plan(const plm_arch *a, int32_t tp, bool expanded)
{
    plm_build b;
    plm_build_init(&b);
    b.par.tp = tp;
    b.mla_expanded = expanded;
    b.fuse_qkv = b.fuse_gate_up = tp > 1;
    if (plm_parallel_check(a, &b.par, NULL) != PLM_OK)
        return;
    plm_program *p = build(a, &b);
    if (p != NULL)
        time_steps(p, &h100, &ideal);
    plm_program_destroy(p);
}

static void try_model(const char *text, size_t size)
{
    static plm_arch a;
    if (plm_model_from_record(text, size, "fuzz", &a, NULL) == PLM_OK) {
        need(plm_arch_check(&a, NULL) == PLM_OK);
        plm_kv_options o = {.k = PLM_DT_F16, .v = PLM_DT_F16, .tp = 1, .cp = 1};
        int64_t bytes = 0, tokens = 0;
        need(plm_kv_bytes(&a, &o, 1000, &bytes, NULL, NULL, NULL) != PLM_OK || bytes >= 0);
        need(plm_kv_max_tokens(&a, &o, 1 << 30, &tokens, NULL) != PLM_OK || tokens >= 0);
        if (a.layers <= LAYERS_BUILT) {
            try_plan(&a, 1, false);
            try_plan(&a, 2, true);
        }
    }
    plm_arch_fini(&a);
}

/* Through a folder laid over the catalog, as a user would. */
static void try_overlay(const char *name, const char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    need(f != NULL && fwrite(text, 1, size, f) == size);
    need(fclose(f) == 0);
    plm_catalog *c = NULL;
    plm_profile profile;
    plm_price price;
    need(plm_catalog_create(folder, &c, NULL) == PLM_OK);
    if (*name == 'e') {
        if (plm_profile_load(c, "fuzz", &h100, &profile, NULL) == PLM_OK)
            time_steps(small, &h100, &profile);
    } else if (plm_price_find(c, "h100_sxm_80", NULL, &price, NULL) == PLM_OK) {
        need(isfinite(price.usd_per_hour) && price.usd_per_hour >= 0);
    }
    plm_catalog_destroy(c);
    remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (catalog == NULL)
        set_up();
    if (size == 0)
        return -1;
    const char *text = (const char *)data + 1;
    switch (*data) {
    case 'D': try_device(text, size - 1); return 0;
    case 'M': try_model(text, size - 1); return 0;
    case 'E': try_overlay("engines/fuzz.json", text, size - 1); return 0;
    case 'P': try_overlay("prices.csv", text, size - 1); return 0;
    default: return -1;
    }
}
