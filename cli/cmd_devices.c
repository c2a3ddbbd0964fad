/* cmd_devices.c - devices: the catalog's accelerators, dense peaks, null where unknown. */
#include <stdlib.h>

#include "cli/cli.h"
#include "sim/device/device.h"
#include "sim/market/price.h"

/* A number, or null for 0 = unknown. */
static void put(plm_json_out *o, json_t *j, const char *key, double v)
{
    plm_out_child(o, j, key, v > 0 ? json_real(v) : json_null());
}

static void put_whole(plm_json_out *o, json_t *j, const char *key, double v)
{
    plm_out_child(o, j, key, v > 0 ? json_integer((json_int_t)v) : json_null());
}

static const char *const math_names[PLM_MATH_COUNT] = {
#define PLM_MATH_TEXT(id, name) [PLM_MATH_##id] = name,
    PLM_MATH_MAP(PLM_MATH_TEXT)
#undef PLM_MATH_TEXT
};

static void put_device(plm_json_out *o, json_t *rows, const plm_device *d, const plm_price *price)
{
    json_t *j = plm_out_child(o, rows, NULL, plm_out_object(o));
    plm_out_text(o, j, "id", d->id);
    plm_out_text(o, j, "name", d->name);
    plm_out_text(o, j, "vendor", d->vendor);
    plm_out_text(o, j, "class", d->cls);
    plm_out_text(o, j, "arch", d->arch);
    plm_out_text(o, j, "target", d->target[0] != '\0' ? d->target : NULL);
    put_whole(o, j, "launch_year", d->launch_year);
    put_whole(o, j, "memory_bytes", d->memory_bytes);
    plm_out_text(o, j, "memory_type", d->memory_type[0] != '\0' ? d->memory_type : NULL);
    put(o, j, "bandwidth_bytes_s", d->bandwidth_bytes_s);
    json_t *peaks = plm_out_child(o, j, "peak_flop_s", plm_out_object(o));
    for (int m = 0; m < PLM_MATH_COUNT; m++)
        put(o, peaks, math_names[m], d->peak_flop_s[m]);
    put(o, j, "exp_s", d->exp_s);
    put_whole(o, j, "sm_count", d->sm_count);
    put(o, j, "clock_hz", d->clock_hz);
    put_whole(o, j, "l2_bytes", d->l2_bytes);
    put_whole(o, j, "l3_bytes", d->l3_bytes);
    put(o, j, "tdp_w", d->tdp_w);
    plm_out_text(o, j, "link_type", d->link_type[0] != '\0' ? d->link_type : NULL);
    put(o, j, "link_bytes_s", d->link_bytes_s);
    put(o, j, "pcie_bytes_s", d->pcie_bytes_s);
    put(o, j, "usd_per_hour", price->usd_per_hour);
    plm_out_text(o, j, "price_source", price->usd_per_hour > 0 ? price->source : NULL);
}

static void add_row(plm_table *t, const plm_device *d, const plm_price *price)
{
    char cell[32];
    plm_table_text(t, d->id);
    const double figures[] = {d->memory_bytes / 1073741824.0,
                              d->bandwidth_bytes_s / 1e9,
                              d->peak_flop_s[PLM_MATH_F16] / 1e12,
                              d->peak_flop_s[PLM_MATH_BF16] / 1e12,
                              d->peak_flop_s[PLM_MATH_F8] / 1e12,
                              d->peak_flop_s[PLM_MATH_I8] / 1e12,
                              d->link_bytes_s / 1e9,
                              d->tdp_w,
                              price->usd_per_hour};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (figures[i] > 0)
            plm_table_format(t, "%.10g",
                             strtod(plm_text_number(figures[i], 4, cell, sizeof cell),
                                    NULL)); /* 80, not 80.00 */
        else
            plm_table_text(t, "-");
    plm_table_text(t, d->arch);
}

plm_status plm_cmd_devices(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                           plm_error *err)
{
    static const char *const headers[] = {
        "device",          "memory\n(GiB)",  "bandwidth\n(GB/s)", "fp16\n(TFLOP/s)",
        "bf16\n(TFLOP/s)", "fp8\n(TFLOP/s)", "int8\n(TOP/s)",     "link one way\n(GB/s)",
        "TDP\n(W)",        "rent\n(USD/h)",  "architecture"};
    bool json = a->opt[PLM_OPT_JSON].set;
    const char *one = plm_args_text(a, PLM_OPT_DEVICE, NULL);
    plm_catalog *c = NULL;
    plm_table *t = NULL;
    plm_json_out o = {false};
    json_t *root = NULL;
    plm_status status;
    PLM_GOTO(plm_catalog_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &c, err));
    PLM_GOTO(plm_table_create(headers, sizeof headers / sizeof *headers, &t, err));
    root = plm_out_object(&o);
    json_t *rows = plm_out_child(&o, root, "devices", plm_out_array(&o));
    size_t n = one != NULL ? 1 : plm_catalog_count(c, "devices");
    for (size_t i = 0; i < n; i++) {
        plm_device d;
        plm_price price = {0};
        PLM_GOTO(
            plm_device_load(c, one != NULL ? one : plm_catalog_at(c, "devices", i)->id, &d, err));
        /* The built-in records are tested; a user's own is answered for, with a word of doubt. */
        status = plm_device_check(&d, err);
        if (status == PLM_E_NO_MEMORY)
            goto done;
        if (status != PLM_OK)
            fprintf(io->err, "plimsoll: doubtful: %s\n", err->text);
        status = plm_price_find(c, d.id, NULL, &price, err);
        if (status == PLM_E_NOT_FOUND)
            price.usd_per_hour = 0; /* nobody rents it: null, not an error */
        else if (status != PLM_OK)
            goto done;
        if (json)
            put_device(&o, rows, &d, &price);
        else
            add_row(t, &d, &price);
    }
    status = PLM_OK;
    if (json) {
        json_t *answer = root;
        root = NULL;
        PLM_GOTO(plm_out_write(&o, answer, out, err));
    } else {
        PLM_GOTO(plm_table_write(t, a->opt[PLM_OPT_CSV].set, out, err));
    }
    *exit_status = 0;
done:
    json_decref(root);
    plm_table_destroy(t);
    plm_catalog_destroy(c);
    return status;
}
