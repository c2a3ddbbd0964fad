/* libFuzzer: any bytes as a safetensors file. */
#include "core/base/mem.h"
#include "core/model/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    plm_safetensors *s;
    plm_mem_init();
    if (plm_safetensors_open(data, size, size, "fuzz", &s, NULL) == PLM_OK) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < plm_safetensors_count(s); i++)
            bytes += plm_safetensors_tensor(s, i)->bytes;
        if (bytes > size)
            __builtin_trap();
        plm_safetensors_close(s);
    }
    return 0;
}
