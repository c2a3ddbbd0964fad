/* options.c - parsing from the one option table (options.def). */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/mem.h"

enum {
#define PLM_COMMAND(id, ...) id = 1 << PLM_CMD_##id,
#include "cli/commands.def"
#undef PLM_COMMAND
    ALL = (1 << PLM_CMD_COUNT) - 1
};

static const plm_option options[PLM_OPT_COUNT] = {
#define PLM_OPTION(id, name, letter, kind, meta, commands, help)                                   \
    [PLM_OPT_##id] = {name, meta, help, letter, PLM_KIND_##kind, (uint32_t)(commands)},
#include "cli/options.def"
#undef PLM_OPTION
};

static const char *const command_names[PLM_CMD_COUNT] = {
#define PLM_COMMAND(id, name, ...) [PLM_CMD_##id] = name,
#include "cli/commands.def"
#undef PLM_COMMAND
};

const plm_option *plm_option_get(plm_option_id id)
{
    return &options[id];
}

const char *plm_command_name(plm_command_id id)
{
    return command_names[id];
}

plm_command_id plm_command_find(const char *name)
{
    for (int i = 0; i < PLM_CMD_COUNT; i++)
        if (strcmp(name, command_names[i]) == 0)
            return (plm_command_id)i;
    return PLM_CMD_COUNT;
}

plm_option_id plm_option_find(const char *name, size_t n)
{
    for (int i = 0; i < PLM_OPT_COUNT; i++) {
        const char *o = options[i].name;
        size_t k = 0;
        while (k < n && o[k] != '\0' && (o[k] == name[k] || (o[k] == '-' && name[k] == '_')))
            k++;
        if (k == n && o[k] == '\0')
            return (plm_option_id)i;
    }
    return PLM_OPT_COUNT;
}

/* ---- numbers with units ---- */

typedef struct unit {
    const char *suffix;
    double factor;
} unit;

static const unit count_units[] = {{"", 1},          {"k", 1e3},         {"K", 1e3},
                                   {"Ki", 1024},     {"M", 1e6},         {"Mi", 1048576},
                                   {"G", 1e9},       {"Gi", 1073741824}, {NULL, 0}};
static const unit size_units[] = {
    {"", 1},           {"B", 1},           {"kB", 1e3},         {"KB", 1e3},
    {"KiB", 1024},     {"MB", 1e6},        {"MiB", 1048576},    {"GB", 1e9},
    {"GiB", 1073741824}, {"TB", 1e12},     {"TiB", 1099511627776.0}, {"k", 1e3},
    {"Ki", 1024},      {"M", 1e6},         {"Mi", 1048576},     {"G", 1e9},
    {"Gi", 1073741824}, {NULL, 0}};
static const unit time_units[] = {{"s", 1},     {"", 1},      {"ms", 1e-3}, {"us", 1e-6},
                                  {"min", 60},  {"m", 60},    {"h", 3600},  {NULL, 0}};

static plm_status bad_number(const char *what, const char *text, const char *want, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "bad number, %s: \"%.60s\" is not %s; correct it", what,
                    text, want);
}

/* A plain decimal number >= 0 followed by one of the suffixes. Hexadecimal, "inf" and "nan", which
** strtod takes, are refused. */
static plm_status parse_unit(const char *text, const unit *units, const char *what,
                             const char *want, double *out, plm_error *err)
{
    if (text[0] == '-')
        return plm_fail(err, PLM_E_INVALID, "negative number, %s: \"%.60s\"; give %s", what, text,
                        want);
    if (!(isdigit((unsigned char)text[0]) ||
          (text[0] == '.' && isdigit((unsigned char)text[1]))) ||
        (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')))
        return bad_number(what, text, want, err);
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    if (!isfinite(x) || errno == ERANGE)
        return bad_number(what, text, want, err);
    for (const unit *u = units; u->suffix != NULL; u++)
        if (strcmp(end, u->suffix) == 0) {
            *out = x * u->factor;
            return PLM_OK;
        }
    return bad_number(what, text, want, err);
}

static plm_status to_integer(double x, const char *text, const char *what, const char *want,
                             int64_t *out, plm_error *err)
{
    if (x >= 9007199254740992.0)
        return plm_fail(err, PLM_E_INVALID, "number too large, %s: \"%.60s\"; give less than 2^53",
                        what, text);
    if (x != floor(x))
        return bad_number(what, text, want, err);
    *out = (int64_t)x;
    return PLM_OK;
}

plm_status plm_parse_count(const char *text, const char *what, int64_t *out, plm_error *err)
{
    static const char want[] = "a whole number such as 512, 8k or 32Ki";
    double x;
    PLM_TRY(parse_unit(text, count_units, what, want, &x, err));
    return to_integer(x, text, what, want, out, err);
}

plm_status plm_parse_size(const char *text, const char *what, int64_t *out, plm_error *err)
{
    static const char want[] = "a size such as 16GiB, 16GB or 4920734272";
    double x;
    PLM_TRY(parse_unit(text, size_units, what, want, &x, err));
    if (x < 1024 && x != floor(x)) /* of larger ones a fraction of a byte is dropped */
        return bad_number(what, text, want, err);
    return to_integer(floor(x), text, what, want, out, err);
}

plm_status plm_parse_time(const char *text, const char *what, double *out, plm_error *err)
{
    return parse_unit(text, time_units, what, "a time such as 25ms, 1.5s or 2h", out, err);
}

plm_status plm_parse_real(const char *text, const char *what, double *out, plm_error *err)
{
    static const unit none[] = {{"", 1}, {NULL, 0}};
    return parse_unit(text, none, what, "a number such as 2.49", out, err);
}

/* ---- options ---- */

/* Numbers that no question needs, by option; those that depend on the model, the device or the
** command are judged there. A target of zero or a rate of zero would ask for nothing. */
static const struct {
    plm_option_id id;
    double lo, hi;
    const char *range;
} limits[] = {
    {PLM_OPT_TTFT, 1e-6, 1e6, "1us to 1000000s"},
    {PLM_OPT_ITL, 1e-6, 1e6, "1us to 1000000s"},
    {PLM_OPT_RATE, 1e-6, 1e9, "0.000001 to 1000000000 requests a second"},
    {PLM_OPT_PRICE, 0, 1e6, "0 to 1000000 dollars an hour"},
    {PLM_OPT_UTILISATION, 1e-3, 1, "0.001 to 1"},
    {PLM_OPT_MEMORY_FRACTION, 1e-2, 1, "0.01 to 1"},
    {PLM_OPT_ISL, 1, 1e8, "1 to 100M tokens"},
    {PLM_OPT_OSL, 1, 1e8, "1 to 100M tokens"},
    {PLM_OPT_GPUS, 1, 4096, "1 to 4096 devices"},
    {PLM_OPT_TOP, 1, 1e6, "1 to 1M rows"},
    {PLM_OPT_LORA_RANK, 1, 65536, "1 to 65536"},
};

static plm_status check_limits(plm_option_id id, const plm_option_value *v, const char *text,
                               plm_error *err)
{
    plm_option_kind kind = options[id].kind;
    double x = kind == PLM_KIND_REAL || kind == PLM_KIND_TIME ? v->real : (double)v->count;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].id == id && !(x >= limits[i].lo && x <= limits[i].hi))
            return plm_fail(err, PLM_E_INVALID, "out of range, --%s: \"%.60s\" is not within %s; "
                            "correct it", options[id].name, text, limits[i].range);
    return PLM_OK;
}

plm_status plm_args_set(plm_args *a, plm_option_id id, const char *text, plm_error *err)
{
    const plm_option *o = &options[id];
    char what[64] = "--";
    strncat(what, o->name, sizeof what - 3);
    if ((o->commands & (1u << a->command)) == 0)
        return plm_fail(err, PLM_E_INVALID,
                        "option does not belong here, %s: %s does not take it; see plimsoll %s --help",
                        what, command_names[a->command], command_names[a->command]);
    plm_option_value *v = &a->opt[id];
    if (v->set)
        return plm_fail(err, PLM_E_INVALID, "given twice, %s: \"%.60s\" and \"%.60s\"; keep one",
                        what, v->text ? v->text : "", text ? text : "");
    switch (o->kind) {
    case PLM_KIND_FLAG:
        break;
    case PLM_KIND_TEXT:
        if (text[0] == '\0' && id != PLM_OPT_TEXT) /* an empty text is a text */
            return plm_fail(err, PLM_E_INVALID, "empty value, %s: want %s; give one", what,
                            o->meta);
        break;
    case PLM_KIND_COUNT:
        PLM_TRY(plm_parse_count(text, what, &v->count, err));
        break;
    case PLM_KIND_SIZE:
        PLM_TRY(plm_parse_size(text, what, &v->count, err));
        break;
    case PLM_KIND_TIME:
        PLM_TRY(plm_parse_time(text, what, &v->real, err));
        break;
    case PLM_KIND_REAL:
        PLM_TRY(plm_parse_real(text, what, &v->real, err));
        break;
    }
    PLM_TRY(check_limits(id, v, text, err));
    v->set = true;
    v->text = text;
    return PLM_OK;
}

/* The long option nearest to an unknown one: longest common beginning of at least two letters. */
static const char *nearest_option(const plm_args *a, const char *name)
{
    const char *best = NULL;
    size_t longest = 1;
    for (int i = 0; i < PLM_OPT_COUNT; i++) {
        if ((options[i].commands & (1u << a->command)) == 0)
            continue;
        size_t k = 0;
        while (name[k] != '\0' && name[k] == options[i].name[k])
            k++;
        if (k > longest) {
            longest = k;
            best = options[i].name;
        }
    }
    return best;
}

static plm_status unknown_option(const plm_args *a, const char *arg, plm_error *err)
{
    const char *near = nearest_option(a, arg[0] == '-' && arg[1] == '-' ? arg + 2 : arg);
    if (near != NULL)
        return plm_fail(err, PLM_E_INVALID, "unknown option, %.80s: did you mean --%s; see "
                        "plimsoll %s --help", arg, near, command_names[a->command]);
    return plm_fail(err, PLM_E_INVALID, "unknown option, %.80s: %s does not have it; see plimsoll "
                    "%s --help", arg, command_names[a->command], command_names[a->command]);
}

static plm_option_id find_letter(char c)
{
    for (int i = 0; i < PLM_OPT_COUNT; i++)
        if (options[i].letter != 0 && options[i].letter == c)
            return (plm_option_id)i;
    return PLM_OPT_COUNT;
}

/* Whether the command takes a text without a name. */
static bool takes_text(const plm_args *a)
{
    return (options[PLM_OPT_TEXT].commands & (1u << a->command)) != 0;
}

/* Commands may have different options of one name (--prompt); the one that this command takes. */
static plm_option_id of_command(const plm_args *a, plm_option_id id)
{
    for (int i = 0; i < PLM_OPT_COUNT; i++)
        if (strcmp(options[i].name, options[id].name) == 0 &&
            (options[i].commands & (1u << a->command)) != 0)
            return (plm_option_id)i;
    return id;
}

plm_status plm_args_parse(plm_args *a, int argc, char **argv, plm_error *err)
{
    bool names = true; /* "--" ends the named ones */
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i], *value = NULL;
        plm_option_id id = PLM_OPT_COUNT;
        bool bare = !names || arg[0] != '-' || arg[1] == '\0';
        if (names && takes_text(a) && strcmp(arg, "--") == 0) {
            names = false;
            continue;
        }
        if (bare && takes_text(a)) {
            PLM_TRY(plm_args_set(a, PLM_OPT_TEXT, arg, err));
            continue;
        }
        if (arg[0] == '-' && arg[1] == '-' && arg[2] != '\0') {
            const char *eq = strchr(arg, '=');
            id = plm_option_find(arg + 2, eq ? (size_t)(eq - arg - 2) : strlen(arg + 2));
            value = eq ? eq + 1 : NULL;
        } else if (arg[0] == '-' && arg[1] != '\0') {
            id = find_letter(arg[1]);
            value = arg[2] != '\0' ? arg + 2 : NULL;
        } else {
            return plm_fail(err, PLM_E_INVALID, "unexpected argument, \"%.80s\": %s takes options "
                            "only; see plimsoll %s --help", arg, command_names[a->command],
                            command_names[a->command]);
        }
        if (id == PLM_OPT_COUNT)
            return unknown_option(a, arg, err);
        id = of_command(a, id);
        if (options[id].kind == PLM_KIND_FLAG) {
            if (value != NULL)
                return plm_fail(err, PLM_E_INVALID, "value not wanted, --%s: it is a switch; drop "
                                "\"%.60s\"", options[id].name, value);
        } else if (value == NULL) {
            if (i + 1 >= argc)
                return plm_fail(err, PLM_E_INVALID, "value missing, --%s: want %s; give one",
                                options[id].name, options[id].meta);
            value = argv[++i];
        }
        PLM_TRY(plm_args_set(a, id, value, err));
    }
    return PLM_OK;
}

int64_t plm_args_count(const plm_args *a, plm_option_id id, int64_t otherwise)
{
    return a->opt[id].set ? a->opt[id].count : otherwise;
}

double plm_args_real(const plm_args *a, plm_option_id id, double otherwise)
{
    return a->opt[id].set ? a->opt[id].real : otherwise;
}

const char *plm_args_text(const plm_args *a, plm_option_id id, const char *otherwise)
{
    return a->opt[id].set ? a->opt[id].text : otherwise;
}
