/* export.c - plan --export: start commands and manifests of vLLM, SGLang, TensorRT-LLM, Dynamo and
** llm-d. Only flags that the plan decides are written; everything else stays the stack's default.
** Flags: docs.vllm.ai serve arguments, docs.sglang.ai server arguments, TensorRT-LLM trtllm-serve
** and its LLM API YAML, Dynamo deployment guide, llm-d model service chart (read 2026-11). */
#include "cli/export.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

typedef struct target {
    const char *name;
    void (*write)(const plm_plan_query *q, const plm_plan_row *r, const plm_parallel *p,
                  const char *role, FILE *out);
    const char *suffix;
} target;

/* A name as a single-quoted shell word. */
static void quote(const char *s, FILE *out)
{
    fputc('\'', out);
    for (; *s != '\0'; s++)
        if (*s == '\'')
            fputs("'\\''", out);
        else
            fputc(*s, out);
    fputc('\'', out);
}

static int64_t context_of(const plm_plan_query *q)
{
    return q->isl + q->osl;
}

static void head(const plm_plan_query *q, const plm_plan_row *r, const char *role, FILE *out)
{
    fprintf(out, "# plimsoll plan: %s on %s, %s%s%s, %lld in, %lld out\n", r->quant, r->device,
            r->mode == 2 ? "disaggregated" : "aggregated", *role ? ", " : "", role,
            (long long)q->isl, (long long)q->osl);
    fprintf(out, "# predicted: TTFT %.0f ms, ITL %.1f ms, %.0f tok/s a device\n",
            r->ttft_s.value * 1e3, r->itl_s.value * 1e3, r->tok_s_per_device);
}

static void vllm_args(const plm_plan_query *q, const plm_plan_row *r, const plm_parallel *p,
                      const char *role, const char *sep, FILE *out)
{
    fprintf(out, "--tensor-parallel-size %d%s--pipeline-parallel-size %d%s", p->tp, sep, p->pp,
            sep);
    if (p->dp > 1)
        fprintf(out, "--data-parallel-size %d%s", p->dp, sep);
    if (p->ep > 1)
        fprintf(out, "--enable-expert-parallel%s", sep);
    if (strcmp(r->quant, "fp8") == 0)
        fprintf(out, "--quantization fp8%s", sep);
    if (q->kv_type != NULL && strncmp(q->kv_type, "fp8", 3) == 0)
        fprintf(out, "--kv-cache-dtype fp8%s", sep);
    if (strcmp(role, "prefill") == 0)
        fprintf(out, "--kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":"
                "\"kv_producer\"}'%s", sep);
    if (strcmp(role, "decode") == 0)
        fprintf(out, "--kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":"
                "\"kv_consumer\"}'%s", sep);
    fprintf(out, "--max-num-seqs %lld%s--max-model-len %lld", (long long)r->batch, sep,
            (long long)context_of(q));
}

static void write_vllm(const plm_plan_query *q, const plm_plan_row *r, const plm_parallel *p,
                       const char *role, FILE *out)
{
    fputs("#!/bin/sh\n", out);
    head(q, r, role, out);
    fputs("exec vllm serve \"${MODEL:-", out);
    for (const char *s = q->model; *s != '\0'; s++)
        if (strchr("\"\\$`}", *s) == NULL)
            fputc(*s, out);
    fputs("}\" \\\n  ", out);
    vllm_args(q, r, p, role, " \\\n  ", out);
    fputs(" \"$@\"\n", out);
}

static void write_sglang(const plm_plan_query *q, const plm_plan_row *r, const plm_parallel *p,
                         const char *role, FILE *out)
{
    fputs("#!/bin/sh\n", out);
    head(q, r, role, out);
    fputs("exec python3 -m sglang.launch_server --model-path ", out);
    quote(q->model, out);
    fprintf(out, " \\\n  --tp-size %d --pp-size %d", p->tp * (p->dp > 1 ? p->dp : 1), p->pp);
    if (p->dp > 1)
        fprintf(out, " --dp-size %d --enable-dp-attention", p->dp);
    if (p->ep > 1)
        fprintf(out, " --ep-size %d", p->ep);
    if (strcmp(r->quant, "fp8") == 0)
        fputs(" --quantization fp8", out);
    if (q->kv_type != NULL && strncmp(q->kv_type, "fp8", 3) == 0)
        fputs(" --kv-cache-dtype fp8_e4m3", out);
    if (*role != '\0')
        fprintf(out, " --disaggregation-mode %s", role);
    fprintf(out, " \\\n  --max-running-requests %lld --context-length %lld \"$@\"\n",
            (long long)r->batch, (long long)context_of(q));
}

static void write_trtllm(const plm_plan_query *q, const plm_plan_row *r, const plm_parallel *p,
                         const char *role, FILE *out)
{
    head(q, r, role, out);
    fprintf(out, "# trtllm-serve %s --extra_llm_api_options FILE\n", q->model);
    fprintf(out, "tensor_parallel_size: %d\npipeline_parallel_size: %d\n",
            p->tp * (p->dp > 1 ? p->dp : 1), p->pp);
    if (p->ep > 1)
        fprintf(out, "moe_expert_parallel_size: %d\n", p->ep);
    fprintf(out, "enable_attention_dp: %s\n", p->dp > 1 ? "true" : "false");
    fprintf(out, "max_batch_size: %lld\nmax_seq_len: %lld\n", (long long)r->batch,
            (long long)context_of(q));
    fprintf(out, "kv_cache_config:\n  dtype: %s\n",
            q->kv_type != NULL && strncmp(q->kv_type, "fp8", 3) == 0 ? "fp8" : "auto");
    if (*role != '\0')
        fputs("cache_transceiver_config:\n  backend: DEFAULT\n", out);
}

/* Kubernetes names: lower case, digits and dashes. */
static void kube_name(const char *s, FILE *out)
{
    for (size_t n = 0; *s != '\0' && n < 40; s++, n++) {
        char c = *s >= 'A' && *s <= 'Z' ? (char)(*s + 32) : *s;
        fputc((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-', out);
    }
}

static void write_dynamo(const plm_plan_query *q, const plm_plan_row *r, const plm_parallel *p,
                         const char *role, FILE *out)
{
    int64_t workers = strcmp(role, "prefill") == 0  ? r->prefill_workers * r->replicas
                      : strcmp(role, "decode") == 0 ? r->decode_workers * r->replicas
                                                    : r->replicas;
    head(q, r, role, out);
    fputs("apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata:\n  name: plm-",
          out);
    kube_name(r->quant, out);
    fprintf(out, "%s%s\nspec:\n  services:\n    Frontend:\n      componentType: frontend\n"
            "      replicas: 1\n    Worker%s%s:\n      componentType: worker\n", *role ? "-" : "",
            role, *role ? "-" : "", role);
    if (*role != '\0')
        fprintf(out, "      subComponentType: %s\n", role);
    fprintf(out, "      replicas: %lld\n      resources:\n        limits:\n          gpu: \"%lld\"\n"
            "      extraPodSpec:\n        mainContainer:\n          args:\n"
            "            - python3 -m dynamo.vllm --model %s%s ", (long long)workers,
            (long long)plm_parallel_devices(p), q->model,
            strcmp(role, "prefill") == 0 ? " --is-prefill-worker" : "");
    vllm_args(q, r, p, "", " ", out);
    fputc('\n', out);
}

static void write_llmd(const plm_plan_query *q, const plm_plan_row *r, const plm_parallel *p,
                       const char *role, FILE *out)
{
    bool prefill = strcmp(role, "prefill") == 0;
    int64_t workers = prefill                       ? r->prefill_workers * r->replicas
                      : strcmp(role, "decode") == 0 ? r->decode_workers * r->replicas
                                                    : r->replicas;
    head(q, r, role, out);
    fprintf(out, "modelArtifacts:\n  name: \"%s\"\n  uri: \"hf://%s\"\n", q->model, q->model);
    fprintf(out, "%s:\n  create: true\n  replicas: %lld\n  parallelism:\n    tensor: %d\n"
            "    data: %d\n  containers:\n    - name: vllm\n      args:\n",
            prefill ? "prefill" : "decode", (long long)workers, p->tp, p->dp);
    fputs("        - \"", out);
    vllm_args(q, r, p, "", "\"\n        - \"", out);
    fputs("\"\n", out);
}

static const target targets[] = {{"vllm", write_vllm, "sh"},
                                 {"sglang", write_sglang, "sh"},
                                 {"trtllm", write_trtllm, "yaml"},
                                 {"dynamo", write_dynamo, "yaml"},
                                 {"llm-d", write_llmd, "yaml"}};

static const target *find_target(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

plm_status plm_export_check(const plm_args *a, plm_error *err)
{
    const char *name = plm_args_text(a, PLM_OPT_EXPORT, NULL);
    if ((name != NULL) != a->opt[PLM_OPT_OUT].set)
        return plm_fail(err, PLM_E_INVALID, "option missing, --export and --out: they go together; "
                        "give both");
    if (name != NULL && find_target(name) == NULL)
        return plm_fail(err, PLM_E_INVALID, "unknown target, --export: \"%.40s\"; give vllm, sglang, "
                        "trtllm, dynamo or llm-d", name);
    return PLM_OK;
}

static plm_status write_file(const plm_args *a, const plm_plan_query *q, const plm_plan_row *r,
                             const plm_parallel *p, const char *role, FILE *log, plm_error *err)
{
    const target *t = find_target(a->opt[PLM_OPT_EXPORT].text);
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s%s%s.%s", a->opt[PLM_OPT_OUT].text, t->name,
                 *role ? "-" : "", role, t->suffix) >= (int)sizeof path)
        return plm_fail(err, PLM_E_INVALID, "path too long, --out: shorten it");
    FILE *f = fopen(path, "we");
    if (f == NULL)
        return plm_fail(err, PLM_E_IO, "cannot write, %.300s: %s; check --out", path,
                        strerror(errno));
    t->write(q, r, p, role, f);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad)
        return plm_fail(err, PLM_E_IO, "cannot write, %.300s: %s; free space", path,
                        strerror(errno));
    if (log != NULL)
        fprintf(log, "wrote %s\n", path);
    return PLM_OK;
}

plm_status plm_export_write(const plm_args *a, const plm_plan_query *q, const plm_plan_row *r,
                            FILE *log, plm_error *err)
{
    /* The model's name goes into YAML and shell comments: one line, no quotes. */
    if (strpbrk(q->model, "\"\n\r\\") != NULL)
        return plm_fail(err, PLM_E_INVALID, "unusable name, --model: quotes, backslashes and line "
                        "ends cannot be exported; rename it");
    if (mkdir(a->opt[PLM_OPT_OUT].text, 0777) != 0 && errno != EEXIST)
        return plm_fail(err, PLM_E_IO, "cannot make folder, --out %.300s: %s; check the path",
                        a->opt[PLM_OPT_OUT].text, strerror(errno));
    if (r->mode != 2)
        return write_file(a, q, r, &r->par, "", log, err);
    PLM_TRY(write_file(a, q, r, &r->prefill_par, "prefill", log, err));
    return write_file(a, q, r, &r->par, "decode", log, err);
}
