/* test_server_profiles.c - what batching servers add to the cost of ops and to memory: constants of
** kernels, skewed experts, hosts that launch every kernel, pools of the engines' own logs. */
#include <math.h>

#include "core/ir/op.h"
#include "sim/device/profile_values.h"
#include "sim/plan/predict.h"
#include "tests/session_support.h"

static plm_answer predict(const char *model, const char *device, const char *engine,
                          const char *quant, int64_t gen)
{
    plm_query q;
    plm_answer a;
    plm_query_init(&q);
    q.model = model;
    q.device = device;
    q.engine = engine;
    q.quant = quant;
    q.gen = gen;
    q.price_usd = 1;
    assert_ok(plm_predict(session, &q, &a, &err), err);
    return a;
}

/* 256 experts, 8 a token. 129 tokens: the other 128 hit an expert 4 times on average, so of the other
** 248 a share 1 - 1 / (1 + 4) is hit when popularity is exponential, 1 - e^-4 when it is even. */
static void experts_by_popularity(void **state)
{
    (void)state;
    assert_close(plm_skewed_experts(256, 8, 1, 1), 8, 1e-12, 0);
    assert_close(plm_skewed_experts(256, 8, 129, 1), 8 + 248 * 0.8, 1e-12, 0);
    assert_close(plm_skewed_experts(256, 8, 129, 1e9), 8 + 248 * (1 - exp(-4)), 1e-6, 0);
    assert_close(plm_skewed_experts(256, 8, 129, 0), plm_distinct_experts(256, 8, 129), 0, 0);
    for (double t = 1, last = 0; t < 1e6; t *= 2) {
        double hit = plm_skewed_experts(256, 8, t, 0.8);
        assert_true(hit > last && hit <= plm_distinct_experts(256, 8, t) + 1e-9);
        last = hit;
    }
}

/* A product pays the constants of its class and of its weights' type once a launch. */
static void constants_of_kernels(void **state)
{
    (void)state;
    plm_device d = {.id = "d", .bandwidth_bytes_s = 1e12};
    d.peak_flop_s[PLM_MATH_F16] = 1e14;
    plm_profile p;
    plm_machine m;
    plm_profile_neutral(&p);
    p.launch_s = 1e-6;
    p.kernel_s[PLM_CLASS_LINEAR] = 2e-6;
    p.weight_s[PLM_DT_FP8] = 5e-6;
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    plm_work w = {.weight_bytes = 1e6, .launches = 2, .act_dtype = PLM_DT_F16};
    const struct {
        plm_class cls;
        plm_dtype weight;
        double each;
    } cases[] = {{PLM_CLASS_LINEAR, PLM_DT_F16, 3e-6},
                 {PLM_CLASS_LINEAR, PLM_DT_FP8, 8e-6},
                 {PLM_CLASS_ELEMENTWISE, PLM_DT_F16, 1e-6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plm_op_time t;
        w.weight_dtype = cases[i].weight;
        plm_op_cost(&m, cases[i].cls, &w, &t);
        assert_close(t.time_s, 1e-6 + 2 * cases[i].each, 1e-9, 0);
    }
}

/* Checkpoints in fp8 bring scales for the cache; those in bf16 do not. */
static void cache_beside_narrow_weights(void **state)
{
    (void)state;
    assert_string_equal(predict("llama-3.1-8b", "h100_sxm_80", "trtllm", "fp8", 8).kv_type,
                        "f8e4m3");
    assert_string_equal(predict("llama-3.1-8b", "h100_sxm_80", "trtllm", "bf16", 8).kv_type,
                        "bf16");
    assert_string_equal(predict("llama-3.1-8b", "h100_sxm_80", "sglang", "fp8", 8).kv_type,
                        "bf16");
}

/* Pools in logs of vLLM: 2,588 blocks of Llama-3.1-8B on an RTX 4090 (LLMServingSim, vLLM 0.19);
** 64.45 GiB of Qwen3-0.6B on one H100, 34.49 a device of Qwen3-32B on two (llm-d-planner, 0.11). */
static void pools_of_logs(void **state)
{
    (void)state;
    const double gib = 1073741824.0;
    plm_answer a = predict("llama-3.1-8b", "rtx_4090_24", "vllm", "bf16", 8);
    assert_close((double)a.memory.kv_blocks, 2588, 0.04, 0);
    a = predict("qwen3-0.6b", "h100_sxm_80", "vllm", "bf16", 8);
    assert_close((double)a.memory.kv_pool_bytes, 64.45 * gib, 0.03, 0);
    a = predict("qwen3-32b", "h100_sxm_80:2", "vllm", "bf16", 8);
    assert_close((double)a.memory.kv_pool_bytes, 34.49 * gib, 0.03, 0);
}

/* Engines of 2023 wait for the host: Llama-2-70B decodes no faster on 8 A100 than on 4, in 45 ms
** (splitwise-sim), though its kernels take half the time. */
static void host_that_launches_every_kernel(void **state)
{
    (void)state;
    double four = predict("llama-2-70b", "a100_sxm_80:4", "vllm-v0", "fp16", 64).decode.time_s.value;
    double eight =
        predict("llama-2-70b", "a100_sxm_80:8", "vllm-v0", "fp16", 64).decode.time_s.value;
    assert_close(four, 0.045, 0.1, 0);
    assert_close(eight, 0.045, 0.1, 0);
    double now = predict("llama-2-70b", "a100_sxm_80:8", "vllm", "fp16", 64).decode.time_s.value;
    assert_true(now < 0.6 * eight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_by_popularity),
        cmocka_unit_test(constants_of_kernels),
        cmocka_unit_test(cache_beside_narrow_weights),
        cmocka_unit_test(pools_of_logs),
        cmocka_unit_test(host_that_launches_every_kernel),
    };
    return cmocka_run_group_tests_name("server_profiles", tests, open_session, close_session);
}
