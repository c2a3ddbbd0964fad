/* test_stories.c - a trained model from its file: 200 greedy tokens in float32.
**
** Truth: tests/golden/stories260k.json, by a forward pass in NumPy (make_stories.py), whose text is the one
** that the model's makers publish. */
#include "core/host/generate.h"
#include "core/host/loaded.h"
#include "tests/golden_support.h"

static plm_error err;
static int32_t got[200];
static size_t n_got;

static bool take(void *ctx, int32_t id)
{
    (void)ctx;
    assert_in_range(n_got, 0, 199);
    got[n_got++] = id;
    return true;
}

static void compare(const char *what, json_t *want)
{
    assert_int_equal(json_array_size(want), n_got);
    for (size_t i = 0; i < n_got; i++)
        if (json_integer_value(json_array_get(want, i)) != got[i])
            fail_msg("%s: token %zu is %d, want %lld", what, i, got[i],
                     (long long)json_integer_value(json_array_get(want, i)));
}

static void tokens_are_the_makers(void **state)
{
    (void)state;
    plm_loaded m;
    plm_loaded_options o;
    plm_generated done;
    json_error_t where;
    json_t *truth = json_load_file(PLM_ROOT "/tests/golden/stories260k.json", 0, &where);
    if (truth == NULL)
        fail_msg("stories260k.json: %s", where.text);
    json_t *want = json_object_get(truth, "tokens");
    static const int32_t bos[1] = {1};
    plm_loaded_options_init(&o);
    o.kv = PLM_DT_F32;
    o.context_tokens = 201;
    assert_ok(plm_loaded_open(PLM_ROOT "/tests/data/stories260k.gguf", &o, &m, &err), err);
    plm_generate_options go = {.prompt = bos, .n_prompt = 1, .most = 200, .token = take};
    assert_ok(plm_generate(m.runner, &go, &done, &err), err);
    assert_int_equal(done.tokens, 200);
    assert_int_equal(done.steps, 199);
    compare("from the beginning", want);
    /* Half of the story as a prompt in pieces of 7 gives the other half. */
    int32_t prompt[101] = {1};
    for (size_t i = 0; i < 100; i++)
        prompt[i + 1] = got[i];
    n_got = 100;
    go = (plm_generate_options){
        .prompt = prompt, .n_prompt = 101, .most = 100, .piece = 7, .token = take};
    assert_ok(plm_generate(m.runner, &go, &done, &err), err);
    compare("from the middle", want);
    plm_loaded_fini(&m);
    json_decref(truth);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_are_the_makers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
