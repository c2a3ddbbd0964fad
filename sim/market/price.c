/* price.c - prices observed at venues, from catalog/prices.csv, and cost a token.
**
** The table has a header line; columns are found by name: device_id, venue, term, usd_per_hour,
** date, source. Rows without usd_per_hour are purchases and take no part here. */
#include "sim/market/price.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MAX_COLUMNS 16
#define MAX_VENUES 256
#define YEAR_DAYS 365

typedef struct cell {
    const char *text; /* without its quotes; a doubled quote inside is left doubled */
    size_t bytes;
} cell;

/* One line of a CSV file into cells; the start of the next line. Quotes may hold commas and line
** ends. Cells beyond MAX_COLUMNS are dropped. */
static const char *split_line(const char *p, cell *cells, size_t *count)
{
    *count = 0;
    while (*p != '\0') {
        cell c;
        if (*p == '"') {
            c.text = ++p;
            while (*p != '\0' && (*p != '"' || p[1] == '"'))
                p += *p == '"' ? 2 : 1;
            c.bytes = (size_t)(p - c.text);
            if (*p == '"')
                p++;
        } else {
            c.text = p;
            while (*p != '\0' && *p != ',' && *p != '\n' && *p != '\r')
                p++;
            c.bytes = (size_t)(p - c.text);
        }
        if (*count < MAX_COLUMNS)
            cells[(*count)++] = c;
        while (*p != '\0' && *p != ',' && *p != '\n') /* a carriage return, or text after a quote */
            p++;
        if (*p == '\0')
            break;
        if (*p++ == '\n')
            break;
        if (*p == '\n' || *p == '\0') { /* a trailing comma: one more, empty cell */
            if (*count < MAX_COLUMNS)
                cells[(*count)++] = (cell){p, 0};
            p += *p == '\n';
            break;
        }
    }
    return p;
}

static void copy_cell(cell c, char *out, size_t room)
{
    size_t n = c.bytes < room - 1 ? c.bytes : room - 1;
    memcpy(out, c.text, n);
    out[n] = '\0';
}

/* Days since 0000-03-01 of "YYYY", "YYYY-MM" or "YYYY-MM-DD" (a missing part counts as the first),
** -1 when it is none of these. Proleptic Gregorian count of days, H. Hinnant's civil calendar. */
static int32_t count_days(const char *date)
{
    int y = 0, m = 1, d = 1, used = 0;
    size_t n = strlen(date);
    bool ok = n == 4    ? sscanf(date, "%4d%n", &y, &used) == 1
              : n == 7  ? sscanf(date, "%4d-%2d%n", &y, &m, &used) == 2
              : n == 10 ? sscanf(date, "%4d-%2d-%2d%n", &y, &m, &d, &used) == 3
                        : false;
    if (!ok || (size_t)used != n || y < 1990 || y > 2100 || m < 1 || m > 12 || d < 1 || d > 31)
        return -1;
    int year = m <= 2 ? y - 1 : y;
    int day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return (int32_t)(365 * year + year / 4 - year / 100 + year / 400 + day_of_year);
}

enum { DEVICE, VENUE, TERM, USD, DATE, SOURCE, COLUMNS };
static const char *const column_names[COLUMNS] = {"device_id",    "venue", "term",
                                                  "usd_per_hour", "date",  "source"};

typedef struct row {
    char venue[64], term[32], date[12], source[160];
    double usd;
    int32_t days;
} row;

/* How a row's term answers the one asked for: 2 exactly, 1 as a variant of on_demand (an average, a
** floor, an 8-device node), 0 not at all. */
static int match_term(const char *have, const char *asked)
{
    if (strcmp(have, asked) == 0)
        return 2;
    return strcmp(asked, "on_demand") == 0 && strncmp(have, "on_demand_", 10) == 0 ? 1 : 0;
}

/* Keeps the newest row of each venue (the later line on equal dates) of the best match. */
static void keep_row(row *rows, size_t *n, int *best, int match, const row *r)
{
    if (match < *best)
        return;
    if (match > *best)
        *n = 0;
    *best = match;
    size_t i = 0;
    while (i < *n && strcmp(rows[i].venue, r->venue) != 0)
        i++;
    if (i == *n && *n < MAX_VENUES)
        rows[(*n)++] = *r;
    else if (i < *n && r->days >= rows[i].days)
        rows[i] = *r;
}

static plm_status read_header(const cell *cells, size_t count, size_t at[COLUMNS], plm_error *err)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        at[c] = 0;
        while (at[c] < count &&
               (cells[at[c]].bytes != strlen(column_names[c]) ||
                memcmp(cells[at[c]].text, column_names[c], cells[at[c]].bytes) != 0))
            at[c]++;
        if (at[c] == count)
            return plm_fail(err, PLM_E_INVALID,
                            "missing column \"%s\", prices.csv: the header line has none; add it",
                            column_names[c]);
    }
    return PLM_OK;
}

/* A data line as a row; *priced false for a purchase. */
static plm_status read_row(const cell *cells, size_t count, const size_t at[COLUMNS], size_t line,
                           row *r, bool *priced, plm_error *err)
{
    char usd[32];
    for (size_t c = 0; c < COLUMNS; c++)
        if (at[c] >= count)
            return plm_fail(err, PLM_E_INVALID,
                            "short line, prices.csv line %zu: it has %zu cells; complete it", line,
                            count);
    copy_cell(cells[at[USD]], usd, sizeof usd);
    *priced = usd[0] != '\0';
    if (!*priced)
        return PLM_OK;
    char *end;
    r->usd = strtod(usd, &end);
    copy_cell(cells[at[VENUE]], r->venue, sizeof r->venue);
    copy_cell(cells[at[TERM]], r->term, sizeof r->term);
    copy_cell(cells[at[DATE]], r->date, sizeof r->date);
    copy_cell(cells[at[SOURCE]], r->source, sizeof r->source);
    r->days = count_days(r->date);
    if (*end != '\0' || !isfinite(r->usd) || r->usd <= 0 || r->usd > 1e6 || r->days < 0)
        return plm_fail(err, PLM_E_INVALID,
                        "bad price, prices.csv line %zu: usd_per_hour \"%s\", date \"%s\"; want a "
                        "number above 0 and YYYY, YYYY-MM or YYYY-MM-DD",
                        line, usd, r->date);
    return PLM_OK;
}

static int compare_usd(const void *a, const void *b)
{
    double x = ((const row *)a)->usd, y = ((const row *)b)->usd;
    return (x > y) - (x < y);
}

/* Median of the rows no older than a year before the newest. */
static void summarise(row *rows, size_t n, plm_price *out)
{
    const row *newest = &rows[0];
    for (size_t i = 1; i < n; i++)
        if (rows[i].days > newest->days)
            newest = &rows[i];
    memset(out, 0, sizeof *out);
    memcpy(out->date, newest->date, sizeof out->date);
    memcpy(out->term, newest->term, sizeof out->term);
    int32_t oldest = newest->days - YEAR_DAYS;
    row only = *newest;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].days >= oldest)
            rows[kept++] = rows[i];
    qsort(rows, kept, sizeof *rows, compare_usd);
    out->usd_per_hour = kept % 2 == 1 ? rows[kept / 2].usd
                                      : (rows[kept / 2 - 1].usd + rows[kept / 2].usd) / 2;
    out->low = rows[0].usd;
    out->high = rows[kept - 1].usd;
    out->n = (int64_t)kept;
    if (kept == 1) {
        memcpy(out->venue, only.venue, sizeof out->venue);
        memcpy(out->source, only.source, sizeof out->source);
    } else {
        snprintf(out->venue, sizeof out->venue, "median of %zu venues", kept);
        snprintf(out->source, sizeof out->source,
                 "catalog/prices.csv: median of %zu venues, %.4g to "
                 "%.4g USD/h, newest %s",
                 kept, out->low, out->high, out->date);
    }
}

plm_status plm_price_find(const plm_catalog *c, const char *device_id, const char *term,
                          plm_price *out, plm_error *err)
{
    const char *asked = term != NULL ? term : "on_demand";
    const plm_record *table = plm_catalog_find(c, "", "prices");
    if (table == NULL)
        return plm_fail(err, PLM_E_NOT_FOUND,
                        "no prices, catalog: it has no prices.csv; pass --price USD");
    cell cells[MAX_COLUMNS];
    size_t count = 0, at[COLUMNS];
    const char *p = split_line(table->text, cells, &count);
    PLM_TRY(read_header(cells, count, at, err));
    row rows[MAX_VENUES];
    size_t n = 0;
    int best = 1;
    for (size_t line = 2; *p != '\0'; line++) {
        p = split_line(p, cells, &count);
        if (count <= at[DEVICE] || (count == 1 && cells[0].bytes == 0))
            continue; /* an empty line */
        char id[96];
        row r;
        bool priced = false;
        copy_cell(cells[at[DEVICE]], id, sizeof id);
        if (!plm_id_equal(id, device_id))
            continue;
        PLM_TRY(read_row(cells, count, at, line, &r, &priced, err));
        if (priced && match_term(r.term, asked) > 0)
            keep_row(rows, &n, &best, match_term(r.term, asked), &r);
    }
    if (n == 0)
        return plm_fail(err, PLM_E_NOT_FOUND,
                        "no %s price, device %.60s: catalog/prices.csv has none; pass --price USD "
                        "for an hour of one device",
                        asked, device_id);
    summarise(rows, n, out);
    return PLM_OK;
}

double plm_usd_per_mtok(double usd_per_hour, double tok_s, double utilisation)
{
    if (!(tok_s > 0) || !(utilisation > 0))
        return INFINITY;
    return usd_per_hour * 1e6 / (3600 * tok_s * utilisation);
}

void plm_attribute(double usd_per_hour, double prefill_s, double in_tokens, double decode_s,
                   double out_tokens, double *usd_per_mtok_in, double *usd_per_mtok_out)
{
    double usd_s = usd_per_hour / 3600;
    *usd_per_mtok_in = in_tokens > 0 ? usd_s * prefill_s / in_tokens * 1e6 : 0;
    *usd_per_mtok_out = out_tokens > 0 ? usd_s * decode_s / out_tokens * 1e6 : 0;
}
