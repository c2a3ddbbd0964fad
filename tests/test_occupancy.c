/* test_occupancy.c - blocks and waves against NVIDIA's own header and LLVM-compiled kernels. */
#include "tests/support.h"

#include "sim/device/device.h"

/* Blocks a SM from cuda_occupancy.h (CUDA 13.0.88), compiled and run: largest carve-out, one
** barrier, no static shared memory; 21 kernels x 12 compute capabilities. */
static const int32_t nvidia_cc[12] = {70, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
static const struct {
    int32_t regs, threads, shared, blocks[12];
} nvidia[] = {
    {32, 256, 0, {8, 4, 8, 6, 6, 6, 8, 8, 8, 6, 6, 6}},
    {33, 256, 0, {6, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6}},
    {40, 128, 0, {12, 8, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12}},
    {64, 256, 0, {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
    {96, 128, 0, {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}},
    {128, 128, 0, {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
    {128, 256, 0, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {168, 384, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {255, 128, 0, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {255, 256, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {32, 32, 0, {32, 16, 32, 16, 16, 24, 32, 32, 32, 24, 24, 24}},
    {32, 1024, 0, {2, 1, 2, 1, 1, 1, 2, 2, 2, 1, 1, 1}},
    {64, 1024, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {65, 1024, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {32, 128, 16384, {6, 4, 9, 5, 9, 5, 13, 13, 13, 12, 5, 5}},
    {64, 256, 32768, {3, 2, 4, 3, 4, 3, 4, 4, 4, 4, 3, 3}},
    {128, 256, 49152, {2, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {128, 256, 65536, {1, 1, 2, 1, 2, 1, 2, 2, 2, 2, 1, 1}},
    {168, 128, 98304, {1, 0, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1}},
    {90, 224, 0, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {24, 96, 0, {21, 10, 21, 16, 16, 16, 21, 21, 21, 16, 16, 16}},
};

static void test_nvidia(void **state)
{
    (void)state;
    plm_error e;
    int cases = 0;
    for (size_t i = 0; i < sizeof nvidia / sizeof *nvidia; i++)
        for (size_t j = 0; j < 12; j++, cases++) {
            plm_occupancy o;
            assert_ok(plm_occupancy_nvidia(nvidia_cc[j], nvidia[i].threads, nvidia[i].regs,
                                           nvidia[i].shared, &o, &e), e);
            if (o.blocks_per_sm != nvidia[i].blocks[j])
                fail_msg("cc %d (%d, %d, %d): %d blocks, want %d", nvidia_cc[j], nvidia[i].regs,
                         nvidia[i].threads, nvidia[i].shared, o.blocks_per_sm,
                         nvidia[i].blocks[j]);
        }
    assert_int_equal(cases, 252);
}

static void test_nvidia_share(void **state)
{
    (void)state;
    /* Shares of the same source: 75.0, 18.8, 81.2 % on 9.0 and 66.7 % on 8.9. */
    static const struct {
        int32_t cc, regs, threads, shared;
        double share;
        const char *limiter;
    } rows[] = {
        {90, 33, 256, 0, 48.0 / 64, "registers"},   {90, 168, 384, 0, 12.0 / 64, "registers"},
        {90, 32, 128, 16384, 52.0 / 64, "shared memory"}, {89, 64, 256, 0, 32.0 / 48, "registers"},
        {89, 24, 96, 0, 48.0 / 48, "warps"},        {86, 32, 32, 0, 16.0 / 48, "blocks"},
        {90, 65, 1024, 0, 0, "registers"},
    };
    plm_error e;
    plm_occupancy o;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_ok(plm_occupancy_nvidia(rows[i].cc, rows[i].threads, rows[i].regs, rows[i].shared,
                                       &o, &e), e);
        assert_close(o.occupancy, rows[i].share, 1e-12, 0);
        assert_string_equal(o.limiter, rows[i].limiter);
    }
}

typedef struct amd_row {
    const char *target;
    int32_t wave;
    int32_t threads, vgpr, agpr, sgpr, lds;
    int32_t waves; /* of a SIMD */
} amd_row;

/* Kernels compiled by LLVM 19.1.7 with its "Occupancy" remark; MI355X (gfx950) LDS derived, and its
** 128 VGPR / 32 KiB tile from a published worked example (VGPR limit 4, LDS limit 5). */
static const amd_row amd[] = {
    {"gfx90a", 64, 256, 24, 0, 0, 0, 8},      {"gfx90a", 64, 256, 64, 0, 0, 0, 8},
    {"gfx90a", 64, 256, 65, 0, 0, 0, 7},      {"gfx90a", 64, 256, 72, 0, 0, 0, 7},
    {"gfx942", 64, 256, 73, 0, 0, 0, 6},      {"gfx942", 64, 256, 80, 0, 0, 0, 6},
    {"gfx942", 64, 256, 81, 0, 0, 0, 5},      {"gfx942", 64, 256, 96, 0, 0, 0, 5},
    {"gfx942", 64, 256, 97, 0, 0, 0, 4},      {"gfx942", 64, 256, 128, 0, 0, 0, 4},
    {"gfx90a", 64, 256, 129, 0, 0, 0, 3},     {"gfx90a", 64, 256, 168, 0, 0, 0, 3},
    {"gfx90a", 64, 256, 169, 0, 0, 0, 2},     {"gfx90a", 64, 256, 256, 0, 0, 0, 2},
    {"gfx90a", 64, 256, 64, 64, 0, 0, 4},     {"gfx942", 64, 256, 96, 32, 0, 0, 4},
    {"gfx942", 64, 256, 128, 100, 0, 0, 2},   {"gfx90a", 64, 256, 128, 128, 0, 0, 2},
    {"gfx942", 64, 256, 252, 246, 0, 0, 1},   {"gfx90a", 64, 256, 24, 0, 50, 0, 8},
    {"gfx90a", 64, 256, 24, 0, 96, 0, 8},     {"gfx90a", 64, 256, 24, 0, 102, 0, 7},
    {"gfx942", 64, 256, 24, 0, 96, 0, 7},     {"gfx90a", 64, 512, 50, 0, 30, 0, 8},
    {"gfx942", 64, 256, 24, 0, 0, 8192, 8},   {"gfx942", 64, 256, 24, 0, 0, 16384, 4},
    {"gfx942", 64, 256, 24, 0, 0, 20480, 3},  {"gfx942", 64, 256, 24, 0, 0, 32768, 2},
    {"gfx90a", 64, 256, 24, 0, 0, 65536, 1},  {"gfx90a", 64, 512, 24, 0, 0, 16384, 8},
    {"gfx90a", 64, 1024, 24, 0, 0, 32768, 8}, {"gfx90a", 64, 128, 24, 0, 0, 4096, 8},
    {"gfx90a", 64, 64, 24, 0, 0, 2048, 8},    {"gfx90a", 64, 64, 24, 0, 0, 4096, 4},
    {"gfx950", 64, 256, 24, 0, 0, 20480, 8},  {"gfx950", 64, 256, 24, 0, 0, 32768, 5},
    {"gfx950", 64, 256, 24, 0, 0, 40960, 4},  {"gfx950", 64, 256, 24, 0, 0, 65536, 2},
    {"gfx950", 64, 256, 24, 0, 0, 81920, 2},  {"gfx950", 64, 256, 24, 0, 0, 98304, 1},
    {"gfx950", 64, 256, 24, 0, 0, 163840, 1}, {"gfx942", 64, 256, 128, 0, 50, 32768, 2},
    {"gfx950", 64, 256, 128, 0, 50, 32768, 4}, {"gfx950", 64, 256, 100, 0, 0, 0, 4},
    {"gfx950", 64, 256, 96, 0, 0, 0, 5},      {"gfx950", 64, 256, 252, 246, 0, 0, 1},
    {"gfx1030", 32, 256, 24, 0, 0, 0, 16},    {"gfx1030", 32, 256, 64, 0, 0, 0, 16},
    {"gfx1030", 32, 256, 65, 0, 0, 0, 12},    {"gfx1030", 32, 256, 72, 0, 0, 0, 12},
    {"gfx1030", 32, 256, 96, 0, 0, 0, 10},    {"gfx1030", 32, 256, 97, 0, 0, 0, 9},
    {"gfx1030", 32, 256, 128, 0, 0, 0, 8},    {"gfx1030", 32, 256, 144, 0, 0, 0, 7},
    {"gfx1030", 32, 256, 168, 0, 0, 0, 5},    {"gfx1030", 32, 256, 192, 0, 0, 0, 5},
    {"gfx1030", 32, 256, 256, 0, 0, 0, 4},    {"gfx1030", 64, 256, 32, 0, 0, 0, 16},
    {"gfx1030", 64, 256, 48, 0, 0, 0, 10},    {"gfx1030", 64, 256, 64, 0, 0, 0, 8},
    {"gfx1030", 64, 256, 65, 0, 0, 0, 7},     {"gfx1030", 64, 256, 72, 0, 0, 0, 7},
    {"gfx1030", 64, 256, 96, 0, 0, 0, 5},     {"gfx1030", 64, 256, 97, 0, 0, 0, 4},
    {"gfx1030", 64, 256, 128, 0, 0, 0, 4},    {"gfx1030", 64, 256, 144, 0, 0, 0, 3},
    {"gfx1030", 64, 256, 168, 0, 0, 0, 3},    {"gfx1030", 64, 256, 192, 0, 0, 0, 2},
    {"gfx1030", 64, 256, 256, 0, 0, 0, 2},    {"gfx1100", 32, 256, 96, 0, 0, 0, 16},
    {"gfx1100", 32, 256, 97, 0, 0, 0, 12},    {"gfx1151", 32, 256, 128, 0, 0, 0, 10},
    {"gfx1151", 32, 256, 144, 0, 0, 0, 10},   {"gfx1201", 32, 256, 168, 0, 0, 0, 9},
    {"gfx1201", 32, 256, 192, 0, 0, 0, 8},    {"gfx1200", 32, 256, 256, 0, 0, 0, 5},
    {"gfx1100", 64, 256, 48, 0, 0, 0, 16},    {"gfx1100", 64, 256, 64, 0, 0, 0, 10},
    {"gfx1101", 64, 256, 72, 0, 0, 0, 10},    {"gfx1100", 64, 256, 96, 0, 0, 0, 8},
    {"gfx1100", 64, 256, 97, 0, 0, 0, 7},     {"gfx1151", 64, 256, 128, 0, 0, 0, 5},
    {"gfx1151", 64, 256, 144, 0, 0, 0, 5},    {"gfx1201", 64, 256, 168, 0, 0, 0, 4},
    {"gfx1201", 64, 256, 192, 0, 0, 0, 4},    {"gfx1201", 64, 256, 256, 0, 0, 0, 2},
    {"gfx1100", 32, 256, 24, 0, 0, 8192, 16}, {"gfx1100", 32, 256, 24, 0, 0, 16384, 16},
    {"gfx1100", 32, 256, 24, 0, 0, 32768, 8}, {"gfx1030", 32, 256, 24, 0, 0, 65536, 4},
    {"gfx1030", 32, 512, 24, 0, 0, 32768, 16}, {"gfx1201", 32, 1024, 24, 0, 0, 65536, 16},
    {"gfx1102", 32, 256, 72, 0, 0, 0, 12},    {"gfx1010", 32, 256, 24, 0, 0, 0, 20},
};

static void test_amd(void **state)
{
    (void)state;
    plm_error e;
    for (size_t i = 0; i < sizeof amd / sizeof *amd; i++) {
        const amd_row *r = &amd[i];
        plm_occupancy o;
        assert_ok(plm_occupancy_amd(r->target, r->wave, r->threads, r->vgpr, r->agpr, r->sgpr,
                                    r->lds, &o, &e), e);
        if (o.warps_per_sm != 4 * r->waves)
            fail_msg("%s wave%d thr %d vgpr %d+%d sgpr %d lds %d: %d waves a SIMD, want %d",
                     r->target, r->wave, r->threads, r->vgpr, r->agpr, r->sgpr, r->lds,
                     o.warps_per_sm / 4, r->waves);
    }
}

static void test_amd_limits(void **state)
{
    (void)state;
    plm_error e;
    plm_occupancy o;
    /* The worked MXFP8 tile: LDS binds on MI300X at 25 %, registers on MI355X at 50 %. */
    assert_ok(plm_occupancy_amd("gfx942", 0, 256, 128, 0, 50, 32768, &o, &e), e);
    assert_string_equal(o.limiter, "shared memory");
    assert_close(o.occupancy, 0.25, 0, 0);
    assert_int_equal(o.blocks_per_sm, 2);
    assert_ok(plm_occupancy_amd("gfx950", 0, 256, 128, 0, 50, 32768, &o, &e), e);
    assert_string_equal(o.limiter, "registers");
    assert_close(o.occupancy, 0.5, 0, 0);
    assert_int_equal(o.blocks_per_sm, 4);
    /* llvm-calc-occupancy: gfx90a, workgroup of 512, 50 VGPR, 30 SGPR: 32 waves a CU. */
    assert_ok(plm_occupancy_amd("gfx90a", 64, 512, 50, 0, 30, 0, &o, &e), e);
    assert_int_equal(o.warps_per_sm, 32);
    assert_int_equal(o.blocks_per_sm, 4);
}

static void test_device(void **state)
{
    (void)state;
    plm_error e;
    plm_occupancy o;
    plm_device d = {.id = "x", .target = "sm_90"};
    assert_ok(plm_occupancy_device(&d, 128, 32, 16384, &o, &e), e);
    assert_int_equal(o.blocks_per_sm, 13);
    strcpy(d.target, "sm_100");
    assert_ok(plm_occupancy_device(&d, 1024, 32, 0, &o, &e), e);
    assert_int_equal(o.blocks_per_sm, 2);
    strcpy(d.target, "gfx942");
    assert_ok(plm_occupancy_device(&d, 256, 128, 32768, &o, &e), e);
    assert_int_equal(o.blocks_per_sm, 2);
    strcpy(d.target, "metal");
    assert_int_equal(plm_occupancy_device(&d, 256, 128, 0, &o, &e), PLM_E_UNSUPPORTED);
    assert_non_null(strstr(e.text, "metal"));
    strcpy(d.target, "sm_61");
    assert_int_equal(plm_occupancy_device(&d, 256, 128, 0, &o, &e), PLM_E_UNSUPPORTED);
}

static void test_refusals(void **state)
{
    (void)state;
    plm_error e;
    plm_occupancy o;
    static const int64_t bad[][3] = {{0, 32, 0},    {1025, 32, 0}, {-1, 32, 0},
                                     {256, -1, 0},  {256, 256, 0}, {256, 32, -1},
                                     {256, 32, INT64_MAX}, {INT64_MAX, 32, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(plm_occupancy_nvidia(90, bad[i][0], bad[i][1], bad[i][2], &o, &e),
                         PLM_E_INVALID);
        if (bad[i][1] != 256) /* 256 vector registers exist on AMD */
            assert_int_equal(plm_occupancy_amd("gfx942", 0, bad[i][0], bad[i][1], 0, 0, bad[i][2],
                                               &o, &e), PLM_E_INVALID);
    }
    assert_int_equal(plm_occupancy_amd("gfx942", 32, 256, 32, 0, 0, 0, &o, &e), PLM_E_INVALID);
    assert_int_equal(plm_occupancy_amd("gfx1100", 32, 256, 32, 8, 0, 0, &o, &e), PLM_E_INVALID);
    assert_int_equal(plm_occupancy_amd("gfx600", 0, 256, 32, 0, 0, 0, &o, &e), PLM_E_UNSUPPORTED);
    assert_int_equal(plm_occupancy_nvidia(99, 256, 32, 0, &o, &e), PLM_E_UNSUPPORTED);
}

/* Bytes in flight a SM and warps of 128 B (AMD: waves of 256 B) and of four times that, from the
** bandwidth, SM count, clock and measured DRAM latency of eight devices. */
static void test_bytes_in_flight(void **state)
{
    (void)state;
    static const struct {
        double gb_s, sm, mhz, latency, bytes;
        int warp_bytes, warps, wide_warps;
    } rows[] = {
        {900, 80, 1530, 460, 3382, 128, 27, 7},    {2039, 108, 1410, 466, 6240, 128, 49, 13},
        {3352, 132, 1830, 479, 6647, 128, 52, 13}, {4000, 132, 1980, 690, 10560, 128, 83, 21},
        {7700, 148, 1965, 860, 22770, 128, 178, 45}, {1008, 128, 2520, 636, 1988, 128, 16, 4},
        {1792, 170, 2407, 936, 4099, 128, 33, 9},  {5325, 304, 2100, 900, 7507, 256, 30, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double b = plm_bytes_in_flight(rows[i].gb_s * 1e9, rows[i].sm, rows[i].mhz * 1e6,
                                       rows[i].latency);
        assert_close(b, rows[i].bytes, 0, 0.51 + 1e-4 * rows[i].bytes);
        assert_int_equal((int)ceil(b / rows[i].warp_bytes), rows[i].warps);
        assert_int_equal((int)ceil(b / rows[i].warp_bytes / 4), rows[i].wide_warps);
    }
    assert_close(plm_bytes_in_flight(1e12, 0, 1e9, 500), 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nvidia),  cmocka_unit_test(test_nvidia_share),
        cmocka_unit_test(test_amd),     cmocka_unit_test(test_amd_limits),
        cmocka_unit_test(test_device),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bytes_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
