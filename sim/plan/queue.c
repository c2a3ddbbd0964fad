/* queue.c - closed forms of waiting and overlap. */
#include "sim/plan/queue.h"

#include <math.h>

#include "sim/plan/plan.h"

double plm_md1_split_s(double service_s, double rate, double k)
{
    double load = rate * service_s;
    if (load >= k)
        return INFINITY;
    return service_s / k + load * service_s / (2 * k * (k - load));
}

double plm_md1_ttft_s(double service_s, double rate)
{
    return plm_md1_split_s(service_s, rate, 1);
}

double plm_md1_two_stage_s(double service_s, double rate)
{
    double load = rate * service_s;
    if (load >= 2)
        return INFINITY;
    return service_s + load * service_s / (4 * (2 - load));
}

double plm_mdc_wait_s(double service_s, double rho, double servers)
{
    if (rho <= 0)
        return 0;
    if (rho >= 1)
        return INFINITY;
    return pow(rho, sqrt(2 * (servers + 1)) - 1) / (2 * servers * (1 - rho)) * service_s;
}

double plm_wave_speedup(double n, double p)
{
    return n * p / ((n - 1) + (p - 1) + p);
}

double plm_breakeven_bytes_s(double kv_bytes_per_token, double prefill_tok_s)
{
    return kv_bytes_per_token * prefill_tok_s;
}

double plm_layerwise_s(double layers, double compute_s, double transfer_s)
{
    return compute_s + (layers - 1) * fmax(compute_s, transfer_s) + transfer_s;
}

/* Quantile of the standard normal for p in (0.5, 1). Source: Abramowitz and Stegun 26.2.23, error
** below 4.5e-4. */
static double upper_quantile(double p)
{
    double t = sqrt(-2 * log(1 - p));
    double num = 2.515517 + t * (0.802853 + t * 0.010328);
    double den = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    return t - num / den;
}

double plm_expert_imbalance(double experts, double k, double tokens, double ranks)
{
    if (ranks <= 1 || experts <= 1 || k <= 0 || tokens <= 0 || k >= experts)
        return 1;
    double mean = tokens * k / ranks;
    double var = mean * (1 - 1 / ranks) * (experts - k) / (experts - 1);
    double z = upper_quantile((ranks - 0.375) / (ranks + 0.25));
    double most = 1 + z * sqrt(var) / mean;
    return fmin(most, ranks); /* all on one rank is the worst there is */
}
