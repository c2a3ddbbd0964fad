/* Text form: print, parse and print again is the identity on random graphs; damaged text ends in an
** error of one line or in a graph that is a fixed point too. */
#include "tests/support.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "core/ir/fn.h"
#include "core/ir/op.h"

/* ---- random graphs ---- */

typedef struct gen {
    plm_graph g;
    uint64_t seed;
    plm_value_id rows[64]; /* values [.., 64] of bf16, first dim T */
    size_t n_rows;
    plm_value_id kc, vc, tail; /* newest versions of the states */
    int names;
} gen;

static uint64_t pick(gen *r, uint64_t n)
{
    return test_random(&r->seed) % n;
}

/* A real that needs all its digits, within [-1000, 1000]. */
static double real(gen *r)
{
    return ((double)(test_random(&r->seed) >> 11) / 9007199254740992.0 - 0.5) * 2000;
}

static plm_value_id any_row(gen *r)
{
    return r->rows[pick(r, r->n_rows)];
}

static void keep(gen *r, plm_value_id v)
{
    if (r->n_rows < sizeof r->rows / sizeof r->rows[0])
        r->rows[r->n_rows++] = v;
    else
        r->rows[pick(r, r->n_rows)] = v;
}

static plm_value_id make_value(gen *r, plm_value_kind kind, plm_dtype dtype, uint32_t rank,
                               plm_dim a, plm_dim b, plm_dim c)
{
    static const char *const stem[] = {"blk.%d.w", "x-%d", "model/layer_%d", "%d"};
    char name[64];
    plm_dim dim[] = {a, b, c};
    const char *form = stem[pick(r, 4)];
    if (form == stem[0])
        snprintf(name, sizeof name, "blk.%d.w", r->names++);
    else if (form == stem[1])
        snprintf(name, sizeof name, "x-%d", r->names++);
    else
        snprintf(name, sizeof name, form == stem[2] ? "model/layer_%d" : "%d", r->names++);
    return plm_graph_value(&r->g, kind, (plm_role)pick(r, PLM_ROLE_COUNT), dtype, name, rank, dim);
}

static plm_dim num(gen *r, int64_t v)
{
    return plm_dim_const(&r->g.dims, v);
}

static plm_value_id weight(gen *r, int64_t rows, int64_t cols)
{
    static const plm_dtype type[] = {PLM_DT_BF16, PLM_DT_Q8_0, PLM_DT_NF4_DQ, PLM_DT_FP8_BLOCK,
                                     PLM_DT_MXFP4_PLANAR, PLM_DT_F32};
    plm_dtype t = cols % 32 == 0 ? type[pick(r, 6)] : PLM_DT_F32;
    return make_value(r, PLM_VALUE_WEIGHT, t, rows > 0 ? 2 : 1,
                      num(r, rows > 0 ? rows : cols), num(r, cols), 0);
}

static void begin(gen *r, plm_op op, plm_value_id a, plm_value_id b)
{
    plm_node_begin(&r->g, op);
    plm_node_in(&r->g, a);
    if (b != PLM_NONE)
        plm_node_in(&r->g, b);
}

static plm_value_id end(gen *r)
{
    return plm_node_end(&r->g, PLM_DT_COUNT);
}

static plm_value_id reshape(gen *r, plm_value_id x, int64_t d1, int64_t d2)
{
    begin(r, PLM_OP_RESHAPE, x, PLM_NONE);
    plm_node_int(&r->g, PLM_ATTR_RANK, d2 > 0 ? 3 : 2);
    plm_node_int(&r->g, PLM_ATTR_D0, -1);
    plm_node_int(&r->g, PLM_ATTR_D1, d1);
    if (d2 > 0)
        plm_node_int(&r->g, PLM_ATTR_D2, d2);
    return end(r);
}

static void add_attention(gen *r)
{
    plm_graph *g = &r->g;
    plm_value_id k = reshape(r, any_row(r), 4, 16), q = reshape(r, any_row(r), 4, 16);
    begin(r, PLM_OP_KV_WRITE, k, r->kc);
    plm_node_in(g, k);
    plm_node_in(g, r->vc);
    r->kc = end(r);
    r->vc = plm_node_out(g, 1);
    begin(r, PLM_OP_ATTENTION, q, r->kc);
    plm_node_in(g, r->vc);
    if (pick(r, 2) == 0) {
        plm_node_in(g, PLM_NONE);
        plm_node_in(g, PLM_NONE);
    }
    plm_node_real(g, PLM_ATTR_SCALE, real(r));
    plm_node_int(g, PLM_ATTR_WINDOW, (int64_t)pick(r, 4096));
    plm_node_int(g, PLM_ATTR_CAUSAL, 1);
    keep(r, reshape(r, end(r), 64, 0));
}

static void add_moe(gen *r)
{
    plm_graph *g = &r->g;
    plm_value_id x = any_row(r);
    begin(r, PLM_OP_LINEAR, x, weight(r, 8, 64));
    plm_value_id logits = plm_node_end(g, PLM_DT_F32);
    begin(r, PLM_OP_GATE, logits, PLM_NONE);
    plm_node_int(g, PLM_ATTR_FN, PLM_FN_SOFTMAX);
    plm_node_int(g, PLM_ATTR_TOP_K, 2);
    plm_value_id w = end(r), ids = plm_node_out(g, 1);
    begin(r, PLM_OP_MOE_SORT, x, ids);
    plm_node_int(g, PLM_ATTR_EXPERTS, 8);
    plm_value_id xs = end(r), off = plm_node_out(g, 1), perm = plm_node_out(g, 2);
    plm_value_id we = make_value(r, PLM_VALUE_WEIGHT, PLM_DT_MXFP4, 3, num(r, 8), num(r, 64),
                                 num(r, 64));
    begin(r, PLM_OP_LINEAR_GROUPED, xs, we);
    plm_node_in(g, off);
    plm_value_id ys = end(r);
    begin(r, PLM_OP_MOE_COMBINE, ys, perm);
    plm_node_in(g, w);
    keep(r, end(r));
}

/* Leaves dims that are expressions behind: T*n, T+S, ceil(T/n). */
static void add_dims(gen *r)
{
    plm_graph *g = &r->g;
    plm_value_id x = any_row(r);
    begin(r, PLM_OP_REPEAT, x, PLM_NONE);
    plm_node_int(g, PLM_ATTR_AXIS, 0);
    plm_node_int(g, PLM_ATTR_COUNT, 2 + (int64_t)pick(r, 5));
    plm_value_id y = end(r);
    begin(r, PLM_OP_CONCAT, y, x);
    plm_node_int(g, PLM_ATTR_AXIS, 0);
    y = end(r);
    begin(r, PLM_OP_REDUCE_SCATTER, y, PLM_NONE);
    plm_node_int(g, PLM_ATTR_RANKS, 2 + (int64_t)pick(r, 3));
    (void)end(r);
    (void)plm_dim_make(&g->dims, (plm_dim_op)(PLM_DIM_ADD + (int)pick(r, 5)),
                       (plm_dim)pick(r, g->dims.count), (plm_dim)pick(r, g->dims.count));
}

static void add_some(gen *r)
{
    plm_graph *g = &r->g;
    g->layer = (int32_t)pick(r, 4) - 1;
    switch (pick(r, 9)) {
    case 0: begin(r, PLM_OP_ADD, any_row(r), any_row(r)); keep(r, end(r)); break;
    case 1:
        begin(r, PLM_OP_RMS_NORM, any_row(r), weight(r, 0, 64));
        plm_node_real(g, PLM_ATTR_EPS, fabs(real(r)) / 1e9);
        plm_node_real(g, PLM_ATTR_WEIGHT_OFFSET, real(r) * 1e-300);
        keep(r, end(r));
        break;
    case 2: begin(r, PLM_OP_LINEAR, any_row(r), weight(r, 64, 64)); keep(r, end(r)); break;
    case 3:
        begin(r, PLM_OP_UNARY, any_row(r), PLM_NONE);
        plm_node_int(g, PLM_ATTR_FN, pick(r, 2) ? PLM_FN_SILU : PLM_FN_GELU_ERF);
        keep(r, end(r));
        break;
    case 4:
        begin(r, PLM_OP_ROPE, reshape(r, any_row(r), 4, 16), 1);
        plm_node_int(g, PLM_ATTR_ROPE_SCALING, (int64_t)pick(r, PLM_ROPE_SCALING_COUNT));
        plm_node_real(g, PLM_ATTR_THETA, 1 + fabs(real(r)) * 1000);
        keep(r, reshape(r, end(r), 64, 0));
        break;
    case 5: add_attention(r); break;
    case 6: add_moe(r); break;
    case 7: add_dims(r); break;
    default:
        begin(r, PLM_OP_CONV_CAUSAL, any_row(r), weight(r, 64, 4));
        plm_node_in(g, r->tail);
        keep(r, end(r));
        r->tail = plm_node_out(g, 1);
    }
}

static void make_random(gen *r, uint64_t seed)
{
    plm_graph *g = &r->g;
    plm_error err = {0};
    memset(r, 0, sizeof *r);
    r->seed = seed;
    plm_graph_init(g);
    for (int i = 0; i < PLM_SYM_COUNT; i++) {
        g->dims.lo[i] = (int64_t)pick(r, 3);
        g->dims.hi[i] = g->dims.lo[i] + (int64_t)(test_random(&r->seed) >> pick(r, 62) >> 2);
    }
    /* entering constants early or late changes the pool's order; the text must not mind */
    for (uint64_t i = pick(r, 4); i > 0; i--)
        (void)num(r, (int64_t)pick(r, 100));
    plm_dim t = plm_dim_sym(&g->dims, PLM_SYM_T), c = plm_dim_sym(&g->dims, PLM_SYM_C),
            s = plm_dim_sym(&g->dims, PLM_SYM_S);
    keep(r, make_value(r, PLM_VALUE_INPUT, PLM_DT_BF16, 2, t, num(r, 64), 0));
    plm_value_id pos = make_value(r, PLM_VALUE_INPUT, PLM_DT_I32, 1, t, 0, 0);
    assert_int_equal(pos, 1); /* add_some names it so */
    r->kc = make_value(r, PLM_VALUE_STATE, PLM_DT_Q8_0, 3, c, num(r, 1), num(r, 64));
    r->kc = make_value(r, PLM_VALUE_STATE, PLM_DT_F8E4M3, 3, c, num(r, 4), num(r, 16));
    r->vc = make_value(r, PLM_VALUE_STATE, PLM_DT_BF16, 3, c, num(r, 4), num(r, 16));
    r->tail = make_value(r, PLM_VALUE_STATE, PLM_DT_F32, 3, s, num(r, 64), num(r, 3));
    for (uint64_t i = pick(r, 25); i > 0; i--)
        add_some(r);
    plm_graph_output(g, r->rows[r->n_rows - 1], pick(r, 2) ? "out.0" : NULL);
    if (r->n_rows > 1)
        plm_graph_output(g, r->rows[0], NULL);
    for (size_t i = 0; i < g->n_nodes; i++)
        g->nodes[i].group = pick(r, 3) ? 0 : (uint32_t)pick(r, 1000);
    assert_ok(plm_graph_finish(g, &err), err);
}

/* ---- the property ---- */

static void assert_fixed_point(const char *text, size_t bytes, const plm_graph *like)
{
    plm_graph g;
    plm_error err = {0};
    char *again;
    assert_ok(plm_graph_parse(text, bytes, &g, &err), err);
    assert_ok(plm_graph_print(&g, &again, &err), err);
    if (strcmp(text, again) != 0)
        fail_msg("printed again it differs:\n%s\n----\n%s", text, again);
    if (like != NULL) {
        assert_int_equal(g.n_values, like->n_values);
        assert_int_equal(g.n_nodes, like->n_nodes);
        assert_int_equal(g.n_attrs, like->n_attrs);
        assert_int_equal(g.n_outputs, like->n_outputs);
        for (size_t i = 0; i < g.n_attrs; i++) /* reals bit for bit */
            assert_memory_equal(&g.attrs[i].v, &like->attrs[i].v, sizeof g.attrs[i].v);
    }
    plm_free(again);
    plm_graph_fini(&g);
}

static void test_round_trip(void **state)
{
    (void)state;
    uint64_t seed = test_seed("graph_text_round_trip");
    size_t nodes = 0;
    for (int i = 0; i < 300; i++) {
        gen r;
        plm_error err = {0};
        char *text;
        make_random(&r, test_random(&seed));
        assert_ok(plm_graph_print(&r.g, &text, &err), err);
        assert_fixed_point(text, strlen(text), &r.g);
        nodes += r.g.n_nodes;
        plm_free(text);
        plm_graph_fini(&r.g);
    }
    assert_true(nodes > 3000);
}

/* The form itself, so that a change of it is seen. */
static void test_golden(void **state)
{
    (void)state;
    static const char text[] =
        "sym T = 0..8192\nsym S = 1..256\nsym R = 0..2147483647\nsym E = 0..2147483647\n"
        "sym C = 0..9223372036854775807\n"
        "dim %0 = mul T 8\ndim %1 = add T S\ndim %2 = ceildiv %0 3\ndim %3 = max S 7\n"
        "input @x:bf16[T,64]\n"
        "weight @blk.0.norm:f32[64] role=norm layer=0\n"
        "input @scalar:f32[]\n"
        "state @kv.0:q8_0[C,2,32] role=kv layer=0\n"
        "%0:bf16[T,64] = rms_norm(@x, @blk.0.norm) {eps=1e-06} layer=0 group=3\n"
        "%1:bf16[T,64] = mul(%0, @scalar)\n"
        "%2:bf16[%0,64] = repeat(%1) {axis=0, count=8}\n"
        "%3:bf16[T,2,32] = reshape(%1) {rank=3, d0=-1, d1=2, d2=32}\n"
        "%4:q8_0[C,2,32] = kv_write(%3, @kv.0) layer=0\n"
        "%5:bf16[T,64] = unary(%1) {fn=gelu_tanh}\n"
        "%6:bf16[T,2,4], %7:i32[T,2,4] = top_k(%3) {top_k=4}\n"
        "output %2 out\noutput @x\noutput %7\n";
    assert_fixed_point(text, sizeof text - 1, NULL);
}

/* Blanks, comments, order of keys that may vary. */
static void test_lenient(void **state)
{
    (void)state;
    static const char text[] = "# a comment\r\n\n  input   @x : F16 [ T , 0064 ]   # more\n"
                               "%0 : float16[T,64]=scale( @x ){ scale = 0x1p-3 }\n"
                               "output %0   y\n";
    plm_graph g;
    plm_error err = {0};
    assert_ok(plm_graph_parse(text, sizeof text - 1, &g, &err), err);
    assert_true(plm_attr_real(&g, &g.nodes[0], PLM_ATTR_SCALE, 0) == 0.125);
    assert_int_equal(g.values[0].layer, -1);
    plm_graph_fini(&g);
    assert_ok(plm_graph_parse("", 0, &g, &err), err);
    plm_graph_fini(&g);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"hello", "line 1: hello"},
        {"\n\nsym Q = 0..1", "line 3: Q"},
        {"sym T = 2..1", "range"},
        {"sym T = -1..1", "range"},
        {"sym T = 1", "lo..hi"},
        {"sym T = 0..9223372036854775808", "range"},
        {"dim %1 = mul T 8", "without a gap"},
        {"dim %0 = mul T %0", "out of its range"},
        {"dim %0 = pow T 2", "operator"},
        {"dim %0 = ceildiv T 0", "divided by 0"},
        {"dim %0 = mul 9223372036854775807 2", "too large"},
        {"dim %0 = mul T -3", "range"},
        {"dim %0 = mul T", "a dim: missing"},
        {"dim %0 = mul T 8 8", "more text"},
        {"input x:f32[T]", "'@': missing"},
        {"input @x:f33[T]", "storage type"},
        {"input @x:f32[T", "']': missing"},
        {"input @x:f32[T,]", "a dim: missing"},
        {"input @x:f32[1,2,3,4,5]", "more than 4"},
        {"input @x:f32[T] role=king", "no such role"},
        {"input @x:f32[T] layer=-1", "range"},
        {"input @x:f32[T]\ninput @x:f32[T]", "line 2: x: two"},
        {"weight @x:f32[T]", "constant"},
        {"input @x:f32[T] junk", "more text"},
        {"input @a+b:f32[T]", "name"},
        {"%0:f32[T] = scale(@x)", "no such value"},
        {"%0:f32[T] = scale(%0)", "out of its range"},
        {"%0:f32[T] = sale(@x)", "no such op"},
        {"input @x:f32[T]\n%0:f32[T] = scale(@x) {scale=nan}", "finite"},
        {"input @x:f32[T]\n%0:f32[T] = scale(@x) {scale=1e999}", "finite"},
        {"input @x:f32[T]\n%0:f32[T] = scale(@x) {scale=1,scale=2}", "twice"},
        {"input @x:f32[T]\n%0:f32[T] = scale(@x) {size=1}", "no such attribute"},
        {"input @x:f32[T]\n%0:f32[T] = scale(@x) {scale=1", "'}': missing"},
        {"input @x:f32[T]\n%0:f32[T] = unary(@x) {fn=99}", "attribute fn"},
        {"input @x:f32[T]\n%0:f32[T] = unary(@x) {fn=silly}", "no integer"},
        {"input @x:f32[T]\n%1:f32[T] = scale(@x)", "without a gap"},
        {"input @x:f32[T]\n%0:f32[S] = scale(@x)", "rule"},
        {"input @x:f32[T]\n%0:f32[T], %1:f32[T] = scale(@x)", "number of outputs"},
        {"input @x:f32[T]\n%0:f32[T] = scale(@x) group=0", "range"},
        {"output %0", "range"},
        {"output @x", "no such value"},
        {"output _", "operand"},
        {"input @x:f32[T]\noutput @x y", "a name already"},
        {"input @x:f32[T]\noutput @x\noutput @x", "listed before"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        plm_graph g;
        plm_error err = {0};
        plm_status status = plm_graph_parse(bad[i].text, strlen(bad[i].text), &g, &err);
        if (status != PLM_E_INVALID || strstr(err.text, bad[i].error) == NULL)
            fail_msg("'%s': status %d, '%s' has no '%s'", bad[i].text, status, err.text,
                     bad[i].error);
        assert_int_equal(plm_graph_parse(bad[i].text, strlen(bad[i].text), &g, NULL), status);
        plm_graph_fini(&g);
    }
}

/* ---- damaged text ---- */

static size_t damage(char *text, size_t n, size_t room, uint64_t *seed)
{
    static const char odd[] = "%@:[]{}(),=._-#\n 0123456789TSREC\x00\xff+e";
    for (uint64_t times = 1 + test_random(seed) % 6; times > 0 && n > 0; times--) {
        size_t at = test_random(seed) % n, len = 1 + test_random(seed) % 40;
        len = len < n - at ? len : n - at;
        switch (test_random(seed) % 5) {
        case 0: text[at] = odd[test_random(seed) % (sizeof odd - 1)]; break;
        case 1: n = at; break; /* cut short */
        case 2: /* a piece left out */
            memmove(text + at, text + at + len, n - at - len);
            n -= len;
            break;
        case 3: /* a piece twice */
            if (n + len <= room) {
                memmove(text + at + len, text + at, n - at);
                n += len;
            }
            break;
        default: /* a piece from elsewhere */
            memmove(text + at, text + test_random(seed) % (n - len + 1), len);
        }
    }
    return n;
}

static void test_damaged(void **state)
{
    (void)state;
    uint64_t seed = test_seed("graph_text_damaged");
    int64_t live = plm_mem_live();
    size_t refused = 0, taken = 0;
    for (int i = 0; i < 40; i++) {
        gen r;
        plm_error err = {0};
        char *text;
        make_random(&r, test_random(&seed));
        assert_ok(plm_graph_print(&r.g, &text, &err), err);
        size_t n = strlen(text), room = n + 1000;
        for (int j = 0; j < 60; j++) {
            /* a block of the exact size, so that a read past the end is caught */
            char *bent = malloc(room), *exact;
            assert_non_null(bent);
            memcpy(bent, text, n);
            size_t m = damage(bent, n, room, &seed);
            exact = malloc(m ? m : 1);
            assert_non_null(exact);
            memcpy(exact, bent, m);
            free(bent);
            plm_graph g;
            plm_error why = {0};
            if (plm_graph_parse(exact, m, &g, &why) == PLM_OK) {
                char *printed;
                assert_ok(plm_graph_print(&g, &printed, &err), err);
                assert_fixed_point(printed, strlen(printed), &g);
                plm_free(printed);
                taken++;
            } else {
                assert_true(why.code != PLM_OK && why.text[0] != '\0');
                assert_null(strchr(why.text, '\n'));
                refused++;
            }
            plm_graph_fini(&g);
            free(exact);
        }
        plm_free(text);
        plm_graph_fini(&r.g);
    }
    assert_int_equal(plm_mem_live(), live);
    assert_true(refused > 500 && taken > 50);
}

/* Long lines and many of them end quickly and in one error. */
static void test_large(void **state)
{
    (void)state;
    size_t n = 1u << 20;
    char *text = malloc(n);
    plm_graph g;
    plm_error err;
    assert_non_null(text);
    static const char *const fill[] = {"(", "%", "{", "[", "a", " ", "\n", "dim %0 = add T 0\n"};
    for (size_t i = 0; i < sizeof fill / sizeof fill[0]; i++) {
        size_t len = strlen(fill[i]);
        for (size_t at = 0; at < n; at++)
            text[at] = fill[i][at % len];
        plm_status status = plm_graph_parse(text, n, &g, &err);
        assert_int_equal(status == PLM_OK, fill[i][0] == ' ' || fill[i][0] == '\n');
        plm_graph_fini(&g);
    }
    free(text);
    assert_int_equal(plm_graph_parse("", (size_t)PLM_GRAPH_TEXT_MAX + 1, &g, &err), PLM_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_golden),
        cmocka_unit_test(test_lenient),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_damaged),    cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
