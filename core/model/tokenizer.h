/* tokenizer.h - text to token ids and back, from a GGUF's metadata or a tokenizer.json.
**
** Kinds: byte-level BPE (GPT-2 and its line: Llama-3, Qwen, DeepSeek, gpt-oss), BPE by merges or
** by scores over characters with a byte for what the vocabulary lacks (SentencePiece: Llama-2,
** Mistral, Gemma, Phi-3), and unigram. Patterns of pre-tokenisers run on PCRE2 over Unicode,
** normalisation on utf8proc.
**
** A tokenizer is read-only once made: any number of threads may use it at once. */
#ifndef PLM_MODEL_TOKENIZER_H
#define PLM_MODEL_TOKENIZER_H
#include "core/model/load.h"

typedef struct plm_tokenizer plm_tokenizer;

#define PLM_TOKENS_MAX (1u << 22)        /* tokens of a vocabulary */
#define PLM_TEXT_MAX (UINT32_C(1) << 28) /* bytes of a text */

/* Ids, owned; zero-initialise, plm_tokens_fini when done. */
typedef struct plm_tokens {
    int32_t *items;
    size_t count, room;
} plm_tokens;
void plm_tokens_fini(plm_tokens *t);

/* path: a .gguf, a tokenizer.json, or a folder with one (its tokenizer_config.json is read too:
** beginning and end of text, chat template). */
plm_status plm_tokenizer_open(const char *path, plm_tokenizer **out, plm_error *err) PLM_MUST_USE;
/* From metadata tokenizer.ggml.*; g need not outlive the tokenizer. */
plm_status plm_tokenizer_from_gguf(const plm_gguf *g, const char *where, plm_tokenizer **out,
                                   plm_error *err) PLM_MUST_USE;
/* From the text of a tokenizer.json and, where config is not NULL, of a tokenizer_config.json. */
plm_status plm_tokenizer_from_json(const char *json, size_t bytes, const char *config,
                                   size_t config_bytes, const char *where, plm_tokenizer **out,
                                   plm_error *err) PLM_MUST_USE;
void plm_tokenizer_destroy(plm_tokenizer *t);

/* ---- encoding ---- */
enum {
    PLM_ENCODE_SPECIAL =
        1,              /* names of control tokens in the text ("<|im_end|>") become those tokens */
    PLM_ENCODE_ENDS = 2 /* what the model wants around a text: beginning of text, end of text */
};
/* Appends the ids of text[n], any bytes. What is no UTF-8 is encoded byte by byte where the
** vocabulary has bytes (SentencePiece kinds), else as U+FFFD, as the peers do. PLM_E_LIMIT above
** PLM_TEXT_MAX; out may have grown when it fails. Time O(n log n). */
plm_status plm_tokenizer_encode(const plm_tokenizer *t, const char *text, size_t n, unsigned flags,
                                plm_tokens *out, plm_error *err) PLM_MUST_USE;

/* ---- decoding ---- */
/* Bytes that a token adds to the text, borrowed and not NUL-terminated; a character may be
** spread over several tokens. Control tokens give their names if `special`, else nothing. false:
** no such id. */
bool plm_tokenizer_piece(const plm_tokenizer *t, int32_t id, bool special, const char **bytes,
                         size_t *n);
/* The text of ids: their pieces, less the space that encoding put before the first word, if any.
** Heap text (plm_free) with a NUL after its *n bytes. PLM_E_INVALID names an id outside the
** vocabulary. */
plm_status plm_tokenizer_decode(const plm_tokenizer *t, const int32_t *ids, size_t count,
                                bool special, char **text, size_t *n, plm_error *err) PLM_MUST_USE;

/* ---- the vocabulary ---- */
int32_t plm_tokenizer_size(const plm_tokenizer *t);
/* Id of a token by its name in the file ("\u0120the", "<s>"); -1 if there is none. */
int32_t plm_tokenizer_find(const plm_tokenizer *t, const char *name, size_t n);
/* Name in the file, borrowed; NULL for no such id. */
const char *plm_tokenizer_name(const plm_tokenizer *t, int32_t id, size_t *n);
bool plm_tokenizer_is_control(const plm_tokenizer *t, int32_t id);
/* Generation stops at this token: end of text, of turn, of message. */
bool plm_tokenizer_is_end(const plm_tokenizer *t, int32_t id);
/* -1 where there is none. */
int32_t plm_tokenizer_bos(const plm_tokenizer *t);
int32_t plm_tokenizer_eos(const plm_tokenizer *t);
/* Jinja text, NULL if the files have none. */
const char *plm_tokenizer_chat_template(const plm_tokenizer *t);

#endif
