/* libFuzzer: the first half of the input as a GGUF or a tokenizer.json, the rest as a text for
** it; what comes back must be ids of the vocabulary, and decode. */
#include <string.h>

#include "core/base/mem.h"
#include "core/model/tokenizer.h"

static void use(const plm_tokenizer *t, const char *text, size_t n)
{
    for (unsigned flags = 0; flags < 4; flags++) {
        plm_tokens ids = {0};
        char *back = NULL;
        size_t bytes;
        if (plm_tokenizer_encode(t, text, n, flags, &ids, NULL) == PLM_OK) {
            for (size_t i = 0; i < ids.count; i++)
                if (ids.items[i] < 0 || ids.items[i] >= plm_tokenizer_size(t))
                    __builtin_trap();
            if (plm_tokenizer_decode(t, ids.items, ids.count, true, &back, &bytes, NULL) != PLM_OK)
                __builtin_trap();
        }
        plm_free(back);
        plm_tokens_fini(&ids);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    plm_mem_init();
    size_t file = size;
    for (size_t i = 0; i + 3 < size; i++) /* a mark cuts file and text */
        if (memcmp(data + i, "\n--\n", 4) == 0) {
            file = i;
            break;
        }
    const char *text = (const char *)data + (file + 4 <= size ? file + 4 : size);
    size_t n = (size_t)((const char *)data + size - text);
    plm_tokenizer *t = NULL;
    if (file >= 4 && memcmp(data, "GGUF", 4) == 0) {
        plm_gguf *g;
        if (plm_gguf_open(data, file, file, "fuzz", &g, NULL) != PLM_OK)
            return 0;
        if (plm_tokenizer_from_gguf(g, "fuzz", &t, NULL) != PLM_OK)
            t = NULL;
        plm_gguf_close(g);
    } else if (plm_tokenizer_from_json((const char *)data, file, NULL, 0, "fuzz", &t, NULL) !=
               PLM_OK) {
        t = NULL;
    }
    if (t != NULL)
        use(t, text, n);
    plm_tokenizer_destroy(t);
    return 0;
}
