/* test_llama_profiles.c - what the llama.cpp profiles say of memory and time, against logs of llama.cpp
** and against what its scheduler can do. */
#include "core/base/mem.h"
#include "sim/plan/plan.h"
#include "tests/session_support.h"

static plm_answer ask(const char *model, const char *device, const char *engine, const char *quant,
                      int64_t prompt, int64_t gen, int64_t depth, int32_t flash)
{
    plm_query q;
    plm_answer a;
    plm_query_init(&q);
    q.model = model;
    q.device = device;
    q.engine = engine;
    q.quant = quant;
    q.prompt = prompt;
    q.gen = gen;
    q.depth = depth;
    q.flash_attn = flash;
    assert_ok(plm_predict(session, &q, &a, &err), err);
    return a;
}

/* Compute buffers as llama.cpp logs them: Llama 3 8B, 512 tokens a chunk: 258.50 MiB, the logits and
** one hidden state of each of them; the 70.5 and 97 MiB of llama.cpp of 2023 for Llama 2 7B and 30B
** without fused attention are met within 15 %. */
static void compute_buffers_are_those_of_the_logs(void **state)
{
    const double mib = 1048576.0;
    (void)state;
    plm_answer a = ask("Llama-3-8B", "rtx_4090_24", "llama.cpp-cuda", "q4_k_m", 512, 0, 0, 1);
    assert_close((double)a.memory.activation_bytes, 258.5 * mib, 1e-9, 0);
    a = ask("Llama-2-7B", "rtx_4090_24", "llama.cpp-cuda", "q4_0", 512, 0, 0, 0);
    assert_close((double)a.memory.activation_bytes, 70.5 * mib, 0.15, 0);
    a = ask("LLaMA-1-30B", "rtx_4090_24", "llama.cpp-cuda", "q4_0", 512, 0, 0, 0);
    assert_close((double)a.memory.activation_bytes, 97.0 * mib, 0.15, 0);
}

/* Caches as ik_llama.cpp logs them: DeepSeek R1, 512 tokens: 2440 MiB of every head in 16 bit; 2048
** tokens latent: 137.25 MiB; Gemma 3 27B, 32768 tokens, windows not used: 15872 MiB. The figures are
** given whether it fits or not. */
static void caches_are_those_of_the_logs(void **state)
{
    const double mib = 1048576.0;
    (void)state;
    plm_answer a = ask("DeepSeek-R1", "h100_sxm_80", "ik_llama.cpp-cuda-mla0", "q4_k_m", 256, 256,
                       0, -1);
    assert_close((double)a.memory.kv_bytes_per_token * 512, 2440.0 * mib, 1e-6, 0);
    a = ask("DeepSeek-R1", "h100_sxm_80", "ik_llama.cpp-cuda", "q4_k_m", 256, 256, 0, -1);
    assert_close((double)a.memory.kv_bytes_per_token * 2048, 137.25 * mib, 1e-6, 0);
    a = ask("Gemma-3-27B", "h100_sxm_80", "ik_llama.cpp-cuda", "q4_k_m", 0, 32768, 0, -1);
    assert_close((double)a.memory.kv_bytes, 15872.0 * mib, 1e-6, 0);
}

/* Four copies of the inputs: chunks of a long prompt overlap over split layers, a single chunk has
** nothing to overlap with, and no more than the copies do; decode has one step at a time. */
static void long_prompts_fill_split_layers(void **state)
{
    (void)state;
    plm_answer one = ask("Llama-3-8B", "rtx_4090_24", "llama.cpp-cuda", "q4_k_m", 4096, 16, 0, 1);
    plm_answer four = ask("Llama-3-8B", "rtx_4090_24:4", "llama.cpp-cuda", "q4_k_m", 4096, 16, 0, 1);
    double gain = four.prefill.tok_s.value / one.prefill.tok_s.value;
    assert_true(gain > 2.0 && gain < 4.0);
    assert_true(four.decode.tok_s.value < one.decode.tok_s.value * 1.01);
    one = ask("Llama-3-8B", "rtx_4090_24", "llama.cpp-cuda", "q4_k_m", 512, 0, 0, 1);
    four = ask("Llama-3-8B", "rtx_4090_24:4", "llama.cpp-cuda", "q4_k_m", 512, 0, 0, 1);
    assert_true(four.prefill.tok_s.value < one.prefill.tok_s.value * 1.01);
    /* The fork that runs its stages in turn. */
    one = ask("Llama-3-8B", "rtx_4090_24", "ik_llama.cpp-cuda", "q4_k_m", 4096, 0, 0, 1);
    four = ask("Llama-3-8B", "rtx_4090_24:4", "ik_llama.cpp-cuda", "q4_k_m", 4096, 0, 0, 1);
    assert_true(four.prefill.tok_s.value < one.prefill.tok_s.value * 1.01);
}

/* Fused attention matters the more, the deeper the cache. */
static void unfused_attention_costs_more_with_depth(void **state)
{
    static const int64_t depth[] = {0, 8192, 32768};
    double before = 0;
    (void)state;
    for (size_t i = 0; i < sizeof depth / sizeof *depth; i++) {
        plm_answer off = ask("Llama-3-8B", "rtx_4090_24", "llama.cpp-cuda", "q4_k_m", 512, 1,
                             depth[i], 0);
        plm_answer on = ask("Llama-3-8B", "rtx_4090_24", "llama.cpp-cuda", "q4_k_m", 512, 1,
                            depth[i], 1);
        double ratio = on.prefill.tok_s.value / off.prefill.tok_s.value;
        assert_true(ratio > before && ratio > 1);
        before = ratio;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_buffers_are_those_of_the_logs),
        cmocka_unit_test(caches_are_those_of_the_logs),
        cmocka_unit_test(long_prompts_fill_split_layers),
        cmocka_unit_test(unfused_attention_costs_more_with_depth),
    };
    return cmocka_run_group_tests(tests, open_session, close_session);
}
