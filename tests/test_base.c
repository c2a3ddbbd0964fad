/* core/base: errors, arena, vec, map, files, the catalog's look-up, JSON fields. */
#include "tests/support.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/catalog.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/vec.h"

static void error_text_is_one_line(void **state)
{
    (void)state;
    plm_error err;
    assert_int_equal(plm_fail(&err, PLM_E_INVALID, "a%cb\n%s", 1, "\x1b[31m"), PLM_E_INVALID);
    assert_string_equal(err.text, "a?b??[31m");
    char longer[2000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    plm_fail(&err, PLM_E_IO, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    /* A two-byte character that the end of the buffer would split is dropped whole. */
    memset(longer, 'x', sizeof err.text - 2);
    strcpy(longer + sizeof err.text - 2, "\xc3\xa9");
    plm_fail(&err, PLM_E_IO, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 2);
    assert_int_equal(plm_fail(NULL, PLM_E_IO, "no one listens"), PLM_E_IO);
    plm_fail(&err, PLM_E_LIMIT, "too much");
    plm_fail_in(&err, PLM_E_LIMIT, "config.json");
    assert_string_equal(err.text, "config.json: too much");
}

static void status_has_name_and_exit(void **state)
{
    (void)state;
    assert_string_equal(plm_status_name(PLM_E_NO_MEMORY), "out of memory");
    assert_int_equal(plm_status_exit(PLM_OK), 0);
    assert_int_equal(plm_status_exit(PLM_E_INFEASIBLE), 1);
    assert_int_equal(plm_status_exit(PLM_E_INVALID), 2);
    assert_int_equal(plm_status_exit(PLM_E_NOT_FOUND), 2);
    assert_int_equal(plm_status_exit(PLM_E_IO), 3);
}

static void checked_arithmetic_refuses_overflow(void **state)
{
    (void)state;
    uint64_t u;
    int64_t i;
    assert_true(plm_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &u));
    assert_false(plm_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u));
    assert_false(plm_add_u64(UINT64_MAX, 1, &u));
    assert_false(plm_mul_i64(INT64_MIN, -1, &i));
    assert_false(plm_add_i64(INT64_MAX, 1, &i));
    assert_int_equal(plm_ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
    assert_int_equal(plm_ceil_div(0, 7), 0);
    assert_null(plm_calloc(SIZE_MAX / 2, 4));
}

static void arena_keeps_its_maximum(void **state)
{
    (void)state;
    plm_arena a;
    plm_arena_init(&a, 1000);
    char *p = plm_arena_alloc(&a, 900);
    assert_non_null(p);
    for (int i = 0; i < 900; i++)
        assert_int_equal(p[i], 0);
    assert_null(plm_arena_alloc(&a, 200));
    assert_non_null(plm_arena_alloc(&a, 32));
    assert_null(plm_arena_array(&a, SIZE_MAX / 2, 16));
    assert_null(plm_arena_alloc(&a, SIZE_MAX));
    plm_arena_fini(&a);
    assert_string_equal(plm_arena_text(&a, "abcdef", 3), "abc");
    plm_arena_fini(&a);
    plm_arena_init(&a, SIZE_MAX);
    for (int i = 0; i < 1000; i++) {
        uintptr_t q = (uintptr_t)plm_arena_alloc(&a, (size_t)i * 7);
        assert_int_equal(q % 16, 0);
    }
    plm_arena_fini(&a);
}

static void vec_keeps_its_maximum(void **state)
{
    (void)state;
    PLM_VEC(int) v = {0};
    for (int i = 0; i < 100; i++)
        assert_true(plm_vec_push(&v, i * i, 100));
    assert_false(plm_vec_push(&v, 0, 100));
    assert_int_equal(v.count, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(v.items[i], i * i);
    plm_vec_fini(&v);
    assert_null(v.items);
}

static void map_finds_what_was_put(void **state)
{
    (void)state;
    enum { N = 3000 };
    static char keys[N][16];
    plm_map m;
    plm_map_init(&m, N);
    for (uint32_t i = 0; i < N; i++) {
        int n = snprintf(keys[i], sizeof keys[i], "key%u", i * 2654435761u);
        uint32_t v = i;
        assert_int_equal(plm_map_add(&m, keys[i], (size_t)n, &v), PLM_PUT_NEW);
    }
    for (uint32_t i = 0; i < N; i++) {
        uint32_t v = 0;
        assert_true(plm_map_get(&m, keys[i], strlen(keys[i]), &v));
        assert_int_equal(v, i);
        v = 7;
        assert_int_equal(plm_map_add(&m, keys[i], strlen(keys[i]), &v), PLM_PUT_OLD);
        assert_int_equal(v, i);
    }
    uint32_t v = 1;
    assert_false(plm_map_get(&m, "nobody", 6, &v));
    assert_int_equal(plm_map_add(&m, "one more", 8, &v), PLM_PUT_FULL);
    plm_map_fini(&m);
}

static void files_are_read_or_refused(void **state)
{
    (void)state;
    plm_error err;
    plm_file f;
    char path[] = "/tmp/plm_base_XXXXXX", *text;
    size_t n;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "hello", 5), 5);
    close(fd);
    assert_ok(plm_file_map(path, &f, &err), err);
    assert_int_equal(f.bytes, 5);
    assert_memory_equal(f.data, "hello", 5);
    plm_file_unmap(&f);
    assert_ok(plm_file_read(path, 5, &text, &n, &err), err);
    assert_string_equal(text, "hello");
    plm_free(text);
    assert_int_equal(plm_file_read(path, 4, &text, &n, &err), PLM_E_LIMIT);
    unlink(path);
    assert_int_equal(plm_file_map(path, &f, &err), PLM_E_IO);
    assert_int_equal(plm_file_map("/", &f, &err), PLM_E_IO);
    assert_int_equal(plm_file_map("/dev/zero", &f, &err), PLM_E_IO);
}

static void ids_match_without_case_and_dashes(void **state)
{
    (void)state;
    assert_true(plm_id_equal("Llama-3.1-8B", "llama_3_1_8b"));
    assert_true(plm_id_equal("h100_sxm_80", "H100-SXM-80"));
    assert_false(plm_id_equal("Llama-3.1-8B", "Llama-3.1-80B"));
    assert_false(plm_id_equal("", "a"));
    assert_true(plm_id_equal("-", "__"));
}

static void catalog_finds_and_overlays(void **state)
{
    (void)state;
    plm_error err;
    plm_catalog *c;
    char dir[] = "/tmp/plm_catalog_XXXXXX", path[128];
    assert_non_null(mkdtemp(dir));
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    size_t before = plm_catalog_count(c, "devices");
    assert_null(plm_catalog_find(c, "devices", "no such device"));
    assert_null(plm_catalog_find(c, "no such kind", "x"));
    plm_catalog_destroy(c);
    assert_int_equal(plm_catalog_create("/nonexistent", &c, &err), PLM_E_IO);
    /* An overlay with a prices.csv alone is fine; its record replaces the embedded one. */
    snprintf(path, sizeof path, "%s/prices.csv", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("mine", f);
    fclose(f);
    assert_ok(plm_catalog_create(dir, &c, &err), err);
    assert_int_equal(plm_catalog_count(c, "devices"), before);
    const plm_record *r = plm_catalog_find(c, "", "prices");
    assert_non_null(r);
    assert_string_equal(r->text, "mine");
    plm_catalog_destroy(c);
    unlink(path);
    rmdir(dir);
}

static void json_fields_are_checked(void **state)
{
    (void)state;
    plm_error err;
    json_t *j;
    static const char text[] =
        "{\"a\":5,\"b\":4096.0,\"c\":1.5,\"d\":\"x\",\"e\":null,\"f\":true,\"g\":-3}";
    assert_ok(plm_json_parse(text, sizeof text - 1, "here", &j, &err), err);
    int64_t i = 7;
    double x = 7;
    bool b = false;
    const char *s = NULL;
    assert_ok(plm_json_int(j, "a", true, 0, 10, "here", &i, &err), err);
    assert_int_equal(i, 5);
    assert_ok(plm_json_int(j, "b", true, 0, 10000, "here", &i, &err), err);
    assert_int_equal(i, 4096);
    assert_int_equal(plm_json_int(j, "c", true, 0, 10, "here", &i, &err), PLM_E_INVALID);
    assert_int_equal(plm_json_int(j, "g", true, 0, 10, "here", &i, &err), PLM_E_INVALID);
    assert_int_equal(plm_json_int(j, "d", true, 0, 10, "here", &i, &err), PLM_E_INVALID);
    assert_ok(plm_json_int(j, "e", false, 0, 10, "here", &i, &err), err);
    assert_int_equal(i, 4096);
    assert_int_equal(plm_json_int(j, "z", true, 0, 10, "here", &i, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "\"z\""));
    assert_ok(plm_json_double(j, "c", true, 0, 2, "here", &x, &err), err);
    assert_close(x, 1.5, 0, 0);
    assert_int_equal(plm_json_double(j, "c", true, 0, 1, "here", &x, &err), PLM_E_INVALID);
    assert_ok(plm_json_bool(j, "f", true, "here", &b, &err), err);
    assert_true(b);
    assert_ok(plm_json_text(j, "d", true, "here", &s, &err), err);
    assert_string_equal(s, "x");
    json_decref(j);
    assert_int_equal(plm_json_parse("{\"a\":1,\"a\":2}", 13, "here", &j, &err), PLM_E_INVALID);
    assert_int_equal(plm_json_parse("[1,", 3, "here", &j, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "here line 1"));
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_text_is_one_line),
        cmocka_unit_test(status_has_name_and_exit),
        cmocka_unit_test(checked_arithmetic_refuses_overflow),
        cmocka_unit_test(arena_keeps_its_maximum),
        cmocka_unit_test(vec_keeps_its_maximum),
        cmocka_unit_test(map_finds_what_was_put),
        cmocka_unit_test(files_are_read_or_refused),
        cmocka_unit_test(ids_match_without_case_and_dashes),
        cmocka_unit_test(catalog_finds_and_overlays),
        cmocka_unit_test(json_fields_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
