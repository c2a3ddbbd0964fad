/* weights_open.c - opening the files of a set of weights, and their common directory. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/weights_parts.h"

#define PATH_ROOM 4096
#define PARTS_MAX 4096
#define INDEX_MAX_BYTES (64u << 20)

/* ---- parts ---- */

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), t = strlen(tail);
    return n >= t && strcmp(text + n - t, tail) == 0;
}

/* The next part, in memory that the caller or the part's own map holds. */
static plm_status add_part(plm_weights *w, const unsigned char *data, size_t bytes,
                           const char *name, plm_weights_part **out, plm_error *err)
{
    if (w->n_parts >= PARTS_MAX)
        return plm_fail(err, PLM_E_LIMIT, "weights, %.200s: more than %d files; join some", name,
                        PARTS_MAX);
    plm_weights_part *more = plm_realloc(w->part, (w->n_parts + 1) * sizeof *more);
    if (more == NULL)
        return plm_fail_memory(err, "the list of weight files");
    w->part = more;
    plm_weights_part *p = &w->part[w->n_parts++];
    *p = (plm_weights_part){.data = data, .bytes = bytes, .name = plm_strdup(name)};
    *out = p;
    return p->name != NULL ? PLM_OK : plm_fail_memory(err, "the name of a file");
}

static plm_status read_part(const plm_weights *w, plm_weights_part *p, plm_error *err)
{
    if (w->gguf) {
        PLM_TRY(plm_gguf_open(p->data, p->bytes, p->bytes, p->name, &p->gguf, err));
        p->start = plm_gguf_data_start(p->gguf);
    } else {
        PLM_TRY(plm_safetensors_open(p->data, p->bytes, p->bytes, p->name, &p->st, err));
        p->start = plm_safetensors_data_start(p->data);
    }
    return PLM_OK;
}

static plm_status map_part(plm_weights *w, const char *path, plm_error *err)
{
    plm_file f;
    plm_weights_part *p;
    PLM_TRY(plm_file_map(path, &f, err));
    plm_status status = add_part(w, f.data, f.bytes, path, &p, err);
    if (status != PLM_OK) {
        plm_file_unmap(&f);
        return status;
    }
    p->map = f;
    return read_part(w, p, err);
}

static void close_part(plm_weights_part *p)
{
    plm_gguf_close(p->gguf);
    plm_safetensors_close(p->st);
    if (p->map.data != NULL)
        plm_file_unmap(&p->map);
    plm_free(p->name);
}

void plm_weights_close(plm_weights *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->n_parts; i++)
        close_part(&w->part[i]);
    plm_free(w->part);
    plm_free(w->entry);
    plm_free(w);
}

/* ---- the directory of all parts ---- */

static size_t part_tensors(const plm_weights_part *p)
{
    return p->gguf != NULL ? plm_gguf_tensor_count(p->gguf) : plm_safetensors_count(p->st);
}

static int compare(const plm_weights_entry *a, const plm_weights_entry *b)
{
    return strcmp(a->t->name, b->t->name);
}

static void sift_down(plm_weights_entry *v, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && compare(&v[child], &v[child + 1]) < 0)
            child++;
        if (compare(&v[at], &v[child]) >= 0)
            return;
        plm_weights_entry t = v[at];
        v[at] = v[child];
        v[child] = t;
    }
}

/* Heap sort: in place, and no worse on hostile orders. */
static void sort_entries(plm_weights_entry *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(v, i, n);
    for (size_t end = n; end-- > 1;) {
        plm_weights_entry t = v[0];
        v[0] = v[end];
        v[end] = t;
        sift_down(v, 0, end);
    }
}

static plm_status make_directory(plm_weights *w, plm_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < w->n_parts; i++)
        total += part_tensors(&w->part[i]);
    w->entry = plm_calloc(total + 1, sizeof *w->entry);
    if (w->entry == NULL)
        return plm_fail_memory(err, "the directory of weights");
    for (size_t i = 0; i < w->n_parts; i++)
        for (size_t k = 0; k < part_tensors(&w->part[i]); k++)
            w->entry[w->n_entries++] =
                (plm_weights_entry){.t = w->gguf ? plm_gguf_tensor(w->part[i].gguf, k)
                                                 : plm_safetensors_tensor(w->part[i].st, k),
                                    .part = (uint32_t)i};
    sort_entries(w->entry, w->n_entries);
    for (size_t i = 1; i < w->n_entries; i++)
        if (compare(&w->entry[i - 1], &w->entry[i]) == 0)
            return plm_fail(err, PLM_E_INVALID,
                            "duplicate tensor, %.100s: in %.100s and %.100s; keep one set of files",
                            w->entry[i].t->name, w->part[w->entry[i - 1].part].name,
                            w->part[w->entry[i].part].name);
    return PLM_OK;
}

/* What stands before "layers.0." in the names of a Hugging Face model: known by the embedding. */
static plm_status find_prefix(plm_weights *w, plm_error *err)
{
    static const char *const prefixes[] = {"model.",
                                           "model.language_model.",
                                           "language_model.model.",
                                           "language_model.",
                                           "transformer.",
                                           "backbone.",
                                           ""};
    static const struct {
        const char *embed, *layers;
    } forms[] = {{"embed_tokens.weight", "layers."}, {"wte.weight", "h."}};
    char name[128];
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            snprintf(name, sizeof name, "%s%s", prefixes[i], forms[k].embed);
            if (plm_weights_find(w, name) == NULL)
                continue;
            snprintf(w->prefix, sizeof w->prefix, "%s", prefixes[i]);
            w->layers = forms[k].layers;
            return PLM_OK;
        }
    return plm_fail(err, PLM_E_UNSUPPORTED,
                    "weights, %.200s: no embedding of tokens by a known name; convert the model to "
                    "GGUF",
                    w->part[0].name);
}

static plm_status finish_open(plm_weights *w, plm_error *err)
{
    if (w->n_parts == 0)
        return plm_fail(err, PLM_E_NOT_FOUND, "weights: no files; name a .gguf or a model folder");
    PLM_TRY(make_directory(w, err));
    return w->gguf ? PLM_OK : find_prefix(w, err);
}

/* ---- opening by path ---- */

/* NAME-00002-of-00003.gguf -> the same of another number; false where the name has no such form. */
static bool split_name(const char *path, int64_t number, int64_t count, char out[PATH_ROOM])
{
    size_t n = strlen(path), tail = strlen("-00001-of-00003.gguf");
    if (n < tail || n >= PATH_ROOM)
        return false;
    snprintf(out, PATH_ROOM, "%.*s-%05lld-of-%05lld.gguf", (int)(n - tail), path, (long long)number,
             (long long)count);
    return strlen(out) == n;
}

static plm_status check_split(const plm_weights *w, plm_error *err)
{
    plm_split_part *s = plm_calloc(w->n_parts, sizeof *s);
    if (s == NULL)
        return plm_fail_memory(err, "the parts of a split file");
    for (size_t i = 0; i < w->n_parts; i++) {
        const plm_gguf *g = w->part[i].gguf;
        s[i].tensors = (int64_t)plm_gguf_tensor_count(g);
        plm_gguf_int(g, "split.count", &s[i].count);
        plm_gguf_int(g, "split.no", &s[i].no);
        plm_gguf_int(g, "split.tensors.count", &s[i].tensors_total);
    }
    plm_status status = plm_split_check(s, w->n_parts, err);
    plm_free(s);
    return status;
}

static plm_status open_gguf(plm_weights *w, const char *path, plm_error *err)
{
    char name[PATH_ROOM];
    int64_t count = 0;
    w->gguf = true;
    PLM_TRY(map_part(w, path, err));
    if (!plm_gguf_int(w->part[0].gguf, "split.count", &count) || count <= 1)
        return PLM_OK;
    if (count > PARTS_MAX || !split_name(path, 1, count, name))
        return plm_fail(err, PLM_E_INVALID,
                        "split, %.200s: %lld parts; want NAME-00001-of-%05lld.gguf", path,
                        (long long)count, (long long)count);
    for (int64_t i = 1; i <= count; i++) {
        split_name(path, i, count, name);
        if (strcmp(name, path) != 0)
            PLM_TRY(map_part(w, name, err));
    }
    return check_split(w, err);
}

static plm_status join(char out[PATH_ROOM], const char *folder, const char *file, plm_error *err)
{
    int n = snprintf(out, PATH_ROOM, "%s/%s", folder, file);
    return n > 0 && n < PATH_ROOM
               ? PLM_OK
               : plm_fail(err, PLM_E_LIMIT, "path too long, %.80s: at most %d bytes; move the file",
                          folder, PATH_ROOM);
}

static bool have_part(const plm_weights *w, const char *path)
{
    for (size_t i = 0; i < w->n_parts; i++)
        if (strcmp(w->part[i].name, path) == 0)
            return true;
    return false;
}

/* The files that the index names. A name with a '/' could lead out of the folder. */
static plm_status open_index(plm_weights *w, const char *folder, const char *index, plm_error *err)
{
    char *text = NULL, path[PATH_ROOM];
    size_t bytes;
    json_t *j = NULL;
    const char *key;
    json_t *file;
    plm_status status;
    PLM_TRY(plm_file_read(index, INDEX_MAX_BYTES, &text, &bytes, err));
    PLM_GOTO(plm_json_parse(text, bytes, index, &j, err));
    json_t *map = json_object_get(j, "weight_map");
    if (!json_is_object(map)) {
        status = plm_fail(err, PLM_E_INVALID, "no weight_map, %.200s: download it again", index);
        goto done;
    }
    const char *last = "";
    json_object_foreach(map, key, file)
    {
        const char *name = json_string_value(file);
        if (name == NULL || strchr(name, '/') != NULL || !ends_with(name, ".safetensors")) {
            status =
                plm_fail(err, PLM_E_INVALID,
                         "bad file name, %.200s: weight_map must name .safetensors files beside "
                         "it; download it again",
                         index);
            goto done;
        }
        if (strcmp(name, last) == 0)
            continue;
        last = name;
        PLM_GOTO(join(path, folder, name, err));
        if (!have_part(w, path))
            PLM_GOTO(map_part(w, path, err));
    }
done:
    json_decref(j);
    plm_free(text);
    return status;
}

static plm_status open_folder(plm_weights *w, const char *folder, plm_error *err)
{
    char path[PATH_ROOM];
    struct stat st;
    PLM_TRY(join(path, folder, "model.safetensors.index.json", err));
    if (stat(path, &st) == 0)
        return open_index(w, folder, path, err);
    DIR *d = opendir(folder);
    if (d == NULL)
        return plm_fail(err, PLM_E_IO, "cannot read, %.200s: no such folder; check the path",
                        folder);
    plm_status status = PLM_OK;
    struct dirent *e;
    while (status == PLM_OK && (e = readdir(d)) != NULL)
        if (ends_with(e->d_name, ".safetensors")) {
            status = join(path, folder, e->d_name, err);
            if (status == PLM_OK)
                status = map_part(w, path, err);
        }
    closedir(d);
    return status;
}

static plm_status open_path(plm_weights *w, const char *path, plm_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return open_folder(w, path, err);
    if (ends_with(path, ".gguf"))
        return open_gguf(w, path, err);
    if (ends_with(path, ".safetensors"))
        return map_part(w, path, err);
    return plm_fail(
        err, PLM_E_UNSUPPORTED,
        "no weights, %.200s: want a .gguf, a .safetensors or a folder of them; name one", path);
}

plm_status plm_weights_open(const char *path, const plm_arch *arch, plm_weights **out,
                            plm_error *err)
{
    *out = NULL;
    plm_weights *w = plm_calloc(1, sizeof *w);
    if (w == NULL)
        return plm_fail_memory(err, "weights");
    w->arch = arch;
    plm_status status = open_path(w, path, err);
    if (status == PLM_OK)
        status = finish_open(w, err);
    if (status == PLM_OK)
        *out = w;
    else
        plm_weights_close(w);
    return status;
}

plm_status plm_weights_open_memory(const plm_weights_file *files, size_t n, const plm_arch *arch,
                                   plm_weights **out, plm_error *err)
{
    *out = NULL;
    plm_weights *w = plm_calloc(1, sizeof *w);
    if (w == NULL)
        return plm_fail_memory(err, "weights");
    plm_status status = PLM_OK;
    w->arch = arch;
    w->gguf = n > 0 && files[0].bytes >= 4 && memcmp(files[0].data, "GGUF", 4) == 0;
    for (size_t i = 0; i < n; i++) {
        plm_weights_part *p;
        PLM_GOTO(add_part(w, files[i].data, files[i].bytes, files[i].name, &p, err));
        PLM_GOTO(read_part(w, p, err));
    }
    status = finish_open(w, err);
done:
    if (status == PLM_OK)
        *out = w;
    else
        plm_weights_close(w);
    return status;
}
