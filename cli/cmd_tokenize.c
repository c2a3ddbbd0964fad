/* cmd_tokenize.c - tokenize: the ids of a text. */
#include <string.h>

#include "cli/cli.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/model/tokenizer.h"

/* The text of --file or of the argument; *heap is freed by the caller. */
static plm_status read_text(const plm_args *a, const char **text, size_t *n, char **heap,
                            plm_error *err)
{
    const plm_option_value *file = &a->opt[PLM_OPT_FILE], *arg = &a->opt[PLM_OPT_TEXT];
    if (file->set == arg->set)
        return plm_fail(err, PLM_E_INVALID,
                        "%s, tokenize: want TEXT or --file; see plimsoll tokenize "
                        "--help",
                        file->set ? "two texts" : "no text");
    *text = arg->text;
    *n = arg->set ? strlen(arg->text) : 0;
    if (!file->set)
        return PLM_OK;
    PLM_TRY(plm_file_read(file->text, PLM_TEXT_MAX, heap, n, err));
    *text = *heap;
    return PLM_OK;
}

/* A piece as one would write it in C, so that every byte shows. */
static void print_piece(const char *bytes, size_t n, FILE *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n')
            fputs("\\n", out);
        else if (c == '\\' || c == '"')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
}

static void print_people(const plm_tokenizer *t, const plm_tokens *ids, FILE *out)
{
    fprintf(out, "%zu tokens\n", ids->count);
    for (size_t i = 0; i < ids->count; i++) {
        const char *piece;
        size_t n;
        plm_tokenizer_piece(t, ids->items[i], true, &piece, &n);
        fprintf(out, "%8d  \"", ids->items[i]);
        print_piece(piece, n, out);
        fputs("\"\n", out);
    }
}

static plm_status print_json(const plm_tokens *ids, FILE *out, plm_error *err)
{
    plm_json_out o = {false};
    json_t *j = plm_out_object(&o);
    json_t *list = plm_out_child(&o, j, "tokens", plm_out_array(&o));
    for (size_t i = 0; i < ids->count; i++)
        if (json_array_append_new(list, json_integer(ids->items[i])) != 0)
            o.oom = true;
    return plm_out_write(&o, j, out, err);
}

plm_status plm_cmd_tokenize(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                            plm_error *err)
{
    (void)io;
    plm_tokenizer *t = NULL;
    plm_tokens ids = {0};
    const char *text = NULL;
    char *heap = NULL;
    size_t n = 0;
    unsigned flags = (a->opt[PLM_OPT_NO_BOS].set ? 0u : PLM_ENCODE_ENDS) |
                     (a->opt[PLM_OPT_NO_SPECIAL].set ? 0u : PLM_ENCODE_SPECIAL);
    plm_status status;
    *exit_status = 0;
    if (!a->opt[PLM_OPT_MODEL].set)
        return plm_fail(err, PLM_E_INVALID,
                        "option missing, --model: tokenize needs a file with a "
                        "vocabulary; see plimsoll tokenize --help");
    PLM_GOTO(read_text(a, &text, &n, &heap, err));
    PLM_GOTO(plm_tokenizer_open(a->opt[PLM_OPT_MODEL].text, &t, err));
    PLM_GOTO(plm_tokenizer_encode(t, text, n, flags, &ids, err));
    if (a->opt[PLM_OPT_JSON].set)
        PLM_GOTO(print_json(&ids, out, err));
    else
        print_people(t, &ids, out);
done:
    plm_tokens_fini(&ids);
    plm_tokenizer_destroy(t);
    plm_free(heap);
    return status;
}
