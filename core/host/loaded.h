/* loaded.h - a model file made ready to run: record, weights, graph, backend and executor in one. */
#ifndef PLM_HOST_LOADED_H
#define PLM_HOST_LOADED_H
#include "core/host/runner.h"
#include "core/model/load.h"

typedef struct plm_loaded_options {
    const char *backend;    /* NULL = the usual one */
    uint32_t threads;       /* 0 = as many as there are cores */
    int64_t context_tokens; /* of all sequences together; 0 = 4096, or what the model is made for */
    int64_t step_tokens;    /* most tokens of a step, 0 = 512 */
    int64_t seqs;           /* 0 = 1 */
    plm_dtype kv;           /* storage of the cache; f32, f16, bf16 */
    bool all_logits, node_times;
} plm_loaded_options;
/* f16 cache, the rest 0. */
void plm_loaded_options_init(plm_loaded_options *o);

typedef struct plm_loaded {
    plm_arch arch;
    plm_weights *weights;
    plm_graph graph;
    plm_backend_host host;
    plm_opened dev;
    plm_runner *runner;
} plm_loaded;

/* path: a .gguf, a .safetensors beside its config.json, or a folder. Activations are float32, matrices
** apart as the files have them. *out must not move afterwards. Fini also after a failure.
** PLM_E_UNSUPPORTED for families whose graph is right for costs alone. */
plm_status plm_loaded_open(const char *path, const plm_loaded_options *o, plm_loaded *out,
                           plm_error *err) PLM_MUST_USE;
void plm_loaded_fini(plm_loaded *m);

#endif
