/* cmd_run.c - run: text from a model file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"
#include "core/host/generate.h"
#include "core/host/loaded.h"
#include "core/model/tokenizer.h"

/* A run under way: what its callbacks need. */
typedef struct run_state {
    FILE *out;         /* text as it comes; NULL with --json */
    plm_tokenizer *tok; /* NULL: ids are printed */
    plm_tokens ids;    /* generated */
    FILE *npy;
    bool oom;
} run_state;

/* ---- prompt ---- */

/* Appends "1,2,3". */
static plm_status parse_ids(const char *text, plm_tokens *out, plm_error *err)
{
    for (const char *p = text; *p != '\0';) {
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || errno != 0 || v < 0 || v > INT32_MAX || (*end != '\0' && *end != ','))
            return plm_fail(err, PLM_E_INVALID, "bad number, --tokens: \"%.60s\" is no list of ids; give "
                            "\"1,2,3\"", p);
        if (!plm_vec_push(out, (int32_t)v, PLM_TOKENS_MAX))
            return plm_fail_memory(err, "ids of the prompt");
        p = *end == ',' ? end + 1 : end;
    }
    return PLM_OK;
}

/* Ids of --tokens, or of the text of --prompt or --prompt-file. */
static plm_status read_prompt(const plm_args *a, run_state *s, plm_tokens *ids, plm_error *err)
{
    const plm_option_value *text = &a->opt[PLM_OPT_PROMPT_TEXT], *file = &a->opt[PLM_OPT_PROMPT_FILE];
    const plm_option_value *list = &a->opt[PLM_OPT_TOKENS];
    char *heap = NULL;
    size_t n = text->set ? strlen(text->text) : 0;
    if (text->set + file->set + list->set != 1)
        return plm_fail(err, PLM_E_INVALID, "%s, run: want one of --prompt, --prompt-file, --tokens; see "
                        "plimsoll run --help",
                        text->set + file->set + list->set == 0 ? "no prompt" : "two prompts");
    plm_status status = plm_tokenizer_open(a->opt[PLM_OPT_MODEL].text, &s->tok, err);
    if (list->set && status != PLM_E_NO_MEMORY)
        return parse_ids(list->text, ids, err); /* without a vocabulary ids are printed */
    if (status != PLM_OK)
        return status;
    if (file->set)
        PLM_TRY(plm_file_read(file->text, PLM_TEXT_MAX, &heap, &n, err));
    status = plm_tokenizer_encode(s->tok, file->set ? heap : text->text, n,
                                  PLM_ENCODE_ENDS | PLM_ENCODE_SPECIAL, ids, err);
    plm_free(heap);
    return status;
}

/* ---- answers ---- */

static bool on_token(void *ctx, int32_t id)
{
    run_state *s = ctx;
    const char *bytes;
    size_t n;
    if (!plm_vec_push(&s->ids, id, PLM_TOKENS_MAX)) {
        s->oom = true;
        return false;
    }
    if (s->out != NULL && s->tok == NULL)
        fprintf(s->out, "%s%d", s->ids.count > 1 ? " " : "", id);
    else if (s->out != NULL && plm_tokenizer_piece(s->tok, id, false, &bytes, &n))
        fwrite(bytes, 1, n, s->out);
    if (s->out != NULL)
        fflush(s->out);
    return s->tok == NULL || !plm_tokenizer_is_end(s->tok, id);
}

static plm_status fail_logits(plm_error *err)
{
    return plm_fail(err, PLM_E_IO, "cannot write, --logits: %s; check the path and the space",
                    strerror(errno));
}

static plm_status on_logits(void *ctx, const float *x, int64_t rows, int64_t vocab, plm_error *err)
{
    run_state *s = ctx;
    size_t n = (size_t)(rows * vocab);
    return fwrite(x, sizeof *x, n, s->npy) == n ? PLM_OK : fail_logits(err);
}

/* Header of NumPy's format 1.0: magic, length, a Python dict, padded to 64 bytes.
** Source: numpy/lib/format.py. */
static plm_status open_npy(const char *path, int64_t rows, int64_t cols, FILE **out, plm_error *err)
{
    char head[128];
    *out = fopen(path, "wb");
    if (*out == NULL)
        return fail_logits(err);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)(sizeof head - 10);
    head[9] = 0;
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                     (long long)rows, (long long)cols);
    head[10 + n] = ' ';
    head[sizeof head - 1] = '\n';
    return fwrite(head, 1, sizeof head, *out) == sizeof head ? PLM_OK : fail_logits(err);
}

/* Generated text as UTF-8: bytes that are none become U+FFFD, since JSON holds no others. */
static plm_status text_of(const run_state *s, char **text, plm_error *err)
{
    char *raw;
    size_t n, at = 0;
    PLM_TRY(plm_tokenizer_decode(s->tok, s->ids.items, s->ids.count, false, &raw, &n, err));
    char *good = plm_malloc(3 * n + 1);
    if (good == NULL) {
        plm_free(raw);
        return plm_fail_memory(err, "the text");
    }
    for (size_t i = 0; i < n;) {
        size_t k = raw[i] == '\0' ? 0 : plm_utf8_char(raw + i, n - i);
        memcpy(good + at, k > 0 ? raw + i : "\xef\xbf\xbd", k > 0 ? k : 3);
        at += k > 0 ? k : 3;
        i += k > 0 ? k : 1;
    }
    good[at] = '\0';
    plm_free(raw);
    *text = good;
    return PLM_OK;
}

static double rate(double tokens, double seconds)
{
    return seconds > 0 ? tokens / seconds : NAN; /* null: nothing was timed */
}

static plm_status print_json(const run_state *s, const plm_loaded *m, const plm_generated *g, FILE *out,
                             plm_error *err)
{
    plm_json_out o = {false};
    char *text = NULL;
    if (s->tok != NULL)
        PLM_TRY(text_of(s, &text, err));
    json_t *j = plm_out_object(&o);
    plm_out_text(&o, j, "text", text);
    json_t *list = plm_out_child(&o, j, "tokens", plm_out_array(&o));
    for (size_t i = 0; i < s->ids.count; i++)
        if (json_array_append_new(list, json_integer(s->ids.items[i])) != 0)
            o.oom = true;
    plm_out_int(&o, j, "prompt_tokens", g->prompt_tokens);
    plm_out_int(&o, j, "generated_tokens", g->tokens);
    plm_out_real(&o, j, "prefill_tok_s", rate((double)g->prompt_tokens, g->prefill_s));
    plm_out_real(&o, j, "decode_tok_s", rate((double)g->steps, g->decode_s));
    plm_out_text(&o, j, "backend", m->dev.be->name);
    const plm_runner_memory *mem = plm_runner_memory_of(m->runner);
    json_t *bytes = plm_out_child(&o, j, "memory", plm_out_object(&o));
    plm_out_int(&o, bytes, "weights_bytes", mem->weights_bytes);
    plm_out_int(&o, bytes, "kv_bytes", mem->kv_bytes);
    plm_out_int(&o, bytes, "state_bytes", mem->state_bytes);
    plm_out_int(&o, bytes, "activation_bytes", mem->activation_bytes);
    plm_free(text);
    return plm_out_write(&o, j, out, err);
}

/* ---- the command ---- */

static plm_status read_options(const plm_args *a, int64_t prompt, int64_t most, plm_loaded_options *o,
                               plm_error *err)
{
    plm_loaded_options_init(o);
    o->backend = plm_args_text(a, PLM_OPT_BACKEND, NULL);
    o->threads = (uint32_t)plm_min_i64(plm_args_count(a, PLM_OPT_THREADS, 0), 4096);
    o->all_logits = a->opt[PLM_OPT_LOGITS].set;
    o->step_tokens = o->all_logits ? 64 : 0; /* a step's logits are kept for all its tokens */
    if (!plm_add_i64(prompt, most, &o->context_tokens))
        return plm_fail(err, PLM_E_LIMIT, "--gen, %lld: too many tokens; ask for fewer",
                        (long long)most);
    if (a->opt[PLM_OPT_KV_TYPE].set) {
        o->kv = plm_dtype_by_name(a->opt[PLM_OPT_KV_TYPE].text);
        if (o->kv == PLM_DT_COUNT)
            return plm_fail(err, PLM_E_INVALID, "unknown type, --kv-type: \"%.60s\"; give f32, f16 or "
                            "bf16", a->opt[PLM_OPT_KV_TYPE].text);
    }
    return PLM_OK;
}

static plm_status run_model(const plm_args *a, const plm_tokens *prompt, run_state *s, FILE *out,
                            plm_error *err)
{
    plm_loaded_options lo;
    plm_loaded m;
    plm_generated done;
    plm_status status;
    int64_t most = plm_args_count(a, PLM_OPT_GEN, 128), count = (int64_t)prompt->count;
    plm_generate_options go = {
        .prompt = prompt->items,
        .n_prompt = count,
        .most = most,
        .sampling = {.temperature = plm_args_real(a, PLM_OPT_TEMP, 0),
                     .top_k = plm_args_count(a, PLM_OPT_TOP_K, 0),
                     .top_p = plm_args_real(a, PLM_OPT_TOP_P, 1),
                     .seed = (uint64_t)plm_args_count(a, PLM_OPT_SEED, 0)},
        .ctx = s,
        .token = on_token};
    PLM_TRY(read_options(a, count, most, &lo, err));
    PLM_GOTO(plm_loaded_open(a->opt[PLM_OPT_MODEL].text, &lo, &m, err));
    if (a->opt[PLM_OPT_LOGITS].set) {
        PLM_GOTO(open_npy(a->opt[PLM_OPT_LOGITS].text, count, m.arch.vocab, &s->npy, err));
        go.logits = on_logits;
    }
    PLM_GOTO(plm_generate(m.runner, &go, &done, err));
    if (s->oom)
        status = plm_fail_memory(err, "the text");
    else if (s->npy != NULL && fflush(s->npy) != 0)
        status = fail_logits(err);
    else if (a->opt[PLM_OPT_JSON].set)
        status = print_json(s, &m, &done, out, err);
    else if (s->ids.count > 0)
        fputc('\n', out);
done:
    plm_loaded_fini(&m);
    return status;
}

plm_status plm_cmd_run(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                       plm_error *err)
{
    (void)io;
    plm_tokens prompt = {0};
    run_state s = {.out = a->opt[PLM_OPT_JSON].set ? NULL : out};
    plm_status status;
    *exit_status = 0;
    if (!a->opt[PLM_OPT_MODEL].set)
        return plm_fail(err, PLM_E_INVALID, "option missing, --model: run needs a file with weights; see "
                        "plimsoll run --help");
    PLM_GOTO(read_prompt(a, &s, &prompt, err));
    if (prompt.count == 0) {
        status = plm_fail(err, PLM_E_INVALID, "empty prompt, run: it has no token; give a text");
        goto done;
    }
    status = run_model(a, &prompt, &s, out, err);
done:
    if (s.npy != NULL && fclose(s.npy) != 0 && status == PLM_OK)
        status = fail_logits(err);
    plm_tokens_fini(&prompt);
    plm_tokens_fini(&s.ids);
    plm_tokenizer_destroy(s.tok);
    return status;
}
