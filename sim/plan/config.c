/* config.c - from what was asked to what is costed. */
#include "sim/plan/config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/plan/queue.h"

#define SEQS_LEAST 1

plm_figure plm_figure_band(double value, const double band[2])
{
    return (plm_figure){value, value * band[0], value * band[1]};
}

/* ---- storage ---- */

static plm_dtype kv_dtype(const char *name)
{
    /* Of weights "fp8" is a planar type with scales; a cache holds plain E4M3. */
    return strcmp(name, "fp8") == 0 ? PLM_DT_F8E4M3 : plm_dtype_by_name(name);
}

plm_status plm_kv_types(const char *text, const plm_profile *p, plm_dtype *k, plm_dtype *v,
                        char *name, size_t cap, plm_error *err)
{
    char first[32];
    *k = *v = p->kv_default;
    if (text != NULL && strcmp(text, "auto") != 0) {
        const char *comma = strchr(text, ',');
        size_t n = comma != NULL ? (size_t)(comma - text) : strlen(text);
        if (n < sizeof first) {
            memcpy(first, text, n);
            first[n] = '\0';
            *k = kv_dtype(first);
            *v = comma != NULL ? kv_dtype(comma + 1) : *k;
        } else {
            *k = PLM_DT_COUNT;
        }
        if (*k == PLM_DT_COUNT || *v == PLM_DT_COUNT ||
            plm_dtype_get(*k)->family == PLM_FAMILY_PLANAR ||
            plm_dtype_get(*v)->family == PLM_FAMILY_PLANAR)
            return plm_fail(err, PLM_E_INVALID,
                            "unknown type, --kv-type: \"%.60s\" is no type of a "
                            "cache; give f16, bf16, fp8, q8_0, q4_0 ..., or two for K and V",
                            text);
    }
    if (*k == *v)
        snprintf(name, cap, "%s", plm_dtype_get(*k)->name);
    else
        snprintf(name, cap, "%s,%s", plm_dtype_get(*k)->name, plm_dtype_get(*v)->name);
    return PLM_OK;
}

/* Engines that read GGUF files. */
static bool reads_gguf(const plm_profile *p)
{
    static const char *const engines[] = {"llama.cpp", "ik_llama.cpp", "ollama", "ds4"};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (strcmp(p->engine, engines[i]) == 0)
            return true;
    return false;
}

/* The recipe asked for; else what the file says of itself; else the engine's usual one. */
static plm_status choose_recipe(const char *quant, plm_config *c, plm_error *err)
{
    const plm_profile *p = &c->machine.prof;
    const char *usual = p->quant_default;
    if (quant != NULL)
        c->recipe = plm_recipe_by_name(quant);
    else if (c->arch->file_quant[0] == '\0' && usual[0] != '\0')
        c->recipe = plm_recipe_by_name(usual);
    else
        c->recipe = plm_recipe_default(c->arch);
    if (c->recipe == NULL)
        return plm_fail(err, PLM_E_INVALID,
                        "unknown storage, --quant: \"%.60s\"; give bf16, fp8, "
                        "q4_k_m, q8_0, awq4, mxfp4, nvfp4 ...",
                        quant != NULL ? quant : usual);
    if (reads_gguf(p))
        c->recipe = plm_recipe_gguf(c->recipe);
    return PLM_OK;
}

/* ---- query ---- */

static void override_profile(const plm_query *q, plm_config *c)
{
    plm_profile *p = &c->machine.prof;
    if (q->max_batched_tokens > 0)
        p->ubatch = q->max_batched_tokens;
    if (q->ubatch > 0)
        p->ubatch = q->ubatch;
    if (q->max_seqs > 0)
        p->max_seqs = q->max_seqs;
    if (q->memory_fraction > 0)
        p->memory_fraction = q->memory_fraction;
    if (p->ubatch < 1)
        p->ubatch = 512;
}

/* Servers plan their activations for the most sequences they admit; others for what is asked. */
static int64_t sequences_planned(const plm_query *q, const plm_profile *p)
{
    if (p->memory_rule != PLM_MEMORY_ALL)
        return plm_max_i64(SEQS_LEAST, plm_min_i64(p->max_seqs, 65536));
    int64_t most = plm_max_i64(q->batch, q->concurrency), n = SEQS_LEAST;
    while (n < most && n < plm_min_i64(p->max_seqs, 65536))
        n *= 2;
    return n;
}

/* Checkpoints whose attention is stored in narrow floats come with scales for a narrow cache, which
** some engines then use unasked. */
static void choose_narrow_cache(plm_config *c)
{
    plm_profile *p = &c->machine.prof;
    if (p->kv_narrow == PLM_DT_COUNT)
        return;
    plm_dtype o = plm_recipe_weight(c->recipe, c->arch, PLM_ROLE_O, 0, 1024, 1024);
    plm_math m = plm_dtype_get(o)->math;
    if (m == PLM_MATH_F8 || m == PLM_MATH_F6 || m == PLM_MATH_F4)
        p->kv_default = p->kv_narrow;
}

plm_status plm_config_init(plm_session *s, const plm_query *q, plm_config *c, plm_error *err)
{
    memset(c, 0, sizeof *c);
    char id[256];
    int64_t count;
    const plm_machine *m;
    if (q->model == NULL || q->device == NULL)
        return plm_fail(err, PLM_E_INVALID, "query, model and device: both are needed; name them");
    PLM_TRY(plm_device_split(q->device, id, sizeof id, &count, err));
    PLM_TRY(plm_session_machine(s, id, q->engine, &m, err));
    PLM_TRY(plm_session_model(s, q->model, &c->arch, err));
    PLM_TRY(plm_session_params(s, c->arch, &c->params, err));
    c->machine = *m;
    override_profile(q, c);
    c->devices = q->device_count > 0 ? q->device_count : count;
    c->layer_split = plm_layer_split(&c->machine.prof);
    c->unfused = q->flash_attn == 0;
    if (c->unfused && m->prof.unfused_eff > 0)
        c->machine.inv_attn_decode = m->inv_bandwidth / m->prof.unfused_eff;
    if (c->unfused && m->prof.unfused_tensor > 0)
        c->machine.inv_tensor[PLM_CLASS_ATTENTION] = 1.0 / m->prof.unfused_tensor;
    c->seqs_bound = sequences_planned(q, &c->machine.prof);
    c->weights_given = q->weights_bytes;
    for (int32_t i = 0; i < c->arch->n_kinds; i++) {
        const plm_layer *l = &c->arch->kind[i];
        if (l->experts > 0) {
            c->experts = fmax(c->experts, l->experts);
            c->top_k = fmax(c->top_k, l->top_k);
        }
    }
    PLM_TRY(choose_recipe(q->quant, c, err));
    choose_narrow_cache(c);
    return plm_kv_types(q->kv_type, &c->machine.prof, &c->kv_k, &c->kv_v, c->kv_name,
                        sizeof c->kv_name, err);
}

/* ---- programs ---- */

static void describe_build(const plm_config *c, plm_build *b)
{
    const plm_profile *p = &c->machine.prof;
    plm_build_init(b);
    b->par = c->par;
    b->recipe = c->recipe;
    b->act = p->act_default;
    b->kv_k = c->kv_k;
    b->kv_v = c->kv_v;
    b->mla_expanded = !p->absorb_mla;
    b->fuse_qkv = b->fuse_gate_up = !c->layer_split && !p->matrices_apart;
    b->all_logits = p->all_logits;
    b->vocab_pad = (int32_t)plm_min_i64(p->vocab_pad, 65536);
    b->max_seqs = c->seqs_bound;
    b->max_tokens = plm_max_i64(plm_min_i64(p->ubatch, INT64_C(1) << 24), c->seqs_bound);
}

/* Scores of one layer held in memory, float32, heads of this rank. */
static double score_bytes(const plm_config *c, double q_len, double kv_len)
{
    double heads = 0;
    for (int32_t i = 0; i < c->arch->n_kinds; i++)
        heads = fmax(heads, c->arch->kind[i].heads);
    return heads / c->par.tp * q_len * kv_len * 4;
}

static plm_status whole_weights(plm_session *s, plm_config *c, const plm_build *b, int64_t *bytes,
                                plm_error *err)
{
    plm_build one = *b;
    const plm_program *p;
    one.par = plm_parallel_one();
    one.stage = 0;
    PLM_TRY(plm_session_program(s, c->arch, &one, &c->machine.prof, &p, err));
    *bytes = plm_program_weight_bytes(p);
    return PLM_OK;
}

#define RATIO_MAX 32 /* 32 bits a weight against one: no file differs more from its storage */

/* A file of another size than computed: memory and traffic of all weights in proportion. */
static plm_status scale_weights(plm_config *c, plm_error *err)
{
    double ratio = (double)c->weights_given / (double)c->model_weights_bytes;
    if (ratio * RATIO_MAX < 1 || ratio > RATIO_MAX)
        return plm_fail(err, PLM_E_INVALID,
                        "bad size of the weights, %s: %lld bytes given, %lld in this storage; give "
                        "the size of the model's file",
                        c->arch->id, (long long)c->weights_given,
                        (long long)c->model_weights_bytes);
    c->weights_bytes = (int64_t)((double)c->weights_bytes * ratio);
    c->embed_bytes = (int64_t)((double)c->embed_bytes * ratio);
    c->model_weights_bytes = c->weights_given;
    for (int i = 0; i < PLM_DT_COUNT; i++)
        c->machine.inv_weight[i] *= ratio;
    return PLM_OK;
}

/* Inner stages of equal layers in equal storage cost the same: one program serves them all. A layer
** that reuses another's cache is tied to its place. */
static bool same_stage(const plm_config *c, int32_t a, int32_t b)
{
    int32_t at_a, at_b, n_a, n_b;
    plm_parallel_stage(c->arch, &c->par, a, &at_a, &n_a);
    plm_parallel_stage(c->arch, &c->par, b, &at_b, &n_b);
    if (a == 0 || b == c->par.pp - 1 || n_a != n_b)
        return false;
    for (int32_t i = 0; i < n_a; i++) {
        const plm_layer *l = plm_arch_layer(c->arch, at_a + i);
        if (l != plm_arch_layer(c->arch, at_b + i) || l->kv_shared_layer >= 0)
            return false;
        for (int r = 0; r < PLM_ROLE_COUNT; r++)
            if (plm_recipe_weight(c->recipe, c->arch, (plm_role)r, at_a + i, 1024, 1024) !=
                plm_recipe_weight(c->recipe, c->arch, (plm_role)r, at_b + i, 1024, 1024))
                return false;
    }
    return true;
}

plm_status plm_config_build(plm_session *s, plm_config *c, bool whole_model, plm_error *err)
{
    plm_build b;
    describe_build(c, &b);
    assert(c->par.pp >= 1 && c->par.pp <= PLM_STAGES_MAX);
    bool host = c->machine.prof.embed_on_host && strcmp(c->machine.dev.cls, "cpu") != 0 &&
                !c->arch->tied_head;
    int64_t fullest = -1;
    c->activation_bytes = 0;
    for (int32_t i = 0; i < c->par.pp; i++) {
        if (i > 0 && same_stage(c, i - 1, i)) {
            c->program[i] = c->program[i - 1];
            continue;
        }
        b.stage = i;
        PLM_TRY(plm_session_program(s, c->arch, &b, &c->machine.prof, &c->program[i], err));
        int64_t weights = plm_program_weight_bytes(c->program[i]);
        int64_t embed = plm_program_embed_bytes(c->program[i]);
        int64_t held = weights - (host ? embed : 0);
        if (held > fullest) {
            fullest = held;
            c->weights_bytes = weights;
            c->embed_bytes = embed;
        }
        c->activation_bytes =
            plm_max_i64(c->activation_bytes, plm_program_activation_bytes(c->program[i]));
    }
    if (whole_model || c->weights_given > 0) {
        c->model_weights_bytes = c->weights_bytes;
        if (c->devices > 1)
            PLM_TRY(whole_weights(s, c, &b, &c->model_weights_bytes, err));
        if (c->weights_given > 0 && c->model_weights_bytes > 0)
            PLM_TRY(scale_weights(c, err));
    }
    c->rest = plm_machine_rest(&c->machine);
    c->stages = (plm_stages){.program = c->program,
                             .first = &c->machine,
                             .rest = &c->rest,
                             .n_stage = c->par.pp,
                             .overlap = 1,
                             .experts = c->experts,
                             .top_k = c->top_k,
                             .ep = c->par.ep,
                             .dp = c->par.dp};
    return PLM_OK;
}

/* ---- memory ---- */

/* Elements a token of the gate of the widest dense feed-forward, which ggml overwrites with the
** product: 0 if a layer of another kind may set the peak. */
static double gate_width(const plm_config *c)
{
    double width = 0;
    for (int32_t i = 0; i < c->arch->n_kinds; i++) {
        const plm_layer *l = &c->arch->kind[i];
        if (l->experts > 0 || !l->glu || l->lin_v_heads > 0)
            return 0;
        width = fmax(width, (double)l->ffn / c->par.tp);
    }
    return width;
}

/* Largest set of activations alive at once: the plan of the graph; or, unfused, the scores of a layer
** beside four rows of the hidden size; or logits of every row of a chunk, where the engine reserves
** them (llama.cpp: 258.5 MiB for Llama 3 8B and 512 tokens; 97 MiB for LLaMA 30B are twice its
** feed-forward and twice its hidden size). */
static double activation_peak(const plm_config *c, int64_t context)
{
    double rows = (double)plm_min_i64(c->machine.prof.ubatch, context);
    double most = (double)c->activation_bytes, hidden = (double)c->arch->hidden;
    if (c->machine.prof.ubatch_logits)
        most = fmax(most / 2, most - rows * gate_width(c) * 4);
    if (c->unfused)
        most = fmax(most, score_bytes(c, rows, (double)context) + 4 * rows * hidden * 4);
    if (c->machine.prof.ubatch_logits)
        most = fmax(most, rows * ((double)c->arch->vocab / c->par.tp + hidden) * 4);
    /* Servers that measure a step at start-up sample for as many sequences as they admit. */
    most = fmax(most, c->machine.prof.logit_bytes * (double)c->machine.prof.max_seqs *
                          (double)c->arch->vocab);
    return fmin(most, 1e18);
}

plm_status plm_config_ledger(const plm_config *c, int64_t context, int64_t batch, plm_ledger *out,
                             plm_error *err)
{
    plm_profile prof = c->machine.prof;
    if (c->par.tp > 1 || c->par.dp > 1)
        prof.context_bytes += prof.comm_bytes;
    plm_ledger_query q = {.arch = c->arch,
                          .dev = &c->machine.dev,
                          .prof = &prof,
                          .par = c->par,
                          .kv_k = c->kv_k,
                          .kv_v = c->kv_v,
                          .weights_bytes = c->weights_bytes,
                          .embed_bytes = c->embed_bytes,
                          .activation_bytes = (int64_t)activation_peak(c, context),
                          .context_tokens = context,
                          .batch = batch};
    PLM_TRY(plm_ledger_make(&q, out, err));
    if (!(c->machine.dev.memory_bytes > 0)) { /* unknown: cannot be said not to fit */
        out->fits = true;
        out->limit[0] = '\0';
    }
    return PLM_OK;
}

plm_status plm_config_kv_tokens(const plm_config *c, double tokens, double *out, plm_error *err)
{
    plm_ledger l;
    int64_t each = plm_max_i64(1, (int64_t)ceil(tokens));
    PLM_TRY(plm_config_ledger(c, each, 1, &l, err));
    if (!(c->machine.dev.memory_bytes > 0))
        *out = (double)c->machine.prof.max_seqs * tokens * c->par.dp;
    else
        *out = (double)l.max_batch * tokens;
    const plm_profile *p = &c->machine.prof;
    if (l.state_bytes > 0 && p->state_share > 0) { /* two pools; a request needs room in both */
        double pool = (double)l.kv_pool_bytes, share = p->state_share;
        double states = pool * share / (fmax(1, p->state_copies) * (double)l.state_bytes);
        double caches = l.kv_bytes > 0 ? pool * (1 - share) / (double)l.kv_bytes : states;
        *out = fmin(*out, floor(fmin(states, caches)) * c->par.dp * tokens);
    }
    return PLM_OK;
}

/* ---- time ---- */

/* Attention that is not one kernel writes its scores, reads and writes them in the softmax, and
 *reads
 ** them again for the product with V: four passes of float32, all columns, masked or not. */
static double unfused_s(const plm_config *c, double q_len, double kv_len, double count)
{
    const plm_machine *m = &c->machine;
    double s = 0, columns = kv_len + q_len;
    for (int32_t i = 0; i < c->arch->layers; i++) {
        const plm_layer *l = plm_arch_layer(c->arch, i);
        if (l->heads <= 0 || l->attn == PLM_ATTN_NONE || l->attn == PLM_ATTN_GATED_DELTA ||
            l->attn == PLM_ATTN_KDA || l->attn == PLM_ATTN_MAMBA2)
            continue;
        double seen = l->window > 0 ? fmin(columns, l->window + q_len) : columns;
        s += 4 * (l->heads / (double)c->par.tp) * q_len * seen * 4 *
                 m->inv_memory[PLM_CLASS_ELEMENTWISE] +
             2 * m->launch_s;
    }
    return s * count;
}

double plm_config_step(const plm_config *c, int64_t q_len, int64_t kv_len, int64_t count,
                       int64_t logit_rows, plm_step *out, double *slowest)
{
    const plm_segment seg = {q_len, kv_len, count};
    plm_batch b = {.seg = &seg, .n_seg = 1, .logit_rows = logit_rows};
    b.imbalance = plm_expert_imbalance(c->experts, c->top_k,
                                       (double)q_len * (double)count * c->par.dp, c->par.ep);
    double time = plm_stages_time(&c->stages, &b, out, slowest);
    if (c->unfused) {
        double extra = unfused_s(c, (double)q_len, (double)kv_len, (double)count);
        time += extra;
        if (out != NULL) {
            out->time_s += extra;
            out->part_s[PLM_BOUND_MEMORY] += extra;
        }
        if (slowest != NULL)
            *slowest += extra / c->par.pp;
    }
    return time;
}

/* ---- price ---- */

plm_status plm_config_price(const plm_catalog *cat, const char *device, double given, double *usd,
                            char *source, size_t cap, plm_error *err)
{
    plm_price p;
    if (given >= 0) {
        *usd = given;
        snprintf(source, cap, "as given");
        return PLM_OK;
    }
    *usd = -1;
    source[0] = '\0';
    plm_status status = plm_price_find(cat, device, NULL, &p, err);
    if (status != PLM_OK) /* nobody rents it, or a list that cannot be read */
        return status == PLM_E_NOT_FOUND ? PLM_OK : status;
    *usd = p.usd_per_hour;
    if (p.n > 1) /* its source says how many, their span and the newest date */
        snprintf(source, cap, "%s, %s", p.term, p.source);
    else
        snprintf(source, cap, "%s, %s, %s, %s", p.venue, p.term, p.date, p.source);
    return PLM_OK;
}
