/* test_price.c - prices of the catalog and cost a token. */
#include "tests/support.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "sim/market/price.h"

/* A catalog whose prices.csv is `text`. */
static plm_catalog *with_prices(const char *text)
{
    char dir[] = "/tmp/plm_price_XXXXXX";
    char path[64];
    plm_error e;
    plm_catalog *c;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/prices.csv", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_ok(plm_catalog_create(dir, &c, &e), e);
    unlink(path);
    rmdir(dir);
    return c;
}

#define HEAD "device_id,venue,term,usd_per_hour,usd_purchase,date,source,listed_as\n"

static void test_median(void **state)
{
    (void)state;
    plm_error e;
    plm_price p;
    plm_catalog *c = with_prices(
        HEAD "x,a,on_demand,9,,2026-01-01,old row of a,x\n"
             "x,a,on_demand,2,,2026-06-01,\"new row, of a\",x\n"
             "X_,b,on_demand,4,,2026-05,sb,x\n"
             "x,c,on_demand,7,,2026,sc,x\n"
             "x,d,on_demand,100,,2025-05-31,more than a year old,x\n"
             "x,e,on_demand,50,,2025-06-01,a year old to the day,x\n"
             "x,f,spot,0.5,,2026-06-01,sf,x\n"
             "x,g,on_demand,,30000,2026-06-02,a purchase,x\n"
             "y,a,on_demand,1,,2026-06-01,other device,y\n"
             "\n"
             "z,a,on_demand_avg,3,,2026-06-01,\"says \"\"about\"\" 3\",z\r\n"
             "z,b,on_demand_8x,5,,2026-06-01,sb,z");
    /* a 2, b 4, c 7 (January), e 50: median of an even count is the mean of the middle two. */
    assert_ok(plm_price_find(c, "x", NULL, &p, &e), e);
    assert_close(p.usd_per_hour, 5.5, 0, 0);
    assert_int_equal(p.n, 4);
    assert_close(p.low, 2, 0, 0);
    assert_close(p.high, 50, 0, 0);
    assert_string_equal(p.date, "2026-06-01");
    assert_string_equal(p.term, "on_demand");
    assert_non_null(strstr(p.source, "4 venues"));
    assert_ok(plm_price_find(c, "x", "spot", &p, &e), e);
    assert_close(p.usd_per_hour, 0.5, 0, 0);
    assert_string_equal(p.venue, "f");
    assert_string_equal(p.source, "sf");
    /* No plain on_demand row: averages and node prices stand in. */
    assert_ok(plm_price_find(c, "z", NULL, &p, &e), e);
    assert_close(p.usd_per_hour, 4, 0, 0);
    assert_ok(plm_price_find(c, "y", "on_demand", &p, &e), e);
    assert_int_equal(p.n, 1);
    assert_int_equal(plm_price_find(c, "y", "spot", &p, &e), PLM_E_NOT_FOUND);
    assert_int_equal(plm_price_find(c, "w", NULL, &p, &e), PLM_E_NOT_FOUND);
    assert_non_null(strstr(e.text, "--price"));
    plm_catalog_destroy(c);
}

static void test_bad_tables(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        plm_status status;
    } rows[] = {
        {"", PLM_E_INVALID},
        {"device_id,venue\nx,a\n", PLM_E_INVALID},
        {HEAD "x,a,on_demand,-1,,2026-01-01,s,x\n", PLM_E_INVALID},
        {HEAD "x,a,on_demand,nan,,2026-01-01,s,x\n", PLM_E_INVALID},
        {HEAD "x,a,on_demand,2 USD,,2026-01-01,s,x\n", PLM_E_INVALID},
        {HEAD "x,a,on_demand,2,,soon,s,x\n", PLM_E_INVALID},
        {HEAD "x,a,on_demand,2,,2026-13-01,s,x\n", PLM_E_INVALID},
        {HEAD "x,a,on_demand,2\n", PLM_E_INVALID},
        {HEAD "x,a,on_demand,2,,2026-01-01,\"unclosed", PLM_OK},
        {HEAD, PLM_E_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plm_error e;
        plm_price p;
        plm_catalog *c = with_prices(rows[i].text);
        if (plm_price_find(c, "x", NULL, &p, &e) != rows[i].status)
            fail_msg("table %zu: \"%s\"", i, e.text);
        plm_catalog_destroy(c);
    }
}

/* Prices of the catalog, counted by hand: MI300X at TensorWave 1.50, Vultr 1.85, Azure and Oracle
** 6.00 (2026-05-18); B300 at RunPod 6.94 and 7.89; GB200 at CoreWeave 10.50. */
static void test_catalog_prices(void **state)
{
    (void)state;
    static const struct {
        const char *id, *term;
        double usd;
        int n;
    } rows[] = {{"mi300x_192", NULL, 3.925, 4}, {"b300_sxm_288", NULL, 7.415, 2},
                {"GB200-186", NULL, 10.5, 1},   {"mi355x_288", "reserved_3y", 2.1, 1},
                {"h200_sxm_141", NULL, 4.47, 5}};
    plm_error e;
    plm_price p;
    plm_catalog *c;
    assert_ok(plm_catalog_create(NULL, &c, &e), e);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_ok(plm_price_find(c, rows[i].id, rows[i].term, &p, &e), e);
        assert_close(p.usd_per_hour, rows[i].usd, 1e-12, 0);
        assert_int_equal(p.n, rows[i].n);
    }
    /* Rows that say H100 80 GB alone count as SXM; listings 2.40 to 12.29 in 2026. */
    assert_ok(plm_price_find(c, "h100_sxm_80", NULL, &p, &e), e);
    assert_true(p.n >= 10 && p.low > 2 && p.high < 13);
    assert_close(p.usd_per_hour, 3.92, 1e-12, 0);
    assert_int_equal(plm_price_find(c, "apple_m4_max", NULL, &p, &e), PLM_E_NOT_FOUND);
    plm_catalog_destroy(c);
}

static void test_cost(void **state)
{
    (void)state;
    /* Published worked examples (peakinfer, learnAI) and the utilisation law C(U) = C(1) / U. */
    assert_close(plm_usd_per_mtok(2.5, 50, 1), 13.888889, 1e-6, 0);
    assert_close(plm_usd_per_mtok(4.5, 50, 1), 25.0, 1e-6, 0);
    assert_close(plm_usd_per_mtok(3, 50, 1), 16.666667, 1e-6, 0);
    assert_close(plm_usd_per_mtok(6.4, 3400, 0.3), 1.742919, 1e-6, 0);
    assert_close(plm_usd_per_mtok(2, 1000, 0.6), 0.925926, 1e-6, 0);
    assert_true(isinf(plm_usd_per_mtok(2, 0, 1)));
    assert_true(isinf(plm_usd_per_mtok(2, 1000, 0)));
    /* DeepSeek's day of 2025-02-27: 8 x $2 a node-hour, 73.7 k tokens/s in, 14.8 k out a node give
    ** $0.060305 and $0.300300 a million. */
    double in, out;
    plm_attribute(16, 1000 / 73.7e3, 1000, 500 / 14.8e3, 500, &in, &out);
    assert_close(in, 0.060305, 1e-5, 0);
    assert_close(out, 0.300300, 1e-5, 0);
    /* The parts sum to the cost of the time. */
    plm_attribute(3.6, 2, 4000, 10, 250, &in, &out);
    assert_close(in * 4000 / 1e6 + out * 250 / 1e6, 3.6 / 3600 * 12, 1e-12, 0);
    plm_attribute(3.6, 0, 0, 10, 250, &in, &out);
    assert_close(in, 0, 0, 0);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_catalog_prices),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
