/* runner_bind.c - the executor's memory: weights bound, states, inputs and arena allocated, once. */
#include <string.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/host/runner_parts.h"

static plm_status files_get(void *ctx, const char *name, uint32_t rank, const int64_t *dim,
                            plm_dtype dtype, plm_weight *out, plm_error *err)
{
    (void)dtype;
    return plm_weights_get(ctx, name, rank, dim, out, err);
}

plm_weight_source plm_weight_source_files(plm_weights *w)
{
    return (plm_weight_source){.ctx = w, .get = files_get};
}

/* ---- buffers ---- */

static plm_status keep_buffer(plm_runner *r, plm_backend_buffer *b, plm_error *err)
{
    if (!plm_vec_grow((void **)&r->buffer, &r->room_buffers, r->n_buffers, sizeof *r->buffer,
                      (size_t)1 << 28)) {
        r->dev->be->buffer_free(b);
        return plm_fail_memory(err, "list of buffers");
    }
    r->buffer[r->n_buffers++] = b;
    return PLM_OK;
}

static plm_status new_buffer(plm_runner *r, uint64_t bytes, uint32_t usage,
                             plm_backend_buffer **out, plm_error *err)
{
    PLM_TRY(r->dev->be->buffer_alloc(r->dev->dev, bytes, usage, out, err));
    return keep_buffer(r, *out, err);
}

/* ---- weights ---- */

static bool reads_host(const plm_runner *r)
{
    return (r->dev->info.caps & PLM_BACKEND_CAP_HOST_MEMORY) != 0 &&
           r->dev->be->buffer_import != NULL;
}

/* Fetches a weight, checked against the value. */
static plm_status fetch(plm_runner *r, const plm_weight_source *src, plm_value_id v, plm_weight *w,
                        plm_error *err)
{
    const plm_value *x = &r->g->values[v];
    int64_t dim[PLM_RANK_MAX] = {0}, bytes = 0, count = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        dim[i] = plm_dim_value(&r->g->dims, x->dim[i]);
        if (dim[i] < 0 || !plm_mul_i64(count, dim[i], &count))
            return plm_fail(err, PLM_E_INVALID, "weight, %s: its shape is no constant", x->name);
    }
    PLM_TRY(src->get(src->ctx, x->name, x->rank, dim, x->dtype, w, err));
    plm_status status = plm_value_bytes(r->g, v, NULL, &bytes, err);
    if (status == PLM_OK && (w->dtype != x->dtype || w->bytes != (uint64_t)bytes))
        status = plm_fail(err, PLM_E_INVALID, "weight, %s: stored as %s in %llu bytes, the graph says %s "
                          "in %lld; stamp the graph with the types of the files", x->name,
                          plm_dtype_get(w->dtype)->name, (unsigned long long)w->bytes,
                          plm_dtype_get(x->dtype)->name, (long long)bytes);
    if (status != PLM_OK) {
        plm_weight_release(w);
        return status;
    }
    r->memory.weights_bytes += bytes;
    r->memory.params += count;
    return PLM_OK;
}

static uint32_t planes_of(const plm_weight *w)
{
    uint32_t n = 1;
    for (uint32_t p = 1; p < PLM_PLANES; p++)
        if (w->plane[p].bytes > 0)
            n = p + 1;
    return n;
}

/* Binds the planes where they lie. */
static plm_status bind_in_place(plm_runner *r, const plm_weight *w, const plm_backend_value *f,
                                plm_error *err)
{
    for (uint32_t piece = 0; piece < f->pieces; piece++)
        for (uint32_t p = 0; p < f->planes; p++) {
            const unsigned char *data = plm_weight_plane(w, piece, (plm_plane_id)p);
            uint64_t bytes = w->plane[p].bytes * (f->pieces > 1 ? 1 : (uint64_t)w->matrices);
            plm_backend_buffer *b;
            if (data == NULL || bytes == 0)
                continue;
            PLM_TRY(r->dev->be->buffer_import(r->dev->dev, data, bytes, PLM_BACKEND_USE_WEIGHT, &b,
                                              err));
            PLM_TRY(keep_buffer(r, b, err));
            r->bind[f->slot + piece * f->planes + p] = (plm_backend_binding){b, 0, bytes};
        }
    return PLM_OK;
}

/* Copies the planes to the device, each plane of all matrices in one buffer. */
static plm_status bind_copy(plm_runner *r, const plm_weight *w, const plm_backend_value *f,
                            plm_error *err)
{
    const plm_backend *be = r->dev->be;
    for (uint32_t p = 0; p < f->planes; p++) {
        uint64_t each = w->plane[p].bytes, bytes = each * (uint64_t)w->matrices;
        plm_backend_buffer *b;
        if (bytes == 0)
            continue;
        PLM_TRY(new_buffer(r, bytes, PLM_BACKEND_USE_WEIGHT, &b, err));
        for (int64_t m = 0; m < w->matrices; m++)
            PLM_TRY(be->upload(r->dev->stream, b, (uint64_t)m * each,
                               plm_weight_plane(w, m, (plm_plane_id)p), each, err));
        r->bind[f->slot + p] = (plm_backend_binding){b, 0, bytes};
    }
    return be->stream_sync(r->dev->stream, err);
}

/* Fetches all weights: their planes and pieces must be known before the graph is laid out. */
static plm_status fetch_weights(plm_runner *r, const plm_weight_source *src, plm_error *err)
{
    r->layout = plm_calloc(r->g->n_values + 1, sizeof *r->layout);
    r->held = plm_calloc(r->g->n_values + 1, sizeof *r->held);
    if (r->layout == NULL || r->held == NULL)
        return plm_fail_memory(err, "list of weights");
    r->n_held = r->g->n_values;
    for (plm_value_id v = 0; v < r->g->n_values; v++) {
        if (r->g->values[v].kind != PLM_VALUE_WEIGHT)
            continue;
        plm_weight *w = &r->held[v];
        PLM_TRY(fetch(r, src, v, w, err));
        bool pieces = reads_host(r) && w->piece != NULL;
        if (w->matrices > UINT32_MAX / PLM_PLANES)
            return plm_fail(err, PLM_E_LIMIT, "weight, %s: too many matrices",
                            r->g->values[v].name);
        r->layout[v] = (plm_flat_binding){planes_of(w), pieces ? (uint32_t)w->matrices : 1};
    }
    return PLM_OK;
}

static plm_status bind_weights(plm_runner *r, plm_error *err)
{
    for (plm_value_id v = 0; v < r->g->n_values; v++) {
        plm_weight *w = &r->held[v];
        if (r->g->values[v].kind != PLM_VALUE_WEIGHT)
            continue;
        if (reads_host(r)) {
            PLM_TRY(bind_in_place(r, w, &r->flat.values[v], err));
        } else {
            PLM_TRY(bind_copy(r, w, &r->flat.values[v], err));
            plm_weight_release(w);
        }
    }
    return PLM_OK;
}

/* ---- states, inputs, arena ---- */

static plm_status bind_value(plm_runner *r, plm_value_id v, uint32_t usage, bool zero,
                             int64_t *total, plm_error *err)
{
    plm_backend_buffer *b;
    int64_t bytes;
    PLM_TRY(plm_value_bytes(r->g, v, NULL, &bytes, err));
    PLM_TRY(new_buffer(r, (uint64_t)bytes, usage, &b, err));
    r->bind[r->flat.values[v].slot] = (plm_backend_binding){b, 0, (uint64_t)bytes};
    *total += bytes;
    if (zero)
        return r->dev->be->fill_zero(r->dev->stream, b, 0, (uint64_t)bytes, err);
    return PLM_OK;
}

static plm_status name_input(plm_runner *r, plm_value_id v, plm_error *err)
{
    static const char *const names[RUNNER_INPUT_KINDS] = {"ids", "positions", "rows", "index_ones",
                                                          "rope_factors"};
    const plm_value *x = &r->g->values[v];
    for (int i = 0; i < RUNNER_INPUT_KINDS; i++)
        if (x->name != NULL && strcmp(x->name, names[i]) == 0) {
            r->input[i] = v;
            if (i >= RUNNER_ONES && x->dtype != PLM_DT_F32)
                return plm_fail(err, PLM_E_UNSUPPORTED, "input, %s: is %s; build the graph with f32 "
                                "activations", x->name, plm_dtype_get(x->dtype)->name);
            return PLM_OK;
        }
    return plm_fail(err, PLM_E_UNSUPPORTED, "input, %s: the executor does not know what to fill it from; "
                    "build one stage without MTP modules", x->name != NULL ? x->name : "no name");
}

static plm_status bind_rest(plm_runner *r, plm_error *err)
{
    plm_backend_buffer *arena;
    for (plm_value_id v = 0; v < r->g->n_values; v++) {
        const plm_value *x = &r->g->values[v];
        if (x->kind == PLM_VALUE_STATE) {
            bool kv = x->role == PLM_ROLE_KV;
            r->has_state = r->has_state || !kv;
            PLM_TRY(bind_value(r, v, PLM_BACKEND_USE_STATE, true,
                               kv ? &r->memory.kv_bytes : &r->memory.state_bytes, err));
        } else if (x->kind == PLM_VALUE_INPUT) {
            PLM_TRY(name_input(r, v, err));
            PLM_TRY(bind_value(r, v, PLM_BACKEND_USE_INPUT, true, &r->memory.input_bytes, err));
        }
    }
    r->memory.activation_bytes = r->plan.peak_bytes;
    PLM_TRY(new_buffer(r, (uint64_t)r->plan.peak_bytes, PLM_BACKEND_USE_ARENA, &arena, err));
    r->bind[0] = (plm_backend_binding){arena, 0, (uint64_t)r->plan.peak_bytes};
    return PLM_OK;
}

plm_status runner_bind(plm_runner *r, const plm_weight_source *weights, plm_error *err)
{
    const plm_backend *be = r->dev->be;
    plm_backend_exec_info info = {.struct_size = sizeof info};
    PLM_TRY(plm_memory_plan_make(r->g, &r->plan, err));
    PLM_TRY(fetch_weights(r, weights, err));
    PLM_TRY(plm_flat_make(r->g, &r->plan, r->layout, (uint32_t)r->paging.block_tokens, &r->flat,
                          err));
    r->bind = plm_calloc(r->flat.view.n_slots, sizeof *r->bind);
    if (r->bind == NULL)
        return plm_fail_memory(err, "bindings");
    PLM_TRY(be->compile(r->dev->dev, &r->flat.view, &r->exec, err));
    PLM_TRY(bind_weights(r, err));
    if (be->prepare != NULL)
        PLM_TRY(be->prepare(r->exec, r->dev->stream, r->bind, r->flat.view.n_slots,
                            sizeof *r->bind, err));
    PLM_TRY(bind_rest(r, err));
    PLM_TRY(be->exec_info(r->exec, &info, err));
    r->memory.packed_bytes = (int64_t)info.packed_bytes;
    r->memory.scratch_bytes = (int64_t)info.scratch_bytes;
    return be->stream_sync(r->dev->stream, err);
}

void runner_unbind(plm_runner *r)
{
    if (r->exec != NULL)
        r->dev->be->exec_free(r->exec);
    for (size_t i = 0; i < r->n_buffers; i++)
        r->dev->be->buffer_free(r->buffer[i]);
    for (size_t v = 0; v < r->n_held && r->held != NULL; v++)
        plm_weight_release(&r->held[v]);
    plm_free(r->buffer);
    plm_free(r->held);
    plm_free(r->bind);
    plm_free(r->layout);
    plm_flat_fini(&r->flat);
    plm_memory_plan_fini(&r->plan);
}
