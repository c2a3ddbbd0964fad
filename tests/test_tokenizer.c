/* Tokenizers: ids against those of huggingface/tokenizers on small tokenizers of every kind
** (tests/golden/make_tokens.py), GGUF vocabularies with ids derived by hand, hostile files,
** torture and threads. */
#include "tests/support.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/model/tokenizer.h"

#define TOKENS PLM_ROOT "/tests/golden/tokens/"
static const char *const families[] = {"gpt2",   "roberta",  "llama3", "qwen2",   "gptoss",
                                       "smollm", "deepseek", "llama2", "mistral", "gemma",
                                       "words",  "splits",   "unigram"};

/* ---- goldens ---- */

static char *slurp(const char *name, const char *ending, size_t *n)
{
    char path[512], *text;
    plm_error err = {PLM_OK, ""};
    snprintf(path, sizeof path, TOKENS "%s%s", name, ending);
    assert_ok(plm_file_read(path, 16u << 20, &text, n, &err), err);
    return text;
}

static size_t unhex(const char *line, unsigned char *out)
{
    size_t n = 0;
    for (unsigned v; line[2 * n] != '\n' && sscanf(line + 2 * n, "%2x", &v) == 1; n++)
        out[n] = (unsigned char)v;
    return n;
}

static const char *next_line(const char *p)
{
    return strchr(p, '\n') + 1;
}

/* Encodes every text; compares with the ids of the same line. */
static void compare_lines(const plm_tokenizer *t, const char *family, const char *texts,
                          const char *ids)
{
    plm_error err = {PLM_OK, ""};
    unsigned char text[4096];
    int line = 1;
    for (; *texts != '\0'; texts = next_line(texts), ids = next_line(ids), line++) {
        size_t n = unhex(texts, text);
        plm_tokens got = {0};
        const char *p = ids;
        assert_ok(plm_tokenizer_encode(t, (const char *)text, n,
                                       PLM_ENCODE_SPECIAL | PLM_ENCODE_ENDS, &got, &err),
                  err);
        for (size_t i = 0; i < got.count; i++) {
            char *end;
            long want = strtol(p, &end, 10);
            if (end == p || want != got.items[i])
                fail_msg("%s, text %d, token %zu: %d, want %ld", family, line, i, got.items[i],
                         want);
            p = end;
        }
        if (*p != '\n')
            fail_msg("%s, text %d: ends after %zu tokens", family, line, got.count);
        plm_tokens_fini(&got);
    }
    assert_true(line > 100);
}

static plm_tokenizer *open_family(const char *family)
{
    char path[512];
    plm_error err = {PLM_OK, ""};
    plm_tokenizer *t;
    snprintf(path, sizeof path, TOKENS "%s.json", family);
    assert_ok(plm_tokenizer_open(path, &t, &err), err);
    return t;
}

static void goldens(void **state)
{
    (void)state;
    size_t n;
    char *texts = slurp("texts", ".hex", &n);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char *ids = slurp(families[i], ".ids", &n);
        plm_tokenizer *t = open_family(families[i]);
        compare_lines(t, families[i], texts, ids);
        plm_tokenizer_destroy(t);
        plm_free(ids);
    }
    plm_free(texts);
}

/* Byte-level tokenizers that change nothing give back what they were given, whole or piece by
** piece. */
static void round_trip(void **state)
{
    (void)state;
    static const char *const exact[] = {"gpt2", "llama3", "gptoss", "smollm", "deepseek"};
    plm_error err = {PLM_OK, ""};
    size_t n;
    char *texts = slurp("texts", ".hex", &n);
    for (size_t f = 0; f < sizeof exact / sizeof *exact; f++) {
        plm_tokenizer *t = open_family(exact[f]);
        unsigned char text[4096];
        for (const char *line = texts; *line != '\0'; line = next_line(line)) {
            size_t bytes = unhex(line, text), m, sum = 0;
            plm_tokens ids = {0};
            char *back;
            assert_ok(
                plm_tokenizer_encode(t, (const char *)text, bytes, PLM_ENCODE_SPECIAL, &ids, &err),
                err);
            assert_ok(plm_tokenizer_decode(t, ids.items, ids.count, true, &back, &m, &err), err);
            assert_int_equal(m, bytes);
            assert_memory_equal(back, text, bytes);
            for (size_t i = 0; i < ids.count; i++) {
                const char *piece;
                size_t k;
                assert_true(plm_tokenizer_piece(t, ids.items[i], true, &piece, &k));
                assert_memory_equal(piece, text + sum, k);
                sum += k;
            }
            assert_int_equal(sum, bytes);
            plm_free(back);
            plm_tokens_fini(&ids);
        }
        plm_tokenizer_destroy(t);
    }
    plm_free(texts);
}

/* ---- GGUF vocabularies, written here ---- */

typedef struct file {
    unsigned char data[16384];
    size_t n;
    uint64_t pairs;
} file;

static void put(file *f, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        f->data[f->n++] = (unsigned char)(v >> (8 * i));
}

static void put_text(file *f, const char *s)
{
    put(f, strlen(s), 8);
    memcpy(f->data + f->n, s, strlen(s));
    f->n += strlen(s);
}

static void begin(file *f)
{
    memset(f, 0, sizeof *f);
    memcpy(f->data, "GGUF\3\0\0\0", 8);
    f->n = 24;
}

static void key(file *f, const char *name, uint32_t type)
{
    put_text(f, name);
    put(f, type, 4);
    f->data[16] = (unsigned char)++f->pairs;
}

static void text_pair(file *f, const char *name, const char *value)
{
    key(f, name, 8);
    put_text(f, value);
}

static void int_pair(file *f, const char *name, uint32_t v)
{
    key(f, name, 4);
    put(f, v, 4);
}

static void bool_pair(file *f, const char *name, bool v)
{
    key(f, name, 7);
    put(f, v, 1);
}

static void text_list(file *f, const char *name, const char *const *v, size_t n)
{
    key(f, name, 9);
    put(f, 8, 4);
    put(f, n, 8);
    for (size_t i = 0; i < n; i++)
        put_text(f, v[i]);
}

static void int_list(file *f, const char *name, const int *v, size_t n)
{
    key(f, name, 9);
    put(f, 5, 4);
    put(f, n, 8);
    for (size_t i = 0; i < n; i++)
        put(f, (uint32_t)v[i], 4);
}

static void real_list(file *f, const char *name, const float *v, size_t n)
{
    key(f, name, 9);
    put(f, 6, 4);
    put(f, n, 8);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], 4);
        put(f, bits, 4);
    }
}

static plm_status load(const file *f, plm_tokenizer **t, plm_error *err)
{
    plm_gguf *g;
    *t = NULL;
    PLM_TRY(plm_gguf_open(f->data, f->n, f->n, "test", &g, err));
    plm_status status = plm_tokenizer_from_gguf(g, "test", t, err);
    plm_gguf_close(g);
    return status;
}

static void assert_ids(const plm_tokenizer *t, const char *text, size_t n, unsigned flags,
                       const int *want, size_t count)
{
    plm_error err = {PLM_OK, ""};
    plm_tokens got = {0};
    assert_ok(plm_tokenizer_encode(t, text, n, flags, &got, &err), err);
    assert_int_equal(got.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(got.items[i], want[i]);
    plm_tokens_fini(&got);
}
#define IDS(t, text, flags, ...)                                                                   \
    assert_ids(t, text, sizeof(text) - 1, flags, (const int[]){__VA_ARGS__},                       \
               sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

#define SPACE "\xe2\x96\x81"
static const char *const spm_tokens[] = {"<unk>",  "<s>",     "</s>",     "<0x0A>", "<0xC3>",
                                         "<0xA9>", "<0xFF>",  SPACE,      "a",      "b",
                                         "ab",     SPACE "a", SPACE "ab", "aba",    "<sep>"};
static const int spm_types[] = {2, 3, 3, 6, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 4};
static const float spm_scores[] = {0, 0, 0, 0, 0, 0, 0, -9, -8, -7, -3, -2, -1, -4, 0};
#define SPM_COUNT (sizeof spm_tokens / sizeof *spm_tokens)

static void write_spm(file *f, size_t tokens, size_t types, size_t scores)
{
    begin(f);
    text_pair(f, "tokenizer.ggml.model", "llama");
    text_list(f, "tokenizer.ggml.tokens", spm_tokens, tokens);
    int_list(f, "tokenizer.ggml.token_type", spm_types, types);
    real_list(f, "tokenizer.ggml.scores", spm_scores, scores);
}

/* The pair that scores highest joins first: of "_ab a" first "_a" (-2) before "ab" (-3). */
static void scores(void **state)
{
    (void)state;
    static file f;
    plm_error err = {PLM_OK, ""};
    plm_tokenizer *t;
    write_spm(&f, SPM_COUNT, SPM_COUNT, SPM_COUNT);
    text_pair(&f, "tokenizer.chat_template", "{{ x }}");
    assert_ok(load(&f, &t, &err), err);
    assert_int_equal(plm_tokenizer_size(t), SPM_COUNT);
    assert_int_equal(plm_tokenizer_bos(t), 1);
    assert_int_equal(plm_tokenizer_eos(t), 2);
    assert_string_equal(plm_tokenizer_chat_template(t), "{{ x }}");
    IDS(t, "ab", PLM_ENCODE_ENDS, 1, 12);
    IDS(t, "aba", 0, 12, 8); /* _a, then _a+b = _ab (-1) before b+a: none; aba cannot come */
    IDS(t, "ab a", 0, 12, 11);
    IDS(t, "\n", 0, 7, 3);          /* a byte of its own */
    IDS(t, "\xc3\xa9", 0, 7, 4, 5); /* two bytes of a letter */
    IDS(t,
        "\xff"
        "a",
        0, 7, 6, 8);           /* no UTF-8: kept */
    IDS(t, "a\xf1", 0, 11, 0); /* a byte the vocabulary lacks */
    IDS(t, "a<sep>b</s>", PLM_ENCODE_SPECIAL, 11, 14, 7, 9, 2);
    IDS(t, "<sep>", 0, 14); /* added by a user: found without asking */
    const char *piece;
    size_t n;
    assert_true(plm_tokenizer_piece(t, 4, false, &piece, &n) && n == 1 && piece[0] == '\xc3');
    assert_true(plm_tokenizer_piece(t, 2, false, &piece, &n) && n == 0);
    assert_false(plm_tokenizer_piece(t, (int32_t)SPM_COUNT, false, &piece, &n));
    assert_true(plm_tokenizer_is_end(t, 2) && !plm_tokenizer_is_end(t, 8));
    char *back;
    assert_ok(plm_tokenizer_decode(t, (const int32_t[]){1, 12, 11}, 3, false, &back, &n, &err),
              err);
    assert_string_equal(back, "ab a");
    plm_free(back);
    assert_int_equal(plm_tokenizer_decode(t, (const int32_t[]){99}, 1, false, &back, &n, &err),
                     PLM_E_INVALID);
    assert_int_equal(
        plm_tokenizer_encode(t, "", (size_t)PLM_TEXT_MAX + 1, 0, &(plm_tokens){0}, &err),
        PLM_E_LIMIT);
    plm_tokenizer_destroy(t);
}

/* "\u0120" is the letter of a space. Merges by rank: "l o" (0), "h e" (1), "he l" (2). */
static void write_bpe(file *f, const char *pre, const char *const *merges, size_t n)
{
    static const char *const tokens[] = {
        "h",  "e",   "l",          "o",  "\xc4\xa0",  "1",        "2",        "3",        "lo",
        "he", "hel", "<|im_end|>", "12", "e\xcc\x81", "\xc3\xaf", "\xc2\xbf", "\xc2\xbd", "123"};
    begin(f);
    text_pair(f, "tokenizer.ggml.model", "gpt2");
    text_pair(f, "tokenizer.ggml.pre", pre);
    text_list(f, "tokenizer.ggml.tokens", tokens, sizeof tokens / sizeof *tokens);
    text_list(f, "tokenizer.ggml.merges", merges, n);
    int_pair(f, "tokenizer.ggml.eos_token_id", 11);
    int_pair(f, "tokenizer.ggml.bos_token_id", 11);
}

static void merges(void **state)
{
    (void)state;
    static file f;
    static const char *const list[] = {"l o", "h e", "he l", "1 2"};
    plm_error err = {PLM_OK, ""};
    plm_tokenizer *t;
    write_bpe(&f, "gpt-2", list, 4);
    assert_ok(load(&f, &t, &err), err);
    IDS(t, "hello", PLM_ENCODE_ENDS, 10, 8); /* l+o, h+e, he+l */
    IDS(t, "hel lo", 0, 10, 4, 8);
    IDS(t, "123", 0, 12, 7);
    IDS(t, "<|im_end|>", PLM_ENCODE_SPECIAL, 11);
    IDS(t, "\xff", 0, 14, 15, 16); /* U+FFFD, its three letters */
    assert_true(plm_tokenizer_is_end(t, 11));
    plm_tokenizer_destroy(t);
    write_bpe(&f, "smollm", list, 4); /* digits stand alone */
    assert_ok(load(&f, &t, &err), err);
    IDS(t, "12 3", 0, 5, 6, 4, 7);
    plm_tokenizer_destroy(t);
    write_bpe(&f, "llama-bpe", list, 4); /* a word that is a token is not merged */
    assert_ok(load(&f, &t, &err), err);
    IDS(t, "123", PLM_ENCODE_ENDS, 11, 17);
    plm_tokenizer_destroy(t);
    write_bpe(&f, "llama-bpe", list, 4);
    bool_pair(&f, "tokenizer.ggml.add_bos_token", false);
    assert_ok(load(&f, &t, &err), err);
    IDS(t, "123", PLM_ENCODE_ENDS, 17);
    plm_tokenizer_destroy(t);
}

/* Every name that files may give is known and its patterns compile. */
static void every_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "default",        "gpt-2",       "llama-bpe",  "llama3",     "dbrx",       "qwen2",
        "qwen35",         "stablelm2",   "starcoder",  "smollm",     "falcon",     "deepseek-llm",
        "deepseek-coder", "deepseek-v3", "gpt-4o",     "llama4",     "tekken",     "kimi-k2",
        "bloom",          "viking",      "seed-coder", "bailingmoe", "exaone-moe", "minicpm5",
        "superbpe",       "sarvam-moe",  "glm4",       "command-r"};
    static file f;
    static const char *const list[] = {"l o"};
    plm_error err = {PLM_OK, ""};
    plm_tokenizer *t;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_bpe(&f, names[i], list, 1);
        assert_ok(load(&f, &t, &err), err);
        IDS(t, "lo", 0, 8);
        plm_tokenizer_destroy(t);
    }
    write_bpe(&f, "no-such", list, 1);
    assert_int_equal(load(&f, &t, &err), PLM_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no-such"));
}

/* ---- hostile ---- */

static void assert_refused(const file *f, const char *word)
{
    plm_error err = {PLM_OK, ""};
    plm_tokenizer *t;
    plm_status status = load(f, &t, &err);
    if (status == PLM_OK || strstr(err.text, word) == NULL || strchr(err.text, '\n') != NULL)
        fail_msg("want an error with \"%s\", got %d: %s", word, (int)status, err.text);
    assert_null(t);
}

static void hostile(void **state)
{
    (void)state;
    static file f;
    static const char *const twice[] = {"a", "b", "a"}, *const one[] = {"a"};
    static const char *const no_space[] = {"lo"}, *const empty_side[] = {"l "};
    write_spm(&f, SPM_COUNT, SPM_COUNT - 1, SPM_COUNT);
    assert_refused(&f, "token_type is shorter");
    write_spm(&f, SPM_COUNT, SPM_COUNT, SPM_COUNT - 1);
    assert_refused(&f, "scores is shorter");
    begin(&f);
    text_pair(&f, "tokenizer.ggml.model", "llama");
    assert_refused(&f, "no list tokenizer.ggml.tokens");
    text_list(&f, "tokenizer.ggml.tokens", twice, 3);
    assert_refused(&f, "tokens 0 and 2 have one name");
    begin(&f);
    text_pair(&f, "tokenizer.ggml.model", "llama");
    text_list(&f, "tokenizer.ggml.tokens", one, 0);
    assert_refused(&f, "0 tokens");
    begin(&f);
    text_pair(&f, "tokenizer.ggml.model", "rwkv");
    text_list(&f, "tokenizer.ggml.tokens", one, 1);
    assert_refused(&f, "unknown tokenizer \"rwkv\"");
    write_bpe(&f, "gpt-2", no_space, 1);
    assert_refused(&f, "merge is not two names");
    write_bpe(&f, "gpt-2", empty_side, 1);
    assert_refused(&f, "joins no two tokens");
    write_spm(&f, SPM_COUNT, SPM_COUNT, 0);
    float bad[SPM_COUNT] = {0};
    bad[3] = NAN;
    real_list(&f, "tokenizer.ggml.scores2", bad, 1);
    f.data[f.n - 4 - 12 - 4 - 1] = 's'; /* another key: the file stays readable */
    begin(&f);
    text_pair(&f, "tokenizer.ggml.model", "llama");
    text_list(&f, "tokenizer.ggml.tokens", spm_tokens, SPM_COUNT);
    real_list(&f, "tokenizer.ggml.scores", bad, SPM_COUNT);
    assert_refused(&f, "score is not finite");
}

static plm_status from_text(const char *json, size_t n, plm_tokenizer **t, plm_error *err)
{
    return plm_tokenizer_from_json(json, n, NULL, 0, "test", t, err);
}

static void hostile_json(void **state)
{
    (void)state;
    static const struct {
        const char *json, *word;
    } bad[] = {
        {"{}", "model"},
        {"[]", "model"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", "WordPiece"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}", "0 tokens"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "twice"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4294967296},\"merges\":[]}}",
         "out of range"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "out of range"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}",
         "joins no two tokens"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}", "not two names"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":7}}", "merges are no list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"end_of_word_suffix\":\"<"
         "/w>\"}}",
         "end_of_word"},
        {"{\"added_tokens\":[{\"id\":0,\"content\":\"b\"}],\"model\":{\"type\":\"BPE\",\"vocab\":{"
         "\"a\":0},\"merges\":[]}}",
         "differently"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{"
         "\"type\":\"Nonsense\"}}",
         "Nonsense"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{"
         "\"type\":\"Split\",\"behavior\":"
         "\"Isolated\",\"pattern\":{\"Regex\":\"(a\"}}}",
         "pattern"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"normalizer\":{\"type\":"
         "\"BertNormalizer\"}}",
         "BertNormalizer"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"post_processor\":{"
         "\"type\":\"TemplateProcessing\","
         "\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}]}}",
         "names no token"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "name and a score"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plm_error err = {PLM_OK, ""};
        plm_tokenizer *t;
        if (from_text(bad[i].json, strlen(bad[i].json), &t, &err) == PLM_OK ||
            strstr(err.text, bad[i].word) == NULL)
            fail_msg("%s: want \"%s\", got %s", bad[i].json, bad[i].word, err.text);
        assert_null(t);
    }
    size_t n;
    char *whole = slurp("splits", ".json", &n);
    for (size_t cut = 0; cut + 1 < n;
         cut += 97) { /* ends in a newline: one byte less is still whole */
        plm_error err = {PLM_OK, ""};
        plm_tokenizer *t;
        if (cut < n - 1)
            assert_int_not_equal(from_text(whole, cut, &t, &err), PLM_OK);
    }
    plm_free(whole);
}

/* A pattern that backtracks for ever, and an unending word, end. */
static void limits(void **state)
{
    (void)state;
    static const char json[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"b\":2},\"merges\":[\"a "
        "a\"]},\"pre_tokenizer\":"
        "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(?:a+b?)+[cd]\"}}}";
    plm_error err = {PLM_OK, ""};
    plm_tokenizer *t;
    plm_tokens out = {0};
    size_t n = 200000;
    char *text = plm_calloc(n, 1);
    assert_non_null(text);
    memset(text, 'a', n);
    assert_ok(from_text(json, sizeof json - 1, &t, &err), err);
    assert_int_equal(plm_tokenizer_encode(t, text, n, 0, &out, &err), PLM_E_LIMIT);
    plm_tokenizer_destroy(t);
    plm_tokens_fini(&out);
    t = open_family("llama2");
    assert_ok(plm_tokenizer_encode(t, text, n, 0, &out, &err), err);
    assert_true(out.count > 0 && out.count <= n + 1);
    plm_tokens_fini(&out);
    plm_tokenizer_destroy(t);
    plm_free(text);
}

/* ---- torture and threads ---- */

static plm_status work(const char *json, size_t n, const char *text, plm_error *err)
{
    plm_tokenizer *t;
    plm_tokens ids = {0};
    char *back = NULL;
    size_t m;
    PLM_TRY(from_text(json, n, &t, err));
    plm_status status = plm_tokenizer_encode(t, text, strlen(text),
                                             PLM_ENCODE_SPECIAL | PLM_ENCODE_ENDS, &ids, err);
    if (status == PLM_OK)
        status = plm_tokenizer_decode(t, ids.items, ids.count, true, &back, &m, err);
    plm_free(back);
    plm_tokens_fini(&ids);
    plm_tokenizer_destroy(t);
    return status;
}

static void torture(void **state)
{
    (void)state;
    static const char *const some[] = {"qwen2", "mistral", "unigram", "splits"};
    static const char text[] = "a1-e\xcc\x81 <s>w\xc3\xb6rld\n x\xff";
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        plm_error err = {PLM_OK, ""};
        size_t n, refused = 0;
        char *json = slurp(some[i], ".json", &n);
        int64_t live = plm_mem_live();
        plm_mem_fail_at(0, false);
        assert_ok(work(json, n, text, &err), err);
        uint64_t total = plm_mem_count();
        for (uint64_t k = 1; k <= total; k += k < total - 400 ? 29 : 1) {
            plm_mem_fail_at(k, (k & 1) != 0);
            plm_status status = work(json, n, text, &err);
            plm_mem_fail_at(0, false);
            assert_true(status == PLM_OK || status == PLM_E_NO_MEMORY);
            refused += status != PLM_OK;
            assert_int_equal(plm_mem_live(), live);
        }
        assert_true(refused > 100);
        plm_free(json);
    }
}

typedef struct job {
    const plm_tokenizer *t;
    const char *texts;
    uint64_t sum;
} job;

static void *run_job(void *user)
{
    job *j = user;
    unsigned char text[4096];
    plm_error err = {PLM_OK, ""};
    for (const char *line = j->texts; *line != '\0'; line = next_line(line)) {
        plm_tokens ids = {0};
        size_t n = unhex(line, text);
        if (plm_tokenizer_encode(j->t, (const char *)text, n, PLM_ENCODE_SPECIAL, &ids, &err) !=
            PLM_OK)
            return NULL;
        for (size_t i = 0; i < ids.count; i++)
            j->sum = j->sum * 31 + (uint64_t)ids.items[i];
        plm_tokens_fini(&ids);
    }
    return j;
}

static void threads(void **state)
{
    (void)state;
    size_t n;
    char *texts = slurp("texts", ".hex", &n);
    plm_tokenizer *t = open_family("llama3");
    job jobs[4];
    pthread_t id[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){t, texts, 0};
        assert_int_equal(pthread_create(&id[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *done;
        pthread_join(id[i], &done);
        assert_non_null(done);
        assert_true(jobs[i].sum == jobs[0].sum && jobs[0].sum != 0);
    }
    plm_tokenizer_destroy(t);
    plm_free(texts);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens),      cmocka_unit_test(round_trip), cmocka_unit_test(scores),
        cmocka_unit_test(merges),       cmocka_unit_test(every_name), cmocka_unit_test(hostile),
        cmocka_unit_test(hostile_json), cmocka_unit_test(limits),     cmocka_unit_test(torture),
        cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
