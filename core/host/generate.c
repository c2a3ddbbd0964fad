/* generate.c - prefill in pieces, decode with sampling. */
#include "core/host/generate.h"

#include <time.h>

#include "core/base/mem.h"

static double now_s(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_MONOTONIC, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : 0;
}

/* All of the prompt; leaves the logits of its last token in the executor. */
static plm_status prefill(plm_runner *r, int32_t seq, const plm_generate_options *o, plm_error *err)
{
    int64_t piece = o->piece > 0 ? o->piece : plm_runner_step_tokens(r), rows, vocab;
    for (int64_t at = 0; at < o->n_prompt;) {
        int64_t n = plm_min_i64(piece, o->n_prompt - at);
        bool last = at + n == o->n_prompt;
        plm_part part = {seq, o->prompt + at, n,
                         o->logits != NULL ? PLM_WANT_ALL : last ? PLM_WANT_LAST : PLM_WANT_NONE};
        PLM_TRY(plm_runner_step(r, &part, 1, err));
        const float *x = plm_runner_logits(r, &rows, &vocab);
        if (o->logits != NULL)
            PLM_TRY(o->logits(o->ctx, x, rows, vocab, err));
        at += n;
    }
    return PLM_OK;
}

static plm_status pick(plm_runner *r, plm_sampler *s, int32_t *id, plm_error *err)
{
    int64_t rows, vocab;
    const float *x = plm_runner_logits(r, &rows, &vocab);
    return plm_sampler_pick(s, x + (rows - 1) * vocab, vocab, id, err);
}

static plm_status run_sequence(plm_runner *r, int32_t seq, plm_sampler *s,
                               const plm_generate_options *o, plm_generated *out, plm_error *err)
{
    int32_t id = 0;
    double from = now_s();
    PLM_TRY(prefill(r, seq, o, err));
    out->prompt_tokens = o->n_prompt;
    if (o->most > 0)
        PLM_TRY(pick(r, s, &id, err));
    out->prefill_s = now_s() - from;
    for (int64_t i = 0; i < o->most; i++) {
        out->tokens++;
        if ((o->token != NULL && !o->token(o->ctx, id)) || i + 1 == o->most)
            break;
        plm_part part = {seq, &id, 1, PLM_WANT_LAST};
        from = now_s();
        PLM_TRY(plm_runner_step(r, &part, 1, err));
        PLM_TRY(pick(r, s, &id, err));
        out->decode_s += now_s() - from;
        out->steps++;
    }
    return PLM_OK;
}

plm_status plm_generate(plm_runner *r, const plm_generate_options *o, plm_generated *out,
                        plm_error *err)
{
    plm_sampler s;
    int32_t seq;
    *out = (plm_generated){0};
    if (o->n_prompt < 1)
        return plm_fail(err, PLM_E_INVALID, "prompt: no token; give a text or --tokens");
    PLM_TRY(plm_sampler_init(&s, &o->sampling, err));
    plm_status status = plm_runner_open(r, &seq, err);
    if (status == PLM_OK) {
        status = run_sequence(r, seq, &s, o, out, err);
        plm_runner_close(r, seq);
    }
    plm_sampler_fini(&s);
    return status;
}
