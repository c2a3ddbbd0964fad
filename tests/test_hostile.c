/* What a user, a script or a stranger's file may throw at the command line. The rule for all of it:
** exit 2 (3 where the machine is at fault), one line "plimsoll: what, where: why; what to do" on
** standard error, nothing on standard output, within two seconds. */
#define _GNU_SOURCE /* mkdtemp, nftw, memmem */
#include "tests/cli_run.h"

#include <time.h>

#include "tests/gguf_writer.h"

/* Runs and checks the rule; hint (NULL = any) is part of the error. */
static void refused_list(const char *const *words, int status, const char *hint, const char *what)
{
    clock_t start = clock();
    cli_result r = cli_run_list(words);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (r.status != status)
        fail_msg("%s: exit %d, want %d: %.200s%s", what, r.status, status, r.out, r.err);
    if (r.out_bytes != 0)
        fail_msg("%s: wrote to standard output: %.200s", what, r.out);
    if (!cli_one_line(&r) || r.err_bytes > 600)
        fail_msg("%s: not one clear line: %s", what, r.err);
    for (size_t i = 0; i + 1 < r.err_bytes; i++)
        if ((unsigned char)r.err[i] < 0x20 || r.err[i] == 0x7f)
            fail_msg("%s: control character in the error", what);
    json_t *utf8 = json_string(r.err); /* NULL for what is no UTF-8 */
    if (utf8 == NULL || (hint != NULL && strstr(r.err, hint) == NULL))
        fail_msg("%s: want \"%s\" in: %s", what, hint != NULL ? hint : "UTF-8", r.err);
    json_decref(utf8);
    if (seconds > 2)
        fail_msg("%s: took %.1f s", what, seconds);
    cli_drop(&r);
}

/* Words parted by spaces; "@" stands for at. */
static void refused(const char *line, const char *at, int status, const char *hint)
{
    char text[1024], *save = NULL;
    const char *words[64];
    int n = 0;
    assert_true((size_t)snprintf(text, sizeof text, "%s", line) < sizeof text);
    for (char *p = strtok_r(text, " ", &save); p != NULL && n < 63; p = strtok_r(NULL, " ", &save))
        words[n++] = strcmp(p, "@") == 0 ? at : p;
    words[n] = NULL;
    refused_list(words, status, hint, line);
}

/* ---- options ---- */

static const char *const no_numbers[] = {
    "", "-1", "-0", "nan", "inf", "-inf", "NaN", "0x10", "1e999", "1e309", "9e99999", "1e-320", "1 ", " 1",
    "1,5", "1k1", "+5", "1e", ".", "%n%s%d", "\xc3\xa9", "\xef\xbc\x91", "\xff\xfe", "\x1b[31m1",
    "1\n2", "--json", "one", "9223372036854775808 ", "1GiBs"};

/* Every option that takes a number, of every command that has it. */
static void no_number_passes_for_one(void **state)
{
    (void)state;
    unsigned tried = 0;
    for (int i = 0; i < PLM_OPT_COUNT; i++) {
        const plm_option *o = plm_option_get((plm_option_id)i);
        char flag[64];
        snprintf(flag, sizeof flag, "--%s", o->name);
        if (o->kind == PLM_KIND_FLAG || o->kind == PLM_KIND_TEXT)
            continue;
        for (int c = 0; c < PLM_CMD_COUNT; c++)
            for (size_t v = 0; v < sizeof no_numbers / sizeof *no_numbers; v++) {
                if ((o->commands & (1u << c)) == 0)
                    break;
                const char *words[] = {plm_command_name((plm_command_id)c), flag, no_numbers[v],
                                       NULL};
                refused_list(words, 2, flag, flag);
                tried++;
            }
    }
    assert_true(tried > 500);
}

/* Counts and sizes no machine has; times and rates that mean nothing. */
static void absurd_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const huge[] = {"9007199254740992", "9223372036854775807",
                                       "9223372036854775808", "18446744073709551616", "1e308"};
    for (int i = 0; i < PLM_OPT_COUNT; i++) {
        const plm_option *o = plm_option_get((plm_option_id)i);
        char flag[64];
        snprintf(flag, sizeof flag, "--%s", o->name);
        for (int c = 0; c < PLM_CMD_COUNT; c++)
            for (size_t v = 0; v < sizeof huge / sizeof *huge; v++) {
                if ((o->commands & (1u << c)) == 0 ||
                    (o->kind != PLM_KIND_COUNT && o->kind != PLM_KIND_SIZE))
                    break;
                const char *words[] = {plm_command_name((plm_command_id)c), flag, huge[v], NULL};
                refused_list(words, 2, flag, flag);
            }
    }
    static const char *const zeros[] = {"--ttft 0", "--itl 0", "--ttft 1e308", "--rate 0",
                                        "--rate 1e308", "--utilisation 0", "--utilisation 0.0009",
                                        "--utilisation 1.01", "--price 1e308", "--top 0",
                                        "--gpus 0", "--gpus 99999", "--threads 257"};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        char line[256];
        snprintf(line, sizeof line, "plan --model llama-3.2-1b --device t4_16 --isl 9 --osl 9 %s",
                 zeros[i]);
        refused(line, NULL, 2, "out of range, --");
    }
    refused("predict --model llama-3.2-1b --device t4_16 --weights-bytes 5", NULL, 2, "bad size");
    refused("predict --model llama-3.2-1b --device t4_16 --weights-bytes 1PB", NULL, 2, "bad number");
    refused("predict --model llama-3.2-1b --device t4_16 --weights-bytes 99TB", NULL, 2, "bad size");
    refused("occupancy --device t4_16 --threads 64 --regs 32 --shared 1.5", NULL, 2, "--shared");
    static const char *const ones[] = {"tp", "pp", "ep", "dp", "cp", "batch", "context", "ubatch",
                                       "concurrency", "max-seqs", "max-batched-tokens",
                                       "weights-bytes", "memory-fraction"};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        char line[256];
        snprintf(line, sizeof line, "predict --model llama-3.2-1b --device t4_16 --%s 0", ones[i]);
        refused(line, NULL, 2, "out of range, --");
        snprintf(line, sizeof line, "predict --model llama-3.2-1b --device t4_16 --%s "
                 "9007199254740991", ones[i]);
        refused(line, NULL, 2, "out of range, --");
    }
}

/* Texts of a hundred kilobytes, bytes of no character, control characters. */
static void absurd_texts_are_refused(void **state)
{
    (void)state;
    static char long_text[100001];
    memset(long_text, 'a', sizeof long_text - 1);
    const char *const texts[] = {long_text, "\xff\xfe\x80", "\x1b[31m\n\r\t", "%n%s%n", "\xc2\x9b",
                                 " ", "\xf0\x9f\x99\x82"};
    static const struct {
        const char *line;
        int status;
    } lines[] = {
        {"predict --device t4_16 --model @", 2},
        {"predict --model llama-3.2-1b --device @", 2},
        {"predict --model llama-3.2-1b --device t4_16 --engine @", 2},
        {"predict --model llama-3.2-1b --device t4_16 --quant @", 2},
        {"predict --model llama-3.2-1b --device t4_16 --kv-type @", 2},
        {"predict --jobs @", 3},
        {"devices --catalog @", 3},
        {"plan --model llama-3.2-1b --device t4_16 --isl 9 --osl 9 --objective @", 2},
        {"plan --model llama-3.2-1b --device t4_16 --isl 9 --osl 9 --disagg @", 2},
        {"explain --model llama-3.2-1b --device t4_16 --phase @", 2},
        {"fit --model llama-3.2-1b --device t4_16 --train @", 2},
        {"predict --json @", 2},
        {"@", 2},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            bool path = lines[i].status == 3 && texts[k] == long_text;
            refused(lines[i].line, texts[k], path && strstr(lines[i].line, "--cat") ? 2
                                             : lines[i].status, NULL);
        }
}

static void usage_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line, *hint;
    } lines[] = {
        {"PREDICT", "unknown command"},
        {"predict --nope", "unknown option"},
        {"predict -Z", "unknown option"},
        {"predict --", "unknown option"},
        {"predict -", "unexpected argument"},
        {"predict --=1", "unknown option"},
        {"predict --model", "value missing"},
        {"predict --json --json", "given twice"},
        {"predict --json=1", "value not wanted"},
        {"devices --json --csv", "two formats"},
        {"devices --isl 5", "does not belong"},
        {"--version now", "unexpected argument"},
        {"--man now", "unexpected argument"},
        {"help nothing", "unknown command"},
        {"help predict now", "unexpected argument"},
        {"--completion ksh", "unknown shell"},
        {"plan --model llama-3.2-1b --device , --isl 9 --osl 9", "empty list"},
        {"predict --model llama-3.2-1b --device t4_16:0", "bad device count"},
        {"predict --model llama-3.2-1b --device t4_16:", "bad device count"},
        {"predict --model llama-3.2-1b --device :", "bad device"},
        {"predict --model llama-3.2-1b --device t4_16:-1", "bad device count"},
        {"predict --model llama-3.2-1b --device t4_16:99999999999999999999", "bad device count"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        refused(lines[i].line, NULL, 2, lines[i].hint);
}

/* ---- files ---- */

#define FIGURE(v, u) "{\"value\":" v ",\"unit\":\"" u "\",\"basis\":\"measured\",\"source\":\"s\"}"
#define DEVICE(capacity, bandwidth, fp16, more)                                                    \
    "{\"id\":\"own\",\"name\":\"Own\",\"vendor\":\"nvidia\",\"class\":\"gpu\",\"sources\":{\"s\":" \
    "{\"text\":\"test\",\"date\":\"2026-01-01\"}},\"memory\":{\"type\":\"GDDR6\",\"capacity\":"    \
    capacity ",\"bandwidth\":" bandwidth "},\"peak\":{\"fp16\":" fp16 "}" more "}"
#define GOOD_DEVICE DEVICE(FIGURE("16", "GB"), FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"), "")

static void records_of_devices_are_judged(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hint;
    } files[] = {
        {"", "bad JSON"},
        {"{", "bad JSON"},
        {"[]", "not an object"},
        {"null", "bad JSON"},
        {"{\"id\":1,\"id\":2}", "duplicate object key"},
        {"{\"id\":\"x\"}", "missing key"},
        {"{\"id\":\"\\u0000\"}", "bad JSON"},
        {"{\"id\":1e99999}", "bad JSON"},
        {"\xff\xfe{}", "bad JSON"},
        {DEVICE(FIGURE("16", "GB"), FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"),
                ",\"typo\":1"), "unknown key \"typo\""},
        {DEVICE(FIGURE("-16", "GB"), FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"), ""),
         "not within"},
        {DEVICE(FIGURE("16", "GB/s"), FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"), ""),
         "bad unit"},
        {DEVICE(FIGURE("16", "parsec"), FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"), ""),
         "bad unit"},
        {DEVICE("16", FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"), ""), "a figure is an object"},
        {DEVICE(FIGURE("\"16\"", "GB"), FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"), ""),
         "want a number"},
        {DEVICE(FIGURE("16", "GB"), FIGURE("400000", "GB/s"), FIGURE("60", "TFLOP/s"), ""),
         "impossible bandwidth"},
        {DEVICE(FIGURE("16", "TiB"), FIGURE("400", "GB/s"), FIGURE("60", "TFLOP/s"), ""),
         "impossible capacity"},
        {DEVICE(FIGURE("16", "GB"), FIGURE("400", "GB/s"), FIGURE("60", "PFLOP/s"), ""),
         "impossible"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cli_text("own.json", files[i].text);
        refused("devices --device @", cli_path("own.json"), 2, files[i].hint);
        refused("predict --model llama-3.2-1b --device @", cli_path("own.json"), 2, files[i].hint);
    }
    for (size_t n = 0; n < sizeof GOOD_DEVICE - 1; n += 5) {
        cli_write("own.json", GOOD_DEVICE, n);
        refused("devices --device @", cli_path("own.json"), 2, "bad JSON");
    }
    static const char deep[] = "{\"sources\":", open[] = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    static char nest[sizeof deep + 200 * sizeof open];
    strcpy(nest, deep);
    for (int i = 0; i < 200; i++)
        strcat(nest, open);
    cli_text("own.json", nest);
    refused("devices --device @", cli_path("own.json"), 2, "depth");
    cli_text("own.json", "\xef\xbb\xbf" GOOD_DEVICE); /* a mark that editors add is no reason */
    cli_result r = cli_run("predict --model llama-3.2-1b --device @", cli_path("own.json"));
    assert_int_equal(r.status, 0);
    cli_drop(&r);
}

/* What a path may name that is no file to read. */
static void odd_paths_are_told(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "models --model @", "fit --model @", "predict --model @ --device t4_16",
        "plan --model @ --device t4_16 --isl 9 --osl 9", "explain --model @ --device t4_16",
        "devices --device @", "predict --model llama-3.2-1b --device @", "devices --catalog @"};
    assert_int_equal(mkfifo(cli_path("fifo.json"), 0600), 0);
    assert_int_equal(mkfifo(cli_path("fifo.gguf"), 0600), 0);
    assert_int_equal(mkdir(cli_path("dir.json"), 0700), 0);
    assert_int_equal(symlink("loop.json", cli_path("loop.json")), 0);
    assert_int_equal(symlink("/dev/zero", cli_path("zero.json")), 0);
    assert_int_equal(symlink("/dev/zero", cli_path("zero.gguf")), 0);
    assert_int_equal(symlink("nothing.json", cli_path("lost.json")), 0);
    cli_text("huge.json", "");
    assert_int_equal(truncate(cli_path("huge.json"), (off_t)1 << 36), 0);
    cli_text("huge.gguf", "");
    assert_int_equal(truncate(cli_path("huge.gguf"), (off_t)1 << 40), 0);
    static const char *const paths[] = {"fifo.json", "fifo.gguf", "dir.json",  "loop.json",
                                        "zero.json", "zero.gguf", "lost.json", "huge.json",
                                        "huge.gguf", "none.gguf", "."};
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
        for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
            char path[300];
            snprintf(path, sizeof path, "%s", cli_path(paths[p]));
            if (strcmp(paths[p], ".") == 0 && strstr(commands[c], "--catalog") == NULL)
                continue; /* a folder of the test's files */
            cli_result r = cli_run(commands[c], path);
            int status = r.status;
            cli_drop(&r);
            refused(commands[c], path, status == 2 ? 2 : 3, NULL);
        }
    refused("explain --model llama-3.2-1b --device t4_16 --trace @", cli_folder, 3,
            "cannot write");
    refused("explain --model llama-3.2-1b --device t4_16 --trace /dev/full", NULL, 3,
            "cannot write");
    refused("plan --model llama-3.2-1b --device t4_16 --isl 9 --osl 9 --export vllm --out @",
            cli_path("huge.json"), 3, "cannot write");
    refused("predict --jobs @", cli_path("dir.json"), 3, "cannot read");
    refused("predict --jobs @", cli_path("loop.json"), 3, "cannot read");
    refused("predict --jobs /dev/zero", NULL, 2, "line too long");
}

static void configs_are_judged(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *hint;
    } edits[] = {
        {"num_hidden_layers", "2147483648", "num_hidden_layers"},
        {"num_hidden_layers", "-1", "num_hidden_layers"},
        {"num_hidden_layers", "\"2\"", "num_hidden_layers"},
        {"num_hidden_layers", "2000", "layers"},
        {"num_attention_heads", "0", "num_attention_heads"},
        {"num_key_value_heads", "3", "not a multiple of 3"},
        {"hidden_size", "1e18", "hidden_size"},
        {"hidden_size", "0", "hidden_size"},
        {"hidden_size", "9223372036854775808", "integer"},
        {"vocab_size", "1e400", "bad JSON"},
        {"head_dim", "-16", "head_dim"},
        {"intermediate_size", "[]", "intermediate_size"},
        {"rope_scaling", "\"x\"", "rope_scaling"},
        {"rope_scaling", "{\"rope_type\":\"new\"}", "new"},
        {"quantization_config", "5", "quantization_config"},
        {"model_type", "\"mamba\"", "mamba"},
        {"new_mixer_blocks", "4", "new_mixer_blocks"},
    };
    static const struct {
        const char *key, *value;
    } base[] = {{"model_type", "\"llama\""}, {"hidden_size", "64"},
                {"intermediate_size", "128"}, {"num_hidden_layers", "2"},
                {"num_attention_heads", "4"}, {"num_key_value_heads", "2"},
                {"vocab_size", "256"}, {"rms_norm_eps", "1e-6"}, {"rope_theta", "10000"},
                {"tie_word_embeddings", "true"}};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char text[1024] = "{", *at = text + 1;
        for (size_t k = 0; k < sizeof base / sizeof *base; k++)
            if (strcmp(base[k].key, edits[i].key) != 0)
                at += sprintf(at, "\"%s\":%s,", base[k].key, base[k].value);
        cli_text("config.json", text); /* cut */
        refused("models --model @", cli_path("config.json"), 2, "bad JSON");
        sprintf(at, "\"%s\":%s}", edits[i].key, edits[i].value);
        cli_text("config.json", text);
        refused("models --model @", cli_path("config.json"), 2, edits[i].hint);
    }
    cli_text("config.json", "{\"text_config\":{\"text_config\":{}}}");
    refused("models --model @", cli_path("config.json"), 2, NULL);
}

/* A model file cut at every byte of its header, and parts that are not there. */
static void cut_files_are_told(void **state)
{
    (void)state;
    static plm_arch a;
    plm_catalog *c;
    plm_error err;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    assert_ok(plm_model_load(c, "gemma-3-270m", &a, &err), err);
    a.layers = 1; /* a short header */
    gguf_writer *w = write_model(&a, "gemma3", false);
    for (size_t n = 0; n <= w->bytes; n++) {
        cli_write("cut.gguf", w->file, n);
        refused("models --model @", cli_path("cut.gguf"), 2, "cut.gguf");
    }
    assert_int_equal(truncate(cli_path("cut.gguf"), (off_t)announced_bytes(w) - 33), 0);
    refused("models --model @", cli_path("cut.gguf"), 2, "range");
    assert_int_equal(truncate(cli_path("cut.gguf"), (off_t)announced_bytes(w)), 0);
    cli_result r = cli_run("models --model @", cli_path("cut.gguf"));
    if (r.status != 0)
        fail_msg("whole file: %s", r.err);
    cli_drop(&r);
    free_gguf(w);
    plm_arch_fini(&a);
    plm_catalog_destroy(c);

    static const unsigned char parts[] = "GGUF\3\0\0\0" /* no tensor, two pairs */
                                         "\0\0\0\0\0\0\0\0" "\2\0\0\0\0\0\0\0"
                                         "\13\0\0\0\0\0\0\0split.count\4\0\0\0\2\0\0\0"
                                         "\10\0\0\0\0\0\0\0split.no\4\0\0\0\0\0\0\0";
    cli_write("m-00001-of-00002.gguf", parts, sizeof parts - 1);
    refused("models --model @", cli_path("m-00001-of-00002.gguf"), 3, "00002-of-00002");
    cli_write("renamed.gguf", parts, sizeof parts - 1);
    refused("models --model @", cli_path("renamed.gguf"), 2, "not named so");
}

static void cut_safetensors_are_told(void **state)
{
    (void)state;
    static const char header[] = "{\"a\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}";
    unsigned char file[8 + sizeof header - 1 + 12] = {sizeof header - 1};
    memcpy(file + 8, header, sizeof header - 1);
    assert_int_equal(mkdir(cli_path("model"), 0700), 0);
    cli_text("model/config.json",
             "{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":128,"
             "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":256,"
             "\"rms_norm_eps\":1e-6,\"rope_theta\":10000}");
    for (size_t n = 0; n < sizeof file; n++) {
        cli_write("model/a.safetensors", file, n);
        refused("models --model @", cli_path("model"), 2, "a.safetensors");
    }
    cli_write("model/a.safetensors", file, sizeof file);
    cli_result r = cli_run("models --model @", cli_path("model"));
    if (r.status != 0)
        fail_msg("whole file: %s", r.err);
    cli_drop(&r);
}

/* A folder laid over the catalog: a bad record stops the command that needs it. */
static void overlays_are_judged(void **state)
{
    (void)state;
    static const char prices[] = "device_id,venue,term,usd_per_hour,usd_purchase,date,source,"
                                 "listed_as\nt4_16,x,on_demand,";
    static const struct {
        const char *file, *text;
        int status;
        const char *hint;
    } files[] = {
        {"devices/t4_16.json", "", 2, "t4_16"},
        {"devices/t4_16.json", "{\"id\":\"t4_16\"}", 2, "missing key"},
        {"models/llama-3.2-1b.json", "{}", 2, "kinds"},
        {"models/llama-3.2-1b.json", "{\"id\":\"x\",\"typo\":1}", 2, "llama-3.2-1b"},
        {"engines/llama.cpp-cuda.json", "{\"id\":\"x\",\"base\":\"nobody\"}", 2, "no such record"},
        {"engines/llama.cpp-cuda.json", "{\"id\":\"x\",\"base\":\"llama.cpp-cuda\"}", 2, "ring"},
        {"engines/llama.cpp-cuda.json", "{\"id\":\"x\",\"step_s\":-1}", 2, "step_s"},
        {"engines/llama.cpp-cuda.json", "{\"id\":\"x\",\"mem_eff\":{\"all\":2}}", 2, "not within"},
        {"prices.csv", "", 2, "missing column"},
        {"prices.csv", "device_id,usd\n", 2, "missing column"},
        {"prices.csv", "-1,,2026-01,x,\n", 2, "bad price"},
        {"prices.csv", "1e999,,2026-01,x,\n", 2, "bad price"},
        {"prices.csv", "nan,,2026-01,x,\n", 2, "bad price"},
        {"prices.csv", "1,,soon,x,\n", 2, "bad price"},
        {"README", "no record", 2, "holds no record"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[128], text[512];
        snprintf(name, sizeof name, "over%zu", i);
        assert_int_equal(mkdir(cli_path(name), 0700), 0);
        static const char *const kinds[] = {"devices", "models", "engines"};
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            snprintf(text, sizeof text, "%s/%s", name, kinds[k]);
            assert_int_equal(mkdir(cli_path(text), 0700), 0);
        }
        bool row = strcmp(files[i].file, "prices.csv") == 0 && strstr(files[i].text, ",x,") != NULL;
        snprintf(text, sizeof text, "%s%s", row ? prices : "", files[i].text);
        char path[256];
        snprintf(path, sizeof path, "%s/%s", name, files[i].file);
        cli_text(path, text);
        refused("predict --model llama-3.2-1b --device t4_16 --engine llama.cpp-cuda --catalog @",
                cli_path(name), files[i].status, files[i].hint);
    }
}

/* ---- jobs ---- */

static void jobs_go_on(void **state)
{
    (void)state;
#define GOOD "{\"id\":1,\"model\":\"llama-3.2-1b\",\"device\":\"t4_16\"}"
    static const struct {
        const char *text;
        size_t bytes; /* 0 = strlen */
        unsigned lines, errors;
    } files[] = {
        {"", 0, 0, 0},
        {"\n \t\r\n\n", 0, 0, 0},
        {GOOD, 0, 1, 0},
        {GOOD "\r\n" GOOD "\r\n", 0, 2, 0},
        {"\xef\xbb\xbf" GOOD "\n", 0, 1, 0},
        {GOOD "\n\0\n" GOOD, 2 * sizeof GOOD + 1, 3, 1},
        {"{\"id\":\"a\\u0000b\"}\n" GOOD, 0, 2, 1},
        {"[]\n5\n\"x\"\nnull\ntrue\n", 0, 5, 5},
        {"{\"id\":1,\"id\":2}\n{\"id\":1e400}\n", 0, 2, 2},
        {"{\"id\":\"\xff\"}\n" GOOD, 0, 2, 1},
        {"{\"model\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
         "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
         "\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
         "a\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\",\"device\":\"t4_16\"}", 0,
         1, 1}, /* cut inside a character in the error */
        {"{\"id\":1,\"jobs\":\"-\"}\n{\"id\":2,\"json\":true}\n{\"id\":3,\"help\":true}\n", 0, 3, 3},
        {"{\"id\":1,\"model\":true}\n{\"id\":2,\"batch\":[1]}\n{\"id\":3,\"static_batch\":1}\n", 0, 3,
         3},
        {"{\"model\":\"llama-3.2-1b\",\"device\":\"t4_16\",\"batch\":1e300}\n", 0, 1, 1},
        {"{\"model\":\"llama-3.2-1b\",\"device\":\"t4_16\",\"batch\":-1}\n", 0, 1, 1},
        {"{\"model\":\"llama-3.2-1b\",\"device\":\"t4_16\",\"batch\":null}\n", 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cli_write("jobs", files[i].text, files[i].bytes ? files[i].bytes : strlen(files[i].text));
        cli_result r = cli_run("predict --jobs @", cli_path("jobs"));
        unsigned lines = 0, errors = 0;
        for (char *p = r.out, *end; (end = strchr(p, '\n')) != NULL; p = end + 1, lines++)
            errors += memmem(p, (size_t)(end - p), "\"error\":", 8) != NULL;
        if (lines != files[i].lines || errors != files[i].errors || r.err_bytes != 0 ||
            r.status != (errors > 0))
            fail_msg("jobs %zu: %u lines, %u errors, exit %d: %s%s", i, lines, errors, r.status,
                     r.out, r.err);
        cli_drop(&r);
    }
    static char big[(1 << 20) + sizeof GOOD + 8]; /* a line of more than 1 MiB, and a good one */
    memset(big, ' ', sizeof big - 1);
    big[1 << 20] = 'x';
    memcpy(big + (1 << 20) + 1, "\n" GOOD, sizeof GOOD);
    cli_write("jobs", big, strlen(big));
    cli_result r = cli_run("predict --jobs @", cli_path("jobs"));
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.out, "line too long"));
    assert_non_null(strstr(r.out, "tok_s"));
    cli_drop(&r);
}

/* ---- a reader that is gone ---- */

static void full_devices_are_exit_3(void **state)
{
    (void)state;
    cli_text("jobs", GOOD "\n" GOOD "\n");
    static const char *const lines[] = {"--help", "--man", "--version", "predict --help",
                                        "--completion bash", "devices", "models --json",
                                        "predict --model llama-3.2-1b --device t4_16",
                                        "predict --jobs @"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *argv[16] = {(char[]){"plimsoll"}}, text[128], *save = NULL, *err = NULL;
        size_t bytes;
        int argc = 1;
        snprintf(text, sizeof text, "%s", lines[i]);
        for (char *p = strtok_r(text, " ", &save); p != NULL; p = strtok_r(NULL, " ", &save))
            argv[argc++] = strcmp(p, "@") == 0 ? (char *)(uintptr_t)cli_path("jobs") : p;
        plm_io io = {fopen("/dev/full", "w"), open_memstream(&err, &bytes), false, false};
        assert_non_null(io.out);
        int status = plm_cli_main(argc, argv, &io);
        fclose(io.out);
        fclose(io.err);
        if (status != 3 || strncmp(err, "plimsoll: cannot write, standard output: ", 41) != 0 ||
            strchr(err, '\n') != err + bytes - 1)
            fail_msg("%s: exit %d: %s", lines[i], status, err);
        free(err);
    }
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_passes_for_one),
        cmocka_unit_test(absurd_numbers_are_refused),
        cmocka_unit_test(absurd_texts_are_refused),
        cmocka_unit_test(usage_is_told),
        cmocka_unit_test(records_of_devices_are_judged),
        cmocka_unit_test(odd_paths_are_told),
        cmocka_unit_test(configs_are_judged),
        cmocka_unit_test(cut_files_are_told),
        cmocka_unit_test(cut_safetensors_are_told),
        cmocka_unit_test(overlays_are_judged),
        cmocka_unit_test(jobs_go_on),
        cmocka_unit_test(full_devices_are_exit_3),
    };
    return cmocka_run_group_tests(tests, cli_folder_create, cli_folder_remove);
}
