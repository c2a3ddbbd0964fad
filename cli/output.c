/* output.c - JSON objects, aligned tables, figures for people. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/mem.h"
#include "core/base/vec.h"

#define CELLS_MAX 4000000u

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

void plm_out_text(plm_json_out *o, json_t *obj, const char *key, const char *v)
{
    plm_out_child(o, obj, key, v != NULL ? json_string(v) : json_null());
}

void plm_out_bool(plm_json_out *o, json_t *obj, const char *key, bool v)
{
    plm_out_child(o, obj, key, json_boolean(v));
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

/* A cell that looks like a figure is set flush right. */
static bool is_figure(const char *s)
{
    return (*s >= '0' && *s <= '9') || ((*s == '-' || *s == '.') && s[1] >= '0' && s[1] <= '9') ||
           strcmp(s, "-") == 0;
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

plm_status plm_table_write(const plm_table *t, bool csv, FILE *out, plm_error *err)
{
    if (t->oom)
        return plm_fail_memory(err, "table");
    size_t rows = t->cells.count / t->columns;
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const char *cell = t->cells.items[r * t->columns + c];
            if (csv) {
                if (c > 0)
                    fputc(',', out);
                write_csv_cell(cell, out);
                continue;
            }
            size_t width = 0;
            bool right = rows > 1 && is_figure(t->cells.items[t->columns + c]);
            for (size_t i = 0; i < rows; i++) {
                size_t n = width_of(t->cells.items[i * t->columns + c]);
                width = n > width ? n : width;
            }
            int pad = (int)(width - width_of(cell));
            bool last = c + 1 == t->columns;
            fprintf(out, "%*s%s%*s%s", right ? pad : 0, "", cell, right || last ? 0 : pad, "",
                    last ? "" : "  ");
        }
        fputc('\n', out);
    }
    return PLM_OK;
}

/* ---- figures for people ---- */

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
    static const scale_name names[] = {{1099511627776.0, "TiB"}, {1073741824.0, "GiB"},
                                       {1048576.0, "MiB"},       {1024.0, "KiB"},
                                       {1.0, "B"},               {0, NULL}};
    return scaled(bytes, names, buf, cap);
}

const char *plm_text_time(double seconds, char *buf, size_t cap)
{
    static const scale_name names[] = {
        {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {0, NULL}};
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
