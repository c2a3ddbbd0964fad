/* test_catalog.c - all device records: provenance of every figure, physics, published identities;
** and planted errors of the usual kinds, each of which must be refused. */
#include "tests/support.h"

#include <jansson.h>

#include "core/base/mem.h"
#include "sim/device/device.h"

static plm_catalog *catalog;

static int open_catalog(void **state)
{
    (void)state;
    plm_error e;
    plm_mem_init();
    return plm_catalog_create(NULL, &catalog, &e);
}

static int close_catalog(void **state)
{
    (void)state;
    plm_catalog_destroy(catalog);
    return 0;
}

static void test_physics(void **state)
{
    (void)state;
    plm_error e;
    size_t n = plm_catalog_count(catalog, "devices");
    assert_true(n >= 151);
    for (size_t i = 0; i < n; i++) {
        const plm_record *r = plm_catalog_at(catalog, "devices", i);
        plm_device d;
        assert_ok(plm_device_load(catalog, r->id, &d, &e), e);
        assert_string_equal(d.id, r->id); /* file name = id */
        assert_ok(plm_device_check(&d, &e), e);
    }
}

static void test_no_duplicates(void **state)
{
    (void)state;
    size_t n = plm_catalog_count(catalog, "devices");
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            assert_false(plm_id_equal(plm_catalog_at(catalog, "devices", i)->id,
                                      plm_catalog_at(catalog, "devices", j)->id));
}

/* A figure has value, unit, basis, and a source of the record that has text and date. */
static void check_figure(const char *id, const char *key, const json_t *fig, const json_t *sources,
                         json_t *used)
{
    const char *unit = json_string_value(json_object_get(fig, "unit"));
    const char *basis = json_string_value(json_object_get(fig, "basis"));
    const char *source = json_string_value(json_object_get(fig, "source"));
    if (unit == NULL || basis == NULL || source == NULL)
        fail_msg("%s %s: unit, basis or source is missing", id, key);
    if (strcmp(basis, "datasheet") != 0 && strcmp(basis, "measured") != 0 &&
        strcmp(basis, "inferred") != 0)
        fail_msg("%s %s: basis %s", id, key, basis);
    const json_t *s = json_object_get(sources, source);
    const char *text = json_string_value(json_object_get(s, "text"));
    const char *date = json_string_value(json_object_get(s, "date"));
    if (text == NULL || strlen(text) < 8 || date == NULL || strlen(date) != 10)
        fail_msg("%s %s: source %s has no text or date", id, key, source);
    json_object_set_new(used, source, json_true());
}

static size_t check_object(const char *id, json_t *obj, const json_t *sources, json_t *used)
{
    size_t figures = 0;
    const char *key;
    json_t *v;
    json_object_foreach(obj, key, v) {
        if (strcmp(key, "sources") == 0)
            continue;
        if (json_object_get(v, "value") != NULL) {
            check_figure(id, key, v, sources, used);
            figures++;
        } else if (json_is_object(v)) {
            figures += check_object(id, v, sources, used);
        } else if (json_is_array(v)) {
            for (size_t i = 0; i < json_array_size(v); i++)
                if (json_is_object(json_array_get(v, i))) {
                    check_figure(id, key, json_array_get(v, i), sources, used);
                    figures++;
                }
        } else if (json_is_number(v)) {
            if (strcmp(key, "launch_year") != 0 && strcmp(key, "gen") != 0 &&
                strcmp(key, "lanes") != 0)
                fail_msg("%s %s: a bare number", id, key);
        }
    }
    return figures;
}

static void test_provenance(void **state)
{
    (void)state;
    size_t total = 0, n = plm_catalog_count(catalog, "devices");
    for (size_t i = 0; i < n; i++) {
        const plm_record *r = plm_catalog_at(catalog, "devices", i);
        json_t *root = json_loadb(r->text, r->bytes, JSON_REJECT_DUPLICATES, NULL);
        json_t *used = json_object();
        assert_non_null(root);
        const json_t *sources = json_object_get(root, "sources");
        total += check_object(r->id, root, sources, used);
        /* Nothing is cited that nothing uses. */
        if (json_object_size(used) != json_object_size(sources))
            fail_msg("%s: %zu sources, %zu used", r->id, json_object_size(sources),
                     json_object_size(used));
        json_decref(used);
        json_decref(root);
    }
    assert_true(total > 3000);
}

/* peak = SM x clock x rate for 16-bit input at full rate, within 0.3 % (hardware whitepapers: dense
** FLOP a clock and SM 1024 on 7.0 and 7.5, 2048 on 8.0, 1024 on 8.6, 8.9 and 12.0, 4096 on 9.0,
** 8192 on 10.x). Half rate for float32 accumulation on GeForce and A10G. */
static void test_identity(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        double sm, mhz, rate;
    } full[] = {
        {"v100_sxm2_16", 80, 1530, 1024},   {"t4_16", 40, 1590, 1024},
        {"a10_24", 72, 1695, 1024},         {"a40_48", 84, 1740, 1024},
        {"rtx_a6000_48", 84, 1800, 1024},   {"a100_sxm_80", 108, 1410, 2048},
        {"a100_pcie_40", 108, 1410, 2048},  {"l4_24", 58, 2040, 1024},
        {"h100_sxm_80", 132, 1830, 4096},   {"h200_sxm_141", 132, 1830, 4096},
        {"gh200_96", 132, 1830, 4096},      {"h800_sxm_80", 132, 1830, 4096},
        {"gb200_186", 148, 2062, 8192},     {"rtx_pro_6000_96", 188, 2617, 1024},
        {"rtx_6000_ada_48", 142, 2505, 1024},
    };
    static const struct {
        const char *id;
        double sm, mhz;
    } half[] = {
        {"rtx_3060_12", 28, 1777},   {"rtx_3090_24", 82, 1695},  {"rtx_3090ti_24", 84, 1860},
        {"rtx_4060ti_16", 34, 2535}, {"rtx_4090_24", 128, 2520}, {"rtx_5070ti_16", 70, 2452},
        {"rtx_5080_16", 84, 2617},   {"rtx_5090_32", 170, 2407}, {"rtx_2080ti_11", 68, 1545},
        {"a10g_24", 80, 1710},
    };
    plm_error e;
    plm_device d;
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        assert_ok(plm_device_load(catalog, full[i].id, &d, &e), e);
        assert_int_equal(d.sm_count, (int)full[i].sm);
        assert_close(d.peak_flop_s[PLM_MATH_F16], full[i].sm * full[i].mhz * 1e6 * full[i].rate,
                     0.003, 0);
    }
    for (size_t i = 0; i < sizeof half / sizeof *half; i++) {
        double acc16 = half[i].sm * half[i].mhz * 1e6 * 1024;
        assert_ok(plm_device_load(catalog, half[i].id, &d, &e), e);
        assert_int_equal(d.sm_count, (int)half[i].sm);
        assert_close(d.peak_flop_s[PLM_MATH_F16], acc16 / 2, 0.003, 0);
        assert_close(d.peak_flop_s[PLM_MATH_F16_ACC16], acc16, 0.003, 0);
    }
    /* Published away from the identity: rounded down, cut, or quoted at another clock. */
    static const struct {
        const char *id;
        double tflop_s;
    } listed[] = {{"l40s_48", 362.05}, {"h100_pcie_80", 756.5}, {"h100_nvl_94", 835.5},
                  {"h20_96", 148},     {"b200_sxm_180", 2250},  {"dgx_spark_gb10", 62}};
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        assert_ok(plm_device_load(catalog, listed[i].id, &d, &e), e);
        assert_close(d.peak_flop_s[PLM_MATH_F16], listed[i].tflop_s * 1e12, 1e-9, 0);
    }
}

/* Dense, never sparse: data sheets print these with 2:4 sparsity at twice the figure. */
static void test_dense(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        plm_math math;
        double tflop_s;
    } rows[] = {
        {"h100_sxm_80", PLM_MATH_BF16, 989.4}, {"h100_sxm_80", PLM_MATH_F8, 1978.9},
        {"a100_sxm_80", PLM_MATH_BF16, 312},   {"a100_sxm_80", PLM_MATH_I8, 624},
        {"b200_sxm_180", PLM_MATH_F8, 4500},   {"b200_sxm_180", PLM_MATH_F4, 9000},
        {"l40s_48", PLM_MATH_F8, 733},         {"mi300x_192", PLM_MATH_F8, 2614.9},
        {"mi355x_288", PLM_MATH_F4, 10066.3},  {"jetson_thor_128", PLM_MATH_F4, 1035},
        {"dgx_spark_gb10", PLM_MATH_F4, 500},  {"rtx_5090_32", PLM_MATH_F4, 1676},
        {"gaudi3_128", PLM_MATH_BF16, 1677},
    };
    plm_error e;
    plm_device d;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_ok(plm_device_load(catalog, rows[i].id, &d, &e), e);
        assert_close(d.peak_flop_s[rows[i].math], rows[i].tflop_s * 1e12, 1e-9, 0);
    }
}

/* Unknown figures are absent, not invented. */
static void test_unknown(void **state)
{
    (void)state;
    plm_error e;
    plm_device d;
    assert_ok(plm_device_load(catalog, "apple_m5_ultra", &d, &e), e);
    assert_close(d.memory_bytes + d.bandwidth_bytes_s + d.vector_flop_s, 0, 0, 0);
    assert_ok(plm_device_load(catalog, "cerebras_wse3", &d, &e), e);
    for (int m = 0; m < PLM_MATH_COUNT; m++)
        assert_close(d.peak_flop_s[m], 0, 0, 0);
    assert_ok(plm_device_load(catalog, "apple_m5", &d, &e), e);
    assert_close(d.peak_flop_s[PLM_MATH_F16], 0, 0, 0);
    assert_ok(plm_device_load(catalog, "xeon_6980p", &d, &e), e);
    assert_close(d.memory_bytes, 0, 0, 0);
}

typedef struct planted {
    const char *id;
    size_t offset;
    double factor;
    const char *says;
} planted;
#define AT(f) offsetof(plm_device, f)
#define PEAK(m) (offsetof(plm_device, peak_flop_s) + sizeof(double) * PLM_MATH_##m)

static void test_planted(void **state)
{
    (void)state;
    static const planted rows[] = {
        {"h100_sxm_80", PEAK(BF16), 2, "bf16 peak (sparse?)"},
        {"h100_sxm_80", PEAK(F8), 2, "fp8 peak (sparse?)"},
        {"a100_sxm_80", PEAK(I8), 2, "int8 peak (sparse?)"},
        {"b200_sxm_180", PEAK(F4), 2, "fp4 peak (sparse?)"},
        {"b300_sxm_288", PEAK(F8), 2, "fp8 peak (sparse?)"}, /* no clock: by ratio */
        {"b300_sxm_288", PEAK(F4), 2, "fp4 peak (sparse?)"},
        {"rubin_288", PEAK(F8), 2, "fp8 peak (sparse?)"},
        {"mi300x_192", PEAK(F16), 2, "fp16 peak (sparse?)"},
        {"mi355x_288", PEAK(F4), 2, "fp4 peak (sparse?)"},
        {"rtx_4090_24", PEAK(F16_ACC16), 2, "fp16_acc16 peak (sparse?)"},
        {"rx_9070xt_16", PEAK(F8), 2, "fp8 peak (sparse?)"},
        {"tpu_v6e", PEAK(I8), 2, "int8 peak (sparse?)"},
        {"gaudi2_96", PEAK(F8), 2, "fp8 peak (sparse?)"},
        {"h100_sxm_80", PEAK(F32), 2, "fp32 peak"},
        {"h100_sxm_80", PEAK(F8), 0.25, "fp8 is below fp16"},
        {"h100_sxm_80", AT(bandwidth_bytes_s), 8, "capacity over bandwidth"}, /* Gbit for GB */
        {"h100_sxm_80", AT(bandwidth_bytes_s), 0.125, "capacity over bandwidth"},
        {"h100_sxm_80", AT(memory_bytes), 8, "capacity"},
        {"h100_sxm_80", AT(memory_bytes), 0.125, "capacity over bandwidth"},
        {"rtx_4090_24", AT(memory_bytes), 8, "capacity"},
        {"rtx_4090_24", AT(memory_bytes), 0.125, "capacity over bandwidth"},
        {"rtx_3060_12", AT(bandwidth_bytes_s), 8, "bandwidth"},
        {"l4_24", AT(bandwidth_bytes_s), 0.125, "bandwidth"},
        {"apple_m4_max", AT(bandwidth_bytes_s), 8, "bandwidth"},
        {"apple_m4_max", AT(memory_bytes), 1024, "capacity"},
        {"epyc_9755", AT(bandwidth_bytes_s), 8, "bandwidth"},
        {"h100_sxm_80", AT(net_bytes_s), 8, "network"}, /* 400 Gbit/s as 400 GB/s */
        {"h100_sxm_80", AT(link_bytes_s), 2, "link"},   /* both directions added */
        {"rtx_4090_24", AT(link_bytes_s), 8, "link"},
        {"h100_sxm_80", AT(pcie_bytes_s), 8, "PCIe"},
        {"h100_sxm_80", AT(clock_hz), 1e-6, "clock"},
        {"h100_sxm_80", AT(tdp_w), 1000, "power"},
        {"h100_sxm_80", AT(l2_bytes), 1e3, "L2"},
    };
    plm_error e;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plm_device d;
        double v;
        assert_ok(plm_device_load(catalog, rows[i].id, &d, &e), e);
        memcpy(&v, (char *)&d + rows[i].offset, sizeof v);
        if (!(v > 0))
            fail_msg("row %zu: the figure is unknown", i);
        v *= rows[i].factor;
        memcpy((char *)&d + rows[i].offset, &v, sizeof v);
        if (rows[i].offset == AT(memory_bytes))
            d.memory_limit_bytes = v;
        memset(&e, 0, sizeof e);
        if (plm_device_check(&d, &e) != PLM_E_INVALID || strstr(e.text, rows[i].says) == NULL)
            fail_msg("row %zu, %s x %g: \"%s\", want \"%s\"", i, rows[i].id, rows[i].factor, e.text,
                     rows[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_physics),   cmocka_unit_test(test_no_duplicates),
        cmocka_unit_test(test_provenance), cmocka_unit_test(test_identity),
        cmocka_unit_test(test_dense),     cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_planted),
    };
    return cmocka_run_group_tests(tests, open_catalog, close_catalog);
}
