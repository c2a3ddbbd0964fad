/* Shape rules: each op with the shapes its row in ops.def promises, and with operands that break
** them. The text form is the input: a node line states the output's type, and the parser compares it
** with what the rule makes. */
#include "tests/support.h"

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/ir/op.h"

/* Values that the cases draw on: x T tokens of 64, heads 4 x 16, KV heads 2. */
static const char prelude[] =
    "dim %0 = mul T 4\n"
    "dim %1 = mul T 8\n"
    "dim %2 = ceildiv T 2\n"
    "dim %3 = mul T 2\n"
    "input @ids:i32[T]\ninput @pos:i32[T]\ninput @rows:i32[R]\ninput @lora:i32[T]\n"
    "input @x:bf16[T,64]\ninput @y:bf16[T,64]\ninput @x3:bf16[T,4,16]\ninput @one:f32[T,1]\n"
    "input @flat:bf16[%0,16]\ninput @r3:bf16[R,4,16]\ninput @scalar:f32[]\n"
    "input @k:bf16[T,2,16]\ninput @v:bf16[T,2,8]\ninput @xe:bf16[E,64]\ninput @perm:i32[E]\n"
    "input @off:i32[9]\ninput @off8:i32[8]\ninput @tw:f32[T,2]\ninput @tid:i32[T,2]\n"
    "input @sel:i32[T,128]\ninput @pairs:i32[5,2]\ninput @logits:f32[T,8]\ninput @odd:bf16[T,7]\n"
    "input @qx:f8e4m3[T,64]\ninput @lat:bf16[T,1,24]\ninput @q24:bf16[T,4,24]\n"
    "input @g:f32[T,4]\ninput @g3:f32[T,4,16]\ninput @hk:bf16[T,2,16]\ninput @hv:bf16[T,4,8]\n"
    "input @qi:bf16[T,4,16]\ninput @one3:bf16[T,1,16]\ninput @z32:bf16[T,32]\n"
    "input @m4:f32[T,4,4]\ninput @s16:bf16[T,16]\n"
    "weight @table:q8_0[1000,64] role=embed\nweight @ftab:f16[1000,64]\nweight @w:q4_0[96,64]\n"
    "weight @b96:f32[96]\nweight @n64:f32[64]\nweight @n16:f32[16]\nweight @n8:f32[8]\n"
    "weight @wh:bf16[4,32,16]\nweight @we:mxfp4[8,96,64]\nweight @be:f32[8,96]\n"
    "weight @la:bf16[3,16,64]\nweight @lb:bf16[3,64,16]\nweight @taps:f32[64,4]\n"
    "weight @sink:f32[4]\nweight @fac:f32[8]\n"
    "state @kc:bf16[C,2,16] role=kv\nstate @vc:bf16[C,2,8] role=kv\nstate @lc:bf16[C,1,24] role=kv\n"
    "state @ic:bf16[C,1,16] role=kv\nstate @tail:f32[S,64,3] role=state\n"
    "state @tail2:f32[S,64,4] role=state\nstate @pool:f32[S,8,64] role=state\n"
    "state @ds:f32[S,4,16,8] role=state\nstate @ss:f32[S,4,16,16] role=state\n";

static const char *const good[] = {
    "%0:bf16[T,64] = embed(@ids, @table)",
    "%0:f16[T,64] = embed(@ids, @ftab) {scale=8}",
    "%0:bf16[T,96] = linear(@x, @w, @b96)",
    "%0:f32[T,96] = linear(@x, @w)",
    "%0:bf16[T,4,32] = bmm(@x3, @wh)",
    "%0:bf16[E,96] = linear_grouped(@xe, @we, @off, @be) {experts=8, local_experts=8, top_k=2}",
    "%0:bf16[T,16] = lora_shrink(@x, @la, @lora) {rank=16}",
    "%0:bf16[T,64] = lora_expand(@x, @tid16, @lb, @lora) {alpha=2}",
    "%0:bf16[T,64] = rms_norm(@x, @n64) {eps=1e-06}",
    "%0:bf16[T,4,16] = rms_norm(@x3, @n16) {eps=1e-06, weight_offset=1}",
    "%0:bf16[T,64] = rms_norm(@x) {eps=1e-06}",
    "%0:bf16[T,64] = layer_norm(@x, @n64, @n64) {eps=1e-05}",
    "%0:bf16[T,64] = layer_norm(@x, _, @n64) {eps=1e-05}",
    "%0:bf16[T,64] = rms_norm_gated(@x, @y, @n64) {eps=1e-06, fn=silu}",
    "%0:bf16[T,4,16] = l2_norm(@x3) {eps=1e-06}",
    "%0:bf16[T,64] = add(@x, @y)",
    "%0:bf16[T,64] = add(@x, @n64)",
    "%0:bf16[T,64] = mul(@x, @one)",
    "%0:bf16[T,64] = mul(@x, @scalar)",
    "%0:bf16[T,4,16] = add(@x3, @n16)",
    "%0:bf16[T,64] = scale(@x) {scale=0.5}",
    "%0:f32[T,64] = cast(@x)",
    "%0:bf16[T,64] = unary(@x) {fn=gelu_tanh}",
    "%0:bf16[T,64] = glu(@x, @y) {fn=silu}",
    "%0:bf16[T,32] = glu(@x) {fn=swiglu_oai, limit=7, alpha=1.702}",
    "%0:bf16[T,64] = softcap(@x) {limit=30}",
    "%0:f32[T,8] = softmax(@logits)",
    "%0:bf16[T,4,16] = rope(@x3, @pos) {rope_dims=16, theta=10000}",
    "%0:bf16[T,4,16] = rope(@x3, @pos, @fac) {rope_dims=16, rope_scaling=longrope}",
    "%0:bf16[T,16] = stream_sum(@x3, @g)",
    "%0:bf16[T,4,16] = stream_mix(@x3, @m4, @s16, @g)",
    "%0:f8e4m3[T,64] = quant(@x) {block=0}",
    "%0:bf16[T,64] = dequant(@qx)",
    "%0:bf16[C,2,16], %1:bf16[C,2,8] = kv_write(@k, @kc, @v, @vc)",
    "%0:bf16[C,1,24] = kv_write(@lat, @lc)",
    "%0:bf16[C,2,16] = kv_copy(@kc, @pairs)",
    ("%0:bf16[T,4,8] = attention(@x3, @kc, @vc) "
     "{heads=4, kv_heads=2, dk=16, dv=8, scale=0.25, causal=1}"),
    "%0:bf16[T,4,8] = attention(@x3, @kc, @vc, @sink) {window=128, softcap=50}",
    "%0:bf16[T,4,8] = attention(@x3, @kc, @vc, _, @sel) {sparse_top_k=128}",
    "%0:bf16[T,4,20] = attention(@q24, @lc) {v_in_k=1, dv=20}",
    "%0:i32[T,128] = index(@qi, @ic, @g) {heads=4, dk=16, top_k=128}",
    "%0:bf16[T,64], %1:f32[S,8,64] = kv_pool(@x, @y, @pool) {ratio=8}",
    "%0:f32[T,2], %1:i32[T,2] = gate(@logits, @n8) {fn=sigmoid, experts=8, top_k=2, renorm=1}",
    "%0:f32[T,2], %1:i32[T,2] = gate(@logits, _, @tid) {fn=sigmoid, experts=8, top_k=2}",
    "%0:bf16[%3,64], %1:i32[9], %2:i32[%3] = moe_sort(@x, @tid) {experts=8, top_k=2}",
    "%0:bf16[T,64], %1:i32[5], %2:i32[T] = moe_sort(@x, @tid) {experts=8, local_experts=4}",
    "%0:bf16[T,64] = moe_combine(@xe, @perm, @tw)",
    "%0:bf16[T,64], %1:f32[S,64,3] = conv_causal(@x, @taps, @tail, @n64) {fn=silu}",
    "%0:bf16[T,4,8], %1:f32[S,4,16,8] = gated_delta(@hk, @hk, @hv, @g, @g, @ds) {scale=0.25}",
    "%0:bf16[T,4,8], %1:f32[S,4,16,8] = gated_delta(@hk, @hk, @hv, @g3, @g, @ds) {chunk=64}",
    "%0:bf16[T,4,16], %1:f32[S,4,16,16] = ssm_scan(@x3, @g, @hk, @hk, @sink, @sink, @ss)",
    "%0:bf16[T,16] = slice(@x) {axis=1, start=48, count=16}",
    "%0:bf16[T,128] = concat(@x, @y) {axis=1}",
    "%0:bf16[T,4,24] = concat(@x3, @hv) {axis=2}",
    "%0:bf16[T,4,16] = reshape(@x) {rank=3, d0=-1, d1=4, d2=16}",
    "%0:bf16[T,64] = reshape(@x3) {rank=2, d0=-1, d1=64}",
    "%0:bf16[%0,16] = reshape(@x) {rank=2, d0=-1, d1=16}",
    "%0:bf16[T,64] = reshape(@flat) {rank=2, d0=-1, d1=64}",
    "%0:f32[8,8] = reshape(@n64) {rank=2, d0=8, d1=8}",
    "%0:bf16[T,4,16] = repeat(@one3) {axis=1, count=4}",
    "%0:bf16[%1,64] = repeat(@x) {axis=0, count=8}",
    "%0:bf16[R,64] = gather(@x, @rows)",
    "%0:bf16[R,4,16] = gather(@x3, @rows)",
    "%0:i32[T] = argmax(@logits)",
    "%0:f32[T,4], %1:i32[T,4] = top_k(@logits) {top_k=4}",
    "%0:bf16[T,64] = all_reduce(@x) {ranks=8, nodes=1}",
    "%0:bf16[T,512] = all_gather(@x) {ranks=8, axis=1}",
    "%0:bf16[T,8] = reduce_scatter(@x) {ranks=8, axis=1}",
    "%0:bf16[%2,64] = reduce_scatter(@x) {ranks=2, axis=0}",
    "%0:bf16[E,64] = all_to_all(@xe) {ranks=8}",
    "%0:bf16[T,64] = send(@x) {ranks=2}",
    "%0:bf16[T,64] = recv(@x) {ranks=2}",
};

/* node line, and a part of the error it must give */
static const struct {
    const char *node, *error;
} bad[] = {
    {"%0:bf16[T,64] = embed(@x, @table)", "input 0"},
    {"%0:bf16[T,64] = embed(@rows, @table)", "rule"},
    {"%0:bf16[T,64] = embed(@ids)", "inputs, 1"},
    {"%0:bf16[T,96] = linear(@x3, @w)", "input 1, dim 1: 64, must be 16"},
    {"%0:bf16[T,96] = linear(@x, @w, @n64)", "input 2, dim 0"},
    {"%0:bf16[T,95] = linear(@x, @w)", "rule"},
    {"%0:bf16[T,96] = linear(@x, _)", "missing"},
    {"%0:bf16[T,4,32] = bmm(@x, @wh)", "input 0: rank 2"},
    {"%0:bf16[E,96] = linear_grouped(@xe, @we, @off8)", "offset"},
    {"%0:bf16[E,96] = linear_grouped(@xe, @we, @off) {local_experts=4}", "local_experts"},
    {"%0:bf16[T,16] = lora_shrink(@x, @la, @lora) {rank=8}", "rank"},
    {"%0:bf16[T,64] = rms_norm(@x, @n16) {eps=1e-06}", "input 1"},
    {"%0:bf16[T,64] = rms_norm(@x, @n64) {eps=2}", "attribute eps"},
    {"%0:bf16[T,64] = rms_norm(@x, @n64) {theta=2}", "attribute theta"},
    {"%0:bf16[T,64] = rms_norm(@x, @n64) {eps=0, eps=0}", "twice"},
    {"%0:bf16[T,64] = rms_norm_gated(@x, @y, @n64) {fn=relu}", "fn"},
    {"%0:bf16[T,64] = add(@x, @n16)", "input 1, dim 0: 16, must be 64 or 1"},
    {"%0:bf16[T,1] = add(@one, @x)", "input 1"},
    {"%0:f32[64] = add(@n64, @x)", "rank"},
    {"%0:bf16[T,64] = unary(@x) {fn=softmax}", "fn"},
    {"%0:bf16[T,64] = glu(@x, @z32) {fn=silu}", "input 1"},
    {"%0:bf16[T,3] = glu(@odd) {fn=silu}", "even"},
    {"%0:bf16[T,4,16] = rope(@x3, @pos) {rope_dims=17}", "rope_dims"},
    {"%0:bf16[T,4,16] = rope(@x3, @pos) {rope_dims=18}", "rope_dims"},
    {"%0:bf16[T,4,16] = rope(@x3, @pos, @fac) {rope_dims=8}", "input 2"},
    {"%0:bf16[T,4,16] = rope(@x3, @rows)", "input 1, dim 0: R, must be T"},
    {"%0:bf16[C,2,16] = kv_write(@k, @kc, @v)", "inputs 2 and 3"},
    {"%0:bf16[C,2,16] = kv_write(@k, @kc, _, @vc)", "inputs 2 and 3"},
    {"%0:bf16[C,2,8] = kv_write(@k, @vc)", "input 1, dim 2"},
    {"%0:f32[C,2,16] = kv_write(@k, @kc)", "rule"},
    {"%0:bf16[T,4,8] = attention(@x3, @kc)", "input 2"},
    {"%0:bf16[T,4,8] = attention(@x3, @kc, @vc) {v_in_k=1, dv=8}", "input 2"},
    {"%0:bf16[T,4,8] = attention(@x3, @kc, @vc) {heads=8}", "heads"},
    {"%0:bf16[T,4,8] = attention(@x3, @kc, @vc) {dv=16}", "dv"},
    {"%0:bf16[T,4,8] = attention(@x3, @kc, @vc, @n16)", "input 3"},
    {"%0:bf16[T,4,20] = attention(@q24, @lc) {v_in_k=1, dv=25}", "dv"},
    {"%0:bf16[T,4,20] = attention(@q24, @lc) {v_in_k=1}", "dv: missing"},
    {"%0:i32[T,128] = index(@qi, @ic, @g) {heads=4}", "top_k: missing"},
    {"%0:bf16[T,64], %1:f32[S,8,64] = kv_pool(@x, @y, @pool) {ratio=4}", "ratio"},
    {"%0:f32[T,9], %1:i32[T,9] = gate(@logits) {top_k=9}", "top_k"},
    {"%0:f32[T,3], %1:i32[T,3] = gate(@logits, _, @tid) {top_k=3}", "input 2"},
    {"%0:f32[T,2], %1:i32[T,2] = gate(@logits, _, @tw) {top_k=2}", "integer"},
    {"%0:bf16[T,16] = stream_sum(@x3, @tw)", "input 1, dim 1"},
    {"%0:bf16[T,4,16] = stream_mix(@x3, @g3, @s16, @g)", "input 1, dim 2"},
    {"%0:bf16[T,4,16] = stream_mix(@x3, @m4, @x, @g)", "input 2, dim 1"},
    {"%0:f32[T,2], %1:i32[T,2] = gate(@logits) {top_k=2, fn=relu}", "fn"},
    {"%0:bf16[E,64], %1:i32[9], %2:i32[E] = moe_sort(@x, @tid) {experts=8, top_k=3}", "top_k"},
    {"%0:bf16[E,64], %1:i32[17], %2:i32[E] = moe_sort(@x, @tid) {experts=8, local_experts=16}",
     "local_experts"},
    {"%0:bf16[T,64] = moe_combine(@x, @perm, @tw)", "input 1, dim 0: E, must be T"},
    {"%0:bf16[T,64], %1:f32[S,64,4] = conv_causal(@x, @taps, @tail2)", "taps"},
    {"%0:bf16[T,4,8], %1:f32[S,4,16,8] = gated_delta(@hk, @hk, @hv, @g, @tw, @ds)", "input 4"},
    {"%0:bf16[T,2,16] = slice(@x) {axis=1, start=49, count=16}", "start"},
    {"%0:bf16[1,64] = slice(@x) {axis=0, count=1}", "constant"},
    {"%0:bf16[T,64] = slice(@x) {axis=2, count=1}", "axis"},
    {"%0:bf16[T,128] = concat(@x, @xe) {axis=1}", "input 1, dim 0"},
    {"%0:bf16[T,128] = concat(@x, @x3) {axis=1}", "rank"},
    {"%0:bf16[T,128] = concat(@x, _, @y) {axis=1}", "input 1"},
    {"%0:bf16[T,65] = concat(@x, @one) {axis=1}", "type"},
    {"%0:f32[T,64] = all_reduce(@x) {ranks=8}", "dtype"},
    {"%0:f32[R,64] = gather(@x, @rows)", "dtype"},
    {"%0:f32[T,4,16] = reshape(@x) {rank=3, d0=-1, d1=4, d2=16}", "dtype"},
    {"%0:bf16[T,4,16] = reshape(@x) {rank=3, d0=-1, d1=5, d2=16}", "multiple"},
    {"%0:bf16[T,4,16] = reshape(@x) {rank=3, d0=-1, d1=-1, d2=16}", "two"},
    {"%0:bf16[T,4,16] = reshape(@x) {rank=3, d0=1, d1=4, d2=16}", "symbolic"},
    {"%0:bf16[T,4,16] = reshape(@x) {rank=3, d0=-1, d1=0, d2=16}", "multiple"},
    {"%0:bf16[T,4,16] = reshape(@x) {d0=-1, d1=0, d2=16}", "rank: missing"},
    {"%0:f32[8,7] = reshape(@n64) {rank=2, d0=8, d1=7}", "new dims"},
    {"%0:bf16[T,64] = gather(@x, @n64)", "input 1"},
    {"%0:f32[T,9], %1:i32[T,9] = top_k(@logits) {top_k=9}", "top_k"},
    {"%0:bf16[T,64] = all_gather(@x) {axis=1}", "ranks: missing"},
    {"%0:bf16[T,8] = reduce_scatter(@x) {ranks=7, axis=1}", "divide"},
    {"%0:f32[T,4], %1:f32[T,4] = top_k(@logits) {top_k=4}", "rule"},
    {"%0:f32[T,4] = top_k(@logits) {top_k=4}", "number of outputs"},
};

static plm_status parse_case(const char *node, plm_graph *g, plm_error *err)
{
    char text[8192];
    int n = snprintf(text, sizeof text, "%sinput @tid16:bf16[T,16]\n%s\n", prelude, node);
    assert_true(n > 0 && (size_t)n < sizeof text);
    return plm_graph_parse(text, (size_t)n, g, err);
}

static void test_good(void **state)
{
    (void)state;
    bool seen[PLM_OP_COUNT] = {false};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        plm_graph g;
        plm_error err = {0};
        plm_status status = parse_case(good[i], &g, &err);
        if (status != PLM_OK)
            fail_msg("%s: %s", good[i], err.text);
        assert_int_equal(g.n_nodes, 1);
        seen[g.nodes[0].op] = true;
        for (uint32_t j = 0; j < g.nodes[0].n_out; j++) {
            const plm_value *v = &g.values[g.nodes[0].out[j]];
            assert_int_equal(v->role, v->alias == PLM_NONE ? PLM_ROLE_NONE
                                                           : g.values[v->alias].role);
        }
        plm_graph_fini(&g);
    }
    for (int i = 0; i < PLM_OP_COUNT; i++)
        if (!seen[i])
            fail_msg("no case for %s", plm_op_get((plm_op)i)->name);
}

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        plm_graph g;
        plm_error err = {0};
        plm_status status = parse_case(bad[i].node, &g, &err);
        if (status != PLM_E_INVALID || strstr(err.text, bad[i].error) == NULL)
            fail_msg("%s: status %d, '%s' has no '%s'", bad[i].node, status, err.text,
                     bad[i].error);
        assert_int_equal(g.n_values, 0);
        plm_graph_fini(&g);
    }
}

/* Which ops yield a state, and which value it must reuse. */
static void test_aliases(void **state)
{
    (void)state;
    plm_graph g;
    plm_error err = {0};
    assert_ok(parse_case("%0:bf16[C,2,16], %1:bf16[C,2,8] = kv_write(@k, @kc, @v, @vc) layer=3",
                         &g, &err), err);
    const plm_node *n = &g.nodes[0];
    assert_int_equal(n->n_out, 2);
    assert_int_equal(g.values[n->out[0]].alias, n->in[1]);
    assert_int_equal(g.values[n->out[1]].alias, n->in[3]);
    assert_int_equal(g.values[n->out[1]].role, PLM_ROLE_KV);
    assert_int_equal(g.values[n->out[1]].layer, 3);
    plm_graph_fini(&g);
    for (int i = 0; i < PLM_OP_COUNT; i++) {
        const plm_op_info *op = plm_op_get((plm_op)i);
        assert_int_equal(plm_op_by_name(op->name), i);
        assert_non_null(op->shape);
        assert_true((op->work == NULL) == ((op->flags & PLM_OPF_VIEW) != 0));
        assert_true((op->oracle == NULL) == ((op->flags & PLM_OPF_LINK) != 0));
    }
    assert_int_equal(plm_op_by_name("linea"), PLM_OP_COUNT);
    assert_int_equal(plm_op_by_name(NULL), PLM_OP_COUNT);
    assert_null(plm_op_get(PLM_OP_COUNT));
}

static void test_batch_symbols(void **state)
{
    (void)state;
    /* 3 sequences decode at 100 tokens, one prefills 512 after 1000: T = 3 + 512. */
    const plm_segment seg[] = {{1, 100, 3}, {512, 1000, 1}};
    int64_t sym[PLM_SYM_COUNT];
    plm_batch b = {.seg = seg, .n_seg = 2, .logit_rows = -1};
    plm_batch_symbols(&b, 8, sym);
    assert_int_equal(sym[PLM_SYM_T], 515);
    assert_int_equal(sym[PLM_SYM_S], 4);
    assert_int_equal(sym[PLM_SYM_R], 4);
    assert_int_equal(sym[PLM_SYM_E], 4120);
    assert_int_equal(sym[PLM_SYM_C], 3 * 101 + 1512);
    b.logit_rows = 515;
    plm_batch_symbols(&b, 0, sym);
    assert_int_equal(sym[PLM_SYM_R], 515);
    assert_int_equal(sym[PLM_SYM_E], 0);
    const plm_segment huge[] = {{INT64_MAX, INT64_MAX, 2}};
    b = (plm_batch){.seg = huge, .n_seg = 1, .logit_rows = -1};
    plm_batch_symbols(&b, 8, sym);
    assert_true(sym[PLM_SYM_T] == INT64_MAX && sym[PLM_SYM_E] == INT64_MAX &&
                sym[PLM_SYM_C] == INT64_MAX);
}

/* Appends text with '|' escaped, as a cell of a table holds it. */
static void put_cell(char *row, size_t room, const char *text)
{
    size_t n = strlen(row);
    for (; *text != '\0' && n + 3 < room; text++) {
        if (*text == '|')
            row[n++] = '\\';
        row[n++] = *text;
    }
    row[n] = '\0';
}

/* docs/ops.md has a row for each op as ops.def now has it; scripts/ops_doc.sh writes it. */
static void test_doc_is_new(void **state)
{
    (void)state;
    plm_error err = {0};
    char *doc;
    size_t bytes, rows = 0;
    assert_ok(plm_file_read(PLM_ROOT "/docs/ops.md", 1 << 20, &doc, &bytes, &err), err);
    for (int i = 0; i < PLM_OP_COUNT; i++) {
        const plm_op_info *op = plm_op_get((plm_op)i);
        char row[2048];
        snprintf(row, sizeof row, "| `%s` | `", op->name);
        put_cell(row, sizeof row, op->inputs);
        snprintf(row + strlen(row), sizeof row - strlen(row), "` | %d | %s | ", op->n_out,
                 op->attrs);
        const char *at = strstr(doc, row);
        row[0] = '\0';
        put_cell(row, sizeof row, op->doc);
        if (at == NULL || strstr(at, row) == NULL || strstr(at, row) > strchr(at, '\n'))
            fail_msg("docs/ops.md, %s: not as in ops.def; run scripts/ops_doc.sh", op->name);
    }
    for (const char *p = doc; (p = strstr(p, "\n| `")) != NULL; p++)
        rows++;
    assert_int_equal(rows, PLM_OP_COUNT + PLM_ATTR_KEYS);
    plm_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good), cmocka_unit_test(test_bad), cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_batch_symbols), cmocka_unit_test(test_doc_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
