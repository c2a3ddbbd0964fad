/* fn.h - small enumerations that appear as integer attributes. */
#ifndef PLM_IR_FN_H
#define PLM_IR_FN_H

typedef enum plm_fn {
#define PLM_FN_MAP(X)                                                                              \
    X(NONE, "none") X(SILU, "silu") X(GELU_TANH, "gelu_tanh") X(GELU_ERF, "gelu_erf")              \
    X(SIGMOID, "sigmoid") X(SOFTPLUS, "softplus") X(TANH, "tanh") X(EXP, "exp") X(RELU, "relu")    \
    X(RELU2, "relu2") X(SOFTMAX, "softmax") X(SQRT_SOFTPLUS, "sqrt_softplus")                      \
    X(SWIGLU_OAI, "swiglu_oai") X(SITU, "situ") X(SOFTMAX_TOPK, "softmax_topk")     \
    X(XIELU, "xielu")
#define PLM_FN_ENUM(id, name) PLM_FN_##id,
    PLM_FN_MAP(PLM_FN_ENUM)
#undef PLM_FN_ENUM
    PLM_FN_COUNT
} plm_fn;
/* XIELU has two learned numbers p, q a layer: x > 0: softplus(p) x^2 + x / 2, else (softplus(q) + 1/2)
** (e^x - 1 - x) + x / 2 (arXiv 2411.13010).
** gate: SOFTMAX = softmax over all experts, then choose; SOFTMAX_TOPK = choose by logit, softmax over
** the chosen (Mixtral, gpt-oss); SIGMOID, SQRT_SOFTPLUS = score of each expert on its own. */

typedef enum plm_rope_scaling {
    PLM_ROPE_NONE, PLM_ROPE_LINEAR, PLM_ROPE_LLAMA3, PLM_ROPE_YARN, PLM_ROPE_LONGROPE,
    PLM_ROPE_DYNAMIC, PLM_ROPE_SCALING_COUNT
} plm_rope_scaling;

#endif
