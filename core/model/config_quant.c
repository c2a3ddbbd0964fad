/* config_quant.c - how a config.json says the weights are stored. */
#include <stdio.h>
#include <string.h>

#include "core/model/config.h"

static plm_status set_quant(const plm_config *c, const char *name)
{
    snprintf(c->arch->file_quant, sizeof c->arch->file_quant, "%s", name);
    return PLM_OK;
}

static int64_t whole(const json_t *q, const char *a, const char *b, int64_t fallback)
{
    const json_t *v = json_object_get(q, a);
    if (!json_is_integer(v) && b != NULL)
        v = json_object_get(q, b);
    return json_is_integer(v) ? json_integer_value(v) : fallback;
}

/* compressed-tensors: the first group's weights say type, bits and strategy. */
static plm_status compressed_tensors(const plm_config *c, const json_t *q)
{
    const json_t *groups = json_object_get(q, "config_groups"), *w = NULL;
    const char *format = json_string_value(json_object_get(q, "format"));
    const char *key;
    json_t *group = NULL;
    json_object_foreach((json_t *)(uintptr_t)groups, key, group)
    {
        w = json_object_get(group, "weights");
        break;
    }
    if (!json_is_object(w))
        return plm_config_refuse(c, "quantization_config", "compressed-tensors without weights");
    int64_t bits = whole(w, "num_bits", NULL, 0);
    const char *type = json_string_value(json_object_get(w, "type"));
    const char *strategy = json_string_value(json_object_get(w, "strategy"));
    bool is_float = type != NULL && strcmp(type, "float") == 0;
    if (format != NULL && strstr(format, "nvfp4") != NULL)
        return set_quant(c, "nvfp4");
    if (format != NULL && strstr(format, "mxfp4") != NULL)
        return set_quant(c, "mxfp4");
    if (is_float && bits == 8 && strategy != NULL && strcmp(strategy, "block") == 0)
        return set_quant(c, "fp8_block");
    if (is_float && bits == 8)
        return set_quant(c,
                         strategy != NULL && strcmp(strategy, "channel") == 0 ? "fp8_row" : "fp8");
    if (!is_float && bits == 8)
        return set_quant(c, json_is_object(json_object_get(group, "input_activations")) ? "w8a8"
                                                                                        : "w8a16");
    if (!is_float && bits == 4)
        return set_quant(c, "w4a16");
    return plm_config_refuse(c, "quantization_config", "compressed-tensors of other bits");
}

static plm_status bitsandbytes(const plm_config *c, const json_t *q)
{
    if (json_is_true(json_object_get(q, "load_in_8bit")))
        return set_quant(c, "int8");
    const char *type = json_string_value(json_object_get(q, "bnb_4bit_quant_type"));
    if (type != NULL && strcmp(type, "nf4") != 0)
        return plm_config_refuse(c, "bnb_4bit_quant_type", type);
    bool twice = json_is_true(json_object_get(q, "bnb_4bit_use_double_quant"));
    return set_quant(c, twice ? "nf4_dq" : "nf4");
}

static plm_status modelopt(const plm_config *c, const json_t *q)
{
    const char *algo = json_string_value(json_object_get(q, "quant_algo"));
    if (algo == NULL)
        return plm_config_refuse(c, "quant_method", "modelopt without quant_algo");
    if (strstr(algo, "FP8") != NULL)
        return set_quant(c, strstr(algo, "BLOCK") != NULL ? "fp8_block" : "fp8");
    if (strstr(algo, "NVFP4") != NULL)
        return set_quant(c, "nvfp4");
    return plm_config_refuse(c, "quant_algo", algo);
}

static plm_status read_quant(const plm_config *c, const json_t *q)
{
    const char *method = json_string_value(json_object_get(q, "quant_method"));
    int64_t bits = whole(q, "bits", "w_bit", 4);
    if (method == NULL && json_is_object(json_object_get(q, "config_groups")))
        method = "compressed-tensors";
    if (method == NULL && (json_is_true(json_object_get(q, "load_in_4bit")) ||
                           json_is_true(json_object_get(q, "load_in_8bit"))))
        method = "bitsandbytes";
    if (method == NULL && json_object_get(q, "group_size") != NULL) /* MLX: bits and group_size */
        return set_quant(c, bits == 8 ? "mlx8" : "mlx4");
    if (method == NULL)
        return plm_config_refuse(c, "quantization_config", "no quant_method");
    if (strcmp(method, "fp8") == 0)
        return set_quant(c, json_is_array(json_object_get(q, "weight_block_size")) ? "fp8_block"
                                                                                   : "fp8");
    if (strcmp(method, "mxfp4") == 0)
        return set_quant(c, "mxfp4");
    if (strcmp(method, "awq") == 0 && bits == 4)
        return set_quant(c, "awq4");
    if ((strcmp(method, "gptq") == 0 || strcmp(method, "gptq_v2") == 0) && (bits == 4 || bits == 8))
        return set_quant(c, bits == 4 ? "gptq4" : "gptq8");
    if (strcmp(method, "compressed-tensors") == 0)
        return compressed_tensors(c, q);
    if (strcmp(method, "bitsandbytes") == 0)
        return bitsandbytes(c, q);
    if (strcmp(method, "modelopt") == 0)
        return modelopt(c, q);
    return plm_config_refuse(c, "quant_method", method);
}

plm_status plm_config_storage(const plm_config *c)
{
    const char *dtype = NULL;
    PLM_TRY(plm_config_text(c, "torch_dtype|dtype", NULL, &dtype));
    if (dtype != NULL) {
        if (strncmp(dtype, "torch.", 6) == 0)
            dtype += 6;
        c->arch->file_dtype = plm_dtype_by_name(dtype);
        if (c->arch->file_dtype >= PLM_DT_COUNT && strcmp(dtype, "auto") != 0)
            return plm_config_refuse(c, "torch_dtype", dtype);
    }
    const json_t *q = plm_config_get(c, "quantization_config|quantization|compression_config");
    return json_is_object(q) ? read_quant(c, q) : PLM_OK;
}
