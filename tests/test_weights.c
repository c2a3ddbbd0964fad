/* Weights: names, fused and turned matrices, stacks and planes of every family, from files
** written here. Element i of a tensor written by put_f32 is base + i, so that an answer says
** where it came from; the orders expected are those of the families' modeling code, written out
** by hand. */
#include "tests/support.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/model/weights.h"

/* ---- files ---- */

typedef struct file {
    uint64_t room[8192]; /* 64 KiB, aligned */
    unsigned char data[65536];
    char header[16384];
    size_t n, n_header;
} file;

static void begin(file *f)
{
    memset(f, 0, sizeof *f);
    f->n_header = (size_t)sprintf(f->header, "{");
}

static void put(file *f, const char *name, const char *dtype, const char *shape, const void *data,
                size_t n)
{
    f->n_header +=
        (size_t)sprintf(f->header + f->n_header,
                        "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                        f->n_header > 1 ? "," : "", name, dtype, shape, f->n, f->n + n);
    memcpy(f->data + f->n, data, n);
    f->n += n;
    assert_true(f->n < sizeof f->data && f->n_header < sizeof f->header - 512);
}

/* n numbers base, base + 1, ... */
static void put_f32(file *f, const char *name, const char *shape, float base, size_t n)
{
    static float v[8192];
    for (size_t i = 0; i < n; i++)
        v[i] = base + (float)i;
    put(f, name, "F32", shape, v, 4 * n);
}

/* Closes the header and opens the set over it. */
static plm_weights_file finish(file *f)
{
    f->n_header += (size_t)sprintf(f->header + f->n_header, "}");
    while (f->n_header % 8 != 0)
        f->header[f->n_header++] = ' ';
    unsigned char *to = (unsigned char *)f->room;
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(f->n_header >> (8 * i));
    memcpy(to + 8, f->header, f->n_header);
    assert_true(8 + f->n_header + f->n <= sizeof f->room);
    memcpy(to + 8 + f->n_header, f->data, f->n);
    return (plm_weights_file){to, 8 + f->n_header + f->n, "test.safetensors"};
}

static file f;
static plm_arch arch;

static plm_weights *open_set(void)
{
    plm_error err = {PLM_OK, ""};
    plm_weights_file one = finish(&f);
    plm_weights *w;
    assert_ok(plm_weights_open_memory(&one, 1, &arch, &w, &err), err);
    return w;
}

static plm_layer *one_layer(plm_attn attn, int32_t hidden)
{
    plm_arch_init(&arch);
    memset(&arch.kind[0], 0, sizeof arch.kind[0]);
    arch.layers = arch.n_kinds = 1;
    arch.hidden = hidden;
    arch.vocab = 4;
    arch.kind[0].attn = attn;
    begin(&f);
    return &arch.kind[0];
}

/* Every number of a weight is what `want` says of (matrix, row, column). */
typedef double (*want_fn)(int64_t m, int64_t r, int64_t c);
static void assert_weight(const plm_weights *w, const char *name, uint32_t rank, const int64_t *dim,
                          plm_dtype dtype, want_fn want, bool copied)
{
    plm_error err = {PLM_OK, ""};
    plm_weight v;
    float row[512];
    plm_dtype t;
    int64_t bytes = 0;
    assert_ok(plm_weights_get(w, name, rank, dim, &v, &err), err);
    assert_ok(plm_weights_dtype(w, name, rank, dim, &t, &err), err);
    assert_int_equal(v.dtype, dtype);
    assert_int_equal(t, dtype);
    assert_int_equal(v.own != NULL, copied);
    assert_int_equal(v.rank, rank);
    assert_ok(plm_dtype_bytes(dtype, v.rows, v.cols, &bytes, &err), err);
    assert_int_equal(v.bytes, bytes * v.matrices);
    for (int64_t m = 0; m < v.matrices; m++)
        for (int64_t r = 0; r < v.rows; r++) {
            assert_ok(plm_weight_decode(&v, m, r, 1, row, &err), err);
            for (int64_t c = 0; c < v.cols; c++)
                if (fabs((double)row[c] - want(m, r, c)) > 1e-6 * fabs(want(m, r, c)))
                    fail_msg("%s[%d][%d][%d] = %g, want %g", name, (int)m, (int)r, (int)c,
                             (double)row[c], want(m, r, c));
        }
    plm_weight_release(&v);
}
#define DIMS(...)                                                                                  \
    (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[])                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- fused and turned ---- */

static double flat8(int64_t m, int64_t r, int64_t c)
{
    return 100 + (double)((m * 0 + r) * 8 + c);
}
static double phi_k(int64_t m, int64_t r, int64_t c)
{
    return 200 + (double)((m + 8 + r) * 8 + c);
}
static double phi_v(int64_t m, int64_t r, int64_t c)
{
    return 200 + (double)((m + 12 + r) * 8 + c);
}
static double phi_gate(int64_t m, int64_t r, int64_t c)
{
    return 600 + (double)((m + r) * 8 + c);
}
static double phi_up(int64_t m, int64_t r, int64_t c)
{
    return 600 + (double)((m + 5 + r) * 8 + c);
}

static void fused_rows_are_views(void **state)
{
    (void)state;
    plm_layer *l = one_layer(PLM_ATTN_FULL, 8);
    l->heads = 2;
    l->kv_heads = 1;
    l->dk = l->dv = 4;
    l->ffn = 5;
    put_f32(&f, "model.embed_tokens.weight", "4,8", 100, 32);
    put_f32(&f, "model.layers.0.self_attn.qkv_proj.weight", "16,8", 200, 128);
    put_f32(&f, "model.layers.0.mlp.gate_up_proj.weight", "10,8", 600, 80);
    plm_weights *w = open_set();
    assert_weight(w, "token_embd", DIMS(4, 8), PLM_DT_F32, flat8, false);
    assert_weight(w, "output", DIMS(4, 8), PLM_DT_F32, flat8, false); /* tied */
    assert_weight(w, "blk.0.attn_k", DIMS(4, 8), PLM_DT_F32, phi_k, false);
    assert_weight(w, "blk.0.attn_v", DIMS(4, 8), PLM_DT_F32, phi_v, false);
    assert_weight(w, "blk.0.ffn_gate", DIMS(5, 8), PLM_DT_F32, phi_gate, false);
    assert_weight(w, "blk.0.ffn_up", DIMS(5, 8), PLM_DT_F32, phi_up, false);
    plm_weights_close(w);
}

/* GPT-2: Conv1D [in, out], q, k and v side by side. */
static double gpt_k(int64_t m, int64_t r, int64_t c)
{
    return 1000 + (double)(m + c * 12 + 4 + r);
}
static double gpt_k_bias(int64_t m, int64_t r, int64_t c)
{
    return 50 + (double)(m + r + 4 + c);
}
static double gpt_down(int64_t m, int64_t r, int64_t c)
{
    return 3000 + (double)(m + c * 4 + r);
}

static void conv1d_is_turned(void **state)
{
    (void)state;
    plm_layer *l = one_layer(PLM_ATTN_FULL, 4);
    l->heads = l->kv_heads = 2;
    l->dk = l->dv = 2;
    l->ffn = 6;
    put_f32(&f, "wte.weight", "4,4", 100, 16);
    put_f32(&f, "h.0.attn.c_attn.weight", "4,12", 1000, 48);
    put_f32(&f, "h.0.attn.c_attn.bias", "12", 50, 12);
    put_f32(&f, "h.0.mlp.c_proj.weight", "6,4", 3000, 24);
    plm_weights *w = open_set();
    assert_weight(w, "blk.0.attn_k", DIMS(4, 4), PLM_DT_F32, gpt_k, true);
    assert_weight(w, "blk.0.attn_k.bias", DIMS(4), PLM_DT_F32, gpt_k_bias, false);
    assert_weight(w, "blk.0.ffn_down", DIMS(4, 6), PLM_DT_F32, gpt_down, true);
    plm_weights_close(w);
}

/* ---- experts ---- */

static double expert(int64_t m, int64_t r, int64_t c)
{
    return (m == 0 ? 100 : m == 1 ? 900 : 500) + (double)(r * 4 + c);
}

static void experts_in_pieces(void **state)
{
    (void)state;
    plm_error err = {PLM_OK, ""};
    plm_layer *l = one_layer(PLM_ATTN_NONE, 4);
    l->experts = 3;
    l->expert_ffn = 2;
    put_f32(&f, "model.embed_tokens.weight", "4,4", 0, 16);
    put_f32(&f, "model.layers.0.block_sparse_moe.experts.0.w1.weight", "2,4", 100, 8);
    put_f32(&f, "model.layers.0.block_sparse_moe.experts.2.w1.weight", "2,4", 500, 8);
    put_f32(&f, "model.layers.0.block_sparse_moe.experts.1.w1.weight", "2,4", 900, 8);
    plm_weights *w = open_set();
    plm_weight v;
    const int64_t dim[] = {3, 2, 4};
    assert_weight(w, "blk.0.ffn_gate_exps", 3, dim, PLM_DT_F32, expert, false);
    assert_ok(plm_weights_get(w, "blk.0.ffn_gate_exps", 3, dim, &v, &err), err);
    assert_non_null(v.piece);
    assert_null(v.plane[0].data);
    assert_ok(plm_weight_join(&v, &err), err);
    assert_null(v.piece);
    const float *all = (const float *)(const void *)v.plane[0].data;
    for (int i = 0; i < 24; i++)
        assert_close((double)all[i], expert(i / 8, i % 8 / 4, i % 4), 0, 0);
    plm_weight_release(&v);
    plm_weights_close(w);
}

/* gpt-oss: even rows gate, odd rows up; codes of e2m1 two a byte, the low half first. */
static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
static double oss(int64_t row, int64_t c)
{
    return e2m1[(row + c) % 8] * (row % 2 == 0 ? 2 : 0.25);
}
static double oss_up(int64_t m, int64_t r, int64_t c)
{
    return oss(m * 4 + 2 * r + 1, c);
}
static double oss_gate(int64_t m, int64_t r, int64_t c)
{
    return oss(m * 4 + 2 * r, c);
}
static double oss_bias(int64_t m, int64_t r, int64_t c)
{
    return 10 + (double)(m * 4 + 2 * c + 1 + r * 0);
}
static double oss_bias_row(int64_t m, int64_t r, int64_t c)
{
    return oss_bias(r, m, c);
}

static void mxfp4_of_gpt_oss(void **state)
{
    (void)state;
    unsigned char codes[8][16], scales[8];
    plm_layer *l = one_layer(PLM_ATTN_NONE, 32);
    l->experts = 2;
    l->expert_ffn = 2;
    l->act = PLM_FN_SWIGLU_OAI;
    for (unsigned r = 0; r < 8; r++) {
        scales[r] = r % 2 == 0 ? 128 : 125; /* 2, 1/4 */
        for (unsigned k = 0; k < 16; k++)
            codes[r][k] = (unsigned char)((r + 2 * k) % 8 | (r + 2 * k + 1) % 8 << 4);
    }
    put_f32(&f, "model.embed_tokens.weight", "4,32", 0, 128);
    put(&f, "model.layers.0.mlp.experts.gate_up_proj_blocks", "U8", "2,4,1,16", codes, 128);
    put(&f, "model.layers.0.mlp.experts.gate_up_proj_scales", "U8", "2,4,1", scales, 8);
    put_f32(&f, "model.layers.0.mlp.experts.gate_up_proj_bias", "2,4", 10, 8);
    plm_weights *w = open_set();
    assert_weight(w, "blk.0.ffn_gate_exps", DIMS(2, 2, 32), PLM_DT_MXFP4_PLANAR, oss_gate, true);
    assert_weight(w, "blk.0.ffn_up_exps", DIMS(2, 2, 32), PLM_DT_MXFP4_PLANAR, oss_up, true);
    assert_weight(w, "blk.0.ffn_up_exps.bias", DIMS(2, 2), PLM_DT_F32, oss_bias_row, true);
    plm_weights_close(w);
}

/* The same experts as plain numbers, stored [in, out]. */
static double oss_plain_up(int64_t m, int64_t r, int64_t c)
{
    return (double)(m * 12 + c * 4 + 2 * r + 1);
}
static double oss_plain_down(int64_t m, int64_t r, int64_t c)
{
    return 500 + (double)(m * 6 + c * 3 + r);
}

static void plain_gpt_oss(void **state)
{
    (void)state;
    plm_layer *l = one_layer(PLM_ATTN_NONE, 3);
    l->experts = 2;
    l->expert_ffn = 2;
    l->act = PLM_FN_SWIGLU_OAI;
    put_f32(&f, "model.embed_tokens.weight", "4,3", 0, 12);
    put_f32(&f, "model.layers.0.mlp.experts.gate_up_proj", "2,3,4", 0, 24);
    put_f32(&f, "model.layers.0.mlp.experts.down_proj", "2,2,3", 500, 12);
    plm_weights *w = open_set();
    assert_weight(w, "blk.0.ffn_up_exps", DIMS(2, 2, 3), PLM_DT_F32, oss_plain_up, true);
    assert_weight(w, "blk.0.ffn_down_exps", DIMS(2, 3, 2), PLM_DT_F32, oss_plain_down, true);
    plm_weights_close(w);
}

/* ---- latents ---- */

/* kv_b [2 heads * (3 nope + 2 dv), 4]. */
static double k_absorbed(int64_t m, int64_t r, int64_t c)
{
    return (double)((m * 5 + c) * 4 + r);
}
static double v_absorbed(int64_t m, int64_t r, int64_t c)
{
    return (double)((m * 5 + 3 + r) * 4 + c);
}
static double k_expanded(int64_t m, int64_t r, int64_t c)
{
    return (double)((m + r / 3 * 5 + r % 3) * 4 + c);
}
static double v_expanded(int64_t m, int64_t r, int64_t c)
{
    return (double)((m + r / 2 * 5 + 3 + r % 2) * 4 + c);
}

static void latent_heads(void **state)
{
    (void)state;
    plm_layer *l = one_layer(PLM_ATTN_MLA, 8);
    l->heads = l->kv_heads = 2;
    l->nope = 3;
    l->dv = 2;
    l->kv_lora = 4;
    put_f32(&f, "model.embed_tokens.weight", "4,8", 0, 32);
    put_f32(&f, "model.layers.0.self_attn.kv_b_proj.weight", "10,4", 0, 40);
    plm_weights *w = open_set();
    assert_weight(w, "blk.0.attn_k_b", DIMS(2, 4, 3), PLM_DT_F32, k_absorbed, true);
    assert_weight(w, "blk.0.attn_v_b", DIMS(2, 2, 4), PLM_DT_F32, v_absorbed, false);
    assert_weight(w, "blk.0.attn_k_b", DIMS(6, 4), PLM_DT_F32, k_expanded, true);
    assert_weight(w, "blk.0.attn_v_b", DIMS(4, 4), PLM_DT_F32, v_expanded, true);
    plm_weights_close(w);
}

/* ---- delta rule ---- */

/* 2 key heads of dk 2, 4 value heads of dv 3: a key head's 2 q, 2 k, 6 v and 6 z rows of 16. */
static int64_t qkvz_row(int64_t r)
{
    if (r < 4)
        return r / 2 * 16 + r % 2;
    if (r < 8)
        return (r - 4) / 2 * 16 + 2 + r % 2;
    if (r < 20)
        return (r - 8) / 6 * 16 + 4 + (r - 8) % 6;
    return (r - 20) / 6 * 16 + 10 + (r - 20) % 6;
}
static double qkvz(int64_t m, int64_t r, int64_t c)
{
    return (double)(m + qkvz_row(r) * 2 + c);
}
static double ba(int64_t m, int64_t r, int64_t c)
{
    static const int from[8] = {0, 1, 4, 5, 2, 3, 6, 7};
    return 900 + (double)(m + from[r] * 2 + c);
}
static double a_log(int64_t m, int64_t r, int64_t c)
{
    return -exp(0.0 + (double)(m + r + c));
}
static double gated_q(int64_t m, int64_t r,
                      int64_t c) /* 2 heads of 3: q q q gate gate gate a head */
{
    return 40 + (double)((m + r % 6 / 3 * 6 + r / 6 * 3 + r % 3) * 2 + c);
}

static void delta(plm_layer *l)
{
    l->lin_k_heads = 2;
    l->lin_v_heads = 4;
    l->lin_dk = 2;
    l->lin_dv = 3;
    l->conv_taps = 4;
}

static void qwen3_next(void **state)
{
    (void)state;
    delta(one_layer(PLM_ATTN_GATED_DELTA, 2));
    arch.layers = arch.n_kinds = 2;
    arch.layer_kind[1] = 1;
    plm_layer *full = &arch.kind[1];
    memset(full, 0, sizeof *full);
    full->attn = PLM_ATTN_FULL;
    full->heads = full->kv_heads = 2;
    full->dk = full->dv = 3;
    full->out_gate = true;
    put_f32(&f, "model.embed_tokens.weight", "4,2", 0, 8);
    put_f32(&f, "model.layers.0.linear_attn.in_proj_qkvz.weight", "32,2", 0, 64);
    put_f32(&f, "model.layers.0.linear_attn.in_proj_ba.weight", "8,2", 900, 16);
    put_f32(&f, "model.layers.0.linear_attn.A_log", "4", 0, 4);
    put_f32(&f, "model.layers.0.linear_attn.conv1d.weight", "20,1,4", 100, 80);
    put_f32(&f, "model.layers.1.self_attn.q_proj.weight", "12,2", 40, 24);
    plm_weights *w = open_set();
    assert_weight(w, "blk.0.ssm_in", DIMS(32, 2), PLM_DT_F32, qkvz, true);
    assert_weight(w, "blk.0.ssm_ba", DIMS(8, 2), PLM_DT_F32, ba, true);
    assert_weight(w, "blk.1.attn_q", DIMS(12, 2), PLM_DT_F32, gated_q, true);
    plm_error err = {PLM_OK, ""};
    plm_weight v;
    assert_ok(plm_weights_get(w, "blk.0.ssm_a", DIMS(4), &v, &err), err);
    for (int i = 0; i < 4; i++)
        assert_close((double)((const float *)(const void *)v.plane[0].data)[i], a_log(0, i, 0),
                     1e-6, 0);
    plm_weight_release(&v);
    assert_ok(plm_weights_get(w, "blk.0.ssm_conv", DIMS(20, 4), &v, &err), err);
    assert_null(v.own);
    plm_weight_release(&v);
    plm_weights_close(w);
}

/* ---- planes ---- */

static double fp8(int64_t m, int64_t r, int64_t c)
{
    return (double)(m + 1) * (c % 2 == 0 ? 1.0 : -2.0) * (c < 128 ? 0.5 : 4.0) * (r < 128 ? 1 : 3);
}

static void fp8_blocks(void **state)
{
    (void)state;
    static unsigned char codes[130 * 130];
    const float scales[4] = {0.5f, 4.0f, 1.5f, 12.0f};
    one_layer(PLM_ATTN_FULL, 130);
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = i % 130 % 2 == 0 ? 0x38 : 0xc0; /* 1, -2 in E4M3 */
    put_f32(&f, "model.embed_tokens.weight", "4,130", 0, 520);
    put(&f, "model.layers.0.self_attn.o_proj.weight", "F8_E4M3", "130,130", codes, sizeof codes);
    put(&f, "model.layers.0.self_attn.o_proj.weight_scale_inv", "F32", "2,2", scales, 16);
    plm_weights *w = open_set();
    assert_weight(w, "blk.0.attn_output", DIMS(130, 130), PLM_DT_FP8_BLOCK, fp8, false);
    plm_weights_close(w);
}

/* Value of number i: map[i % 16] * (nested_map[absmax[i / 64]] * nested[0] + 0.25). */
static double nf4(int64_t m, int64_t r, int64_t c)
{
    int64_t i = (m + r) * 32 + c;
    return (double)(i % 16 - 8) * ((double)(i / 64 * 3) * 2.0 + 0.25);
}

static void nf4_double(void **state)
{
    (void)state;
    static const char quant[] = "{\"quant_type\":\"nf4\",\"blocksize\":64,\"nested_blocksize\":256,"
                                "\"nested_offset\":0.25,\"shape\":[8,32]}";
    unsigned char codes[128], absmax[4];
    float map[16], nested_map[256], nested = 2;
    one_layer(PLM_ATTN_FULL, 32);
    for (unsigned i = 0; i < 128; i++)
        codes[i] = (unsigned char)((2 * i) % 16 << 4 | (2 * i + 1) % 16);
    for (unsigned i = 0; i < 4; i++)
        absmax[i] = (unsigned char)(10 + i);
    for (int i = 0; i < 16; i++)
        map[i] = (float)(i - 8);
    for (int i = 0; i < 256; i++)
        nested_map[i] = (float)((i - 10) * 3);
#define UP "model.layers.0.mlp.up_proj.weight"
    put_f32(&f, "model.embed_tokens.weight", "4,32", 0, 128);
    put(&f, UP, "U8", "128,1", codes, 128);
    put(&f, UP ".quant_map", "F32", "16", map, 64);
    put(&f, UP ".nested_quant_map", "F32", "256", nested_map, 1024);
    put(&f, UP ".nested_absmax", "F32", "1", &nested, 4);
    put(&f, UP ".absmax", "U8", "4", absmax, 4);
    put(&f, UP ".quant_state.bitsandbytes__nf4", "U8", "94", quant, 94);
    assert_int_equal(sizeof quant - 1, 94);
    plm_weights *w = open_set();
    assert_weight(w, "blk.0.ffn_up", DIMS(8, 32), PLM_DT_NF4_DQ, nf4,
                  true); /* the offset is a copy */
    plm_error err = {PLM_OK, ""};
    plm_weight v;
    assert_ok(plm_weights_get(w, "blk.0.ffn_up", DIMS(8, 32), &v, &err), err);
    assert_ptr_equal(v.plane[PLM_PLANE_CODES].data, plm_weight_plane(&v, 0, PLM_PLANE_CODES));
    assert_true(v.own_bytes < 1024);
    plm_weight_release(&v);
    plm_weights_close(w);
}

/* ---- GGUF ---- */

typedef struct gguf {
    uint64_t room[2048];
    size_t n, data;
    unsigned tensors;
} gguf;

static void put_le(gguf *g, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)g->room)[g->n++] = (unsigned char)(v >> (8 * i));
}

/* A record; dims outermost first; type 0 is f32. */
static void record(gguf *g, const char *name, uint32_t rank, const int64_t *dim)
{
    uint64_t bytes = 4;
    put_le(g, strlen(name), 8);
    memcpy((unsigned char *)g->room + g->n, name, strlen(name));
    g->n += strlen(name);
    put_le(g, rank, 4);
    for (uint32_t i = rank; i-- > 0;) {
        put_le(g, (uint64_t)dim[i], 8);
        bytes *= (uint64_t)dim[i];
    }
    put_le(g, 0, 4);
    put_le(g, g->data, 8);
    g->data += (bytes + 31) / 32 * 32;
    g->tensors++;
}

/* Qwen3.5: value heads tiled, so that the file's order of the model's heads 0 1 2 3 is 0 2 1 3. */
static const int tiled[4] = {0, 2, 1, 3};
static double dt_bias(int64_t m, int64_t r, int64_t c)
{
    return tiled[c] + 0.0 * (double)(m + r);
}
static double tiled_out(int64_t m, int64_t r, int64_t c)
{
    return (double)(m + 1000 + r * 12 + tiled[c / 3] * 3 + c % 3);
}

static void qwen35_gguf(void **state)
{
    (void)state;
    static gguf g;
    plm_error err = {PLM_OK, ""};
    delta(one_layer(PLM_ATTN_GATED_DELTA, 2));
    strcpy(arch.family, "qwen35");
    memset(&g, 0, sizeof g);
    memcpy(g.room, "GGUF\3\0\0\0\2", 9);
    g.n = 24;
    record(&g, "blk.0.ssm_dt.bias", 1, (const int64_t[]){4});
    record(&g, "blk.0.ssm_out.weight", 2, (const int64_t[]){2, 12});
    g.n = (g.n + 31) / 32 * 32;
    float *v = (float *)(void *)((unsigned char *)g.room + g.n);
    for (int i = 0; i < 4; i++)
        v[i] = (float)i;
    for (int i = 0; i < 24; i++)
        v[8 + i] = (float)(1000 + i);
    plm_weights_file one = {(const unsigned char *)g.room, g.n + g.data, "test.gguf"};
    plm_weights *w;
    assert_ok(plm_weights_open_memory(&one, 1, &arch, &w, &err), err);
    assert_non_null(plm_weights_gguf(w));
    assert_weight(w, "blk.0.ssm_dt.bias", DIMS(4), PLM_DT_F32, dt_bias, true);
    assert_weight(w, "blk.0.ssm_out", DIMS(2, 12), PLM_DT_F32, tiled_out, true);
    plm_weight raw;
    assert_ok(plm_weights_tensor(w, "blk.0.ssm_dt.bias", &raw, &err), err);
    assert_int_equal(raw.bytes, 16);
    assert_int_equal(plm_weights_tensor(w, "none", &raw, &err), PLM_E_NOT_FOUND);
    plm_weights_close(w);
}

/* ---- refusals ---- */

static void refusals(void **state)
{
    (void)state;
    plm_error err = {PLM_OK, ""};
    plm_weight v;
    one_layer(PLM_ATTN_FULL, 4)->ffn = 3;
    put_f32(&f, "model.embed_tokens.weight", "4,4", 0, 16);
    put_f32(&f, "model.layers.0.mlp.up_proj.weight", "3,5", 0, 15);
    put(&f, "model.layers.0.mlp.down_proj.weight", "F8_E4M3", "4,3", "abcdefghijkl", 12);
    put(&f, "model.layers.0.mlp.down_proj.weight_scale_inv", "F32", "3", "abcdefghijkl", 12);
    plm_weights *w = open_set();
    assert_int_equal(plm_weights_get(w, "blk.0.ffn_up", DIMS(3, 4), &v, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "up_proj"));
    assert_int_equal(plm_weights_get(w, "blk.0.ffn_gate", DIMS(3, 4), &v, &err), PLM_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "blk.0.ffn_gate"));
    assert_int_equal(plm_weights_get(w, "blk.0.ffn_down", DIMS(4, 3), &v, &err), PLM_E_INVALID);
    assert_int_equal(plm_weights_get(w, "blk.7.ffn_up", DIMS(3, 4), &v, &err), PLM_E_NOT_FOUND);
    assert_int_equal(plm_weights_get(w, "token_embd", DIMS(INT64_MAX, 4), &v, &err), PLM_E_INVALID);
    assert_int_equal(plm_weights_get(w, "token_embd", DIMS(0, 4), &v, &err), PLM_E_INVALID);
    assert_null(v.own);
    plm_weights_close(w);
    assert_int_equal(plm_weights_open("/nonexistent.gguf", &arch, &w, &err), PLM_E_IO);
    assert_null(w);
}

/* Two shards and their index in a folder. */
static void write_file(const char *folder, const char *name, const void *data, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, n, out), n);
    fclose(out);
}

static void shards(void **state)
{
    (void)state;
    char folder[] = "/tmp/plimsoll-weights-XXXXXX";
    static const char *const names[] = {"a.safetensors", "b.safetensors",
                                        "model.safetensors.index.json"};
    static const char index[] = "{\"weight_map\":{\"model.embed_tokens.weight\":\"a.safetensors\","
                                "\"model.norm.weight\":\"b.safetensors\"}}";
    static const char escape[] = "{\"weight_map\":{\"x\":\"../a.safetensors\"}}";
    plm_error err = {PLM_OK, ""};
    plm_weights *w;
    plm_weight v;
    assert_non_null(mkdtemp(folder));
    one_layer(PLM_ATTN_FULL, 4);
    put_f32(&f, "model.embed_tokens.weight", "4,4", 0, 16);
    plm_weights_file one = finish(&f);
    write_file(folder, names[0], one.data, one.bytes);
    begin(&f);
    put_f32(&f, "model.norm.weight", "4", 7, 4);
    one = finish(&f);
    write_file(folder, names[1], one.data, one.bytes);
    write_file(folder, names[2], index, sizeof index - 1);
    assert_ok(plm_weights_open(folder, &arch, &w, &err), err);
    assert_ok(plm_weights_get(w, "output_norm", DIMS(4), &v, &err), err);
    assert_close((double)((const float *)(const void *)v.plane[0].data)[3], 10, 0, 0);
    plm_weight_release(&v);
    plm_weights_close(w);
    write_file(folder, names[2], escape, sizeof escape - 1);
    assert_int_equal(plm_weights_open(folder, &arch, &w, &err), PLM_E_INVALID);
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    rmdir(folder);
}

/* Every allocation of opening, asking and joining fails in turn. */
static plm_status work(const plm_weights_file *one, plm_error *err)
{
    plm_weights *w;
    plm_weight v;
    PLM_TRY(plm_weights_open_memory(one, 1, &arch, &w, err));
    plm_status status = plm_weights_get(w, "blk.0.ffn_gate_exps", DIMS(2, 2, 4), &v, err);
    if (status == PLM_OK) {
        float row[4];
        status = plm_weight_join(&v, err);
        if (status == PLM_OK)
            status = plm_weight_decode(&v, 1, 0, 1, row, err);
        plm_weight_release(&v);
    }
    if (status == PLM_OK) {
        status = plm_weights_get(w, "blk.0.ffn_up_exps", DIMS(2, 2, 4), &v, err);
        plm_weight_release(&v);
    }
    plm_weights_close(w);
    return status;
}

static void torture(void **state)
{
    (void)state;
    plm_error err = {PLM_OK, ""};
    plm_layer *l = one_layer(PLM_ATTN_NONE, 4);
    l->experts = l->expert_ffn = 2;
    put_f32(&f, "model.embed_tokens.weight", "4,4", 0, 16);
    put_f32(&f, "model.layers.0.mlp.experts.1.gate_proj.weight", "2,4", 0, 8);
    put_f32(&f, "model.layers.0.mlp.experts.0.gate_proj.weight", "2,4", 0, 8);
    put_f32(&f, "model.layers.0.mlp.experts.gate_up_proj", "2,4,4", 0, 32);
    plm_weights_file one = finish(&f);
    int64_t live = plm_mem_live();
    plm_mem_fail_at(0, false);
    assert_ok(work(&one, &err), err);
    uint64_t total = plm_mem_count();
    unsigned refused = 0;
    for (uint64_t k = 1; k <= total; k++) {
        plm_mem_fail_at(k, false);
        plm_status status = work(&one, &err);
        plm_mem_fail_at(0, false);
        assert_true(status == PLM_OK || status == PLM_E_NO_MEMORY);
        refused += status != PLM_OK;
        assert_int_equal(plm_mem_live(), live);
    }
    assert_true(refused > 20);
    /* Cut anywhere, the file is refused. */
    for (size_t cut = 0; cut < one.bytes; cut += 3) {
        plm_weights *w;
        plm_weights_file part = {one.data, cut, "cut"};
        assert_int_not_equal(plm_weights_open_memory(&part, 1, &arch, &w, &err), PLM_OK);
    }
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_rows_are_views),
        cmocka_unit_test(conv1d_is_turned),
        cmocka_unit_test(experts_in_pieces),
        cmocka_unit_test(mxfp4_of_gpt_oss),
        cmocka_unit_test(plain_gpt_oss),
        cmocka_unit_test(latent_heads),
        cmocka_unit_test(qwen3_next),
        cmocka_unit_test(fp8_blocks),
        cmocka_unit_test(nf4_double),
        cmocka_unit_test(qwen35_gguf),
        cmocka_unit_test(refusals),
        cmocka_unit_test(shards),
        cmocka_unit_test(torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
