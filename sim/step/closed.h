/* closed.h - closed forms that planners get asked for: small, exact, each with its source.
**
** They serve explanations, cross-checks and the acceptance cases; the predictions proper come from
** the cost program. Pure functions; arguments out of range give NaN (reals) or -1 (counts), never a
** plausible number.
*/
#ifndef PLM_SIM_CLOSED_H
#define PLM_SIM_CLOSED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ir/dtype.h"

/* ---- KV pool ---- */
/* Tokens of `blocks` blocks; -1 when they do not fit int64. */
int64_t plm_blocks_to_tokens(int64_t blocks, int64_t block);
/* The "maximum concurrency" that vLLM logs: pool over request. No limit of admission, since blocks
** are taken as sequences grow (vllm issue 31602). */
double plm_max_concurrency(double pool_tokens, double tokens_per_request);
/* Whole requests of `tokens` tokens that a pool holds at once (sglang-omni issue 1718). */
int64_t plm_requests_held(int64_t pool_tokens, int64_t tokens);
/* Least common multiple of the block sizes of cache groups: the unit of prefix hits when groups are
** mixed (vllm-ascend issue 16270); -1 when it does not fit. */
int64_t plm_common_block(const int64_t *blocks, size_t n);

/* ---- activations ---- */
/* Logits of `rows` rows through the head (rows = prefill chunk, or 1 a sequence). */
int64_t plm_logits_bytes(int64_t rows, int64_t vocab, int64_t bytes_each);
/* Tokens of an image of at most max_pixels, one for each pixels_per_token (28 * 28 for Qwen2.5-VL).
** */
int64_t plm_image_tokens(int64_t max_pixels, int64_t pixels_per_token);

/* ---- weights ---- */
/* Parameters of a checkpoint that stores a tied head twice, counted once. */
int64_t plm_params_tied(int64_t checkpoint_params, int64_t vocab, int64_t hidden);
/* Mean bits of a weight: 8 * bytes / params. */
double plm_bits_per_weight(double bytes, double params);
/* Parameters of a file of `bytes` whose tensors are all of type t. */
double plm_params_from_bytes(double bytes, plm_dtype t);
/* Query heads, KV heads and heads a group, given any two (0 = unknown); false if they disagree. */
bool plm_gqa_fields(int64_t heads, int64_t *kv_heads, int64_t *group);

/* ---- roofline ---- */
/* Bytes a token that a rate implies, and the share of the peak bandwidth. */
double plm_bytes_per_token(double achieved_bytes_s, double tok_s);
double plm_bandwidth_share(double achieved_bytes_s, double peak_bytes_s);
typedef struct plm_roofline {
    double tok_s;    /* bandwidth over bytes read a token */
    double fraction; /* measured over that */
    bool above;      /* > 1: overclock, many tokens a step, or mistimed: never calibrate on it */
} plm_roofline;
plm_roofline plm_roofline_check(double bytes_per_token, double peak_bytes_s, double measured_tok_s);
/* Seconds of `tokens` prefill tokens through a fixed cost and a rate, fitted to two points (tokens,
** seconds): the constant is what a chunk pays once, such as an upload of experts. */
typedef struct plm_affine {
    double fixed_s, s_per_token;
} plm_affine;
plm_affine plm_affine_fit(double tokens1, double s1, double tokens2, double s2);
double plm_affine_s(plm_affine f, double tokens);
/* Rows from which ik_llama.cpp moves host experts to the GPU: base * experts / active (issue 2433).
** */
double plm_expert_offload_rows(double experts, double active, double base);
/* Upper bound of tokens/s of a decode split over tp ranks: the time of one rank divided, and
** `reduces` all-reduces a layer of reduce_s each added (gpt-fast issue 111). */
double plm_layer_tp_decode(double single_tok_s, double tp, double layers, double reduces,
                           double reduce_s);
/* Seconds to move bytes over a link given in gigabits a second. */
double plm_transfer_s(double bytes, double gbit_s);

/* Time of a decode step whose threads run on `nodes` NUMA nodes while the weights lie on one, over
** the time on that node alone: the share (nodes - 1) / nodes crosses the link between sockets, so
** the ratio is max(1, (nodes - 1) / nodes * node bandwidth / link bandwidth). Above 1 a run is
** better pinned to the node (llamafile issue 765, llama.cpp issue 1437). */
double plm_numa_slowdown(double nodes, double node_bytes_s, double link_bytes_s);

/* ---- speculative decoding; Leviathan et al., arXiv 2211.17192 ---- */
/* Tokens out of one verification of k drafts accepted with probability alpha each, the bonus token
** included: (1 - alpha^(k+1)) / (1 - alpha). */
double plm_spec_expected_tokens(double alpha, double k);
/* Speed-up with a drafter of c target steps a token and overhead o: expected / (1 + k c + o). */
double plm_spec_speedup(double alpha, double k, double c, double overhead);
/* Accounting of a run: tokens the target made alone, drafts made and verified (rejected ones are
** cost, not output); seconds, and tokens/s over the tokens that came out (llama.cpp issue 3649). */
typedef struct plm_spec_run {
    double seconds, tok_s;
} plm_spec_run;
plm_spec_run plm_spec_time(double out_tokens, double target_only, double target_tok_s,
                           double drafted, double draft_tok_s, double verify_tok_s);

/* ---- scheduling ---- */
/* Steps of a prompt in chunks. */
int64_t plm_prefill_steps(int64_t prompt, int64_t chunk);
/* TTFT of request i (0-based) of a burst of n equal prompts of service_s each: one after another,
** or all in one batch that saturates the device (vllm issue 33743); and its mean over the burst. */
double plm_burst_ttft(int64_t n, int64_t i, double service_s, bool batched);
double plm_burst_mean_ttft(int64_t n, double service_s, bool batched);

/* ---- cost ---- */
/* Tokens a month at which a fixed rent equals a price per million tokens. */
double plm_breakeven_tokens(double usd_per_month, double usd_per_mtok);
/* Cost of a million units of a job: tokens, pages, tasks. Never mix them (olmocr issue 249). */
double plm_usd_per_munit(double usd, double units);
/* Input tokens of a request: cache reads and writes are a partition of it, not an addition to it
** (agentic-coding-harness-benchmarks issue 136). */
int64_t plm_input_tokens(int64_t cache_read, int64_t cache_write);

#endif
