/* What people read: figures without exponents, aligned tables, lines of a screen's width. */
#include "tests/support.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/base/catalog.h"

static void figures(void **state)
{
    (void)state;
    static const struct {
        double v;
        int digits;
        const char *text;
    } cases[] = {{0, 3, "0"},
                 {1, 3, "1.00"},
                 {9.994, 3, "9.99"},
                 {9.996, 3, "10.0"},
                 {99.96, 3, "100"},
                 {999.7, 3, "1000"},
                 {142400, 3, "142400"},
                 {0.062831, 3, "0.0628"},
                 {0.0099996, 3, "0.0100"},
                 {1234.56, 4, "1235"},
                 {12.3456, 4, "12.35"},
                 {-2.345, 2, "-2.3"},
                 {INFINITY, 3, "-"},
                 {NAN, 3, "-"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[32];
        assert_string_equal(plm_text_number(cases[i].v, cases[i].digits, buf, sizeof buf),
                            cases[i].text);
    }
}

static char *table_text(bool csv)
{
    static const char *const headers[] = {"name", "size\n(GiB)", "note"};
    plm_error err;
    plm_table *t;
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_ok(plm_table_create(headers, 3, &t, &err), err);
    plm_table_text(t, "a, b");
    plm_table_number(t, 80, 3);
    plm_table_text(t, "");
    plm_table_text(t, "long name");
    plm_table_number(t, 0.5, 3);
    plm_table_text(t, "x");
    assert_ok(plm_table_write(t, csv, f, &err), err);
    plm_table_destroy(t);
    fclose(f);
    return text;
}

static void tables(void **state)
{
    (void)state;
    char *text = table_text(false);
    assert_string_equal(text, "            size\n"
                              "name       (GiB)  note\n"
                              "a, b        80.0\n"
                              "long name  0.500  x\n");
    free(text);
    text = table_text(true);
    assert_string_equal(text, "name,size (GiB),note\n\"a, b\",80.0,\nlong name,0.500,x\n");
    free(text);
}

/* A digit, then e and a sign: "1.2e+05". */
static bool has_exponent(const char *s)
{
    for (; *s != '\0'; s++)
        if (isdigit((unsigned char)s[0]) && s[1] == 'e' && (s[2] == '+' || s[2] == '-'))
            return true;
    return false;
}

static void screens(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        size_t width; /* columns a line may take */
    } cases[] = {
        {"plan --model qwen3-32b --device h100_sxm_80,l40s_48 --isl 2000 --osl 300 --ttft 2s", 120},
        {"plan --model deepseek-v3 --device h200_sxm_141 --isl 4k --osl 1k --gpus 16", 120},
        {"plan --model llama-3.1-8b --device apple_m3_max --isl 1000 --osl 300", 120},
        {"plan --model llama-3.1-70b --device l4_24 --isl 1k --osl 1k --ttft 1ms --gpus 8", 120},
        {"plan --model llama-3.1-70b --device l4_24 --isl 1k --osl 1k --gpus 1", 120},
        {"predict --model llama-3.1-70b --device h100_sxm_80:4 --concurrency 64", 120},
        {"predict --model llama-3.1-70b --device h100_sxm_80", 120},
        {"fit --model gpt-oss-120b --context 32Ki", 120},
        {"fit --device rtx_5090_32 --quant auto", 120},
        {"fit --model llama-3.1-8b --train full", 120},
        {"explain --model deepseek-v3 --device h200_sxm_141:8 --tp 8 --batch 32 --depth 4k", 120},
        {"explain --model llama-3.1-8b --device l4_24 --phase prefill --top 5", 120},
        {"models", 100},
        {"models --model gemma-3-27b", 120},
        {"devices", 150},
        {"plan --help", 120}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[256], *argv[32], *out = NULL, *err = NULL, *save = NULL;
        size_t out_bytes, err_bytes;
        int argc = 1;
        argv[0] = words;
        snprintf(words, sizeof words, "%s", cases[i].words);
        for (char *p = strtok_r(words, " ", &save); p != NULL; p = strtok_r(NULL, " ", &save))
            argv[argc++] = p;
        plm_io io = {open_memstream(&out, &out_bytes), open_memstream(&err, &err_bytes), false,
                     false};
        int status = plm_cli_main(argc, argv, &io);
        fclose(io.out);
        fclose(io.err);
        if (status > 1)
            fail_msg("plimsoll %s: %s", cases[i].words, err);
        for (char *p = strtok_r(out, "\n", &save); p != NULL; p = strtok_r(NULL, "\n", &save)) {
            size_t n = strlen(p);
            /* A price's source is quoted whole. */
            if (n > cases[i].width && strncmp(p, "  price: ", 9) != 0)
                fail_msg("plimsoll %s: %zu columns: %s", cases[i].words, n, p);
            if (n > 0 && p[n - 1] == ' ')
                fail_msg("plimsoll %s: a line ends in a space: \"%s\"", cases[i].words, p);
            if (has_exponent(p))
                fail_msg("plimsoll %s: an exponent: %s", cases[i].words, p);
        }
        free(out);
        free(err);
    }
}

static void did_you_mean(void **state)
{
    (void)state;
    plm_error err;
    plm_catalog *c;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    assert_non_null(strstr(plm_catalog_nearest(c, "devices", "H-100"), "h100_"));
    assert_string_equal(plm_catalog_nearest(c, "devices", "4090"), "rtx_4090_24");
    assert_string_equal(plm_catalog_nearest(c, "models", "deepsek-v3"), "DeepSeek-V3");
    assert_null(plm_catalog_nearest(c, "devices", "zzzzzz"));
    plm_catalog_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures),
        cmocka_unit_test(tables),
        cmocka_unit_test(screens),
        cmocka_unit_test(did_you_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
