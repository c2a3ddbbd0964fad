/* Cost of one op: tilings (hw_facts d.2), the roofline of serving_facts S1, attention ceilings
** (hw_facts c.2), launches (hw_facts e.1), and each knob of a profile on its own. */
#include "sim/device/cost.h"
#include "tests/support.h"

#include <math.h>

/* H100 SXM as S1 has it: 3.35 TB/s, 989.4 TFLOP/s. */
static plm_device h100(void)
{
    plm_device d = {.bandwidth_bytes_s = 3.35e12, .vector_flop_s = 66.9e12, .exp_s = 3.865e12,
                    .sm_count = 132, .l2_bytes = 50e6};
    d.peak_flop_s[PLM_MATH_BF16] = d.peak_flop_s[PLM_MATH_F16] = 989.4e12;
    d.peak_flop_s[PLM_MATH_F8] = d.peak_flop_s[PLM_MATH_I8] = 1978.9e12;
    strcpy(d.id, "h100");
    return d;
}

static plm_machine bind(const plm_profile *p)
{
    plm_device d = h100();
    plm_machine m;
    plm_error err = {0};
    assert_ok(plm_machine_bind(&d, p, &m, &err), err);
    return m;
}

/* A profile of zeros is ideal: every share 1, no overhead. */
static plm_machine ideal(void)
{
    plm_profile p = {0};
    return bind(&p);
}

static plm_op_time cost(const plm_machine *m, plm_class cls, const plm_work *w)
{
    plm_op_time t;
    plm_op_cost(m, cls, w, &t);
    return t;
}

static plm_work gemm(double m, double n, double k)
{
    return (plm_work){.tensor_flop = 2 * m * n * k, .weight_bytes = 2 * n * k, .m = m, .n = n,
                      .k = k, .groups = 1, .weight_dtype = PLM_DT_BF16, .act_dtype = PLM_DT_BF16,
                      .launches = 1};
}

static void tilings_match_published_vectors(void **state)
{
    static const struct {
        double m, n, k, bm, bn, sm, tiles, waves, dp, sk;
    } rows[] = {
        {4096, 4096, 4096, 128, 256, 132, 512, 4, .9697, .9970},
        {4096, 4096, 4096, 128, 256, 148, 512, 4, .8649, .9973},
        {4096, 4096, 4096, 128, 256, 108, 512, 5, .9481, .9981},
        {4096, 4096, 4096, 256, 256, 148, 256, 2, .8649, .9973},
        {8192, 8192, 8192, 256, 256, 148, 1024, 7, .9884, .9996},
        {2048, 4096, 4096, 128, 128, 142, 512, 4, .9014, .9990},
        {1025, 4096, 4096, 128, 128, 142, 288, 3, .6015, .8884},
        {128, 8192, 8192, 128, 128, 132, 64, 1, .4848, .9851},
        {129, 8192, 8192, 128, 128, 132, 128, 1, .4886, .5004},
        {16, 7168, 2048, 16, 128, 256, 56, 1, .2188, 1.0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plm_tiling t = plm_gemm_tiling(rows[i].m, rows[i].n, rows[i].k, rows[i].bm, rows[i].bn, 64,
                                       rows[i].sm);
        assert_close(t.tiles, rows[i].tiles, 0, 0);
        assert_close(t.waves, rows[i].waves, 0, 0);
        assert_close(t.eff, rows[i].dp, 0, 5.1e-5);
        assert_close(t.eff_stream_k, rows[i].sk, 0, 5.1e-5);
    }
    assert_close(plm_gemm_tiling(0, 1, 1, 128, 128, 64, 132).tiles, 0, 0, 0);
}

/* serving_facts S1: Llama-3.1-8B in bf16 on an ideal H100. A step reads W = 15,009,849,344 bytes of
** weights and 131,072 of KV for each of 2048 tokens of each sequence; it makes 2 P FLOP a token and
** 4 L H d FLOP a token and key. */
static void a_step_of_llama_8b_takes_the_published_times(void **state)
{
    static const struct {
        double batch, ms;
    } rows[] = {{0, 4.4806}, {1, 4.561},  {8, 5.122},    {32, 7.045},
                {64, 9.609}, {128, 14.737}, {256, 24.994}};
    plm_machine m = ideal();
    double weights = 15009849344.0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double b = rows[i].batch;
        plm_work w = {.weight_bytes = weights, .kv_read_bytes = b * 2048 * 131072,
                      .tensor_flop = b * (weights + 4.0 * 32 * 32 * 128 * 2048),
                      .weight_dtype = PLM_DT_BF16, .act_dtype = PLM_DT_BF16, .launches = 1};
        plm_op_time t = cost(&m, PLM_CLASS_LINEAR, &w);
        assert_close(t.time_s * 1e3, rows[i].ms, 0, 5.1e-4);
        assert_int_equal(t.bound, PLM_BOUND_MEMORY);
        if (b == 64)
            assert_close(b / t.time_s, 6661, 0, 0.5);
        if (b == 256)
            assert_close(b / t.time_s, 10243, 0, 0.5);
    }
    /* Ridge point 295.34 FLOP a byte. */
    assert_close(m.inv_bandwidth / m.inv_peak[PLM_MATH_BF16], 295.34, 0, 0.005);
    plm_work low = gemm(295, 8192, 8192), high = gemm(296, 8192, 8192);
    assert_int_equal(cost(&m, PLM_CLASS_LINEAR, &low).bound, PLM_BOUND_MEMORY);
    assert_int_equal(cost(&m, PLM_CLASS_LINEAR, &high).bound, PLM_BOUND_TENSOR);
}

/* hw_facts e.1: RTX 5070 Ti, Qwen3-4B: 400 kernels of 11.97 ms in all, 8.08 us apart -> 15.20 ms. */
static void launches_add_up(void **state)
{
    plm_profile p = {.launch_s = 8.08e-6};
    plm_machine m = bind(&p);
    plm_work w = {.kv_read_bytes = 11.97e-3 * 3.35e12, .weight_dtype = PLM_DT_COUNT,
                  .launches = 400};
    plm_op_time t = cost(&m, PLM_CLASS_GATHER, &w);
    (void)state;
    assert_close(t.time_s, 15.20e-3, 0, 0.005e-3);
    assert_close(t.part_s[PLM_BOUND_OVERHEAD], 3.232e-3, 1e-9, 0);
}

static void small_kernels_take_the_floor(void **state)
{
    plm_profile p = {.kernel_floor_s = 2.54e-6, .launch_s = 1e-6};
    plm_machine m = bind(&p);
    plm_work w = gemm(1, 64, 64);
    plm_op_time t = cost(&m, PLM_CLASS_LINEAR, &w);
    (void)state;
    assert_close(t.time_s, 3.54e-6, 1e-9, 0);
    assert_int_equal(t.bound, PLM_BOUND_OVERHEAD);
    w = gemm(1, 8192, 8192); /* 40 us: the floor is past */
    t = cost(&m, PLM_CLASS_LINEAR, &w);
    assert_close(t.time_s, 1e-6 + 2.0 * 8192 * 8192 / 3.35e12, 1e-9, 0);
}

/* A transfer of ramp_bytes goes at half the bandwidth, one nine times as large at 90 %. */
static void small_transfers_are_slow(void **state)
{
    plm_profile p = {.ramp_bytes = 1e6};
    plm_machine m = bind(&p);
    plm_work w = {.kv_read_bytes = 1e6, .weight_dtype = PLM_DT_COUNT, .launches = 1, .m = 2};
    (void)state;
    assert_close(cost(&m, PLM_CLASS_ATTENTION, &w).time_s, 2e6 / 3.35e12, 1e-12, 0);
    w.kv_read_bytes = 9e6;
    assert_close(cost(&m, PLM_CLASS_ATTENTION, &w).time_s, 9e6 / (0.9 * 3.35e12), 1e-12, 0);
}

static void each_class_and_type_has_its_share(void **state)
{
    plm_profile p = {.skinny_m = 8, .skinny_eff = 0.5, .attn_decode_eff = 0.6, .moe_eff_small = 0.25};
    p.mem_eff[PLM_CLASS_LINEAR] = 0.8;
    p.mem_eff[PLM_CLASS_ATTENTION] = 0.7;
    p.mem_eff[PLM_CLASS_GROUPED] = 0.75;
    p.tensor_eff[PLM_CLASS_LINEAR] = 0.7;
    p.weight_eff[PLM_DT_Q4_K] = 0.9;
    p.weight_math[PLM_DT_Q4_K] = 0.5;
    plm_machine m = bind(&p);
    plm_work w = gemm(8, 8192, 8192);
    double s = 2.0 * 8192 * 8192 / 3.35e12;
    (void)state;
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, s / 0.5, 1e-12, 0);
    w = gemm(9, 8192, 8192);
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, s / 0.8, 1e-12, 0);
    w.weight_dtype = PLM_DT_Q4_K;
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, s / 0.8 / 0.9, 1e-12, 0);
    w = gemm(8192, 8192, 8192);
    double f = 2.0 * 8192 * 8192 * 8192 / 989.4e12;
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, f / 0.7, 1e-12, 0);
    w.weight_dtype = PLM_DT_Q4_K;
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, f / 0.7 / 0.5, 1e-12, 0);
    plm_work a = {.kv_read_bytes = 1e9, .weight_dtype = PLM_DT_COUNT, .m = 1};
    assert_close(cost(&m, PLM_CLASS_ATTENTION, &a).time_s, 1e9 / 3.35e12 / 0.6, 1e-12, 0);
    a.m = 2;
    assert_close(cost(&m, PLM_CLASS_ATTENTION, &a).time_s, 1e9 / 3.35e12 / 0.7, 1e-12, 0);
    w = gemm(1, 8192, 8192);
    assert_close(cost(&m, PLM_CLASS_GROUPED, &w).time_s, s / 0.25, 1e-12, 0);
    w.group_share = 1;
    assert_close(cost(&m, PLM_CLASS_GROUPED, &w).time_s, s / 0.75, 1e-12, 0);
    w.group_share = 0.5;
    assert_close(cost(&m, PLM_CLASS_GROUPED, &w).time_s, s / 0.5, 1e-12, 0);
}

/* 132 SMs at 1.5 GHz take 198 G clocks a second. */
static void mat_vec_kernels_take_bytes_apart(void **state)
{
    plm_device d = h100();
    plm_profile p = {.skinny_m = 8, .weight_clk = 0.02, .row_clk = 0.001};
    plm_machine m;
    plm_error err = {0};
    (void)state;
    d.clock_hz = 1.5e9;
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    plm_work w = gemm(1, 8192, 8192);
    double bytes = 2.0 * 8192 * 8192, mem = bytes / 3.35e12, dec = bytes * 0.02 / 198e9;
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, sqrt(mem * mem + dec * dec), 1e-12, 0);
    w.m = 5; /* four rows more */
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s,
                 sqrt(mem * mem + dec * dec) + 4 * bytes * 0.001 / 198e9, 1e-12, 0);
    w.m = 9; /* no mat-vec kernel any more */
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, mem, 1e-12, 0);
    p.launch_s = 1e-6;
    p.launch_clk = 3000; /* 2 us */
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, mem + 3e-6, 1e-12, 0);
}

/* 1978.9 int8 TOP/s at 700 W are 2.827 a joule: against a quarter of that the peak is halved. */
static void tensor_rates_fall_with_power(void **state)
{
    plm_device d = h100();
    plm_profile p = {.power_flop_j = 1978.9e12 / 700 / 4};
    plm_machine m;
    plm_error err = {0};
    plm_work w = gemm(8192, 8192, 8192);
    double s = 2.0 * 8192 * 8192 * 8192 / 989.4e12;
    (void)state;
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, s, 1e-12, 0); /* power is not known */
    d.tdp_w = 700;
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, 2 * s, 1e-9, 0);
    d.tdp_w = 1400;
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, sqrt(2) * s, 1e-9, 0);
    p.power_flop_j *= 8; /* enough: the peak and no more */
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    assert_close(cost(&m, PLM_CLASS_LINEAR, &w).time_s, s, 1e-12, 0);
    w = (plm_work){.vector_flop = 66.9e12, .launches = 1, .weight_dtype = PLM_DT_COUNT};
    p.power_flop_j = 1;
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    assert_close(cost(&m, PLM_CLASS_ELEMENTWISE, &w).time_s, 1, 1e-9, 0); /* tensor units alone */
}

static void arithmetic_follows_both_operands(void **state)
{
    plm_profile p = {0}, dot = {.int8_dot = true};
    (void)state;
    assert_int_equal(plm_cost_math(&p, PLM_DT_BF16, PLM_DT_BF16), PLM_MATH_BF16);
    assert_int_equal(plm_cost_math(&p, PLM_DT_F16, PLM_DT_F32), PLM_MATH_F16);
    assert_int_equal(plm_cost_math(&p, PLM_DT_F32, PLM_DT_F32), PLM_MATH_F32);
    /* Narrow weights under wide activations are decoded; under narrow ones multiplied as they are. */
    assert_int_equal(plm_cost_math(&p, PLM_DT_FP8_BLOCK, PLM_DT_BF16), PLM_MATH_BF16);
    assert_int_equal(plm_cost_math(&p, PLM_DT_FP8_BLOCK, PLM_DT_F8E4M3), PLM_MATH_F8);
    assert_int_equal(plm_cost_math(&p, PLM_DT_NVFP4_PLANAR, PLM_DT_BF16), PLM_MATH_BF16);
    assert_int_equal(plm_cost_math(&p, PLM_DT_NVFP4_PLANAR, PLM_DT_F8E4M3), PLM_MATH_F8);
    assert_int_equal(plm_cost_math(&p, PLM_DT_NVFP4_PLANAR, PLM_DT_NVFP4_PLANAR), PLM_MATH_F4);
    assert_int_equal(plm_cost_math(&p, PLM_DT_AWQ4, PLM_DT_F16), PLM_MATH_F16);
    assert_int_equal(plm_cost_math(&p, PLM_DT_AWQ4, PLM_DT_F8E4M3), PLM_MATH_F8);
    assert_int_equal(plm_cost_math(&p, PLM_DT_INT8_ROW, PLM_DT_I8), PLM_MATH_I8);
    /* ggml decodes, or quantises rows to int8 and multiplies that (mmq). */
    assert_int_equal(plm_cost_math(&p, PLM_DT_Q4_K, PLM_DT_F32), PLM_MATH_F16);
    assert_int_equal(plm_cost_math(&dot, PLM_DT_Q4_K, PLM_DT_F32), PLM_MATH_I8);
    assert_int_equal(plm_cost_math(&dot, PLM_DT_F16, PLM_DT_F32), PLM_MATH_F16);
    plm_profile acc16 = {.acc16 = true};
    assert_int_equal(plm_cost_math(&acc16, PLM_DT_F16, PLM_DT_F32), PLM_MATH_F16_ACC16);
    assert_int_equal(plm_cost_math(&acc16, PLM_DT_COUNT, PLM_DT_F32), PLM_MATH_F16_ACC16);
    assert_int_equal(plm_cost_math(&acc16, PLM_DT_BF16, PLM_DT_BF16), PLM_MATH_BF16);
    /* Attention has no weight. */
    assert_int_equal(plm_cost_math(&p, PLM_DT_COUNT, PLM_DT_F32), PLM_MATH_F16);
    assert_int_equal(plm_cost_math(&p, PLM_DT_COUNT, PLM_DT_BF16), PLM_MATH_BF16);
}

/* hw_facts c.2: B200 at 1.85 GHz, 148 SM, 8192 FLOP and 16 exp a clock and SM; causal, S 8192, H 32:
** d = 64: T_mma 122.6 us, T_exp 245.1 us; d = 256: 490.2 and 245.1. Ceilings overlapped and serial. */
static void attention_lies_between_overlapped_and_serial(void **state)
{
    static const struct {
        double d, mma_us, exp_us;
    } rows[] = {{64, 122.6, 245.1}, {128, 245.1, 245.1}, {256, 490.2, 245.1}};
    plm_device d = {.bandwidth_bytes_s = 7.7e12, .vector_flop_s = 75e12};
    plm_error err = {0};
    plm_machine best, real;
    plm_profile p = {0};
    (void)state;
    d.peak_flop_s[PLM_MATH_BF16] = 148 * 1.85e9 * 8192;
    d.exp_s = 148 * 1.85e9 * 16;
    assert_ok(plm_machine_bind(&d, &p, &best, &err), err);
    p.tensor_eff[PLM_CLASS_ATTENTION] = 0.8;
    assert_ok(plm_machine_bind(&d, &p, &real, &err), err);
    for (size_t i = 0; i < 3; i++) {
        double pairs = 8192.0 * 8192 / 2 * 32;
        plm_work w = {.tensor_flop = 4 * pairs * rows[i].d, .exp = pairs, .m = 8192,
                      .weight_dtype = PLM_DT_COUNT, .act_dtype = PLM_DT_BF16, .launches = 1};
        plm_op_time t = cost(&best, PLM_CLASS_ATTENTION, &w);
        assert_close(t.part_s[PLM_BOUND_TENSOR] * 1e6, rows[i].mma_us, 0, 0.06);
        assert_close(t.part_s[PLM_BOUND_EXP] * 1e6, rows[i].exp_us, 0, 0.06);
        double longer = fmax(rows[i].mma_us, rows[i].exp_us);
        double serial = rows[i].mma_us + rows[i].exp_us;
        assert_close(t.time_s * 1e6, longer, 0, 0.06);
        t = cost(&real, PLM_CLASS_ATTENTION, &w);
        assert_true(t.time_s * 1e6 > longer && t.time_s * 1e6 < serial / 0.8);
        double a = rows[i].mma_us / 0.8, b = rows[i].exp_us;
        assert_close(t.time_s * 1e6, fmax(a, b) + 0.2 * fmin(a, b), 0, 0.1);
        assert_int_equal(t.bound, a >= b ? PLM_BOUND_TENSOR : PLM_BOUND_EXP);
    }
}

static void activations_in_cache_cost_less(void **state)
{
    plm_profile p = {0};
    plm_machine m = bind(&p);
    plm_work w = {.act_read_bytes = 10e6, .act_write_bytes = 10e6, .weight_dtype = PLM_DT_COUNT};
    (void)state;
    assert_close(cost(&m, PLM_CLASS_ELEMENTWISE, &w).time_s, 0, 0, 0);
    w.act_read_bytes = 90e6;
    assert_close(cost(&m, PLM_CLASS_ELEMENTWISE, &w).time_s, 100e6 / 3.35e12, 1e-12, 0);
    p.cache_rate = 4;
    m = bind(&p);
    w.act_read_bytes = 10e6;
    assert_close(cost(&m, PLM_CLASS_ELEMENTWISE, &w).time_s, 20e6 / 4 / 3.35e12, 1e-12, 0);
    /* Weights of a step that fits stay too. */
    plm_work g = gemm(1, 1000, 1000);
    plm_op_time t;
    plm_op_cost_resident(&m, PLM_CLASS_LINEAR, &g, 1.0, &t);
    assert_close(t.time_s, 2e6 / 4 / 3.35e12, 1e-12, 0);
    plm_op_cost_resident(&m, PLM_CLASS_LINEAR, &g, 0.5, &t);
    assert_close(t.time_s, (1e6 / 4 + 1e6) / 3.35e12, 1e-12, 0);
    assert_close(plm_cache_share(25e6, 50e6), 1, 0, 0);
    assert_close(plm_cache_share(37.5e6, 50e6), 0.5, 1e-15, 0);
    assert_close(plm_cache_share(50e6, 50e6), 0, 0, 0);
    assert_close(plm_cache_share(1, 0), 0, 0, 0);
}

/* Time of a fixed tile goes by waves. RTX PRO 6000, 188 SM, 128 x 128, N = K = 4096, M up the measured
** staircase of hw_facts d.2: tiles and waves as published. */
static void fixed_tiles_make_a_staircase(void **state)
{
    static const struct {
        double m, waves;
    } rows[] = {{256, 1}, {512, 1}, {768, 2}, {1024, 2}, {1281, 2}, {1536, 3}, {2049, 3}, {2304, 4},
                {3072, 5}, {4096, 6}};
    plm_profile p = {.tile_quant = true, .tile_m = 128, .tile_n = 128};
    plm_device d = {.bandwidth_bytes_s = 1e15, .sm_count = 188, .vector_flop_s = 1e12, .exp_s = 1e12};
    plm_machine m;
    plm_error err = {0};
    (void)state;
    d.peak_flop_s[PLM_MATH_BF16] = 467.8e12;
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    /* The device makes one wave of 188 tiles of 128 x 128 x 4096 at its peak in this time. */
    double wave = 188.0 * 2 * 128 * 128 * 4096 / 467.8e12;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plm_work w = gemm(rows[i].m, 4096, 4096);
        double want = rows[i].waves * wave;
        double got = cost(&m, PLM_CLASS_LINEAR, &w).part_s[PLM_BOUND_TENSOR];
        if (rows[i].m >= 512)
            assert_close(got, want, 1e-12, 0);
        else
            assert_true(got <= want); /* 64 tiles leave room to split K in two */
    }
}

static void the_best_tile_is_never_worse_than_one(void **state)
{
    plm_profile list = {.tile_quant = true}, one = {.tile_quant = true, .tile_m = 128,
                                                    .tile_n = 256};
    plm_machine a = bind(&list), b = bind(&one);
    uint64_t seed = test_seed("the_best_tile_is_never_worse_than_one");
    (void)state;
    for (int i = 0; i < 500; i++) {
        plm_work w = gemm(1 + (double)(test_random(&seed) % 9000),
                          64 * (1 + (double)(test_random(&seed) % 200)),
                          64 * (1 + (double)(test_random(&seed) % 200)));
        double bytes, fixed, best = plm_gemm_eff(&a, &w, &bytes);
        double best_s = w.tensor_flop * a.inv_peak[PLM_MATH_BF16] / best + bytes * a.inv_bandwidth;
        fixed = plm_gemm_eff(&b, &w, &bytes);
        double one_s = w.tensor_flop * a.inv_peak[PLM_MATH_BF16] / fixed + bytes * a.inv_bandwidth;
        assert_true(best > 0 && best <= 1);
        assert_true(best_s <= one_s * (1 + 1e-12));
    }
    /* 64 tiles on 132 SM: half the device idles unless K is split. */
    plm_work w = gemm(128, 8192, 8192);
    double bytes;
    assert_true(plm_gemm_eff(&a, &w, &bytes) > 0.6);
    /* Large products keep nearly all. */
    w = gemm(8192, 8192, 8192);
    assert_true(plm_gemm_eff(&a, &w, &bytes) > 0.95);
    assert_close(bytes, 0, 0, 0);
}

/* Elasticities: a resource twice as fast takes half its part, and the others stay. */
static void scales_divide_one_part(void **state)
{
    plm_profile p = {.launch_s = 1e-6};
    plm_machine m = bind(&p);
    plm_work w = gemm(512, 4096, 4096);
    w.exp = w.vector_flop = 1e6;
    w.link = PLM_LINK_ALL_REDUCE;
    w.link_bytes = 1e6;
    w.ranks = 2;
    m.dev.link_bytes_s = 450e9;
    plm_op_time before = cost(&m, PLM_CLASS_LINEAR, &w), after;
    (void)state;
    for (int i = 0; i < PLM_BOUND_COUNT; i++) {
        m.scale[i] = 2;
        after = cost(&m, PLM_CLASS_LINEAR, &w);
        for (int k = 0; k < PLM_BOUND_COUNT; k++)
            assert_close(after.part_s[k], before.part_s[k] / (k == i ? 2 : 1), 1e-12, 0);
        m.scale[i] = 1;
    }
    for (int k = 0; k < PLM_BOUND_COUNT; k++)
        assert_true(before.part_s[k] > 0);
}

static void a_device_without_figures_is_refused(void **state)
{
    plm_device d = h100();
    plm_profile p = {0};
    plm_machine m;
    plm_error err = {0};
    (void)state;
    d.bandwidth_bytes_s = 0;
    assert_int_equal(plm_machine_bind(&d, &p, &m, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "bandwidth"));
    d = (plm_device){.bandwidth_bytes_s = 1e12};
    assert_int_equal(plm_machine_bind(&d, &p, &m, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "peak"));
    assert_string_equal(plm_bound_name(PLM_BOUND_MEMORY), "memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tilings_match_published_vectors),
        cmocka_unit_test(a_step_of_llama_8b_takes_the_published_times),
        cmocka_unit_test(launches_add_up),
        cmocka_unit_test(small_kernels_take_the_floor),
        cmocka_unit_test(small_transfers_are_slow),
        cmocka_unit_test(each_class_and_type_has_its_share),
        cmocka_unit_test(mat_vec_kernels_take_bytes_apart),
        cmocka_unit_test(tensor_rates_fall_with_power),
        cmocka_unit_test(arithmetic_follows_both_operands),
        cmocka_unit_test(attention_lies_between_overlapped_and_serial),
        cmocka_unit_test(activations_in_cache_cost_less),
        cmocka_unit_test(fixed_tiles_make_a_staircase),
        cmocka_unit_test(the_best_tile_is_never_worse_than_one),
        cmocka_unit_test(scales_divide_one_part),
        cmocka_unit_test(a_device_without_figures_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
