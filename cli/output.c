/* output.c - JSON objects, aligned tables, figures for people. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/mem.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"

#define CELLS_MAX 4000000u
#define COLUMNS_MAX 32

json_t *plm_out_object(plm_json_out *o)
{
    json_t *j = json_object();
    o->oom |= j == NULL;
    return j;
}

json_t *plm_out_array(plm_json_out *o)
{
    json_t *j = json_array();
    o->oom |= j == NULL;
    return j;
}

json_t *plm_out_child(plm_json_out *o, json_t *parent, const char *key, json_t *child)
{
    int rc = key != NULL ? json_object_set_new(parent, key, child)
                         : json_array_append_new(parent, child);
    if (rc != 0) {
        o->oom = true;
        return NULL;
    }
    return child;
}

void plm_out_int(plm_json_out *o, json_t *obj, const char *key, int64_t v)
{
    plm_out_child(o, obj, key, json_integer(v));
}

void plm_out_real(plm_json_out *o, json_t *obj, const char *key, double v)
{
    plm_out_child(o, obj, key, isfinite(v) ? json_real(v) : json_null());
}

/* Names of files may hold bytes that are no UTF-8, which JSON cannot: each becomes '?'. */
static json_t *text_json(plm_json_out *o, const char *v)
{
    size_t n = strlen(v);
    if (plm_is_utf8(v, n))
        return json_string(v);
    char *copy = plm_strdup(v);
    if (copy == NULL) {
        o->oom = true;
        return NULL;
    }
    for (size_t i = 0, k; i < n; i += k > 0 ? k : 1) {
        k = plm_utf8_char(copy + i, n - i);
        if (k == 0)
            copy[i] = '?';
    }
    json_t *j = json_string(copy);
    plm_free(copy);
    return j;
}

void plm_out_text(plm_json_out *o, json_t *obj, const char *key, const char *v)
{
    plm_out_child(o, obj, key, v != NULL ? text_json(o, v) : json_null());
}

void plm_out_bool(plm_json_out *o, json_t *obj, const char *key, bool v)
{
    plm_out_child(o, obj, key, json_boolean(v));
}

void plm_out_limit(plm_json_out *o, json_t *obj, const char *key, const plm_ledger *l, int64_t v)
{
    plm_out_child(o, obj, key, l->capacity_bytes > 0 ? json_integer(v) : json_null());
}

void plm_out_figure(plm_json_out *o, json_t *obj, const char *key, plm_figure f)
{
    char range[64];
    snprintf(range, sizeof range, "%s_range", key);
    plm_out_real(o, obj, key, f.value);
    json_t *pair = plm_out_child(o, obj, range, plm_out_array(o));
    plm_out_real(o, pair, NULL, f.lo);
    plm_out_real(o, pair, NULL, f.hi);
}

plm_status plm_out_write(plm_json_out *o, json_t *obj, FILE *out, plm_error *err)
{
    plm_status status = PLM_OK;
    if (o->oom || obj == NULL) {
        status = plm_fail_memory(err, "the answer");
    } else {
        char *text = json_dumps(obj, JSON_COMPACT | JSON_REAL_PRECISION(12));
        if (text == NULL)
            status = plm_fail_memory(err, "the answer");
        else
            fprintf(out, "%s\n", text);
        plm_free(text);
    }
    json_decref(obj);
    return status;
}

/* ---- tables ---- */

struct plm_table {
    size_t columns;
    PLM_VEC(char *) cells; /* headers first */
    bool oom;
};

static void push(plm_table *t, const char *text)
{
    char *copy = plm_strdup(text);
    if (copy == NULL || !plm_vec_push(&t->cells, copy, CELLS_MAX)) {
        plm_free(copy);
        t->oom = true;
    }
}

plm_status plm_table_create(const char *const *headers, size_t columns, plm_table **out,
                            plm_error *err)
{
    plm_table *t = plm_calloc(1, sizeof *t);
    *out = t;
    assert(columns > 0 && columns <= COLUMNS_MAX);
    if (t == NULL)
        return plm_fail_memory(err, "table");
    t->columns = columns;
    for (size_t i = 0; i < columns; i++)
        push(t, headers[i]);
    return PLM_OK;
}

void plm_table_destroy(plm_table *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->cells.count; i++)
        plm_free(t->cells.items[i]);
    plm_vec_fini(&t->cells);
    plm_free(t);
}

void plm_table_text(plm_table *t, const char *text)
{
    push(t, text);
}

void plm_table_format(plm_table *t, const char *fmt, ...)
{
    char cell[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(cell, sizeof cell, fmt, args);
    va_end(args);
    push(t, cell);
}

void plm_table_number(plm_table *t, double v, int digits)
{
    char cell[32];
    push(t, plm_text_number(v, digits, cell, sizeof cell));
}

/* A cell that looks like a figure ("12.5", "-", "2 x 8", "1*") is set flush right. */
static bool is_figure(const char *s)
{
    return strcmp(s, "-") == 0 ||
           (s[strcspn(s, "0123456789")] != '\0' && strspn(s, "0123456789.-+x* ") == strlen(s));
}

static void write_csv_cell(const char *s, FILE *out)
{
    if (strpbrk(s, ",\"\n\r") == NULL) {
        fputs(s, out);
        return;
    }
    fputc('"', out);
    for (; *s != '\0'; s++) {
        if (*s == '"')
            fputc('"', out);
        fputc(*s, out);
    }
    fputc('"', out);
}

/* Columns of a terminal that a UTF-8 text takes: its characters (no wide ones occur here). */
static size_t width_of(const char *s)
{
    size_t n = 0;
    for (; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Where the two lines of a header begin and how wide each is; "" above a header of one line. */
typedef struct header_lines {
    const char *text[2];
    size_t width[2];
} header_lines;

static header_lines split_header(const char *s)
{
    const char *cut = strchr(s, '\n');
    if (cut == NULL)
        return (header_lines){{"", s}, {0, width_of(s)}};
    return (header_lines){{s, cut + 1}, {width_of(s) - width_of(cut), width_of(cut + 1)}};
}

static void write_csv(const plm_table *t, FILE *out)
{
    for (size_t i = 0; i < t->cells.count; i++) {
        char *cell = t->cells.items[i], *cut = i < t->columns ? strchr(cell, '\n') : NULL;
        if (i % t->columns > 0)
            fputc(',', out);
        if (cut != NULL)
            *cut = ' ';
        write_csv_cell(cell, out);
        if (cut != NULL)
            *cut = '\n';
        if (i % t->columns == t->columns - 1)
            fputc('\n', out);
    }
}

/* One column's share of a line: two spaces before it, no spaces after the last word of the line. */
static void write_cell(const char *s, size_t n, size_t width, bool right, size_t *owed, FILE *out)
{
    size_t pad = width - n;
    *owed += right ? pad : 0;
    if (n > 0) {
        fprintf(out, "%*s", (int)*owed, "");
        *owed = 0;
        for (; *s != '\0' && *s != '\n'; s++)
            fputc(*s, out);
    }
    *owed += (right ? 0 : pad) + 2;
}

static size_t column_width(const plm_table *t, size_t rows, size_t column)
{
    header_lines h = split_header(t->cells.items[column]);
    size_t width = h.width[0] > h.width[1] ? h.width[0] : h.width[1];
    for (size_t r = 1; r < rows; r++) {
        size_t n = width_of(t->cells.items[r * t->columns + column]);
        width = n > width ? n : width;
    }
    return width;
}

/* Lines of text: headers in two lines when any has two, then the rows. */
static void write_aligned(const plm_table *t, FILE *out)
{
    size_t rows = t->cells.count / t->columns;
    size_t width[COLUMNS_MAX];
    bool right[COLUMNS_MAX], two = false;
    for (size_t c = 0; c < t->columns; c++) {
        width[c] = column_width(t, rows, c);
        right[c] = rows > 1 && is_figure(t->cells.items[t->columns + c]);
        two |= strchr(t->cells.items[c], '\n') != NULL;
    }
    for (size_t line = two ? 0 : 1; line <= rows; line++) {
        size_t owed = 0;
        for (size_t c = 0; c < t->columns; c++) {
            if (line < 2) {
                header_lines h = split_header(t->cells.items[c]);
                write_cell(h.text[line], h.width[line], width[c], right[c], &owed, out);
            } else {
                const char *cell = t->cells.items[(line - 1) * t->columns + c];
                write_cell(cell, width_of(cell), width[c], right[c], &owed, out);
            }
        }
        fputc('\n', out);
    }
}

plm_status plm_table_write(const plm_table *t, bool csv, FILE *out, plm_error *err)
{
    if (t->oom)
        return plm_fail_memory(err, "table");
    if (csv)
        write_csv(t, out);
    else
        write_aligned(t, out);
    return PLM_OK;
}

/* ---- figures for people ---- */

const char *plm_text_number(double v, int digits, char *buf, size_t cap)
{
    int decimals = digits - 1;
    if (!isfinite(v)) {
        snprintf(buf, cap, "-");
        return buf;
    }
    if (v != 0)
        decimals -= (int)floor(log10(fabs(v) * (1 + 0.5 * pow(10, -digits))));
    decimals = decimals < 0 || v == 0 ? 0 : decimals > 9 ? 9 : decimals;
    snprintf(buf, cap, "%.*f", decimals, v);
    return buf;
}

typedef struct scale_name {
    double from;
    const char *name;
} scale_name;

static const char *scaled(double v, const scale_name *s, char *buf, size_t cap)
{
    while (s[1].name != NULL && v < s->from)
        s++;
    double x = v / s->from;
    snprintf(buf, cap, x >= 99.95 ? "%.0f %s" : x >= 9.995 ? "%.1f %s" : "%.2f %s", x, s->name);
    return buf;
}

const char *plm_text_bytes(double bytes, char *buf, size_t cap)
{
    static const scale_name names[] = {{1099511627776.0, "TiB"},
                                       {1073741824.0, "GiB"},
                                       {1048576.0, "MiB"},
                                       {1024.0, "KiB"},
                                       {1.0, "B"},
                                       {0, NULL}};
    return scaled(bytes, names, buf, cap);
}

const char *plm_text_time(double seconds, char *buf, size_t cap)
{
    static const scale_name names[] = {{3600, "h"},  {60, "min"},  {1, "s"},
                                       {1e-3, "ms"}, {1e-6, "us"}, {0, NULL}};
    return scaled(seconds, names, buf, cap);
}

const char *plm_text_count(double n, char *buf, size_t cap)
{
    static const scale_name names[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"},
                                       {1e3, "k"},  {1, ""},    {0, NULL}};
    if (n < 1000) {
        snprintf(buf, cap, "%.0f", n);
        return buf;
    }
    return scaled(n, names, buf, cap);
}
