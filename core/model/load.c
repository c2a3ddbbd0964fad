/* load.c - a catalog id or a path -> arch record. */
#include "core/model/load.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/mem.h"

#define PATH_ROOM 4096
#define CONFIG_MAX_BYTES (16u << 20)
#define PARTS_MAX 512
#define SHARDS_MAX 4096

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), t = strlen(tail);
    return n >= t && strcmp(text + n - t, tail) == 0;
}

static plm_status join(char *out, const char *folder, size_t n, const char *file, plm_error *err)
{
    int len = snprintf(out, PATH_ROOM, "%.*s/%s", (int)n, folder, file);
    if (len < 0 || len >= PATH_ROOM)
        return plm_fail(err, PLM_E_LIMIT, "path too long, %.80s: at most %d bytes; move the file",
                        folder, PATH_ROOM);
    return PLM_OK;
}

/* ---- config.json, and the safetensors beside it ---- */

/* Rows of the input embedding rule the vocabulary, whatever config or tokenizer say. */
static void apply_embedding(const plm_safetensors *s, plm_arch *a)
{
    static const char *const tails[] = {"embed_tokens.weight",    "wte.weight",
                                        "word_embeddings.weight", "embeddings.weight",
                                        "tok_embeddings.weight",  "embed_in.weight"};
    for (size_t i = 0; i < plm_safetensors_count(s); i++) {
        const plm_tensor *t = plm_safetensors_tensor(s, i);
        for (size_t k = 0; k < sizeof tails / sizeof *tails; k++)
            if (ends_with(t->name, tails[k]) && t->rank == 2 && t->dim[0] >= 1 &&
                t->dim[0] <= 1 << 26 && t->dim[1] == a->hidden)
                a->vocab = (int32_t)t->dim[0];
    }
}

static plm_status read_shard(const char *path, plm_arch *a, plm_error *err)
{
    plm_file f;
    plm_safetensors *s;
    PLM_TRY(plm_file_map(path, &f, err));
    plm_status status = plm_safetensors_open(f.data, f.bytes, f.bytes, path, &s, err);
    if (status == PLM_OK) {
        apply_embedding(s, a);
        plm_safetensors_close(s);
    }
    plm_file_unmap(&f);
    return status;
}

/* Every *.safetensors of the folder is opened: a cut download is found now. */
static plm_status read_shards(const char *folder, size_t n, plm_arch *a, plm_error *err)
{
    char path[PATH_ROOM];
    PLM_TRY(join(path, folder, n, ".", err));
    DIR *d = opendir(path);
    if (d == NULL)
        return PLM_OK;
    plm_status status = PLM_OK;
    struct dirent *e;
    for (int count = 0; status == PLM_OK && count < SHARDS_MAX && (e = readdir(d)) != NULL;) {
        if (!ends_with(e->d_name, ".safetensors"))
            continue;
        count++;
        status = join(path, folder, n, e->d_name, err);
        if (status == PLM_OK)
            status = read_shard(path, a, err);
    }
    closedir(d);
    return status;
}

static plm_status load_config(const char *path, plm_arch *out, plm_error *err)
{
    char *text;
    size_t bytes;
    PLM_TRY(plm_file_read(path, CONFIG_MAX_BYTES, &text, &bytes, err));
    /* A record of ours (docs/adding-a-model.md) has keys that no config.json has. */
    bool record = strstr(text, "\"layer_count\"") != NULL && strstr(text, "\"kinds\"") != NULL;
    plm_status status = record ? plm_model_from_record(text, bytes, path, out, err)
                               : plm_model_from_config(text, bytes, path, out, err);
    plm_free(text);
    if (status != PLM_OK || record)
        return status;
    const char *slash = strrchr(path, '/');
    const char *folder = slash != NULL ? path : ".";
    size_t n = slash != NULL ? (size_t)(slash - path) : 1;
    return read_shards(folder, n, out, err);
}

/* ---- GGUF ---- */

typedef struct part_set {
    plm_file file[PARTS_MAX];
    plm_gguf *gguf[PARTS_MAX];
    size_t count;
} part_set;

static plm_status open_part(part_set *set, const char *path, plm_error *err)
{
    plm_file *f = &set->file[set->count];
    PLM_TRY(plm_file_map(path, f, err));
    plm_status status =
        plm_gguf_open(f->data, f->bytes, f->bytes, path, &set->gguf[set->count], err);
    if (status != PLM_OK)
        plm_file_unmap(f);
    else
        set->count++;
    return status;
}

static void close_parts(part_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        plm_gguf_close(set->gguf[i]);
        plm_file_unmap(&set->file[i]);
    }
    plm_free(set);
}

/* NAME-00001-of-00003.gguf: names count from one, split.no from zero. */
static plm_status open_siblings(part_set *set, const char *path, int64_t count, plm_error *err)
{
    size_t n = strlen(path);
    char name[PATH_ROOM];
    const size_t tail = strlen("-00001-of-00003.gguf");
    if (count > PARTS_MAX || n < tail || n >= PATH_ROOM)
        return plm_fail(err, PLM_E_LIMIT,
                        "split, %s: %lld parts; want NAME-00001-of-%05lld.gguf and "
                        "at most %d parts",
                        path, (long long)count, (long long)count, PARTS_MAX);
    bool fits = false;
    for (int64_t i = 1; i <= count && !fits; i++) {
        snprintf(name, sizeof name, "-%05lld-of-%05lld.gguf", (long long)i, (long long)count);
        fits = ends_with(path, name);
    }
    if (!fits)
        return plm_fail(err, PLM_E_INVALID,
                        "split, %.200s: one of %lld parts, but not named so; want "
                        "NAME-00001-of-%05lld.gguf, rename it",
                        path, (long long)count, (long long)count);
    for (int64_t i = 1; i <= count; i++) {
        snprintf(name, sizeof name, "%.*s-%05lld-of-%05lld.gguf", (int)(n - tail), path,
                 (long long)i, (long long)count);
        if (strcmp(name, path) == 0)
            continue;
        if (open_part(set, name, err) != PLM_OK)
            return plm_fail_in(err, PLM_E_INVALID, "split");
    }
    return PLM_OK;
}

static int by_number(const plm_gguf *a, const plm_gguf *b)
{
    int64_t x = 0, y = 0;
    (void)(plm_gguf_int(a, "split.no", &x) && plm_gguf_int(b, "split.no", &y));
    return x < y ? -1 : x > y;
}

/* The part with number 0 holds the metadata, whichever was named. */
static void first_to_front(part_set *set)
{
    for (size_t i = 1; i < set->count; i++)
        if (by_number(set->gguf[i], set->gguf[0]) < 0) {
            plm_gguf *g = set->gguf[0];
            plm_file f = set->file[0];
            set->gguf[0] = set->gguf[i];
            set->file[0] = set->file[i];
            set->gguf[i] = g;
            set->file[i] = f;
        }
}

static plm_status load_gguf(const char *path, plm_arch *out, plm_error *err)
{
    part_set *set = plm_calloc(1, sizeof *set);
    if (set == NULL)
        return plm_fail_memory(err, path);
    int64_t count = 0;
    plm_status status;
    PLM_GOTO(open_part(set, path, err));
    if (plm_gguf_int(set->gguf[0], "split.count", &count) && count > 1)
        PLM_GOTO(open_siblings(set, path, count, err));
    first_to_front(set);
    status =
        plm_model_from_gguf_parts((const plm_gguf *const *)set->gguf, set->count, path, out, err);
done:
    close_parts(set);
    return status;
}

/* ---- which of them ---- */

static plm_status load_folder(const char *path, plm_arch *out, plm_error *err)
{
    char config[PATH_ROOM];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    PLM_TRY(join(config, path, n, "config.json", err));
    struct stat st;
    if (stat(config, &st) != 0)
        return plm_fail(err, PLM_E_NOT_FOUND,
                        "no config.json, %s: a model folder needs one; name the "
                        "file instead",
                        path);
    return load_config(config, out, err);
}

static plm_status load_path(const char *path, bool folder, plm_arch *out, plm_error *err)
{
    if (folder)
        return load_folder(path, out, err);
    if (ends_with(path, ".gguf"))
        return load_gguf(path, out, err);
    if (ends_with(path, ".safetensors")) {
        char config[PATH_ROOM];
        const char *slash = strrchr(path, '/');
        PLM_TRY(join(config, slash != NULL ? path : ".", slash != NULL ? (size_t)(slash - path) : 1,
                     "config.json", err));
        return load_config(config, out, err);
    }
    if (!ends_with(path, ".json"))
        return plm_fail(err, PLM_E_UNSUPPORTED,
                        "unknown kind of file, %s: want config.json, .gguf, "
                        ".safetensors or a folder; rename it",
                        path);
    return load_config(path, out, err);
}

static plm_status not_found(const plm_catalog *c, const char *name, plm_error *err)
{
    const char *near = c != NULL ? plm_catalog_nearest(c, "models", name) : NULL;
    if (near != NULL)
        return plm_fail(err, PLM_E_NOT_FOUND,
                        "unknown model \"%.80s\", --model: neither a catalog id "
                        "nor a file; did you mean %s?",
                        name, near);
    return plm_fail(err, PLM_E_NOT_FOUND,
                    "unknown model \"%.80s\", --model: neither a catalog id nor "
                    "a file; see plimsoll models",
                    name);
}

plm_status plm_model_load(const plm_catalog *c, const char *name, plm_arch *out, plm_error *err)
{
    plm_arch_init(out);
    const plm_record *r = c != NULL ? plm_catalog_find(c, "models", name) : NULL;
    if (r != NULL) {
        PLM_TRY(plm_model_from_record(r->text, r->bytes, r->id, out, err));
        if (plm_id_equal(out->id, r->id))
            return PLM_OK;
        plm_status status =
            plm_fail(err, PLM_E_INVALID, "id \"%.80s\", models/%.80s.json: a record's id is the name "
                     "of its file; make them equal", out->id, r->id);
        plm_arch_fini(out);
        return status;
    }
    struct stat st;
    if (strlen(name) < PATH_ROOM && stat(name, &st) == 0)
        return load_path(name, S_ISDIR(st.st_mode), out, err);
    int why = strlen(name) < PATH_ROOM ? errno : ENOENT;
    bool path = strchr(name, '/') != NULL || ends_with(name, ".gguf") || ends_with(name, ".json") ||
                ends_with(name, ".safetensors");
    if (path && why != ENOENT && why != ENOTDIR)
        return plm_fail(err, PLM_E_IO, "cannot read, %.200s: %s; check the path", name,
                        strerror(why));
    if (path)
        return plm_fail(err, PLM_E_NOT_FOUND,
                        "no such file, %.200s: it does not exist; check the path", name);
    return not_found(c, name, err);
}
