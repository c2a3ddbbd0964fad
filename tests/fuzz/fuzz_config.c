/* libFuzzer: any bytes as a config.json and as a catalog record. */
#include "core/base/mem.h"
#include "core/model/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static plm_arch a;
    plm_mem_init();
    if (plm_model_from_config((const char *)data, size, "fuzz", &a, NULL) == PLM_OK &&
        plm_arch_check(&a, NULL) != PLM_OK)
        __builtin_trap();
    plm_arch_fini(&a);
    if (plm_model_from_record((const char *)data, size, "fuzz", &a, NULL) == PLM_OK &&
        plm_arch_check(&a, NULL) != PLM_OK)
        __builtin_trap();
    plm_arch_fini(&a);
    return 0;
}
