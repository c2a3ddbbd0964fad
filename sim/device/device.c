/* device.c - the loader of device records; catalog/README.md describes their form.
**
** A record states figures, each with unit, basis and source, in sections. The two tables below say
** which keys a section may hold and where each figure goes; any other key is refused by name. What
** a record does not state stays 0, apart from the few fields that fill_derived fills.
*/
#include "sim/device/device.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/mem.h"

#define MAX_RECORD_BYTES ((size_t)1 << 20)
#define MAX_COUNT 1000000
#define PCIE_LATENCY_S 10e-6 /* P2P default of NVIDIA aiconfigurator, where a record has none */
#define GIB 1073741824.0

/* ---- units ---- */
typedef enum dimension {
    BYTES, BYTES_S, FLOP_S, RATE_S, HERTZ, WATT, SECOND, NUMBER, PER_CLOCK, USD
} dimension;

static const struct {
    const char *name;
    dimension dim;
    double scale;
} units[] = {
    {"B", BYTES, 1},           {"KiB", BYTES, 1024},        {"MiB", BYTES, 1048576},
    {"GiB", BYTES, GIB},       {"TiB", BYTES, 1024 * GIB},  {"KB", BYTES, 1e3},
    {"MB", BYTES, 1e6},        {"GB", BYTES, 1e9},          {"TB", BYTES, 1e12},
    {"MB/s", BYTES_S, 1e6},    {"GB/s", BYTES_S, 1e9},      {"TB/s", BYTES_S, 1e12},
    {"GiB/s", BYTES_S, GIB},   {"Gbit/s", BYTES_S, 1.25e8}, {"GFLOP/s", FLOP_S, 1e9},
    {"TFLOP/s", FLOP_S, 1e12}, {"PFLOP/s", FLOP_S, 1e15},   {"TOP/s", FLOP_S, 1e12},
    {"Texp/s", RATE_S, 1e12},  {"Gexp/s", RATE_S, 1e9},     {"MHz", HERTZ, 1e6},
    {"GHz", HERTZ, 1e9},       {"W", WATT, 1},              {"ns", SECOND, 1e-9},
    {"us", SECOND, 1e-6},      {"ms", SECOND, 1e-3},        {"1", NUMBER, 1},
    {"1/clk", PER_CLOCK, 1},   {"USD", USD, 1},
};

/* ---- what a record may hold ---- */
/* Figures that become something else before they reach plm_device. */
typedef struct scratch {
    double boost_hz, base_hz, peak_hz, exp_per_clock, exp_rate, vector_rate, gpu_limit, unused;
} scratch;

typedef enum target { DEVICE_REAL, DEVICE_I32, DEVICE_I64, SCRATCH_REAL } target;

typedef struct figure {
    const char *section, *key;
    dimension dim;
    target kind;
    size_t offset;
    size_t basis; /* offset of the plm_basis, 0 = not kept */
} figure;

#define D(field) offsetof(plm_device, field)
#define S(field) offsetof(scratch, field)
static const figure figures[] = {
    {"memory", "capacity", BYTES, DEVICE_REAL, D(memory_bytes), D(memory_basis)},
    {"memory", "bandwidth", BYTES_S, DEVICE_REAL, D(bandwidth_bytes_s), D(bandwidth_basis)},
    {"memory", "gpu_limit", BYTES, SCRATCH_REAL, S(gpu_limit), 0},
    {"cores", "count", NUMBER, DEVICE_I32, D(sm_count), 0},
    {"cores", "boost_clock", HERTZ, SCRATCH_REAL, S(boost_hz), 0},
    {"cores", "base_clock", HERTZ, SCRATCH_REAL, S(base_hz), 0},
    {"cores", "peak_clock", HERTZ, SCRATCH_REAL, S(peak_hz), 0},
    {"cores", "exp_per_clock", PER_CLOCK, SCRATCH_REAL, S(exp_per_clock), 0},
    {"cores", "exp_rate", RATE_S, SCRATCH_REAL, S(exp_rate), 0},
    {"cores", "vector_rate", FLOP_S, SCRATCH_REAL, S(vector_rate), 0},
    {"cores", "l2", BYTES, DEVICE_REAL, D(l2_bytes), 0},
    {"cores", "l3", BYTES, DEVICE_REAL, D(l3_bytes), 0},
    {"cores", "shared", BYTES, DEVICE_REAL, D(smem_per_sm_bytes), 0},
    {"cores", "shared_per_block", BYTES, DEVICE_REAL, D(smem_per_block_bytes), 0},
    {"cores", "registers", NUMBER, DEVICE_I64, D(regs_per_sm), 0},
    {"cores", "warp", NUMBER, DEVICE_I32, D(warp), 0},
    {"cores", "max_warps", NUMBER, DEVICE_I32, D(max_warps), 0},
    {"cores", "max_blocks", NUMBER, DEVICE_I32, D(max_blocks), 0},
    {"link", "bandwidth", BYTES_S, DEVICE_REAL, D(link_bytes_s), 0},
    {"link", "latency", SECOND, DEVICE_REAL, D(link_latency_s), 0},
    {"link", "group", NUMBER, DEVICE_I32, D(link_group), 0},
    {"network", "node_devices", NUMBER, DEVICE_I32, D(node_devices), 0},
    {"network", "bandwidth", BYTES_S, DEVICE_REAL, D(net_bytes_s), 0},
    {"network", "latency", SECOND, DEVICE_REAL, D(net_latency_s), 0},
    {"pcie", "bandwidth", BYTES_S, DEVICE_REAL, D(pcie_bytes_s), 0},
    {NULL, "power", WATT, DEVICE_REAL, D(tdp_w), 0},
    {NULL, "purchase", USD, SCRATCH_REAL, S(unused), 0},
#define PEAK(id, name)                                                                             \
    {"peak", name, FLOP_S, DEVICE_REAL, D(peak_flop_s) + sizeof(double) * PLM_MATH_##id,           \
     D(peak_basis) + sizeof(plm_basis) * PLM_MATH_##id},
    PLM_MATH_MAP(PEAK)
#undef PEAK
};

typedef enum plain { TEXT, FLAG, WHOLE, ANY } plain;
static const struct {
    const char *section, *key;
    plain kind;
    size_t offset, room; /* room 0 = read by nobody here, kept for the reader of the record */
    bool need;
} plains[] = {
    {NULL, "id", TEXT, D(id), sizeof((plm_device *)0)->id, true},
    {NULL, "name", TEXT, D(name), sizeof((plm_device *)0)->name, true},
    {NULL, "vendor", TEXT, D(vendor), sizeof((plm_device *)0)->vendor, true},
    {NULL, "class", TEXT, D(cls), sizeof((plm_device *)0)->cls, true},
    {NULL, "arch", TEXT, D(arch), sizeof((plm_device *)0)->arch, false},
    {NULL, "target", TEXT, D(target), sizeof((plm_device *)0)->target, false},
    {NULL, "launch_year", WHOLE, D(launch_year), 1, false},
    {NULL, "datacenter", FLAG, D(datacenter), 1, false},
    {"memory", "type", TEXT, D(memory_type), sizeof((plm_device *)0)->memory_type, false},
    {"memory", "assumed", FLAG, D(memory_assumed), 1, false},
    {"memory", "unified", FLAG, D(unified), 1, false},
    {"link", "type", TEXT, D(link_type), sizeof((plm_device *)0)->link_type, false},
    {"link", "switched", FLAG, D(link_switched), 1, false},
    {NULL, "status", ANY, 0, 0, false},
    {NULL, "sources", ANY, 0, 0, true},
    {NULL, "measured", ANY, 0, 0, false},
    {NULL, "measured_notes", ANY, 0, 0, false},
    {NULL, "notes", ANY, 0, 0, false},
    {NULL, "conflicts", ANY, 0, 0, false},
    {NULL, "purchase_note", ANY, 0, 0, false},
    {"memory", "options", ANY, 0, 0, false},
    {"cores", "kind", ANY, 0, 0, false},
    {"link", "note", ANY, 0, 0, false},
    {"network", "note", ANY, 0, 0, false},
    {"pcie", "gen", ANY, 0, 0, false},
    {"pcie", "lanes", ANY, 0, 0, false},
};
static const char *const sections[] = {"memory", "peak", "cores", "link", "network", "pcie"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool same_section(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* "memory.capacity", for errors. */
static void name_key(const char *section, const char *key, char *out, size_t room)
{
    snprintf(out, room, "%s%s%.60s", section != NULL ? section : "", section != NULL ? "." : "",
             key);
}

/* ---- reading ---- */
/* The basis of a figure and its source: a key of `sources`, whose entry has text and date. */
static plm_status read_basis(const json_t *fig, const json_t *sources, const char *name,
                             const char *where, plm_basis *out, plm_error *err)
{
    static const struct {
        const char *name;
        plm_basis basis;
    } bases[] = {{"datasheet", PLM_BASIS_DATASHEET},
                 {"measured", PLM_BASIS_MEASURED},
                 {"inferred", PLM_BASIS_INFERRED}};
    const char *basis = NULL, *source = NULL, *text = NULL, *date = NULL;
    PLM_TRY(plm_json_text(fig, "basis", true, where, &basis, err));
    PLM_TRY(plm_json_text(fig, "source", true, where, &source, err));
    const json_t *entry = json_object_get(sources, source);
    if (!json_is_object(entry))
        return plm_fail(err, PLM_E_INVALID,
                        "unknown source \"%.40s\" of \"%s\", %s: not a key of \"sources\"; add it "
                        "there with text and date",
                        source, name, where);
    PLM_TRY(plm_json_text(entry, "text", true, where, &text, err));
    PLM_TRY(plm_json_text(entry, "date", true, where, &date, err));
    for (size_t i = 0; i < COUNT(bases); i++)
        if (strcmp(basis, bases[i].name) == 0) {
            *out = bases[i].basis;
            return PLM_OK;
        }
    return plm_fail(err, PLM_E_INVALID,
                    "bad basis \"%.40s\" of \"%s\", %s: unknown; write datasheet, measured or "
                    "inferred",
                    basis, name, where);
}

/* Value of a figure in base units (bytes, bytes/s, FLOP/s, Hz, W, s). */
static plm_status read_figure(const json_t *fig, const figure *f, const json_t *sources,
                              const char *where, double *out, plm_basis *basis, plm_error *err)
{
    char name[96];
    const char *unit = NULL;
    name_key(f->section, f->key, name, sizeof name);
    if (!json_is_object(fig))
        return plm_fail(err, PLM_E_INVALID,
                        "bad value of \"%s\", %s: a figure is an object; write {\"value\", "
                        "\"unit\", \"basis\", \"source\"}",
                        name, where);
    static const char *const keys[] = {"value", "unit", "basis", "source", "recalled", "note"};
    const char *key;
    json_t *unused;
    json_object_foreach((json_t *)fig, key, unused) {
        size_t i = 0;
        while (i < COUNT(keys) && strcmp(key, keys[i]) != 0)
            i++;
        if (i == COUNT(keys))
            return plm_fail(err, PLM_E_INVALID,
                            "unknown key \"%.60s\" of \"%s\", %s: a figure has value, unit, basis, "
                            "source, recalled, note; remove it",
                            key, name, where);
    }
    double value = 0;
    PLM_TRY(plm_json_double(fig, "value", true, 0, 1e15, where, &value, err));
    PLM_TRY(plm_json_text(fig, "unit", true, where, &unit, err));
    PLM_TRY(read_basis(fig, sources, name, where, basis, err));
    for (size_t i = 0; i < COUNT(units); i++)
        if (units[i].dim == f->dim && strcmp(unit, units[i].name) == 0) {
            *out = value * units[i].scale;
            return PLM_OK;
        }
    return plm_fail(err, PLM_E_INVALID,
                    "bad unit \"%.40s\" of \"%s\", %s: not a unit of that figure; see "
                    "catalog/README.md for those it may have",
                    unit, name, where);
}

static plm_status store_figure(const figure *f, double value, plm_basis basis, const char *where,
                               plm_device *d, scratch *s, plm_error *err)
{
    char *base = f->kind == SCRATCH_REAL ? (char *)s : (char *)d;
    double limit = f->kind == DEVICE_I32 ? INT32_MAX : 9e15;
    if ((f->kind == DEVICE_I32 || f->kind == DEVICE_I64) && value > limit)
        return plm_fail(err, PLM_E_INVALID, "bad value of \"%s\", %s: %g is too large; correct it",
                        f->key, where, value);
    int32_t i32 = f->kind == DEVICE_I32 ? (int32_t)value : 0;
    int64_t i64 = f->kind == DEVICE_I64 ? (int64_t)value : 0;
    switch (f->kind) {
    case DEVICE_I32: memcpy(base + f->offset, &i32, sizeof i32); break;
    case DEVICE_I64: memcpy(base + f->offset, &i64, sizeof i64); break;
    case DEVICE_REAL:
    case SCRATCH_REAL: memcpy(base + f->offset, &value, sizeof value); break;
    }
    if (f->basis != 0)
        memcpy((char *)d + f->basis, &basis, sizeof basis);
    return PLM_OK;
}

static plm_status read_plain(size_t row, const json_t *obj, const char *where, plm_device *d,
                             plm_error *err)
{
    char *at = (char *)d + plains[row].offset;
    const char *text = NULL;
    int64_t whole = 0;
    bool flag = false;
    switch (plains[row].kind) {
    case TEXT:
        PLM_TRY(plm_json_text(obj, plains[row].key, false, where, &text, err));
        if (text != NULL && strlen(text) >= plains[row].room)
            return plm_fail(err, PLM_E_INVALID,
                            "bad value of \"%s\", %s: longer than %zu characters; shorten it",
                            plains[row].key, where, plains[row].room - 1);
        if (text != NULL)
            memcpy(at, text, strlen(text) + 1);
        break;
    case FLAG:
        PLM_TRY(plm_json_bool(obj, plains[row].key, false, where, &flag, err));
        memcpy(at, &flag, sizeof flag);
        break;
    case WHOLE:
        PLM_TRY(plm_json_int(obj, plains[row].key, false, 1990, 2100, where, &whole, err));
        d->launch_year = (int32_t)whole;
        break;
    case ANY: break;
    }
    return PLM_OK;
}

/* Every key of one object of the record. section NULL = the record itself. */
static plm_status read_section(json_t *obj, const char *section, const json_t *sources,
                               const char *where, plm_device *d, scratch *s, plm_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(obj, key, value) {
        bool known = false;
        for (size_t i = 0; section == NULL && i < COUNT(sections) && !known; i++)
            known = strcmp(key, sections[i]) == 0;
        for (size_t i = 0; i < COUNT(plains) && !known; i++) {
            if (!same_section(section, plains[i].section) || strcmp(key, plains[i].key) != 0)
                continue;
            PLM_TRY(read_plain(i, obj, where, d, err));
            known = true;
        }
        for (size_t i = 0; i < COUNT(figures) && !known; i++) {
            const figure *f = &figures[i];
            if (!same_section(section, f->section) || strcmp(key, f->key) != 0)
                continue;
            double v = 0;
            plm_basis basis = PLM_BASIS_UNKNOWN;
            PLM_TRY(read_figure(value, f, sources, where, &v, &basis, err));
            PLM_TRY(store_figure(f, v, basis, where, d, s, err));
            known = true;
        }
        if (!known) {
            char name[96];
            name_key(section, key, name, sizeof name);
            return plm_fail(err, PLM_E_INVALID,
                            "unknown key \"%s\", %s: a device record has no such key; see "
                            "catalog/README.md",
                            name, where);
        }
    }
    return PLM_OK;
}

/* Fields that follow from others where the record does not state them:
**   clock: the one behind the peaks, else boost, else base;
**   vector rate: the fp32 peak (on matrix-only parts 0, unknown);
**   exp: stated; or rate a clock x cores x clock; or vector rate / 16, which is both the ratio of
**     an NVIDIA SM (16 ex2 to 256 FLOP a clock) and the cost of a polynomial exp in FMA;
**   GPU share of unified memory on Apple: 2/3 up to 36 GiB of RAM, 3/4 above (iogpu.wired_limit_mb
**     at its default 0; community measurements), else all of it;
**   link: PCIe where a card has no other. */
static void fill_derived(plm_device *d, const scratch *s)
{
    d->clock_hz = s->peak_hz > 0 ? s->peak_hz : s->boost_hz > 0 ? s->boost_hz : s->base_hz;
    d->vector_flop_s = s->vector_rate > 0 ? s->vector_rate : d->peak_flop_s[PLM_MATH_F32];
    double counted = s->exp_per_clock * d->sm_count * d->clock_hz;
    d->exp_s = s->exp_rate > 0 ? s->exp_rate : counted > 0 ? counted : d->vector_flop_s / 16;
    d->memory_limit_bytes = d->memory_bytes;
    if (s->gpu_limit > 0)
        d->memory_limit_bytes = s->gpu_limit;
    else if (strcmp(d->vendor, "apple") == 0 && strcmp(d->cls, "apu") == 0)
        d->memory_limit_bytes = d->memory_bytes * (d->memory_bytes <= 36 * GIB ? 2.0 / 3 : 0.75);
    bool card = strcmp(d->cls, "cpu") != 0;
    if (card && d->link_bytes_s <= 0 && d->link_type[0] == '\0' && d->pcie_bytes_s > 0) {
        d->link_bytes_s = d->pcie_bytes_s;
        d->link_latency_s = PCIE_LATENCY_S;
        memcpy(d->link_type, "PCIe", sizeof "PCIe");
    }
    if (d->node_devices == 0)
        d->node_devices = 1;
}

static plm_status read_record(json_t *root, const char *where, plm_device *out, plm_error *err)
{
    scratch s = {0};
    plm_device d;
    memset(&d, 0, sizeof d);
    if (!json_is_object(root))
        return plm_fail(err, PLM_E_INVALID,
                        "bad record, %s: not an object; see catalog/README.md for its form", where);
    for (size_t i = 0; i < COUNT(plains); i++)
        if (plains[i].need && json_object_get(root, plains[i].key) == NULL)
            return plm_fail(err, PLM_E_INVALID,
                            "missing key \"%s\", %s: a device record needs it; add it",
                            plains[i].key, where);
    const json_t *sources = json_object_get(root, "sources");
    PLM_TRY(read_section(root, NULL, sources, where, &d, &s, err));
    for (size_t i = 0; i < COUNT(sections); i++) {
        json_t *obj = json_object_get(root, sections[i]);
        if (obj != NULL && !json_is_object(obj))
            return plm_fail(err, PLM_E_INVALID,
                            "bad value of \"%s\", %s: want an object; correct it", sections[i],
                            where);
        if (obj != NULL)
            PLM_TRY(read_section(obj, sections[i], sources, where, &d, &s, err));
    }
    fill_derived(&d, &s);
    *out = d;
    return PLM_OK;
}

plm_status plm_device_from_record(const char *json, size_t bytes, const char *where,
                                  plm_device *out, plm_error *err)
{
    json_t *root = NULL;
    PLM_TRY(plm_json_parse(json, bytes, where, &root, err));
    plm_status status = read_record(root, where, out, err);
    json_decref(root);
    return status;
}

static bool is_path(const char *id)
{
    size_t n = strlen(id);
    return strchr(id, '/') != NULL || (n > 5 && strcmp(id + n - 5, ".json") == 0);
}

/* A record that may come from a user, so its physics are checked as the catalog's own are in tests. */
static plm_status load_text(const char *text, size_t bytes, const char *where, plm_device *out,
                            plm_error *err)
{
    PLM_TRY(plm_device_from_record(text, bytes, where, out, err));
    return plm_device_check(out, err);
}

plm_status plm_device_load(const plm_catalog *c, const char *id, plm_device *out, plm_error *err)
{
    char where[128];
    const plm_record *r = plm_catalog_find(c, "devices", id);
    if (r != NULL) {
        snprintf(where, sizeof where, "device %.100s", r->id);
        PLM_TRY(load_text(r->text, r->bytes, where, out, err));
        if (plm_id_equal(out->id, r->id))
            return PLM_OK;
        return plm_fail(err, PLM_E_INVALID, "id \"%.60s\", devices/%.80s.json: a record's id is the "
                        "name of its file; make them equal", out->id, r->id);
    }
    if (is_path(id)) {
        char *text = NULL;
        size_t bytes = 0;
        PLM_TRY(plm_file_read(id, MAX_RECORD_BYTES, &text, &bytes, err));
        snprintf(where, sizeof where, "%.120s", id);
        plm_status status = load_text(text, bytes, where, out, err);
        plm_free(text);
        return status;
    }
    const char *near = plm_catalog_nearest(c, "devices", id);
    return plm_fail(err, PLM_E_NOT_FOUND,
                    "unknown device, %.80s: no such record in the catalog%s%s%s; see plimsoll "
                    "devices, or give the path of a JSON record",
                    id, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                    near != NULL ? "?)" : "");
}

plm_status plm_device_split(const char *text, char *id, size_t cap, int64_t *count, plm_error *err)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (n == 0 || n >= cap)
        return plm_fail(err, PLM_E_INVALID,
                        "bad device, %.80s: %s; write ID or ID:COUNT", text,
                        n == 0 ? "the id is empty" : "the id is too long");
    int64_t k = colon != NULL ? 0 : 1;
    for (const char *p = colon != NULL ? colon + 1 : ""; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || k > MAX_COUNT) {
            k = 0;
            break;
        }
        k = k * 10 + (*p - '0');
    }
    if (k < 1 || k > MAX_COUNT)
        return plm_fail(err, PLM_E_INVALID,
                        "bad device count, %.80s: want 1 to %d after the colon; write ID:COUNT",
                        text, MAX_COUNT);
    memcpy(id, text, n);
    id[n] = '\0';
    *count = k;
    return PLM_OK;
}
