/* price.h - price of a device-hour from catalog/prices.csv; the only place where money enters. */
#ifndef PLM_SIM_PRICE_H
#define PLM_SIM_PRICE_H
#include "core/base/catalog.h"

typedef struct plm_price {
    double usd_per_hour;    /* one device */
    char venue[64], term[32], date[12], source[160];
    int64_t n;              /* rows behind a median */
    double low, high;       /* of those rows */
} plm_price;

/* Median on-demand rent over the venues of the newest `window` rows of the device, newest row per
** venue; rows older than a year before the newest are left out. PLM_E_NOT_FOUND when there is none:
** a price is never invented (pass --price). term NULL = "on_demand". */
plm_status plm_price_find(const plm_catalog *c, const char *device_id, const char *term,
                          plm_price *out, plm_error *err) PLM_MUST_USE;
/* $/hour and tokens/s -> $ per million tokens; utilisation in (0, 1]. */
double plm_usd_per_mtok(double usd_per_hour, double tok_s, double utilisation);
/* Attribution between input and output by share of device time (market_facts a3): seconds spent in
** prefill and in decode for one request of (in, out) tokens. */
void plm_attribute(double usd_per_hour, double prefill_s, double in_tokens, double decode_s,
                   double out_tokens, double *usd_per_mtok_in, double *usd_per_mtok_out);
#endif
