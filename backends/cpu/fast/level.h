/* level.h - the tables of the levels, private to this folder. NULL when built without. */
#ifndef PLM_CPU_LEVEL_H
#define PLM_CPU_LEVEL_H
#include "backends/cpu/fast/kernels.h"

const plm_cpu_kernels *plm_level_generic(void);
const plm_cpu_kernels *plm_level_avx2(void);
const plm_cpu_kernels *plm_level_avx512(void);
const plm_cpu_kernels *plm_level_avx512bf16(void);
#endif
