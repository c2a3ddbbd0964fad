/* closed.c - see closed.h. */
#include "sim/step/closed.h"

#include <math.h>

#include "core/base/mem.h"

int64_t plm_blocks_to_tokens(int64_t blocks, int64_t block)
{
    int64_t tokens;
    if (blocks < 0 || block < 1 || !plm_mul_i64(blocks, block, &tokens))
        return -1;
    return tokens;
}

double plm_max_concurrency(double pool_tokens, double tokens_per_request)
{
    return pool_tokens >= 0.0 && tokens_per_request > 0.0 ? pool_tokens / tokens_per_request
                                                          : (double)NAN;
}

int64_t plm_requests_held(int64_t pool_tokens, int64_t tokens)
{
    return pool_tokens >= 0 && tokens > 0 ? pool_tokens / tokens : -1;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

int64_t plm_common_block(const int64_t *blocks, size_t n)
{
    int64_t lcm = 1;
    for (size_t i = 0; i < n; i++)
        if (blocks[i] < 1 || !plm_mul_i64(lcm / common_divisor(lcm, blocks[i]), blocks[i], &lcm))
            return -1;
    return n > 0 ? lcm : -1;
}

int64_t plm_logits_bytes(int64_t rows, int64_t vocab, int64_t bytes_each)
{
    int64_t n;
    if (rows < 0 || vocab < 0 || bytes_each < 0 || !plm_mul_i64(rows, vocab, &n) ||
        !plm_mul_i64(n, bytes_each, &n))
        return -1;
    return n;
}

int64_t plm_image_tokens(int64_t max_pixels, int64_t pixels_per_token)
{
    return max_pixels >= 0 && pixels_per_token > 0 ? max_pixels / pixels_per_token : -1;
}

int64_t plm_params_tied(int64_t checkpoint_params, int64_t vocab, int64_t hidden)
{
    int64_t table;
    if (vocab < 0 || hidden < 0 || !plm_mul_i64(vocab, hidden, &table) ||
        table > checkpoint_params)
        return -1;
    return checkpoint_params - table;
}

double plm_bits_per_weight(double bytes, double params)
{
    return params > 0.0 ? 8.0 * bytes / params : (double)NAN;
}

double plm_params_from_bytes(double bytes, plm_dtype t)
{
    return t < PLM_DT_COUNT && bytes >= 0.0 ? 8.0 * bytes / plm_dtype_bits(t) : (double)NAN;
}

bool plm_gqa_fields(int64_t heads, int64_t *kv_heads, int64_t *group)
{
    if (heads < 1 || *kv_heads < 0 || *group < 0 || (*kv_heads == 0 && *group == 0))
        return false;
    if (*kv_heads == 0) {
        if (heads % *group != 0)
            return false;
        *kv_heads = heads / *group;
    } else if (*group == 0) {
        if (heads % *kv_heads != 0)
            return false;
        *group = heads / *kv_heads;
    }
    return heads % *group == 0 && heads / *group == *kv_heads;
}

double plm_bytes_per_token(double achieved_bytes_s, double tok_s)
{
    return tok_s > 0.0 ? achieved_bytes_s / tok_s : (double)NAN;
}

double plm_bandwidth_share(double achieved_bytes_s, double peak_bytes_s)
{
    return peak_bytes_s > 0.0 ? achieved_bytes_s / peak_bytes_s : (double)NAN;
}

plm_roofline plm_roofline_check(double bytes_per_token, double peak_bytes_s, double measured_tok_s)
{
    plm_roofline r = {(double)NAN, (double)NAN, false};
    if (!(bytes_per_token > 0.0) || !(peak_bytes_s > 0.0))
        return r;
    r.tok_s = peak_bytes_s / bytes_per_token;
    r.fraction = measured_tok_s / r.tok_s;
    r.above = r.fraction > 1.0;
    return r;
}

plm_affine plm_affine_fit(double tokens1, double s1, double tokens2, double s2)
{
    plm_affine f = {(double)NAN, (double)NAN};
    if (tokens1 == tokens2)
        return f;
    f.s_per_token = (s2 - s1) / (tokens2 - tokens1);
    f.fixed_s = s1 - f.s_per_token * tokens1;
    return f;
}

double plm_affine_s(plm_affine f, double tokens)
{
    return f.fixed_s + f.s_per_token * tokens;
}

double plm_expert_offload_rows(double experts, double active, double base)
{
    return active > 0.0 ? base * experts / active : (double)NAN;
}

double plm_layer_tp_decode(double single_tok_s, double tp, double layers, double reduces,
                           double reduce_s)
{
    if (!(single_tok_s > 0.0) || !(tp >= 1.0))
        return (double)NAN;
    double links = tp > 1.0 ? layers * reduces * reduce_s : 0.0;
    return 1.0 / (1.0 / single_tok_s / tp + links);
}

double plm_transfer_s(double bytes, double gbit_s)
{
    return gbit_s > 0.0 ? 8.0 * bytes / (gbit_s * 1e9) : (double)NAN;
}

double plm_numa_slowdown(double nodes, double node_bytes_s, double link_bytes_s)
{
    if (!(nodes >= 1.0) || !(node_bytes_s > 0.0) || !(link_bytes_s > 0.0))
        return (double)NAN;
    return fmax(1.0, (nodes - 1.0) / nodes * node_bytes_s / link_bytes_s);
}

double plm_spec_expected_tokens(double alpha, double k)
{
    if (!(alpha >= 0.0) || alpha > 1.0 || !(k >= 0.0))
        return (double)NAN;
    return alpha < 1.0 ? (1.0 - pow(alpha, k + 1.0)) / (1.0 - alpha) : k + 1.0;
}

double plm_spec_speedup(double alpha, double k, double c, double overhead)
{
    double cost = 1.0 + k * c + overhead;
    return cost > 0.0 ? plm_spec_expected_tokens(alpha, k) / cost : (double)NAN;
}

plm_spec_run plm_spec_time(double out_tokens, double target_only, double target_tok_s,
                           double drafted, double draft_tok_s, double verify_tok_s)
{
    plm_spec_run r = {(double)NAN, (double)NAN};
    if (!(target_tok_s > 0.0) || !(draft_tok_s > 0.0) || !(verify_tok_s > 0.0))
        return r;
    r.seconds = target_only / target_tok_s + drafted * (1.0 / draft_tok_s + 1.0 / verify_tok_s);
    r.tok_s = out_tokens / r.seconds;
    return r;
}

int64_t plm_prefill_steps(int64_t prompt, int64_t chunk)
{
    return prompt >= 0 && chunk > 0 ? plm_ceil_div(prompt, chunk) : -1;
}

double plm_burst_ttft(int64_t n, int64_t i, double service_s, bool batched)
{
    if (n < 1 || i < 0 || i >= n)
        return (double)NAN;
    return service_s * (double)(batched ? n : i + 1);
}

double plm_burst_mean_ttft(int64_t n, double service_s, bool batched)
{
    if (n < 1)
        return (double)NAN;
    return batched ? service_s * (double)n : service_s * ((double)n + 1.0) / 2.0;
}

double plm_breakeven_tokens(double usd_per_month, double usd_per_mtok)
{
    return usd_per_mtok > 0.0 ? usd_per_month / usd_per_mtok * 1e6 : (double)NAN;
}

double plm_usd_per_munit(double usd, double units)
{
    return units > 0.0 ? usd / units * 1e6 : (double)NAN;
}

int64_t plm_input_tokens(int64_t cache_read, int64_t cache_write)
{
    int64_t n;
    return cache_read >= 0 && cache_write >= 0 && plm_add_i64(cache_read, cache_write, &n) ? n : -1;
}
