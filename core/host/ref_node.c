/* ref_node.c - nodes of the reference backend: operands gathered, the oracle called, results put back.
**
** Where an op reads a part of an operand (rows of a table, a sequence's slots, one expert), the oracle is
** given that part alone; every number still comes out of it. */
#include <string.h>

#include "core/base/mem.h"
#include "core/host/ref_parts.h"

/* Numbers of a weight decoded at once, 2 MiB as doubles. */
#define TILE_NUMBERS (INT64_C(1) << 18)

plm_oracle_ctx ref_context(const ref_step *s)
{
    return (plm_oracle_ctx){.g = &s->x->g,
                            .n = s->n,
                            .token_seq = s->token_seq,
                            .token_pos = s->token_pos,
                            .token_slot = s->token_slot,
                            .n_seq = s->step->n_seqs};
}

static plm_status call(const plm_oracle_ctx *c, const plm_array *in, plm_array *out, plm_error *err)
{
    return plm_op_get(c->n->op)->oracle(c, in, out, err);
}

/* Rooms for all outputs. */
static plm_status make_outputs(const ref_step *s, plm_array *out, plm_error *err)
{
    for (uint32_t j = 0; j < s->n->n_out; j++) {
        out[j] = ref_shape(s, s->n->out[j]);
        PLM_TRY(ref_room(&out[j], err));
    }
    return PLM_OK;
}

plm_status ref_plain(const ref_step *s, plm_error *err)
{
    plm_array in[PLM_IN_MAX] = {{0}}, out[PLM_OUT_MAX] = {{0}};
    plm_oracle_ctx c = ref_context(s);
    plm_status status = PLM_OK;
    for (uint32_t j = 0; j < s->n->n_in; j++)
        PLM_GOTO(ref_load(s, s->n->in[j], &in[j], err));
    PLM_GOTO(make_outputs(s, out, err));
    PLM_GOTO(call(&c, in, out, err));
    for (uint32_t j = 0; j < s->n->n_out; j++)
        PLM_GOTO(ref_store(s, s->n->out[j], &out[j], err));
done:
    ref_drop(in, PLM_IN_MAX);
    ref_drop(out, PLM_OUT_MAX);
    return status;
}

/* ---- weights by rows ---- */

/* The rows of the table that the step asks for stand in for the table. */
plm_status ref_embed(const ref_step *s, plm_error *err)
{
    plm_value_id table = s->n->in[1];
    if (!ref_is_weight(s, table))
        return ref_plain(s, err);
    plm_array in[2] = {{0}}, out = ref_shape(s, s->n->out[0]), whole = ref_shape(s, table);
    plm_oracle_ctx c = ref_context(s);
    plm_status status = PLM_OK;
    PLM_GOTO(ref_load(s, s->n->in[0], &in[0], err));
    int64_t T = plm_array_count(&in[0]);
    in[1] = whole;
    in[1].dim[0] = T;
    PLM_GOTO(ref_room(&in[1], err));
    PLM_GOTO(ref_room(&out, err));
    for (int64_t t = 0; t < T; t++) {
        int64_t id = 0;
        PLM_GOTO(plm_oracle_integer(&c, in[0].data[t], "ids", 0, whole.dim[0], &id, err));
        PLM_GOTO(ref_weight_rows(s, table, 0, id, 1, &in[1].data[t * whole.dim[1]], err));
        in[0].data[t] = (double)t;
    }
    PLM_GOTO(call(&c, in, &out, err));
    PLM_GOTO(ref_store(s, s->n->out[0], &out, err));
done:
    ref_drop(in, 2);
    ref_drop(&out, 1);
    return status;
}

/* Columns at .. at + n of y from the dense tile [rows, n]. */
static void put_columns(const plm_array *tile, int64_t at, plm_array *y)
{
    int64_t n = plm_array_cols(tile), all = plm_array_cols(y);
    for (int64_t r = 0; r < plm_array_rows(y); r++)
        memcpy(&y->data[r * all + at], &tile->data[r * n], (size_t)n * sizeof *y->data);
}

/* Output columns a tile at a time: y[.., at .. at + n] = x w[at .. at + n]^T. */
plm_status ref_linear(const ref_step *s, plm_error *err)
{
    plm_value_id w = s->n->in[1];
    if (!ref_is_weight(s, w))
        return ref_plain(s, err);
    plm_array in[3] = {{0}}, out = ref_shape(s, s->n->out[0]), tile = {0}, whole = ref_shape(s, w);
    plm_array x = {0}, bias = {0};
    plm_oracle_ctx c = ref_context(s);
    plm_status status = PLM_OK;
    int64_t most = plm_max_i64(1, TILE_NUMBERS / plm_max_i64(1, whole.dim[1]));
    PLM_GOTO(ref_load(s, s->n->in[0], &x, err));
    PLM_GOTO(ref_load(s, s->n->n_in > 2 ? s->n->in[2] : PLM_NONE, &bias, err));
    PLM_GOTO(ref_room(&out, err));
    for (int64_t at = 0; at < whole.dim[0]; at += most) {
        int64_t n = plm_min_i64(most, whole.dim[0] - at);
        ref_drop(&in[1], 1);
        ref_drop(&tile, 1);
        in[0] = x;
        in[1] = whole;
        in[1].dim[0] = n;
        in[2] = bias;
        if (bias.data != NULL) {
            in[2].data = bias.data + at;
            in[2].dim[0] = n;
        }
        tile = out;
        tile.data = NULL;
        tile.dim[tile.rank - 1] = n;
        PLM_GOTO(ref_room(&in[1], err));
        PLM_GOTO(ref_room(&tile, err));
        PLM_GOTO(ref_weight_rows(s, w, 0, at, n, in[1].data, err));
        PLM_GOTO(call(&c, in, &tile, err));
        put_columns(&tile, at, &out);
    }
    PLM_GOTO(ref_store(s, s->n->out[0], &out, err));
done:
    ref_drop(&x, 1);
    ref_drop(&bias, 1);
    ref_drop(&in[1], 1);
    ref_drop(&tile, 1);
    ref_drop(&out, 1);
    return status;
}

/* One expert: rows first .. end of x through its matrix. */
static plm_status run_expert(const ref_step *s, const plm_oracle_ctx *c, int64_t e, int64_t first,
                             int64_t end, const plm_array *x, const plm_array *bias, plm_array *w,
                             plm_array *out, plm_error *err)
{
    double offset[2] = {0, (double)(end - first)};
    int64_t n = w->dim[1], k = w->dim[2];
    plm_array in[4] = {*x, *w, {.data = offset, .rank = 1, .dim = {2}}, *bias}, y = *out;
    in[0].data = x->data + first * k;
    in[0].dim[0] = y.dim[0] = end - first;
    y.data = out->data + first * n;
    if (bias->data != NULL) {
        in[3].data = bias->data + e * n;
        in[3].dim[0] = 1;
    }
    PLM_TRY(ref_weight_rows(s, s->n->in[1], e, 0, n, w->data, err));
    return call(c, in, &y, err);
}

plm_status ref_linear_grouped(const ref_step *s, plm_error *err)
{
    if (!ref_is_weight(s, s->n->in[1]))
        return ref_plain(s, err);
    plm_array in[4] = {{0}}, out = ref_shape(s, s->n->out[0]);
    plm_oracle_ctx c = ref_context(s);
    plm_status status = PLM_OK;
    int64_t first = 0;
    PLM_GOTO(ref_load(s, s->n->in[0], &in[0], err));
    in[1] = ref_shape(s, s->n->in[1]);
    int64_t X = in[1].dim[0];
    in[1].dim[0] = 1;
    PLM_GOTO(ref_room(&in[1], err));
    PLM_GOTO(ref_load(s, s->n->in[2], &in[2], err));
    PLM_GOTO(ref_load(s, s->n->n_in > 3 ? s->n->in[3] : PLM_NONE, &in[3], err));
    PLM_GOTO(ref_room(&out, err));
    if (plm_array_count(&in[2]) != X + 1) {
        status = plm_oracle_refuse(&c, err, "offsets", "are not those of the experts");
        goto done;
    }
    PLM_GOTO(plm_oracle_integer(&c, in[2].data[0], "offsets", 0, in[0].dim[0] + 1, &first, err));
    for (int64_t e = 0; e < X; e++) {
        int64_t end = first;
        PLM_GOTO(plm_oracle_integer(&c, in[2].data[e + 1], "offsets", first, in[0].dim[0] + 1,
                                    &end, err));
        if (end > first)
            PLM_GOTO(run_expert(s, &c, e, first, end, &in[0], &in[3], &in[1], &out, err));
        first = end;
    }
    PLM_GOTO(ref_store(s, s->n->out[0], &out, err));
done:
    ref_drop(in, 4);
    ref_drop(&out, 1);
    return status;
}

/* ---- the cache ---- */

static int64_t cache_ratio(const ref_step *s)
{
    return plm_max_i64(1, plm_attr_int(&s->x->g, s->n, PLM_ATTR_RATIO, 1));
}

/* The slots that the step's tokens go to stand in for the cache. */
plm_status ref_kv_write(const ref_step *s, plm_error *err)
{
    plm_array in[4] = {{0}}, out[2] = {{0}};
    plm_oracle_ctx c = ref_context(s);
    plm_status status = PLM_OK;
    int64_t T = s->step->n_tokens, ratio = cache_ratio(s);
    int64_t *row = plm_calloc((size_t)T + 1, 2 * sizeof *row), *own = row + T + 1;
    if (row == NULL)
        return plm_fail_memory(err, "slots of a step");
    for (int64_t t = 0; t < T; t++) {
        row[t] = s->token_slot[t] < 0 ? -1 : s->token_slot[t] / ratio;
        own[t] = row[t] < 0 ? -1 : t;
    }
    c.token_slot = own;
    for (uint32_t j = 0; j < s->n->n_in && j < 4; j++) {
        if (s->n->in[j] == PLM_NONE)
            continue;
        if (j % 2 == 0)
            PLM_GOTO(ref_load(s, s->n->in[j], &in[j], err));
        else
            PLM_GOTO(ref_load_rows(s, s->n->in[j], row, T, &in[j], err));
    }
    out[0] = in[1];
    out[1] = in[3];
    PLM_GOTO(call(&c, in, out, err));
    for (uint32_t j = 0; j < s->n->n_out; j++)
        PLM_GOTO(ref_store_rows(s, s->n->out[j], row, T, &out[j], err));
done:
    ref_drop(in, 4);
    plm_free(row);
    return status;
}

/* Positions and rows in the cache of the entries of sequence q, in order; how many. */
static int64_t list_entries(const ref_step *s, uint32_t q, int64_t ratio, int64_t *row, int64_t *pos)
{
    const plm_backend_step *st = s->step;
    int64_t len = (int64_t)st->seq_past[q] + st->seq_token[q + 1] - st->seq_token[q], n = 0;
    int64_t each = s->x->block_tokens;
    for (int64_t p = ratio - 1; p < len; p += ratio, n++) {
        int64_t block = st->block[(int64_t)q * st->block_stride + p / each];
        pos[n] = p;
        row[n] = (block * each + p % each) / ratio;
    }
    return n;
}

/* Attention or index of one sequence. */
static plm_status attend_one(const ref_step *s, uint32_t q, int64_t *row, int64_t *pos,
                             int64_t *zero, const plm_array *sinks, plm_error *err)
{
    const plm_backend_step *st = s->step;
    int64_t first = st->seq_token[q], n = st->seq_token[q + 1] - first;
    int64_t *tokens = pos + (int64_t)st->block_stride * s->x->block_tokens;
    plm_array in[PLM_IN_MAX] = {{0}}, out = ref_shape(s, s->n->out[0]);
    plm_status status = PLM_OK;
    plm_oracle_ctx c = ref_context(s);
    int64_t entries = list_entries(s, q, cache_ratio(s), row, pos);
    for (int64_t t = 0; t < n; t++)
        tokens[t] = first + t;
    c.token_seq = c.slot_seq = zero;
    c.token_pos = s->token_pos + first;
    c.slot_pos = pos;
    c.n_seq = 1;
    for (uint32_t j = 0; j < s->n->n_in; j++) {
        plm_value_id v = s->n->in[j];
        bool cache = j == 1 || (j == 2 && s->n->op == PLM_OP_ATTENTION);
        if (v == PLM_NONE)
            continue;
        if (j == 3)
            in[j] = *sinks;
        else if (cache)
            PLM_GOTO(ref_load_rows(s, v, row, entries, &in[j], err));
        else
            PLM_GOTO(ref_load_rows(s, v, tokens, n, &in[j], err));
    }
    out.dim[0] = n;
    PLM_GOTO(ref_room(&out, err));
    PLM_GOTO(call(&c, in, &out, err));
    PLM_GOTO(ref_store_rows(s, s->n->out[0], tokens, n, &out, err));
done:
    in[3].data = NULL; /* the sinks are the caller's */
    ref_drop(in, PLM_IN_MAX);
    ref_drop(&out, 1);
    return status;
}

plm_status ref_attend(const ref_step *s, plm_error *err)
{
    const plm_backend_step *st = s->step;
    size_t slots = (size_t)st->block_stride * s->x->block_tokens;
    int64_t *row = plm_calloc(3 * (slots + st->n_tokens + 1), sizeof *row);
    plm_array sinks = {0};
    plm_status status = PLM_OK;
    if (row == NULL)
        return plm_fail_memory(err, "slots of a sequence");
    /* row [slots], pos [slots] with the tokens [T] after it, and zeros. */
    int64_t *pos = row + slots, *zero = pos + slots + st->n_tokens + 1;
    if (s->n->op == PLM_OP_ATTENTION && s->n->n_in > 3)
        PLM_GOTO(ref_load(s, s->n->in[3], &sinks, err));
    for (uint32_t q = 0; q < st->n_seqs; q++)
        if (st->seq_token[q + 1] > st->seq_token[q])
            PLM_GOTO(attend_one(s, q, row, pos, zero, &sinks, err));
done:
    ref_drop(&sinks, 1);
    plm_free(row);
    return status;
}

/* ---- recurrence ---- */

/* Whether input j has a row for each token. */
static bool is_by_token(const ref_step *s, uint32_t j)
{
    const plm_backend_value *v = &s->x->values[s->n->in[j]];
    return v->rank > 0 && v->dim[0] == s->x->values[s->n->in[0]].dim[0];
}

/* Token t of a sequence whose row of the state is `row`. The state is put away in its type after each
** token, so pieces of a sequence of any length leave the same state. */
static plm_status recur_token(const ref_step *s, uint32_t state, int64_t t, int64_t row,
                              const plm_array *whole, plm_array *y, plm_error *err)
{
    static const int64_t seq = 0;
    plm_array in[PLM_IN_MAX] = {{0}}, out[2] = {*y, {0}};
    plm_oracle_ctx c = ref_context(s);
    plm_status status = PLM_OK;
    c.token_seq = &seq;
    c.token_pos = s->token_pos + t;
    c.n_seq = 1;
    for (uint32_t j = 0; j < s->n->n_in; j++) {
        in[j] = whole[j];
        if (j == state || whole[j].data == NULL || !is_by_token(s, j))
            continue;
        in[j].dim[0] = 1;
        in[j].data = whole[j].data + t * plm_array_count(&in[j]);
    }
    PLM_GOTO(ref_load_rows(s, s->n->in[state], &row, 1, &in[state], err));
    out[0].dim[0] = 1;
    out[0].data = y->data + t * plm_array_count(&out[0]);
    out[1] = in[state];
    PLM_GOTO(call(&c, in, out, err));
    PLM_GOTO(ref_store_rows(s, s->n->out[1], &row, 1, &out[1], err));
done:
    ref_drop(&in[state], 1);
    return status;
}

plm_status ref_recur(const ref_step *s, plm_error *err)
{
    plm_array in[PLM_IN_MAX] = {{0}}, out = ref_shape(s, s->n->out[0]);
    plm_oracle_ctx c = ref_context(s);
    plm_status status = PLM_OK;
    uint32_t state = PLM_IN_MAX;
    for (uint32_t j = 0; j < s->n->n_in; j++) {
        plm_value_id v = s->n->in[j];
        if (v != PLM_NONE && s->x->values[s->x->values[v].storage].kind == PLM_BACKEND_STATE)
            state = j;
        else
            PLM_GOTO(ref_load(s, v, &in[j], err));
    }
    if (state == PLM_IN_MAX || s->n->n_out != 2) {
        status = plm_oracle_refuse(&c, err, "state", "missing");
        goto done;
    }
    PLM_GOTO(ref_room(&out, err));
    for (int64_t t = 0; t < s->step->n_tokens; t++) {
        int64_t q = s->token_seq[t];
        if (q < 0 || q >= s->step->n_seqs) {
            status = plm_oracle_refuse(&c, err, "batch", "names a sequence that is not there");
            goto done;
        }
        PLM_GOTO(recur_token(s, state, t, s->step->seq_row[q], in, &out, err));
    }
    PLM_GOTO(ref_store(s, s->n->out[0], &out, err));
done:
    ref_drop(in, PLM_IN_MAX);
    ref_drop(&out, 1);
    return status;
}
