/* recipe_mix.h - types that a GGUF mix gives the weights of a model; private to recipe*.c. */
#ifndef PLM_MODEL_RECIPE_MIX_H
#define PLM_MODEL_RECIPE_MIX_H
#include "core/model/build.h"

/* Mixes of llama.cpp's quantiser, with the type that a matrix gets when no rule says otherwise. */
typedef enum plm_mix {
#define PLM_MIX_MAP(X)                                                                             \
    X(Q4_0, Q4_0) X(Q4_1, Q4_1) X(Q5_0, Q5_0) X(Q5_1, Q5_1) X(Q8_0, Q8_0) X(Q2_K, Q2_K)            \
    X(Q2_K_S, Q2_K) X(Q3_K_S, Q3_K) X(Q3_K_M, Q3_K) X(Q3_K_L, Q3_K) X(Q4_K_S, Q4_K)                \
    X(Q4_K_M, Q4_K) X(Q5_K_S, Q5_K) X(Q5_K_M, Q5_K) X(Q6_K, Q6_K) X(IQ1_S, IQ1_S)                  \
    X(IQ1_M, IQ1_M) X(IQ2_XXS, IQ2_XXS) X(IQ2_XS, IQ2_XS) X(IQ2_S, IQ2_XS) X(IQ2_M, IQ2_S)         \
    X(IQ3_XXS, IQ3_XXS) X(IQ3_XS, IQ3_S) X(IQ3_S, IQ3_S) X(IQ3_M, IQ3_S) X(IQ4_NL, IQ4_NL)         \
    X(IQ4_XS, IQ4_XS) X(TQ1_0, TQ1_0) X(TQ2_0, TQ2_0) X(MXFP4_MOE, Q8_0)
#define PLM_MIX_ENUM(id, base) PLM_MIX_##id,
    PLM_MIX_MAP(PLM_MIX_ENUM)
#undef PLM_MIX_ENUM
    PLM_MIX_COUNT
} plm_mix;

/* Type of a weight under a mix. cols: elements of a row (ne0), which the block must divide, else
** the next type down the ladder of fallbacks is taken. */
plm_dtype plm_mix_weight(plm_mix mix, const plm_arch *a, plm_role role, int32_t layer,
                         int64_t cols);
/* t, or the type llama.cpp falls back to when cols is no multiple of t's block. */
plm_dtype plm_mix_fallback(plm_dtype t, int64_t cols);
/* Norms, biases, router, convolution and the like: kept as numbers in every format. */
bool plm_role_small(plm_role role);
bool plm_role_expert(plm_role role);
/* Most routed experts of a layer. */
int32_t plm_arch_experts(const plm_arch *a);

#endif
