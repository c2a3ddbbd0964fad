/* Torture: every allocation of a command fails, one at a time, then all from there on. Each run must
** end in exit 3 with one line, or answer as if nothing had happened (an allocation that a library
** can do without), and must leave no block behind. A job whose memory fails may also be answered with
** an error. Strides keep the run short; PLM_TORTURE=1 in the environment makes every one of them 1. */
#define _GNU_SOURCE /* mkdtemp, nftw */
#include "tests/cli_run.h"

#include "tests/gguf_writer.h"

static bool jobs_answered(const char *out)
{
    for (const char *p = out, *end; *p != '\0'; p = end + 1) {
        end = strchr(p, '\n');
        if (end == NULL || strncmp(p, "{\"id\":", 6) != 0 || end[-1] != '}')
            return false;
    }
    return true;
}

/* stride: every stride-th allocation, for commands with very many. "@" in words stands for at. */
static void torture(const char *words, const char *at, uint64_t stride, bool all_after)
{
    bool jobs = strstr(words, "--jobs") != NULL;
    if (getenv("PLM_TORTURE") != NULL)
        stride = 1;
    plm_mem_fail_at(0, false);
    cli_result good = cli_run(words, at);
    if (good.status != 0 && good.status != 1)
        fail_msg("%s: exit %d: %s", words, good.status, good.err);
    uint64_t total = plm_mem_count();
    int64_t live = plm_mem_live();
    assert_true(total > 10);
    unsigned failures = 0;
    for (uint64_t n = 1; n <= total; n += stride) {
        plm_mem_fail_at(n, all_after);
        cli_result r = cli_run(words, at);
        plm_mem_fail_at(0, false);
        bool told = jobs && r.status == 1 && strstr(r.out, "\"error\":\"out of memory") != NULL;
        failures += r.status == 3 || told;
        if (r.status == 3 && (!cli_one_line(&r) || (!jobs && r.out_bytes != 0)))
            fail_msg("%s: allocation %llu: not a clean error: %s", words, (unsigned long long)n,
                     r.err);
        if (r.status != 3 && r.status != good.status && !told)
            fail_msg("%s: allocation %llu of %llu: exit %d: %s%s", words, (unsigned long long)n,
                     (unsigned long long)total, r.status, r.out, r.err);
        if (jobs && !jobs_answered(r.out))
            fail_msg("%s: allocation %llu: not lines of JSON: %s", words, (unsigned long long)n,
                     r.out);
        if (plm_mem_live() != live)
            fail_msg("%s: allocation %llu: %lld blocks leaked", words, (unsigned long long)n,
                     (long long)(plm_mem_live() - live));
        cli_drop(&r);
    }
    assert_true(failures * 2 > total / stride);
    cli_drop(&good);
}

static void predict_survives(void **state)
{
    (void)state;
    torture("predict --model llama-3.1-8b --device h100_sxm_80 --json", NULL, 5, false);
    torture("predict --model qwen3-next-80b-a3b --device h200_sxm_141:2 --tp 2 --concurrency 4 "
            "--json", NULL, 29, true);
    torture("predict --model llama-3.1-8b --device rtx_4090_24", NULL, 11, true);
}

static void other_commands_survive(void **state)
{
    (void)state;
    torture("explain --model gemma-3-4b --device l40s_48 --json", NULL, 19, false);
    torture("explain --model gemma-3-270m --device l40s_48 --phase prefill --trace @",
            cli_path("trace.json"), 13, false);
    torture("occupancy --device h100_sxm_80 --threads 256 --regs 64 --json", NULL, 3, false);
    torture("fit --model llama-3.2-1b --device rtx_4090_24", NULL, 11, false);
    torture("fit --model llama-3.2-1b --device h100_sxm_80 --train lora --csv", NULL, 7, true);
    torture("devices --device mi300x_192 --json", NULL, 5, true);
    torture("models --model gpt-oss-20b --json", NULL, 3, false);
    torture("models --model deepseek-v3.2", NULL, 7, false);
    torture("plan --model llama-3.2-1b --device l40s_48 --isl 512 --osl 64 --gpus 1 --threads 1 "
            "--json", NULL, 67, true);
    torture("plan --model llama-3.2-1b --device l40s_48 --isl 512 --osl 64 --gpus 2 --threads 1 "
            "--export vllm --out @", cli_path("plan"), 151, false);
}

static void jobs_survive(void **state)
{
    (void)state;
    cli_text("jobs", "{\"id\":1,\"model\":\"llama-3.2-1b\",\"device\":\"t4_16\",\"gen\":4}\n"
                     "{\"id\":2,\"model\":\"none\"}\nnot json\n"
                     "{\"id\":[3],\"model\":\"gemma-3-270m\",\"device\":\"t4_16\",\"batch\":\"2\"}");
    torture("predict --jobs @", cli_path("jobs"), 13, false);
    torture("predict --jobs @", cli_path("jobs"), 31, true);
    torture("fit --jobs @", cli_path("jobs"), 17, false);
}

static void overlays_survive(void **state)
{
    (void)state;
    static const char *const folders[] = {"catalog", "catalog/devices", "catalog/models",
                                          "catalog/engines"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(cli_path(folders[i]), 0700), 0);
    cli_text("catalog/prices.csv",
             "device_id,venue,term,usd_per_hour,usd_purchase,date,source,listed_as\n"
             "own,\"hand, made\",on_demand,1.25,,2026-01,test,\n");
    cli_text("catalog/engines/own.json", "{\"id\":\"own\",\"base\":\"ideal\",\"step_s\":1e-4}");
    cli_text("catalog/devices/own.json",
             "{\"id\":\"own\",\"name\":\"Own\",\"vendor\":\"nvidia\",\"class\":\"gpu\",\"sources\":"
             "{\"s\":{\"text\":\"test\",\"date\":\"2026-01-01\"}},\"memory\":{\"type\":\"GDDR6\","
             "\"capacity\":{\"value\":16,\"unit\":\"GB\",\"basis\":\"measured\",\"source\":\"s\"},"
             "\"bandwidth\":{\"value\":400,\"unit\":\"GB/s\",\"basis\":\"measured\",\"source\":"
             "\"s\"}},\"peak\":{\"fp16\":{\"value\":60,\"unit\":\"TFLOP/s\",\"basis\":\"measured\","
             "\"source\":\"s\"}}}");
    cli_text("catalog/models/own.json",
             "{\"id\":\"own\",\"family\":\"own\",\"layer_count\":2,\"hidden\":64,\"vocab\":256,"
             "\"max_context\":512,\"tied_head\":true,\"norm\":\"rms\",\"norm_eps\":1e-6,\"kinds\":"
             "{\"full\":{\"attn\":\"full\",\"heads\":4,\"kv_heads\":2,\"dk\":16,\"dv\":16,"
             "\"ffn\":128,\"glu\":true,\"act\":\"silu\",\"norms\":2}},\"layers\":[\"full*2\"]}");
    torture("predict --model own --device own --engine own --json --catalog @",
            cli_path("catalog"), 7, false);
    torture("devices --device own --csv --catalog @", cli_path("catalog"), 7, true);
}

static void model_files_survive(void **state)
{
    (void)state;
    cli_text("config.json",
             "{\"architectures\":[\"Qwen3MoeForCausalLM\"],\"model_type\":\"qwen3_moe\","
             "\"hidden_size\":64,\"intermediate_size\":128,\"num_hidden_layers\":2,"
             "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,"
             "\"vocab_size\":256,\"max_position_embeddings\":512,\"rms_norm_eps\":1e-6,"
             "\"rope_theta\":10000,\"hidden_act\":\"silu\",\"tie_word_embeddings\":true,"
             "\"num_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,"
             "\"norm_topk_prob\":true,\"decoder_sparse_step\":1,\"mlp_only_layers\":[0]}");
    torture("predict --device t4_16 --json --model @", cli_path("config.json"), 5, false);
    torture("models --model @", cli_path("config.json"), 3, true);
    static plm_arch a;
    plm_catalog *c;
    plm_error err;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    assert_ok(plm_model_load(c, "llama-3.2-1b", &a, &err), err);
    gguf_writer *w = write_model(&a, "llama", false);
    cli_write("model.gguf", w->file, w->bytes);
    assert_int_equal(truncate(cli_path("model.gguf"), (off_t)announced_bytes(w)), 0); /* sparse */
    free_gguf(w);
    plm_arch_fini(&a);
    plm_catalog_destroy(c);
    torture("predict --device t4_16 --json --model @", cli_path("model.gguf"), 13, false);
    torture("models --model @", cli_path("model.gguf"), 3, true);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict_survives),
        cmocka_unit_test(other_commands_survive),
        cmocka_unit_test(jobs_survive),
        cmocka_unit_test(overlays_survive),
        cmocka_unit_test(model_files_survive),
    };
    return cmocka_run_group_tests(tests, cli_folder_create, cli_folder_remove);
}
