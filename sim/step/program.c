/* program.c - a graph folded to its distinct units: what a cost program is made of. */
#include "sim/step/program.h"

#include <string.h>

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/vec.h"

#define KEYS_MAX ((size_t)1 << 30)

/* ---- keys: two units with one key have the same work for every batch ---- */

typedef struct key {
    PLM_VEC(uint32_t) words;
    bool failed;
} key;

static void put(key *k, uint32_t word)
{
    if (!k->failed && !plm_vec_push(&k->words, word, 65536))
        k->failed = true;
}

static void put_long(key *k, uint64_t x)
{
    put(k, (uint32_t)x);
    put(k, (uint32_t)(x >> 32));
}

static void put_value(key *k, const plm_graph *g, plm_value_id v)
{
    if (v == PLM_NONE) {
        put(k, UINT32_MAX);
        return;
    }
    const plm_value *x = &g->values[v];
    put(k, (uint32_t)x->kind << 16 | (uint32_t)x->dtype);
    put(k, (uint32_t)(x->kind == PLM_VALUE_WEIGHT ? x->role : PLM_ROLE_NONE) << 8 | x->rank);
    for (uint32_t i = 0; i < x->rank; i++)
        put(k, x->dim[i]);
}

/* Which member makes the value, and whether members alone read it. */
static void put_edges(key *k, const plm_graph *g, const plm_fuse_uses *u, const plm_row *r,
                      const plm_node *x)
{
    for (uint32_t j = 0; j < x->n_in; j++) {
        plm_value_id v = plm_fuse_source(g, x->in[j]);
        plm_node_id p = v == PLM_NONE ? PLM_NONE : g->values[v].producer;
        uint32_t from = UINT32_MAX;
        for (uint32_t i = 0; i < r->n_members; i++)
            if (r->member[i] == p)
                from = i;
        put(k, from);
    }
    for (uint32_t j = 0; j < x->n_out; j++)
        put(k, u->count[x->out[j]]);
}

static void make_key(key *k, const plm_graph *g, const plm_fuse_uses *u, const plm_row *r)
{
    k->words.count = 0;
    put(k, r->link_part);
    for (uint32_t i = 0; i < r->n_members; i++) {
        const plm_node *x = &g->nodes[r->member[i]];
        put(k, (uint32_t)x->op << 16 | (uint32_t)x->n_in << 8 | x->n_out);
        put(k, (uint32_t)(x->group != 0) << 16 | x->n_attr);
        for (uint32_t j = 0; j < x->n_attr; j++) {
            uint64_t bits;
            memcpy(&bits, &g->attrs[x->attr + j].v, sizeof bits);
            put(k, (uint32_t)g->attrs[x->attr + j].key);
            put_long(k, bits);
        }
        for (uint32_t j = 0; j < x->n_in; j++)
            put_value(k, g, x->in[j]);
        for (uint32_t j = 0; j < x->n_out; j++)
            put_value(k, g, x->out[j]);
        if (r->n_members > 1)
            put_edges(k, g, u, r, x);
    }
}

/* ---- folding ---- */

typedef struct folder {
    plm_program *p;
    plm_map map;     /* key -> row */
    plm_arena keys;
    key key;
    int64_t *dims;   /* scratch */
    plm_node_id *next; /* by node: next member of its group */
    plm_node_id *head; /* by group: first member */
} folder;

static plm_status add_row(folder *f, plm_row *r, plm_error *err)
{
    plm_program *p = f->p;
    make_key(&f->key, &p->g, &p->uses, r);
    size_t bytes = f->key.words.count * sizeof *f->key.words.items;
    if (f->key.failed)
        return plm_fail_memory(err, "cost program");
    uint32_t at = (uint32_t)p->n_rows;
    const char *text = (const char *)f->key.words.items;
    if (plm_map_get(&f->map, text, bytes, &at)) {
        p->rows[at].count += 1.0;
        return PLM_OK;
    }
    char *copy = plm_arena_text(&f->keys, text, bytes);
    if (copy == NULL || plm_map_add(&f->map, copy, bytes, &at) != PLM_PUT_NEW ||
        !plm_vec_grow((void **)&p->rows, &p->room, p->n_rows, sizeof *p->rows,
                      PLM_GRAPH_NODES_MAX * 2))
        return plm_fail_memory(err, "cost program");
    r->count = 1.0;
    plm_row_resolve(&p->g, &p->uses, r, f->dims);
    p->rows[p->n_rows++] = *r;
    return PLM_OK;
}

/* One row, or two for a group with a link. */
static plm_status add_unit(folder *f, plm_node_id first, plm_error *err)
{
    const plm_graph *g = &f->p->g;
    plm_row r = {0};
    bool link = false, other = false;
    for (plm_node_id i = first; i != PLM_NONE; i = f->next[i]) {
        if (r.n_members == PLM_ROW_MEMBERS)
            return plm_fail(err, PLM_E_INTERNAL, "cost program: a fusion group has more than %d "
                                                 "members; this is a bug",
                            PLM_ROW_MEMBERS);
        bool is_link = plm_op_get(g->nodes[i].op)->cls == PLM_CLASS_LINK;
        link |= is_link;
        other |= !is_link;
        r.member[r.n_members++] = i;
    }
    if (other)
        PLM_TRY(add_row(f, &r, err));
    if (!link)
        return PLM_OK;
    plm_row l = {.link_part = true, .n_members = r.n_members};
    memcpy(l.member, r.member, sizeof l.member);
    return add_row(f, &l, err);
}

static plm_status link_groups(folder *f, plm_error *err)
{
    const plm_graph *g = &f->p->g;
    uint32_t groups = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        groups = g->nodes[i].group > groups ? g->nodes[i].group : groups;
    f->next = plm_malloc((g->n_nodes + 1) * sizeof *f->next);
    f->head = plm_malloc(((size_t)groups + 1) * sizeof *f->head);
    if (f->next == NULL || f->head == NULL)
        return plm_fail_memory(err, "cost program");
    memset(f->next, 0xff, (g->n_nodes + 1) * sizeof *f->next);
    memset(f->head, 0xff, ((size_t)groups + 1) * sizeof *f->head);
    for (plm_node_id i = (plm_node_id)g->n_nodes; i-- > 0;) {
        uint32_t group = g->nodes[i].group;
        if (group == 0)
            continue;
        f->next[i] = f->head[group];
        f->head[group] = i;
    }
    return PLM_OK;
}

static plm_status fold(plm_program *p, plm_error *err)
{
    folder f = {.p = p};
    plm_status status;
    plm_map_init(&f.map, PLM_GRAPH_NODES_MAX * 2);
    plm_arena_init(&f.keys, KEYS_MAX);
    f.dims = plm_malloc((p->g.dims.count + 1) * sizeof *f.dims);
    if (f.dims == NULL) {
        status = plm_fail_memory(err, "cost program");
        goto done;
    }
    PLM_GOTO(link_groups(&f, err));
    for (plm_node_id i = 0; i < p->g.n_nodes; i++) {
        const plm_node *n = &p->g.nodes[i];
        if (plm_op_get(n->op)->work == NULL || (n->group != 0 && f.head[n->group] != i))
            continue;
        PLM_GOTO(add_unit(&f, i, err));
    }
done:
    plm_vec_fini(&f.key.words);
    plm_map_fini(&f.map);
    plm_arena_fini(&f.keys);
    plm_free(f.dims);
    plm_free(f.next);
    plm_free(f.head);
    return status;
}

/* ---- facts ---- */

static plm_status count_layers(plm_program *p, plm_error *err)
{
    int32_t most = -1;
    for (size_t i = 0; i < p->g.n_nodes; i++)
        most = p->g.nodes[i].layer > most ? p->g.nodes[i].layer : most;
    if (most < 0)
        return PLM_OK;
    if (most >= (int32_t)PLM_GRAPH_NODES_MAX)
        return plm_fail(err, PLM_E_INVALID, "cost program: layer %d is past the greatest, %u", most,
                        PLM_GRAPH_NODES_MAX - 1);
    bool *seen = plm_calloc((size_t)most + 1, sizeof *seen);
    if (seen == NULL)
        return plm_fail_memory(err, "cost program");
    for (size_t i = 0; i < p->g.n_nodes; i++) {
        int32_t layer = p->g.nodes[i].layer;
        if (layer >= 0 && !seen[layer]) {
            seen[layer] = true;
            p->layers += 1.0;
        }
    }
    plm_free(seen);
    return PLM_OK;
}

static plm_status find_activation(plm_program *p, plm_error *err)
{
    plm_memory_plan plan;
    PLM_TRY(plm_memory_plan_make(&p->g, &plan, err));
    p->activation_bytes = plan.peak_bytes;
    plm_memory_plan_fini(&plan);
    return PLM_OK;
}

static plm_status make(plm_program *p, uint64_t fuse, plm_error *err)
{
    if (p->g.dims.count > PLM_PROGRAM_DIMS)
        return plm_fail(err, PLM_E_INVALID,
                        "cost program: the graph has %zu dims, more than %d; share dims between "
                        "layers",
                        p->g.dims.count, PLM_PROGRAM_DIMS);
    PLM_TRY(plm_graph_fuse(&p->g, fuse, err));
    PLM_TRY(plm_fuse_uses_make(&p->g, &p->uses, err));
    PLM_TRY(plm_graph_weight_bytes(&p->g, &p->weight_bytes, &p->embed_bytes, err));
    PLM_TRY(fold(p, err));
    PLM_TRY(count_layers(p, err));
    return find_activation(p, err);
}

plm_status plm_program_create(plm_graph *g, uint64_t fuse, int32_t top_k, plm_program **out,
                              plm_error *err)
{
    plm_program *p = plm_calloc(1, sizeof *p);
    *out = NULL;
    if (p == NULL)
        return plm_fail_memory(err, "cost program");
    p->g = *g;
    p->top_k = top_k;
    plm_graph_init(g);
    plm_status status = make(p, fuse, err);
    if (status != PLM_OK) {
        plm_program_destroy(p);
        return status;
    }
    *out = p;
    return PLM_OK;
}

void plm_program_destroy(plm_program *p)
{
    if (p == NULL)
        return;
    plm_fuse_uses_fini(&p->uses);
    plm_graph_fini(&p->g);
    plm_free(p->rows);
    plm_free(p);
}

int64_t plm_program_weight_bytes(const plm_program *p)
{
    return p->weight_bytes;
}

int64_t plm_program_embed_bytes(const plm_program *p)
{
    return p->embed_bytes;
}

int64_t plm_program_activation_bytes(const plm_program *p)
{
    return p->activation_bytes;
}

size_t plm_program_rows(const plm_program *p)
{
    return p->n_rows;
}
