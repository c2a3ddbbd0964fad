/* cmd_fit.c - fit: which models fit which devices, every part of the memory in bytes. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/mem.h"

/* Storage tried by --quant auto, best first; the first that fits is reported. */
static const char *const auto_quants[] = {"bf16",   "fp8",    "q8_0",   "q6_k",
                                          "q5_k_m", "q4_k_m", "q3_k_m", "q2_k"};

typedef struct fit_row {
    const char *model, *device;
    char quant[32];
    int64_t context;
    bool fits;
    plm_ledger l;
    double decode_tok_s;
    plm_train_ledger train;
    bool is_train;
    double capacity;
} fit_row;

static json_t *row_json(plm_json_out *o, const fit_row *r)
{
    json_t *j = plm_out_object(o);
    plm_out_text(o, j, "model", r->model);
    plm_out_text(o, j, "device", r->device);
    plm_out_text(o, j, "quant", r->quant);
    plm_out_int(o, j, "context_tokens", r->context);
    plm_out_bool(o, j, "fits", r->fits);
    plm_out_int(o, j, "total_bytes", r->is_train ? r->train.total_bytes : r->l.total_bytes);
    plm_out_child(o, j, "capacity_bytes",
                  r->capacity > 0 ? json_integer((json_int_t)r->capacity) : json_null());
    json_t *parts;
    if (r->is_train) {
        parts = plm_out_child(o, j, "ledger", plm_out_object(o));
        plm_out_int(o, parts, "weights_bytes", r->train.weights_bytes);
        plm_out_int(o, parts, "gradient_bytes", r->train.gradient_bytes);
        plm_out_int(o, parts, "master_bytes", r->train.master_bytes);
        plm_out_int(o, parts, "optimizer_bytes", r->train.optimizer_bytes);
        plm_out_int(o, parts, "adapter_bytes", r->train.adapter_bytes);
        plm_out_int(o, parts, "activation_bytes", r->train.activation_bytes);
        plm_out_int(o, j, "trainable_params", r->train.trainable_params);
        return j;
    }
    plm_out_limit(o, j, "max_context_tokens", &r->l, r->l.max_context_tokens);
    plm_out_limit(o, j, "max_batch", &r->l, r->l.max_batch);
    parts = plm_out_child(o, j, "ledger", plm_out_object(o));
    plm_out_int(o, parts, "usable_bytes", r->l.usable_bytes);
    plm_out_int(o, parts, "weights_bytes", r->l.weights_bytes);
    plm_out_int(o, parts, "embed_host_bytes", r->l.embed_host_bytes);
    plm_out_int(o, parts, "kv_bytes", r->l.kv_bytes);
    plm_out_int(o, parts, "kv_pool_bytes", r->l.kv_pool_bytes);
    plm_out_int(o, parts, "kv_bytes_per_token", r->l.kv_bytes_per_token);
    plm_out_int(o, parts, "kv_blocks", r->l.kv_blocks);
    plm_out_int(o, parts, "state_bytes", r->l.state_bytes);
    plm_out_int(o, parts, "activation_bytes", r->l.activation_bytes);
    plm_out_int(o, parts, "graph_bytes", r->l.graph_bytes);
    plm_out_int(o, parts, "context_bytes", r->l.context_bytes);
    plm_out_int(o, parts, "reserve_bytes", r->l.reserve_bytes);
    plm_out_int(o, parts, "overhead_bytes", r->l.overhead_bytes);
    if (!r->fits)
        plm_out_text(o, parts, "limit", r->l.limit);
    plm_out_child(o, j, "decode_tok_s",
                  r->fits && r->decode_tok_s > 0 ? json_real(r->decode_tok_s) : json_null());
    return j;
}

/* Fine-tuning of a model on a device: fits when the total is within the device's memory. */
static plm_status fit_train(plm_session *s, const plm_args *a, const char *model,
                            const char *device, const char *kind, fit_row *r, plm_error *err)
{
    plm_train k = strcmp(kind, "full") == 0   ? PLM_TRAIN_FULL
                  : strcmp(kind, "lora") == 0 ? PLM_TRAIN_LORA
                                              : PLM_TRAIN_QLORA;
    const plm_arch *arch;
    PLM_TRY(plm_session_model(s, model, &arch, err));
    int64_t rank = plm_args_count(a, PLM_OPT_LORA_RANK, 16);
    int64_t sequence = plm_args_count(a, PLM_OPT_CONTEXT, 512);
    int64_t batch = plm_args_count(a, PLM_OPT_BATCH, 1);
    if (sequence < 1 || sequence > 100000000 || batch < 1 || batch > 1000000)
        return plm_fail(err, PLM_E_INVALID,
                        "out of range, --context or --batch: %lld tokens of %lld sequences; give "
                        "1 to 100M and 1 to 1M", (long long)sequence, (long long)batch);
    PLM_TRY(plm_train_memory(arch, k, (int32_t)rank, sequence, batch, &r->train, err));
    char id[64];
    int64_t count;
    plm_device d;
    PLM_TRY(plm_device_split(device, id, sizeof id, &count, err));
    PLM_TRY(plm_device_load(plm_session_catalog(s), id, &d, err));
    r->is_train = true;
    r->model = arch->id;
    r->context = sequence;
    r->capacity = d.memory_bytes * (double)count;
    r->fits = r->capacity > 0 && (double)r->train.total_bytes <= r->capacity;
    snprintf(r->quant, sizeof r->quant, "%s", kind);
    return PLM_OK;
}

static plm_status fit_infer(plm_session *s, const plm_args *a, const char *model,
                            const char *device, fit_row *r, plm_error *err)
{
    plm_query q;
    plm_answer answer;
    const char *quant = plm_args_text(a, PLM_OPT_QUANT, NULL);
    bool try_all = quant != NULL && strcmp(quant, "auto") == 0;
    PLM_TRY(plm_query_from_args(a, &q, err));
    q.model = model;
    q.device = device;
    q.prompt = 0;
    q.gen = 1;
    if (q.context == 0)
        q.context = 4096;
    q.depth = q.context - 1; /* speed and memory at the asked context */
    for (size_t i = 0; i < sizeof auto_quants / sizeof *auto_quants; i++) {
        q.quant = try_all ? auto_quants[i] : quant;
        PLM_TRY(plm_predict(s, &q, &answer, err));
        if (answer.memory.fits || !try_all)
            break;
    }
    const plm_arch *arch;
    PLM_TRY(plm_session_model(s, model, &arch, err));
    r->model = arch->id;
    r->l = answer.memory;
    r->fits = answer.memory.fits;
    r->context = q.context;
    r->capacity = (double)answer.memory.capacity_bytes;
    r->decode_tok_s = answer.decode.tok_s.value;
    snprintf(r->quant, sizeof r->quant, "%s", answer.quant);
    return PLM_OK;
}

static plm_status fit_one(plm_session *s, const plm_args *a, const char *model, const char *device,
                          fit_row *r, plm_error *err)
{
    memset(r, 0, sizeof *r);
    r->device = device;
    const char *kind = plm_args_text(a, PLM_OPT_TRAIN, NULL);
    if (kind == NULL)
        return fit_infer(s, a, model, device, r, err);
    if (strcmp(kind, "full") != 0 && strcmp(kind, "lora") != 0 && strcmp(kind, "qlora") != 0)
        return plm_fail(err, PLM_E_INVALID,
                        "unknown method, --train: \"%.40s\"; give full, lora or "
                        "qlora",
                        kind);
    return fit_train(s, a, model, device, kind, r, err);
}

/* Larger first: the biggest model that fits a device, the fastest device for a model. */
static int by_merit(const void *pa, const void *pb)
{
    const fit_row *x = pa, *y = pb;
    if (x->fits != y->fits)
        return x->fits ? -1 : 1;
    double a = x->is_train ? (double)x->train.total_bytes : (double)x->l.weights_bytes;
    double b = y->is_train ? (double)y->train.total_bytes : (double)y->l.weights_bytes;
    if (strcmp(x->model, y->model) == 0) { /* one model on many devices */
        a = x->is_train ? -x->capacity : x->decode_tok_s;
        b = y->is_train ? -y->capacity : y->decode_tok_s;
    }
    if (a != b)
        return a > b ? -1 : 1;
    int m = strcmp(x->model, y->model);
    return m != 0 ? m : strcmp(x->device, y->device);
}

/* Every pair of the asked model(s) and device(s). Pairs that cannot be answered (a model no engine
** of that device runs, a device of unknown memory) are counted and said, never silently dropped. */
static plm_status collect(plm_session *s, const plm_args *a, const plm_io *io, fit_row **rows,
                          size_t *n_rows, size_t *refused, plm_error *err)
{
    const plm_catalog *c = plm_session_catalog(s);
    const char *model = plm_args_text(a, PLM_OPT_MODEL, NULL);
    const char *device = plm_args_text(a, PLM_OPT_DEVICE, NULL);
    size_t models = model != NULL ? 1 : plm_catalog_count(c, "models");
    size_t devices = device != NULL ? 1 : plm_catalog_count(c, "devices");
    const plm_arch *arch;
    *refused = *n_rows = 0;
    *rows = NULL;
    if (model != NULL) /* once: a model that cannot be read fits nowhere */
        PLM_TRY(plm_session_model(s, model, &arch, err));
    *rows = plm_calloc(models * devices, sizeof **rows);
    if (*rows == NULL)
        return plm_fail_memory(err, "fit");
    for (size_t i = 0; i < models; i++)
        for (size_t j = 0; j < devices; j++) {
            const char *m = model != NULL ? model : plm_catalog_at(c, "models", i)->id;
            const char *d = device != NULL ? device : plm_catalog_at(c, "devices", j)->id;
            plm_status status = fit_one(s, a, m, d, &(*rows)[*n_rows], err);
            if (status == PLM_OK)
                ++*n_rows;
            else if (models * devices == 1 || plm_status_exit(status) == 3)
                return status;
            else
                ++*refused;
            if (io->progress && (i * devices + j) % 16 == 0)
                fprintf(io->err, "\rfit: %zu of %zu", i * devices + j, models * devices);
        }
    if (io->progress)
        fprintf(io->err, "\r%*s\r", 40, "");
    if (*n_rows == 0 && *refused > 0)
        return err->code; /* every pair failed, probably for one reason: the last one */
    qsort(*rows, *n_rows, sizeof **rows, by_merit);
    return PLM_OK;
}

static void gib(plm_table *t, double bytes, bool csv)
{
    plm_table_number(t, bytes / 1073741824.0, csv ? 6 : 3);
}

/* The cells of a row after model, device, storage and "fits". */
static void infer_cells(plm_table *t, const fit_row *r, bool csv)
{
    gib(t, (double)r->l.total_bytes, csv);
    gib(t, r->capacity, csv);
    gib(t, (double)r->l.weights_bytes, csv);
    gib(t, (double)r->l.kv_bytes, csv);
    if (csv)
        plm_table_format(t, "%lld", (long long)r->context);
    if (r->l.capacity_bytes > 0)
        plm_table_format(t, "%lld", (long long)r->l.max_context_tokens);
    else
        plm_table_text(t, "-");
    if (r->fits && r->decode_tok_s > 0)
        plm_table_number(t, r->decode_tok_s, csv ? 6 : 3);
    else
        plm_table_text(t, "-");
}

static void train_cells(plm_table *t, const fit_row *r, bool csv)
{
    const plm_train_ledger *l = &r->train;
    gib(t, (double)l->total_bytes, csv);
    gib(t, r->capacity, csv);
    const int64_t parts[] = {l->weights_bytes,   l->gradient_bytes, l->master_bytes,
                             l->optimizer_bytes, l->adapter_bytes,  l->activation_bytes};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        gib(t, (double)parts[i], csv);
}

#define HEADERS_MAX 16

/* Model, device and storage as columns 0, 1 and 2. */
static const char *column_text(const fit_row *r, int column)
{
    return column == 0 ? r->model : column == 1 ? r->device : r->quant;
}

/* Headers of the table; for people without what the sentence above it says of all rows. */
static size_t name_columns(const fit_row *rows, size_t n, bool csv, const char **headers,
                           bool show[3])
{
    static const char *const names[] = {"model", "device", "storage"};
    static const char *const infer[] = {
        "fits",      "total\n(GiB)",      "capacity\n(GiB)",           "weights\n(GiB)",
        "KV\n(GiB)", "context\n(tokens)", "longest context\n(tokens)", "decode\n(tok/s)"};
    static const char *const train[] = {"fits",
                                        "total\n(GiB)",
                                        "capacity\n(GiB)",
                                        "weights\n(GiB)",
                                        "gradients\n(GiB)",
                                        "master\n(GiB)",
                                        "optimizer\n(GiB)",
                                        "adapters\n(GiB)",
                                        "activations\n(GiB)"};
    size_t k = 0;
    for (int c = 0; c < 3; c++) {
        show[c] = csv;
        for (size_t i = 1; i < n; i++)
            show[c] |= strcmp(column_text(&rows[i], c), column_text(&rows[0], c)) != 0;
        if (show[c])
            headers[k++] = names[c];
    }
    bool is_train = n > 0 && rows[0].is_train;
    size_t more = is_train ? sizeof train / sizeof *train : sizeof infer / sizeof *infer;
    for (size_t i = 0; i < more; i++)
        if (is_train || csv || strcmp(infer[i], "context\n(tokens)") != 0)
            headers[k++] = is_train ? train[i] : infer[i];
    return k;
}

/* "45 of 81 fit", with what all rows share. */
static void print_head(const fit_row *rows, size_t n, const plm_args *a, FILE *out)
{
    size_t fit = 0;
    for (size_t i = 0; i < n; i++)
        fit += rows[i].fits;
    const fit_row *r = &rows[0];
    const char *model = a->opt[PLM_OPT_MODEL].set ? r->model : NULL;
    const char *device = a->opt[PLM_OPT_DEVICE].set ? r->device : NULL;
    int64_t batch = plm_args_count(a, PLM_OPT_BATCH, 1);
    if (model != NULL && device != NULL)
        fprintf(out, "%s, %s, %s %s", model, r->quant, r->fits ? "fits" : "does not fit", device);
    else
        fprintf(out, "%s %s %zu of %zu %s", model != NULL ? model : device,
                model != NULL ? "fits" : "holds", fit, n, model != NULL ? "devices" : "models");
    fprintf(out, "%s at %lld tokens, batch %lld%s\n", r->is_train ? ", training" : "",
            (long long)r->context, (long long)batch,
            n == 1          ? ""
            : model == NULL ? "; largest first"
            : r->is_train   ? "; smallest first"
                            : "; fastest first");
    if (r->is_train)
        fprintf(out,
                "(several devices share everything evenly; --context and --batch set a step)\n");
    fputc('\n', out);
}

static plm_status print_rows(const fit_row *rows, size_t n, const plm_args *a, FILE *out,
                             plm_error *err)
{
    const char *headers[HEADERS_MAX];
    bool csv = a->opt[PLM_OPT_CSV].set, show[3];
    size_t columns = name_columns(rows, n, csv, headers, show);
    plm_table *t;
    PLM_TRY(plm_table_create(headers, columns, &t, err));
    if (!csv && n > 0)
        print_head(rows, n, a, out);
    size_t top = (size_t)plm_args_count(a, PLM_OPT_TOP, csv ? 1 << 20 : 40);
    for (size_t i = 0; i < n && i < top; i++) {
        const fit_row *r = &rows[i];
        for (int c = 0; c < 3; c++)
            if (show[c])
                plm_table_text(t, column_text(r, c));
        if (r->fits || csv || r->is_train)
            plm_table_text(t, r->fits ? "yes" : "no");
        else
            plm_table_format(t, "no, %s", r->l.limit);
        if (r->is_train)
            train_cells(t, r, csv);
        else
            infer_cells(t, r, csv);
    }
    plm_status status = plm_table_write(t, csv, out, err);
    plm_table_destroy(t);
    if (status == PLM_OK && !csv && n > top)
        fprintf(out, "... %zu more; --top N or --csv shows them\n", n - top);
    return status;
}

static plm_status answer_job(plm_session *s, const plm_args *a, json_t **out, plm_error *err)
{
    static const plm_io quiet = {NULL, NULL, false, false};
    fit_row *rows = NULL;
    size_t n, refused;
    plm_json_out o = {false};
    *out = NULL;
    plm_status status = collect(s, a, &quiet, &rows, &n, &refused, err);
    if (status == PLM_OK) {
        *out = plm_out_object(&o);
        json_t *list = plm_out_child(&o, *out, "rows", plm_out_array(&o));
        for (size_t i = 0; i < n; i++)
            plm_out_child(&o, list, NULL, row_json(&o, &rows[i]));
        if (refused > 0)
            plm_out_int(&o, *out, "refused", (int64_t)refused);
        if (o.oom) {
            json_decref(*out);
            *out = NULL;
            status = plm_fail_memory(err, "the answer");
        }
    }
    plm_free(rows);
    return status;
}

plm_status plm_cmd_fit(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                       plm_error *err)
{
    if (a->opt[PLM_OPT_JOBS].set)
        return plm_jobs_run(a, io, answer_job, out, exit_status, err);
    if (!a->opt[PLM_OPT_MODEL].set && !a->opt[PLM_OPT_DEVICE].set)
        return plm_fail(err, PLM_E_INVALID,
                        "option missing, --model or --device: fit needs at "
                        "least one; see plimsoll fit --help");
    plm_session *s = NULL;
    fit_row *rows = NULL;
    size_t n = 0, refused = 0;
    plm_status status;
    PLM_GOTO(plm_session_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &s, err));
    PLM_GOTO(collect(s, a, io, &rows, &n, &refused, err));
    *exit_status = n > 0 && rows[0].fits ? 0 : 1;
    if (a->opt[PLM_OPT_JSON].set) {
        plm_json_out o = {false};
        json_t *root = plm_out_object(&o);
        json_t *list = plm_out_child(&o, root, "rows", plm_out_array(&o));
        for (size_t i = 0; i < n; i++)
            plm_out_child(&o, list, NULL, row_json(&o, &rows[i]));
        if (refused > 0)
            plm_out_int(&o, root, "refused", (int64_t)refused);
        PLM_GOTO(plm_out_write(&o, root, out, err));
    } else {
        PLM_GOTO(print_rows(rows, n, a, out, err));
        if (refused > 0)
            fprintf(io->err, "plimsoll: %zu pairs left out: %s\n", refused, err->text);
    }
done:
    plm_free(rows);
    plm_session_destroy(s);
    return status;
}
