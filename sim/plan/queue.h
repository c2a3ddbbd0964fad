/* queue.h - closed forms of waiting and overlap that the planner uses; pure, thread-safe. */
#ifndef PLM_SIM_QUEUE_H
#define PLM_SIM_QUEUE_H

/* Mean time to first token of a prefill worker that takes one prompt at a time, D = service_s each,
** arrivals at `rate` a second: M/D/1, D + R D^2 / (2 (1 - R D)). INFINITY when R D >= 1.
** Source: DistServe, arXiv 2401.09670 section 3.1. */
double plm_md1_ttft_s(double service_s, double rate);
/* Two pipeline stages of D/2 each: D + R D^2 / (4 (2 - R D)); INFINITY when R D >= 2. */
double plm_md1_two_stage_s(double service_s, double rate);
/* Tensor split with speed-up k: D/k + R D^2 / (2 k (k - R D)); INFINITY when R D >= k. */
double plm_md1_split_s(double service_s, double rate, double k);
/* Mean wait in the queue of `servers` servers with constant service at utilisation rho:
** rho^(sqrt(2 (c + 1)) - 1) / (2 c (1 - rho)) * D, exact for one server. INFINITY when rho >= 1.
** Source: Sakasegawa, Ann. Inst. Statist. Math. 29 (1977), with (0 + 1)/2 for constant service. */
double plm_mdc_wait_s(double service_s, double rho, double servers);
/* Micro-batches n of one prompt kept in flight over p equal stages, the last one alone, against one
** after another: n p / ((n - 1) + (p - 1) + p). Source: serving facts section 12 (TurboPrefill). */
double plm_wave_speedup(double n, double p);
/* Link rate at which loading cached KV takes as long as computing it again:
** bytes a token x prefill tokens/s. */
double plm_breakeven_bytes_s(double kv_bytes_per_token, double prefill_tok_s);
/* Mean of the greatest of `ranks` expert loads over their mean, when `tokens` tokens draw k
*distinct
** experts of `experts` at random: 1 + z(ranks) sigma / mean, sigma^2 = t k/r (1 - 1/r) (X - k)/(X -
*1)
** (hypergeometric draws), z the mean of the greatest of r normals by Blom's approximation. Within
** 0.03 of the Monte-Carlo values of serving facts section 13. 1 for ranks <= 1. */
double plm_expert_imbalance(double experts, double k, double tokens, double ranks);

#endif
