/* libFuzzer: any bytes as a GGUF file, whole or as the header of a large one. */
#include "core/base/mem.h"
#include "core/model/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static plm_arch a;
    for (int large = 0; large < 2; large++) {
        plm_gguf *g;
        plm_mem_fail_at(0, false);
        plm_status status =
            plm_gguf_open(data, size, large ? UINT64_C(1) << 40 : size, "fuzz", &g, NULL);
        if (plm_mem_asked_bytes() > (size < 1u << 19 ? 1u << 20 : 2 * size))
            __builtin_trap();
        if (status != PLM_OK)
            continue;
        if (plm_model_from_gguf(g, "fuzz", &a, NULL) == PLM_OK &&
            plm_arch_check(&a, NULL) != PLM_OK)
            __builtin_trap();
        plm_arch_fini(&a);
        plm_gguf_close(g);
    }
    return 0;
}
