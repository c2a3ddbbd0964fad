/* test_device.c - the loader of device records: units, derived fields, fallbacks, refusals. */
#include "tests/support.h"

#include "core/base/mem.h"
#include "sim/device/device.h"

#define GIB 1073741824.0
#define SRC "\"basis\":\"datasheet\",\"source\":\"s\"}"
#define HEAD                                                                                       \
    "{\"id\":\"x\",\"name\":\"X\",\"vendor\":\"nvidia\",\"class\":\"gpu\",\"target\":\"sm_90\","   \
    "\"sources\":{\"s\":{\"text\":\"t\",\"date\":\"2026-11-30\"}}"

static plm_status load(const char *json, plm_device *d, plm_error *e)
{
    return plm_device_from_record(json, strlen(json), "test", d, e);
}

static plm_catalog *open_catalog(void)
{
    plm_error e;
    plm_catalog *c;
    assert_ok(plm_catalog_create(NULL, &c, &e), e);
    return c;
}

static void test_units(void **state)
{
    (void)state;
    plm_error e;
    plm_device d;
    assert_ok(load(HEAD ",\"memory\":{\"capacity\":{\"value\":80,\"unit\":\"GiB\"," SRC
                   ",\"bandwidth\":{\"value\":3.352,\"unit\":\"TB/s\"," SRC "},"
                   "\"peak\":{\"bf16\":{\"value\":989.4,\"unit\":\"TFLOP/s\"," SRC
                   ",\"int8\":{\"value\":1.9789,\"unit\":\"PFLOP/s\",\"basis\":\"inferred\","
                   "\"source\":\"s\",\"recalled\":true,\"note\":\"n\"}},"
                   "\"network\":{\"bandwidth\":{\"value\":400,\"unit\":\"Gbit/s\"," SRC "},"
                   "\"link\":{\"latency\":{\"value\":2,\"unit\":\"us\"," SRC "}}",
                   &d, &e), e);
    assert_close(d.memory_bytes, 85899345920.0, 0, 0); /* 80 x 2^30 */
    assert_close(d.bandwidth_bytes_s, 3.352e12, 1e-15, 0);
    assert_close(d.peak_flop_s[PLM_MATH_BF16], 989.4e12, 1e-15, 0);
    assert_close(d.peak_flop_s[PLM_MATH_I8], 1978.9e12, 1e-12, 0);
    assert_close(d.net_bytes_s, 50e9, 1e-15, 0); /* NDR: 400 Gbit/s is 50 GB/s */
    assert_close(d.link_latency_s, 2e-6, 1e-15, 0);
    assert_int_equal(d.peak_basis[PLM_MATH_I8], PLM_BASIS_INFERRED);
    assert_int_equal(d.peak_basis[PLM_MATH_F16], PLM_BASIS_UNKNOWN);
    assert_int_equal(d.memory_basis, PLM_BASIS_DATASHEET);
    assert_close(d.peak_flop_s[PLM_MATH_F4], 0, 0, 0); /* unknown stays unknown */
    /* GB and GiB differ. */
    assert_ok(
        load(HEAD ",\"memory\":{\"capacity\":{\"value\":80,\"unit\":\"GB\"," SRC "}}", &d, &e), e);
    assert_close(d.memory_bytes, 80e9, 0, 0);
}

static void test_derived(void **state)
{
    (void)state;
    plm_error e;
    plm_device d;
    plm_catalog *c = open_catalog();
    /* ex2 a clock and SM: 16, twice that on Blackwell Ultra (10.7 T exp/s a chip); FA4 analysis. */
    assert_ok(plm_device_load(c, "H100-SXM_80", &d, &e), e);
    assert_string_equal(d.id, "h100_sxm_80");
    assert_close(d.exp_s, 16.0 * 132 * 1830e6, 1e-12, 0);
    assert_close(d.clock_hz, 1830e6, 1e-12, 0); /* behind the peaks, not the 1980 MHz boost */
    assert_close(d.vector_flop_s, 66.9e12, 1e-12, 0);
    assert_true(d.link_switched && d.datacenter);
    assert_int_equal(d.node_devices, 8);
    assert_close(d.net_bytes_s, 50e9, 1e-12, 0);
    assert_close(d.pcie_bytes_s, 63e9, 1e-12, 0);
    assert_ok(plm_device_load(c, "b200_sxm_180", &d, &e), e);
    assert_close(d.memory_bytes, 179.06 * GIB, 1e-12, 0); /* 183,359 MiB visible */
    assert_close(d.exp_s, 16.0 * 148 * 1850e6, 1e-12, 0);
    assert_ok(plm_device_load(c, "b300_sxm_288", &d, &e), e);
    assert_close(d.exp_s, 10.7e12, 1e-12, 0);
    assert_ok(plm_device_load(c, "gb200_186", &d, &e), e);
    assert_int_equal(d.node_devices, 72);
    assert_true(d.link_switched);
    assert_ok(plm_device_load(c, "mi300x_192", &d, &e), e);
    assert_close(d.exp_s, 16.0 * 304 * 2100e6, 1e-12, 0);
    assert_false(d.link_switched); /* a mesh */
    assert_ok(plm_device_load(c, "rtx_a6000_48", &d, &e), e);
    assert_int_equal(d.link_group, 2); /* a bridge joins two */
    assert_ok(plm_device_load(c, "rtx_3090_24", &d, &e), e);
    assert_close(d.link_bytes_s, 31.5e9, 1e-12, 0); /* its bridge is optional and rare */
    assert_ok(plm_device_load(c, "rtx_4080_16", &d, &e), e); /* no link: PCIe 4 x16 */
    assert_string_equal(d.link_type, "PCIe");
    assert_close(d.link_bytes_s, 31.5e9, 1e-12, 0);
    assert_ok(plm_device_load(c, "epyc_9755", &d, &e), e);
    assert_close(d.memory_bytes, 0, 0, 0); /* as many DIMMs as one buys: unknown */
    assert_close(d.exp_s, 22.1e12 / 16, 1e-12, 0);
    assert_true(d.unified);
    plm_catalog_destroy(c);
}

/* GPU share of unified memory on Apple: RAM x 2/3 up to 36 GiB, x 3/4 above. */
static void test_apple_limit(void **state)
{
    (void)state;
    static const struct {
        double ram, gpu;
    } rows[] = {{8, 5.333333}, {16, 10.666667}, {18, 12}, {24, 16}, {32, 21.333333},
                {36, 24},      {48, 36},        {64, 48}, {96, 72}, {128, 96}};
    plm_error e;
    plm_device d;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{\"id\":\"x\",\"name\":\"X\",\"vendor\":\"apple\",\"class\":\"apu\","
                 "\"sources\":{\"s\":{\"text\":\"t\",\"date\":\"2026\"}},\"memory\":{\"capacity\":"
                 "{\"value\":%g,\"unit\":\"GiB\"," SRC "}}", rows[i].ram);
        assert_ok(load(json, &d, &e), e);
        assert_close(d.memory_limit_bytes, rows[i].gpu * GIB, 1e-6, 0);
        assert_close(d.memory_bytes, rows[i].ram * GIB, 0, 0);
    }
    plm_catalog *c = open_catalog();
    assert_ok(plm_device_load(c, "apple_m4_max", &d, &e), e);
    assert_true(d.memory_assumed && d.unified);
    assert_close(d.memory_bytes, 128 * GIB, 0, 0); /* the largest of 48, 64, 128 */
    assert_close(d.memory_limit_bytes, 96 * GIB, 1e-12, 0);
    assert_ok(plm_device_load(c, "apple_m2_max_cpu", &d, &e), e);
    assert_close(d.memory_limit_bytes, d.memory_bytes, 0, 0);
    plm_catalog_destroy(c);
}

static void test_peak(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        plm_math math;
        double tflop_s;
    } rows[] = {
        {"h100_sxm_80", PLM_MATH_BF16, 989.4},  {"h100_sxm_80", PLM_MATH_F8, 1978.9},
        {"h100_sxm_80", PLM_MATH_F4, 1978.9},   {"a100_sxm_80", PLM_MATH_F8, 312},
        {"a100_sxm_80", PLM_MATH_I4, 1248},     {"v100_sxm2_16", PLM_MATH_BF16, 125},
        {"rtx_4090_24", PLM_MATH_F16, 165.2},   {"rtx_4090_24", PLM_MATH_F16_ACC16, 330.3},
        {"gtx_1080ti_11", PLM_MATH_F16, 11.3},  {"gtx_1080ti_11", PLM_MATH_I8, 45.2},
        {"gtx_1080ti_11", PLM_MATH_F16_ACC16, 11.3}, {"tesla_p100_16", PLM_MATH_F16, 18.7},
        {"apple_m4_max", PLM_MATH_BF16, 18.4},  {"apple_m4_max", PLM_MATH_I8, 18.4},
        {"tpu_v6e", PLM_MATH_F16, 918},         {"ryzen_9_7950x", PLM_MATH_F16, 2.3},
        {"mi355x_288", PLM_MATH_F6, 10066.3},   {"mi300x_192", PLM_MATH_F4, 2614.9},
        {"h100_sxm_80", PLM_MATH_F64, 33.5},    {"apple_m4_max", PLM_MATH_F64, 0},
        {"cerebras_wse3", PLM_MATH_F16, 0},     {"b200_sxm_180", PLM_MATH_F4, 9000},
    };
    plm_error e;
    plm_catalog *c = open_catalog();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plm_device d;
        assert_ok(plm_device_load(c, rows[i].id, &d, &e), e);
        double got = plm_device_peak(&d, rows[i].math) / 1e12;
        if (fabs(got - rows[i].tflop_s) > 1e-9 * rows[i].tflop_s)
            fail_msg("%s math %d: %g, want %g", rows[i].id, rows[i].math, got, rows[i].tflop_s);
    }
    plm_catalog_destroy(c);
}

static void test_split(void **state)
{
    (void)state;
    plm_error e;
    char id[16];
    int64_t n;
    assert_ok(plm_device_split("h100:8", id, sizeof id, &n, &e), e);
    assert_string_equal(id, "h100");
    assert_int_equal(n, 8);
    assert_ok(plm_device_split("h100", id, sizeof id, &n, &e), e);
    assert_int_equal(n, 1);
    static const char *const bad[] = {"", ":8", "h100:", "h100:0", "h100:-1", "h100:8x", "h100:1e3",
                                      "h100:99999999999999999999", "h100:1000001",
                                      "0123456789abcdef", "0123456789abcdef:2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(plm_device_split(bad[i], id, sizeof id, &n, &e), PLM_E_INVALID);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
    } rows[] = {
        {"[]", "not an object"},
        {"{", "bad JSON"},
        {"{\"id\":\"x\"}", "missing key \"name\""},
        {HEAD ",\"bandwith\":1}", "unknown key \"bandwith\""},
        {HEAD ",\"memory\":{\"size\":1}}", "unknown key \"memory.size\""},
        {HEAD ",\"memory\":3}", "want an object"},
        {HEAD ",\"memory\":{\"capacity\":80}}", "a figure is an object"},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":80,\"unit\":\"GB/s\"," SRC "}}",
         "bad unit \"GB/s\" of \"memory.capacity\""},
        {HEAD ",\"memory\":{\"bandwidth\":{\"value\":80,\"unit\":\"GB\"," SRC "}}", "bad unit"},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":-1,\"unit\":\"GB\"," SRC "}}", "value"},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":\"80\",\"unit\":\"GB\"," SRC "}}", "number"},
        {HEAD ",\"memory\":{\"capacity\":{\"unit\":\"GB\"," SRC "}}", "missing key \"value\""},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":1,\"unit\":\"GB\",\"source\":\"s\"}}}",
         "missing key \"basis\""},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":1,\"unit\":\"GB\",\"basis\":\"datasheet\"}}}",
         "missing key \"source\""},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":1,\"unit\":\"GB\",\"basis\":\"guess\","
              "\"source\":\"s\"}}}", "bad basis \"guess\""},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":1,\"unit\":\"GB\",\"basis\":\"measured\","
              "\"source\":\"z\"}}}", "unknown source \"z\""},
        {HEAD ",\"memory\":{\"capacity\":{\"value\":1,\"unit\":\"GB\",\"sparse\":true," SRC "}}",
         "unknown key \"sparse\""},
        {HEAD ",\"peak\":{\"bf16_sparse\":{\"value\":1,\"unit\":\"TFLOP/s\"," SRC "}}",
         "unknown key \"peak.bf16_sparse\""},
        {HEAD ",\"cores\":{\"count\":{\"value\":1e12,\"unit\":\"1\"," SRC "}}", "too large"},
        {HEAD ",\"datacenter\":1}", "true or false"},
        {HEAD ",\"arch\":\"0123456789012345678901234567890123456789012345678901234567890\"}",
         "longer than"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plm_error e = {0};
        plm_device d;
        assert_int_equal(load(rows[i].json, &d, &e), PLM_E_INVALID);
        if (strstr(e.text, rows[i].says) == NULL)
            fail_msg("%s: error \"%s\" does not say \"%s\"", rows[i].json, e.text, rows[i].says);
    }
    plm_error e;
    plm_device d;
    plm_catalog *c = open_catalog();
    assert_int_equal(plm_device_load(c, "h100_sxm_81", &d, &e), PLM_E_NOT_FOUND);
    assert_non_null(strstr(e.text, "did you mean h100_sxm_80"));
    assert_int_equal(plm_device_load(c, "/nonexistent/x.json", &d, &e), PLM_E_IO);
    assert_int_equal(plm_device_load(c, "", &d, &e), PLM_E_NOT_FOUND);
    plm_catalog_destroy(c);
}

/* Each allocation of a load fails once: a clean error, nothing left behind. */
static void test_torture(void **state)
{
    (void)state;
    plm_error e;
    plm_device d;
    plm_catalog *c = open_catalog();
    plm_mem_fail_at(0, false);
    assert_ok(plm_device_load(c, "rx_580_8", &d, &e), e);
    uint64_t asked = plm_mem_count();
    int64_t before = plm_mem_live();
    assert_true(asked > 50);
    for (uint64_t n = 1; n <= asked; n++) {
        plm_mem_fail_at(n, false);
        plm_status status = plm_device_load(c, "rx_580_8", &d, &e);
        plm_mem_fail_at(0, false);
        if (status != PLM_E_NO_MEMORY)
            fail_msg("allocation %d: status %d, %s", (int)n, (int)status, e.text);
        assert_int_equal(plm_mem_live(), before);
    }
    plm_catalog_destroy(c);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units), cmocka_unit_test(test_derived),
        cmocka_unit_test(test_apple_limit), cmocka_unit_test(test_peak),
        cmocka_unit_test(test_split), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
