/* weights.c - the set of weights: questions by the graph's names. */
#include "core/model/weights.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/model/weights_parts.h"

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), t = strlen(tail);
    return n >= t && strcmp(text + n - t, tail) == 0;
}

const plm_weights_entry *plm_weights_find(const plm_weights *w, const char *name)
{
    size_t lo = 0, hi = w->n_entries;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(name, w->entry[mid].t->name);
        if (order == 0)
            return &w->entry[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

/* Layer number and rest of "blk.N.rest"; -1 and the whole name where it has another form. */
static void split_weight_name(const plm_weights *w, plm_wanted *q)
{
    int32_t n = 0;
    const char *p = q->name + 4;
    q->layer = -1;
    q->local = q->name;
    q->l = NULL;
    if (strncmp(q->name, "blk.", 4) != 0 || *p < '0' || *p > '9')
        return;
    for (; *p >= '0' && *p <= '9' && n < 100000; p++)
        n = n * 10 + (*p - '0');
    if (*p != '.' || n >= w->arch->layers + w->arch->mtp_layers)
        return;
    q->layer = n;
    q->local = p + 1;
    q->l = n < w->arch->layers ? plm_arch_layer(w->arch, n) : &w->arch->kind[w->arch->mtp_kind];
}

static plm_status want(const plm_weights *w, const char *name, uint32_t rank, const int64_t *dim,
                       plm_wanted *q, plm_error *err)
{
    int64_t total = 16; /* room for the products below, and for double precision */
    bool good = rank >= 1 && rank <= 3 && strlen(name) <= PLM_NAME_MAX;
    for (uint32_t i = 0; i < rank && good; i++)
        good = dim[i] > 0 && plm_mul_i64(total, dim[i], &total);
    if (!good)
        return plm_fail(err, PLM_E_INVALID, "weight %.100s: no shape of one to three dims", name);
    *q = (plm_wanted){.name = name, .matrices = 1, .rows = 1, .cols = dim[rank - 1]};
    split_weight_name(w, q);
    q->column = rank == 1 || (rank == 2 && ends_with(name, ".bias"));
    if (q->column) { /* of experts: a vector each */
        q->matrices = rank == 2 ? dim[0] : 1;
        q->rows = dim[rank - 1];
        q->cols = 1;
        return PLM_OK;
    }
    q->rows = dim[rank - 2];
    q->matrices = rank == 3 ? dim[0] : 1;
    /* Full heads from a latent: a matrix a head, one below the other. */
    if (rank == 2 && q->l != NULL && q->l->attn == PLM_ATTN_MLA && q->l->heads > 0 &&
        (strcmp(q->local, "attn_k_b") == 0 || strcmp(q->local, "attn_v_b") == 0) &&
        q->rows % q->l->heads == 0) {
        q->matrices = q->l->heads;
        q->rows /= q->l->heads;
    }
    return PLM_OK;
}

/* The shape asked for: vectors are rows, heads one below the other are one matrix. */
static plm_status shape_answer(uint32_t rank, const int64_t *dim, const char *name, bool fill,
                               plm_weight *v, plm_error *err)
{
    int64_t matrices = rank == 3 ? dim[0] : 1, rows = rank >= 2 ? dim[rank - 2] : 1;
    if (matrices != v->matrices && v->matrices > 1) {
        plm_plane whole[PLM_PLANES];
        uint64_t n = (uint64_t)v->matrices;
        if (fill)
            PLM_TRY(plm_weight_join(v, err));
        PLM_TRY(plm_plane_sizes(v->dtype, rows, dim[rank - 1], whole, err));
        for (int p = 0; p < PLM_PLANES; p++) {
            v->plane[p].bytes *= n;
            if (v->plane[p].bytes != whole[p].bytes)
                return plm_fail(err, PLM_E_UNSUPPORTED,
                                "weight %s: scales of type %s do not end with its heads; run the "
                                "absorbed form",
                                name, plm_dtype_get(v->dtype)->name);
        }
    }
    v->matrices = matrices;
    v->rows = rows;
    v->cols = dim[rank - 1];
    v->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        v->dim[i] = dim[i];
    return PLM_OK;
}

static plm_status answer(const plm_weights *w, const char *name, uint32_t rank, const int64_t *dim,
                         bool fill, plm_weight *out, plm_error *err)
{
    plm_wanted q;
    memset(out, 0, sizeof *out);
    PLM_TRY(want(w, name, rank, dim, &q, err));
    PLM_TRY(plm_gather(w, &q, fill, out, err));
    plm_status status = shape_answer(rank, dim, name, fill, out, err);
    if (status != PLM_OK)
        plm_weight_release(out);
    return status;
}

plm_status plm_weights_get(const plm_weights *w, const char *name, uint32_t rank,
                           const int64_t *dim, plm_weight *out, plm_error *err)
{
    return answer(w, name, rank, dim, true, out, err);
}

plm_status plm_weights_dtype(const plm_weights *w, const char *name, uint32_t rank,
                             const int64_t *dim, plm_dtype *out, plm_error *err)
{
    plm_weight v;
    PLM_TRY(answer(w, name, rank, dim, false, &v, err));
    *out = v.dtype;
    return PLM_OK;
}

plm_status plm_weights_tensor(const plm_weights *w, const char *name, plm_weight *out,
                              plm_error *err)
{
    plm_source s;
    memset(out, 0, sizeof *out);
    const plm_weights_entry *e = plm_weights_find(w, name);
    if (e == NULL)
        return plm_fail(err, PLM_E_NOT_FOUND, "missing tensor, %.100s: the files do not hold it",
                        name);
    PLM_TRY(plm_source_open(w, e, false, &s, err));
    out->dtype = e->t->dtype;
    out->rank = e->t->rank > 1 ? 2 : 1;
    out->matrices = 1;
    out->rows = s.rows;
    out->cols = s.cols;
    if (plm_dtype_get(s.dtype)->family == PLM_FAMILY_PLANAR) { /* as it lies: codes alone */
        out->cols = e->t->rank > 0 ? e->t->dim[e->t->rank - 1] : 1;
        out->rows = out->cols > 0 ? (int64_t)e->t->bytes / out->cols : 0;
    }
    out->dim[0] = out->rank == 2 ? out->rows : out->cols;
    out->dim[1] = out->cols;
    out->plane[PLM_PLANE_CODES] = s.plane[PLM_PLANE_CODES];
    out->bytes = e->t->bytes;
    return PLM_OK;
}

plm_status plm_weights_stamp(const plm_weights *w, plm_graph *g, plm_error *err)
{
    for (size_t i = 0; i < g->n_values; i++) {
        plm_value *v = &g->values[i];
        int64_t dim[PLM_RANK_MAX];
        if (v->kind != PLM_VALUE_WEIGHT)
            continue;
        for (uint32_t k = 0; k < v->rank; k++)
            dim[k] = plm_dim_value(&g->dims, v->dim[k]);
        PLM_TRY(plm_weights_dtype(w, v->name, v->rank, dim, &v->dtype, err));
    }
    return plm_graph_verify(g, err);
}

const plm_gguf *plm_weights_gguf(const plm_weights *w)
{
    if (!w->gguf)
        return NULL;
    for (size_t i = 0; i < w->n_parts; i++) {
        int64_t no = 0;
        plm_gguf_int(w->part[i].gguf, "split.no", &no);
        if (no == 0)
            return w->part[i].gguf;
    }
    return w->part[0].gguf;
}
