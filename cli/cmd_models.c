/* cmd_models.c - models: the catalog's models, or one (catalog id or file) in full. */
#include <string.h>

#include "cli/cli.h"

static const char *const attn_names[PLM_ATTN_COUNT] = {
#define PLM_ATTN_TEXT(id, name) [PLM_ATTN_##id] = name,
    PLM_ATTN_MAP(PLM_ATTN_TEXT)
#undef PLM_ATTN_TEXT
};

typedef struct model_facts {
    const plm_arch *arch;
    const plm_params *params;
    int64_t kv_bytes_per_token, state_bytes;
} model_facts;

static plm_status gather(plm_session *s, const char *name, model_facts *f, plm_error *err)
{
    plm_kv_options kv = {.k = PLM_DT_BF16, .v = PLM_DT_BF16, .tp = 1, .cp = 1};
    PLM_TRY(plm_session_model(s, name, &f->arch, err));
    PLM_TRY(plm_session_params(s, f->arch, &f->params, err));
    PLM_TRY(plm_kv_bytes_per_token(f->arch, &kv, &f->kv_bytes_per_token, err));
    return plm_state_bytes(f->arch, &kv, &f->state_bytes, err);
}

static void put_common(plm_json_out *o, json_t *j, const model_facts *f)
{
    const plm_arch *a = f->arch;
    plm_out_text(o, j, "id", a->id);
    plm_out_text(o, j, "family", a->family);
    plm_out_int(o, j, "params", f->params->total);
    plm_out_int(o, j, "params_active", f->params->active);
    plm_out_int(o, j, "params_active_no_embed", f->params->active_no_embed);
    plm_out_int(o, j, "layers", a->layers);
    plm_out_int(o, j, "hidden", a->hidden);
    plm_out_int(o, j, "vocab", a->vocab);
    plm_out_int(o, j, "max_context_tokens", a->max_context);
    plm_out_int(o, j, "kv_bytes_per_token", f->kv_bytes_per_token);
    plm_out_int(o, j, "state_bytes", f->state_bytes);
}

/* Numbers of a layer kind that are not zero. */
static void put_kind(plm_json_out *o, json_t *kinds, const plm_arch *a, int32_t index)
{
    const plm_layer *k = &a->kind[index];
    int64_t count = 0;
    for (int32_t i = 0; i < a->layers; i++)
        count += a->layer_kind[i] == index;
    json_t *j = plm_out_child(o, kinds, NULL, plm_out_object(o));
    plm_out_text(o, j, "attention", attn_names[k->attn]);
    plm_out_int(o, j, "layers", count);
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {{"heads", k->heads},
                  {"kv_heads", k->kv_heads},
                  {"head_dim_k", k->dk},
                  {"head_dim_v", k->dv},
                  {"window", k->window},
                  {"q_lora_rank", k->q_lora},
                  {"kv_lora_rank", k->kv_lora},
                  {"qk_nope_head_dim", k->nope},
                  {"qk_rope_head_dim", k->rope_dim},
                  {"index_heads", k->index_heads},
                  {"index_head_dim", k->index_dim},
                  {"index_top_k", k->index_top_k},
                  {"compress_ratio", k->ratio},
                  {"linear_k_heads", k->lin_k_heads},
                  {"linear_v_heads", k->lin_v_heads},
                  {"linear_k_dim", k->lin_dk},
                  {"linear_v_dim", k->lin_dv},
                  {"ssm_state", k->ssm_state},
                  {"ffn", k->ffn},
                  {"experts", k->experts},
                  {"experts_per_token", k->top_k},
                  {"expert_ffn", k->expert_ffn},
                  {"shared_experts", k->shared_experts},
                  {"shared_ffn", k->shared_ffn}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value != 0)
            plm_out_int(o, j, fields[i].name, fields[i].value);
    if (k->rope.theta > 0)
        plm_out_real(o, j, "rope_theta", k->rope.theta);
}

static json_t *full_json(plm_json_out *o, const model_facts *f)
{
    const plm_arch *a = f->arch;
    json_t *root = plm_out_object(o);
    json_t *rows = plm_out_child(o, root, "models", plm_out_array(o));
    json_t *j = plm_out_child(o, rows, NULL, plm_out_object(o));
    put_common(o, j, f);
    plm_out_bool(o, j, "tied_embeddings", a->tied_head);
    plm_out_int(o, j, "mtp_layers", a->mtp_layers);
    plm_out_int(o, j, "params_embedding", f->params->embed);
    plm_out_int(o, j, "params_head", f->params->head);
    plm_out_int(o, j, "params_experts", f->params->experts);
    plm_out_text(o, j, "file_quant", a->file_quant[0] != '\0' ? a->file_quant : NULL);
    json_t *kinds = plm_out_child(o, j, "layer_kinds", plm_out_array(o));
    for (int32_t i = 0; i < a->n_kinds; i++)
        put_kind(o, kinds, a, i);
    return root;
}

static void print_full(const model_facts *f, FILE *out)
{
    const plm_arch *a = f->arch;
    char p[32], q[32], k[32];
    fprintf(out, "%s: %s parameters (%s active), %d layers, hidden %d, vocabulary %d\n", a->id,
            plm_text_count((double)f->params->total, p, sizeof p),
            plm_text_count((double)f->params->active, q, sizeof q), a->layers, a->hidden, a->vocab);
    fprintf(out, "KV %s a token in bf16, state %lld B a sequence, context up to %lld tokens\n",
            plm_text_bytes((double)f->kv_bytes_per_token, k, sizeof k), (long long)f->state_bytes,
            (long long)a->max_context);
    for (int32_t i = 0; i < a->n_kinds; i++) {
        const plm_layer *l = &a->kind[i];
        int count = 0;
        for (int32_t j = 0; j < a->layers; j++)
            count += a->layer_kind[j] == i;
        fprintf(out, "  %3d x %s", count, attn_names[l->attn]);
        if (l->heads > 0)
            fprintf(out, ", %d heads, %d KV heads of %d/%d", l->heads, l->kv_heads, l->dk, l->dv);
        if (l->window > 0)
            fprintf(out, ", window %d", l->window);
        if (l->kv_lora > 0)
            fprintf(out, ", latent %d + %d", l->kv_lora, l->rope_dim);
        if (l->ffn > 0)
            fprintf(out, "; feed-forward %d", l->ffn);
        if (l->experts > 0)
            fprintf(out, "; %d of %d experts of %d, %d shared", l->top_k, l->experts, l->expert_ffn,
                    l->shared_experts);
        fputc('\n', out);
    }
}

/* One row of the list, to the table or the array. */
static void add_row(const model_facts *f, plm_table *t, plm_json_out *o, json_t *rows, bool json)
{
    if (json) {
        put_common(o, plm_out_child(o, rows, NULL, plm_out_object(o)), f);
        return;
    }
    plm_table_text(t, f->arch->id);
    plm_table_text(t, f->arch->family);
    plm_table_number(t, (double)f->params->total / 1e9, 4);
    plm_table_number(t, (double)f->params->active / 1e9, 4);
    plm_table_format(t, "%d", f->arch->layers);
    plm_table_format(t, "%lld", (long long)f->kv_bytes_per_token);
    plm_table_format(t, "%lld", (long long)f->arch->max_context);
}

static plm_status list(plm_session *s, const plm_args *a, FILE *out, plm_error *err)
{
    static const char *const headers[] = {"model",
                                          "family",
                                          "params\n(billion)",
                                          "active\n(billion)",
                                          "layers",
                                          "KV in bf16\n(B/token)",
                                          "longest context\n(tokens)"};
    const plm_catalog *c = plm_session_catalog(s);
    plm_json_out o = {false};
    plm_table *t;
    PLM_TRY(plm_table_create(headers, sizeof headers / sizeof *headers, &t, err));
    json_t *root = plm_out_object(&o);
    json_t *rows = plm_out_child(&o, root, "models", plm_out_array(&o));
    plm_status status = PLM_OK;
    bool json = a->opt[PLM_OPT_JSON].set;
    for (size_t i = 0, n = plm_catalog_count(c, "models"); i < n; i++) {
        model_facts f;
        PLM_GOTO(gather(s, plm_catalog_at(c, "models", i)->id, &f, err));
        add_row(&f, t, &o, rows, json);
    }
    if (json) {
        json_t *answer = root;
        root = NULL;
        PLM_GOTO(plm_out_write(&o, answer, out, err));
    } else {
        PLM_GOTO(plm_table_write(t, a->opt[PLM_OPT_CSV].set, out, err));
    }
done:
    json_decref(root);
    plm_table_destroy(t);
    return status;
}

plm_status plm_cmd_models(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                          plm_error *err)
{
    (void)io;
    plm_session *s = NULL;
    plm_status status;
    PLM_GOTO(plm_session_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &s, err));
    if (a->opt[PLM_OPT_MODEL].set) {
        model_facts f;
        PLM_GOTO(gather(s, a->opt[PLM_OPT_MODEL].text, &f, err));
        plm_json_out o = {false};
        if (a->opt[PLM_OPT_JSON].set)
            PLM_GOTO(plm_out_write(&o, full_json(&o, &f), out, err));
        else
            print_full(&f, out);
    } else {
        PLM_GOTO(list(s, a, out, err));
    }
    *exit_status = 0;
done:
    plm_session_destroy(s);
    return status;
}
