/* libFuzzer: any bytes as the weights of a small model of each kind. Every weight of its graph
** is asked for and read to its last byte; the address sanitizer sees a step outside. */
#include <string.h>

#include "core/base/mem.h"
#include "core/model/weights.h"

static void read_all(const plm_weight *v)
{
    static volatile unsigned sum; /* so that the reads are not dropped */
    float row[256];
    for (int64_t m = 0; m < v->matrices; m++)
        for (int p = 0; p < PLM_PLANES; p++) {
            const unsigned char *d = plm_weight_plane(v, m, (plm_plane_id)p);
            for (uint64_t i = 0; d != NULL && i < v->plane[p].bytes; i++)
                sum = sum + d[i];
        }
    if (v->cols <= 256 && v->rows > 0)
        (void)!plm_weight_decode(v, v->matrices - 1, v->rows - 1, 1, row, NULL);
}

static void ask(const plm_weights *w, const plm_graph *g)
{
    for (size_t i = 0; i < g->n_values; i++) {
        const plm_value *v = &g->values[i];
        int64_t dim[PLM_RANK_MAX];
        plm_weight got;
        if (v->kind != PLM_VALUE_WEIGHT)
            continue;
        for (uint32_t k = 0; k < v->rank; k++)
            dim[k] = plm_dim_value(&g->dims, v->dim[k]);
        if (plm_weights_get(w, v->name, v->rank, dim, &got, NULL) != PLM_OK)
            continue;
        read_all(&got);
        plm_weight_release(&got);
    }
    for (const char *const *name = (const char *const[]){"t", "token_embd.weight", NULL};
         *name != NULL; name++) {
        plm_weight got;
        if (plm_weights_tensor(w, *name, &got, NULL) == PLM_OK)
            read_all(&got);
        plm_weight_release(&got);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static plm_arch a;
    static plm_graph g;
    static bool made;
    plm_mem_init();
    if (!made) {
        static const char config[] =
            "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":1,"
            "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":4,"
            "\"intermediate_size\":8,\"rms_norm_eps\":1e-6}";
        plm_build b;
        plm_build_init(&b);
        if (plm_model_from_config(config, sizeof config - 1, "fuzz", &a, NULL) != PLM_OK ||
            plm_build_graph(&a, &b, &g, NULL) != PLM_OK)
            __builtin_trap();
        made = true;
    }
    uint64_t *copy = plm_malloc(size + 8); /* aligned, as files are mapped */
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    const plm_weights_file file = {(const unsigned char *)copy, size, "fuzz"};
    plm_weights *w;
    if (plm_weights_open_memory(&file, 1, &a, &w, NULL) == PLM_OK) {
        ask(w, &g);
        plm_weights_close(w);
    }
    plm_free(copy);
    return 0;
}
