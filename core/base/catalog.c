#include "core/base/catalog.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/vec.h"

#define MAX_RECORDS 65536u
#define MAX_RECORD_BYTES (16u << 20)
#define MAX_OVERLAY_BYTES ((size_t)256 << 20)

/* catalog.bin, made by scripts/pack_catalog.c: for each file "kind\0id\0", decimal length "\0",
** the text, "\0"; an empty kind, id and length of zero end it. */
extern const char plm_catalog_begin[];
extern const char plm_catalog_end[];

struct plm_catalog {
    plm_arena arena;
    PLM_VEC(plm_record) records; /* sorted by kind, then id */
};

static bool skipped(char c)
{
    return c == '-' || c == '_' || c == '.' || c == ' ';
}

static int compare_ids(const char *a, const char *b)
{
    for (;;) {
        while (skipped(*a))
            a++;
        while (skipped(*b))
            b++;
        int x = tolower((unsigned char)*a), y = tolower((unsigned char)*b);
        if (x != y || x == 0)
            return x - y;
        a++;
        b++;
    }
}

bool plm_id_equal(const char *a, const char *b)
{
    return compare_ids(a, b) == 0;
}

static int compare_records(const void *pa, const void *pb)
{
    const plm_record *a = pa, *b = pb;
    int k = strcmp(a->kind, b->kind);
    return k != 0 ? k : compare_ids(a->id, b->id);
}

/* Index of the first record not before (kind, id). */
static size_t lower_bound(const plm_catalog *c, const char *kind, const char *id)
{
    plm_record key = {.kind = kind, .id = id};
    size_t lo = 0, hi = c->records.count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_records(&c->records.items[mid], &key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static plm_status add(plm_catalog *c, plm_record r, plm_error *err)
{
    size_t at = lower_bound(c, r.kind, r.id);
    if (at < c->records.count && compare_records(&c->records.items[at], &r) == 0) {
        c->records.items[at] = r;
        return PLM_OK;
    }
    if (!plm_vec_push(&c->records, r, MAX_RECORDS))
        return plm_fail_memory(err, "catalog");
    plm_record *p = c->records.items;
    memmove(p + at + 1, p + at, (c->records.count - 1 - at) * sizeof *p);
    p[at] = r;
    return PLM_OK;
}

static plm_status add_embedded(plm_catalog *c, plm_error *err)
{
    for (const char *p = plm_catalog_begin; p < plm_catalog_end && *p != '\xff';) {
        plm_record r;
        r.kind = p;
        p += strlen(p) + 1;
        r.id = p;
        p += strlen(p) + 1;
        r.bytes = (size_t)strtoull(p, NULL, 10);
        p += strlen(p) + 1;
        r.text = p;
        p += r.bytes + 1;
        PLM_TRY(add(c, r, err));
    }
    return PLM_OK;
}

/* Adds the *.json (or, at the top, *.csv) files of dir/kind, and their number to *found. A missing
** folder is not an error. */
static plm_status add_folder(plm_catalog *c, const char *dir, const char *kind, const char *ext,
                             size_t *found, plm_error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, kind) >= (int)sizeof path)
        return plm_fail(err, PLM_E_INVALID, "--catalog, %.200s: path too long; shorten it", dir);
    DIR *d = opendir(path);
    if (d == NULL) {
        if (*kind != '\0' && errno == ENOENT)
            return PLM_OK;
        return plm_fail(err, PLM_E_IO, "--catalog, %s: %s; name a folder laid out as catalog/",
                        path, strerror(errno));
    }
    plm_status status = PLM_OK;
    for (struct dirent *e; status == PLM_OK && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name), x = strlen(ext);
        if (n <= x || strcmp(e->d_name + n - x, ext) != 0)
            continue;
        char file[PATH_MAX];
        if (snprintf(file, sizeof file, "%s/%s", path, e->d_name) >= (int)sizeof file) {
            status = plm_fail(err, PLM_E_INVALID, "--catalog, %.200s: path too long; shorten it",
                              path);
            break;
        }
        char *text;
        plm_record r;
        status = plm_file_read(file, MAX_RECORD_BYTES, &text, &r.bytes, err);
        if (status != PLM_OK)
            break;
        r.kind = plm_arena_text(&c->arena, kind, strlen(kind));
        r.id = plm_arena_text(&c->arena, e->d_name, n - x);
        r.text = plm_arena_text(&c->arena, text, r.bytes);
        plm_free(text);
        ++*found;
        status = r.kind == NULL || r.id == NULL || r.text == NULL
                     ? plm_fail_memory(err, file)
                     : add(c, r, err);
    }
    closedir(d);
    return status;
}

plm_status plm_catalog_create(const char *overlay_dir, plm_catalog **out, plm_error *err)
{
    static const char *const kinds[] = {"devices", "models", "engines"};
    *out = NULL;
    plm_catalog *c = plm_calloc(1, sizeof *c);
    if (c == NULL)
        return plm_fail_memory(err, "catalog");
    plm_arena_init(&c->arena, MAX_OVERLAY_BYTES);
    plm_status status = PLM_OK;
    PLM_GOTO(add_embedded(c, err));
    if (overlay_dir != NULL) {
        size_t found = 0;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            PLM_GOTO(add_folder(c, overlay_dir, kinds[i], ".json", &found, err));
        PLM_GOTO(add_folder(c, overlay_dir, "", ".csv", &found, err));
        if (found == 0)
            PLM_GOTO(plm_fail(err, PLM_E_INVALID, "--catalog, %.200s: it holds no record; lay it out "
                              "as devices/ID.json, models/ID.json, engines/ID.json, prices.csv",
                              overlay_dir));
    }
    *out = c;
    return PLM_OK;
done:
    plm_catalog_destroy(c);
    return status;
}

void plm_catalog_destroy(plm_catalog *c)
{
    if (c == NULL)
        return;
    plm_vec_fini(&c->records);
    plm_arena_fini(&c->arena);
    plm_free(c);
}

const plm_record *plm_catalog_find(const plm_catalog *c, const char *kind, const char *id)
{
    size_t at = lower_bound(c, kind, id);
    plm_record key = {.kind = kind, .id = id};
    if (at < c->records.count && compare_records(&c->records.items[at], &key) == 0)
        return &c->records.items[at];
    return NULL;
}

size_t plm_catalog_count(const plm_catalog *c, const char *kind)
{
    size_t at = lower_bound(c, kind, ""), n = 0;
    while (at + n < c->records.count && strcmp(c->records.items[at + n].kind, kind) == 0)
        n++;
    return n;
}

const plm_record *plm_catalog_at(const plm_catalog *c, const char *kind, size_t index)
{
    return &c->records.items[lower_bound(c, kind, "") + index];
}

/* Levenshtein distance of two ids as compare_ids sees them; ids longer than 63 count as far. */
static unsigned distance(const char *a, const char *b)
{
    char x[64], y[64];
    size_t n = 0, m = 0;
    for (; *a != '\0'; a++)
        if (!skipped(*a)) {
            if (n == sizeof x - 1)
                return UINT_MAX;
            x[n++] = (char)tolower((unsigned char)*a);
        }
    for (; *b != '\0'; b++)
        if (!skipped(*b)) {
            if (m == sizeof y - 1)
                return UINT_MAX;
            y[m++] = (char)tolower((unsigned char)*b);
        }
    unsigned row[64];
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = diagonal + (x[i - 1] != y[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
        }
    }
    return row[m];
}

/* Whether id holds part, as plm_id_equal compares: "h100" is in "H100_SXM_80". */
static bool holds(const char *id, const char *part)
{
    for (; *id != '\0'; id++) {
        const char *a = id, *b = part;
        while (*b != '\0') {
            while (skipped(*a))
                a++;
            while (skipped(*b))
                b++;
            if (*b == '\0' || tolower((unsigned char)*a) != tolower((unsigned char)*b))
                break;
            a++;
            b++;
        }
        if (*b == '\0')
            return true;
    }
    return false;
}

const char *plm_catalog_nearest(const plm_catalog *c, const char *kind, const char *id)
{
    const char *best = NULL;
    unsigned least = UINT_MAX;
    for (size_t i = 0, n = plm_catalog_count(c, kind); strlen(id) >= 3 && i < n; i++) {
        const plm_record *r = plm_catalog_at(c, kind, i);
        unsigned d = holds(r->id, id) ? distance(id, r->id) : UINT_MAX;
        if (d < least) {
            least = d;
            best = r->id;
        }
    }
    if (best != NULL)
        return best;
    least = (unsigned)strlen(id) / 3 + 2;
    for (size_t i = 0, n = plm_catalog_count(c, kind); i < n; i++) {
        const plm_record *r = plm_catalog_at(c, kind, i);
        unsigned d = distance(id, r->id);
        if (d < least) {
            least = d;
            best = r->id;
        }
    }
    return best;
}
