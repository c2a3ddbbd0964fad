/* Hostile safetensors headers, cuts at every byte, and what a good header says. */
#include "core/base/mem.h"
#include "core/model/load.h"
#include "tests/hostile.h"
#include "tests/data/hostile.h"

static plm_status open_bytes(const unsigned char *d, size_t n, plm_safetensors **s, plm_error *e)
{
    return plm_safetensors_open(d, n, n, "file", s, e);
}

static void hostile(void **state)
{
    (void)state;
    (void)hostile_gguf;
    size_t rows = sizeof hostile_safetensors / sizeof *hostile_safetensors;
    assert_int_equal(rows, 14);
    for (size_t i = 0; i < rows; i++) {
        const hostile_file *f = &hostile_safetensors[i];
        unsigned char *data = hostile_decode(f);
        plm_safetensors *s = NULL;
        plm_error err = {0};
        plm_mem_fail_at(0, false);
        plm_status status = open_bytes(data, f->bytes, &s, &err);
        assert_true(plm_mem_asked_bytes() <= 1u << 20);
        if (f->reason == NULL) {
            if (status != PLM_OK)
                fail_msg("%s: %s", f->name, err.text);
        } else {
            size_t n = strlen(f->reason);
            if (status != PLM_E_INVALID || strncmp(err.text, f->reason, n) != 0 ||
                err.text[n] != ',')
                fail_msg("%s: want %s, got %d \"%s\"", f->name, f->reason, (int)status, err.text);
            assert_null(s);
        }
        plm_safetensors_close(s);
        free(data);
    }
}

/* Header text and data of n zero bytes, in one exact block. */
static unsigned char *make(const char *header, size_t data, size_t *bytes)
{
    size_t n = strlen(header);
    unsigned char *out = calloc(1, 8 + n + data);
    assert_non_null(out);
    for (size_t i = 0; i < 8; i++)
        out[i] = (unsigned char)(n >> (8 * i));
    memcpy(out + 8, header, n);
    *bytes = 8 + n + data;
    return out;
}

static const char two[] = "{\"__metadata__\":{\"format\":\"pt\",\"a\\\"}\":\"}{\"},"
                          "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                          "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}  ";

static void good(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_safetensors *s;
    size_t n;
    unsigned char *d = make(two, 16, &n);
    assert_ok(open_bytes(d, n, &s, &err), err);
    assert_int_equal(plm_safetensors_count(s), 2);
    const plm_tensor *a = plm_safetensors_tensor(s, 0), *b = plm_safetensors_tensor(s, 1);
    assert_string_equal(a->name, "a");
    assert_int_equal(a->rank, 0);
    assert_int_equal(b->dtype, PLM_DT_BF16);
    assert_int_equal(b->dim[0], 2);
    assert_int_equal(b->dim[1], 3);
    assert_int_equal(b->offset, 4);
    assert_int_equal(b->bytes, 12);
    assert_null(plm_safetensors_tensor(s, 2));
    plm_safetensors_close(s);
    free(d);
    /* five dimensions: the outer ones folded, rows and columns kept */
    d = make("{\"w\":{\"dtype\":\"U8\",\"shape\":[2,3,4,5,6],\"data_offsets\":[0,720]}}", 720, &n);
    assert_ok(open_bytes(d, n, &s, &err), err);
    a = plm_safetensors_tensor(s, 0);
    assert_int_equal(a->rank, 4);
    assert_int_equal(a->dim[0], 6);
    assert_int_equal(a->dim[1], 4);
    assert_int_equal(a->dim[3], 6);
    plm_safetensors_close(s);
    free(d);
}

/* Cut anywhere, a file is refused, and nothing past the cut is read (ASan sees it). */
static void cuts(void **state)
{
    (void)state;
    size_t n;
    unsigned char *whole = make(two, 16, &n);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *d = malloc(cut ? cut : 1);
        assert_non_null(d);
        memcpy(d, whole, cut);
        plm_safetensors *s;
        assert_int_equal(open_bytes(d, cut, &s, NULL), PLM_E_INVALID);
        free(d);
    }
    free(whole);
}

static void reasons(void **state)
{
    (void)state;
    static const struct {
        const char *header, *reason;
    } bad[] = {
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4194305,4194305,211106198978564],"
         "\"data_offsets\":[0,4]}}",
         "overflow,"}, /* wraps to 4 in 64 bits */
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "shape,"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", "shape,"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "offsets,"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}",
         "header_json,"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}} x", "header_json,"},
        {"{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
         "dup_key,"},
        {"{\"__metadata__\":{\"a\":1},\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"
         "}}",
         "header_json,"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n;
        unsigned char *d = make(bad[i].header, 4, &n);
        plm_safetensors *s;
        plm_error err = {0};
        assert_int_equal(open_bytes(d, n, &s, &err), PLM_E_INVALID);
        if (strncmp(err.text, bad[i].reason, strlen(bad[i].reason)) != 0)
            fail_msg("want %s got \"%s\"", bad[i].reason, err.text);
        free(d);
    }
    unsigned char huge[16] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    plm_safetensors *s;
    plm_error err = {0};
    assert_int_equal(open_bytes(huge, sizeof huge, &s, &err), PLM_E_INVALID);
    assert_int_equal(strncmp(err.text, "header_large,", 13), 0);
}

static void torture(void **state)
{
    (void)state;
    plm_mem_init();
    size_t bytes;
    unsigned char *d = make(two, 16, &bytes);
    int64_t live = plm_mem_live();
    for (uint64_t n = 1;; n++) {
        plm_safetensors *s;
        plm_mem_fail_at(n, false);
        plm_status status = open_bytes(d, bytes, &s, NULL);
        plm_mem_fail_at(0, false);
        plm_safetensors_close(s);
        assert_int_equal(plm_mem_live(), live);
        if (status == PLM_OK)
            break;
        assert_int_equal(status, PLM_E_NO_MEMORY);
        assert_true(n < 10000);
    }
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile), cmocka_unit_test(good),    cmocka_unit_test(cuts),
        cmocka_unit_test(reasons), cmocka_unit_test(torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
