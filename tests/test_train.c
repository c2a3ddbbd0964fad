/* test_train.c - memory of fine-tuning against serving_facts section 24. */
#include "tests/support.h"

#include "core/base/mem.h"
#include "sim/step/memory.h"

static plm_error err;

static void llama(plm_arch *a, int32_t layers, int32_t hidden, int32_t heads, int32_t ffn)
{
    plm_layer l = {.attn = PLM_ATTN_FULL, .heads = heads, .kv_heads = heads, .dk = 128, .dv = 128,
                   .ffn = ffn, .glu = true, .act = PLM_FN_SILU, .norms = 2, .kv_shared_layer = -1,
                   .rope = {.theta = 10000, .dims = 128}};
    plm_arch_init(a);
    a->layers = layers;
    a->hidden = hidden;
    a->vocab = 32000;
    a->max_context = 4096;
    plm_arch_add_kind(a, &l);
}

static plm_train_ledger train(const plm_arch *a, plm_train kind, int32_t rank)
{
    plm_train_ledger l = {0};
    assert_ok(plm_train_memory(a, kind, rank, 512, 1, &l, &err), err);
    return l;
}

/* Llama-2-7B, 6,738,415,616 parameters. */
static void test_7b(void **state)
{
    (void)state;
    plm_arch a;
    llama(&a, 32, 4096, 32, 11008);
    plm_train_ledger l = train(&a, PLM_TRAIN_FULL, 0);
    double full = (double)(l.total_bytes - l.activation_bytes);
    assert_int_equal(l.trainable_params, INT64_C(6738415616));
    assert_close(full, 16 * 6738415616.0, 0, 0); /* 107.81 GB */
    assert_close(full - (double)l.gradient_bytes, 14 * 6738415616.0, 0, 0); /* 94.34 GB */
    assert_close((double)l.total_bytes, 100e9, 0.10, 0);

    l = train(&a, PLM_TRAIN_LORA, 16);
    assert_int_equal(l.trainable_params, 39976960); /* 0.593 % of the base */
    assert_close((double)l.weights_bytes, 2 * 6738415616.0, 0, 0);
    assert_close((double)(l.adapter_bytes + l.gradient_bytes + l.master_bytes + l.optimizer_bytes),
                 16 * 39976960.0, 0, 0);
    assert_close((double)l.total_bytes, 15e9, 0.10, 0);

    l = train(&a, PLM_TRAIN_QLORA, 16);
    /* linears in NF4 3.341 GB, embedding and head in bf16 0.525 GB */
    assert_close((double)l.weights_bytes, 3.866e9, 0.001, 0);
    assert_close((double)l.total_bytes, 5e9, 0.10, 0);
}

/* LLaMA-65B, 65.2 billion parameters: NF4 33.64 GB if all were, and one 48 GB card. */
static void test_65b(void **state)
{
    (void)state;
    plm_arch a;
    llama(&a, 80, 8192, 64, 22016);
    plm_train_ledger l = train(&a, PLM_TRAIN_QLORA, 64);
    double linear = 80 * (4.0 * 8192 * 8192 + 3.0 * 8192 * 22016);
    assert_close((double)l.weights_bytes, linear * 4.126953125 / 8 + 2 * (2 * 32000 * 8192.0),
                 0.0001, 0);
    assert_close(65.2e9 * plm_dtype_bits(PLM_DT_NF4_DQ) / 8, 33.64e9, 0.0005, 0);
    /* rank 64 takes 12.8 GB for the adapters, so it is the card's 48 GiB that hold it */
    assert_true(l.total_bytes <= INT64_C(48) << 30);
    assert_true(train(&a, PLM_TRAIN_QLORA, 16).total_bytes <= INT64_C(48000000000));
    assert_true(l.total_bytes > l.weights_bytes);
}

static void test_growth(void **state)
{
    (void)state;
    plm_arch a;
    plm_train_ledger one, two;
    llama(&a, 32, 4096, 32, 11008);
    assert_ok(plm_train_memory(&a, PLM_TRAIN_LORA, 16, 1024, 2, &one, &err), err);
    assert_ok(plm_train_memory(&a, PLM_TRAIN_LORA, 32, 2048, 2, &two, &err), err);
    assert_int_equal(two.activation_bytes, 2 * one.activation_bytes);
    assert_int_equal(two.trainable_params, 2 * one.trainable_params);
    assert_int_equal(two.weights_bytes, one.weights_bytes);
}

static void test_refusals(void **state)
{
    (void)state;
    plm_arch a;
    plm_train_ledger l;
    llama(&a, 32, 4096, 32, 11008);
    assert_int_equal(plm_train_memory(&a, PLM_TRAIN_LORA, 0, 512, 1, &l, &err), PLM_E_INVALID);
    assert_int_equal(plm_train_memory(&a, PLM_TRAIN_FULL, 0, 0, 1, &l, &err), PLM_E_INVALID);
    assert_int_equal(plm_train_memory(&a, PLM_TRAIN_FULL, 0, 512, -1, &l, &err), PLM_E_INVALID);
    assert_int_equal(plm_train_memory(&a, PLM_TRAIN_FULL, 0, INT64_C(1) << 32, INT64_C(1) << 32, &l,
                                      &err),
                     PLM_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_7b),
        cmocka_unit_test(test_65b),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}
