/* help.c - help, the man page and shell completion, all from options.def and commands.def. */
#include <string.h>

#include "cli/cli.h"

typedef struct command_text {
    const char *name, *summary, *example, *answers;
} command_text;

static const command_text texts[PLM_CMD_COUNT] = {
#define PLM_COMMAND(id, name, function, summary, example, answers)                                 \
    [PLM_CMD_##id] = {name, summary, example, answers},
#include "cli/commands.def"
#undef PLM_COMMAND
};

static bool takes(plm_command_id c, int option)
{
    return (plm_option_get((plm_option_id)option)->commands & (1u << c)) != 0;
}

void plm_help_all(FILE *out)
{
    fprintf(out,
            "plimsoll " PLM_VERSION ": how hard a machine may be loaded with a language model\n\n"
            "usage: plimsoll COMMAND [options]\n\n");
    for (int i = 0; i < PLM_CMD_COUNT; i++)
        fprintf(out, "  %-10s %s\n", texts[i].name, texts[i].summary);
    fprintf(out,
            "\n  plimsoll COMMAND --help    options and an example\n"
            "  plimsoll --man             the manual page\n"
            "  plimsoll --completion bash|zsh|fish\n"
            "  plimsoll --version\n\nexample:\n  %s\n",
            texts[PLM_CMD_PREDICT].example);
}

/* Text wrapped at 100 columns; the first line starts at column `at`, the others at `indent`. */
static void wrap(FILE *out, const char *text, size_t at, size_t indent)
{
    bool first = true;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (at + 1 + n > 99 && at > indent) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        if (!first)
            fputc(' ', out);
        fwrite(text, 1, n, out);
        at += n + !first;
        first = false;
        text += n + (text[n] == ' ');
    }
    fputc('\n', out);
}

void plm_help_command(plm_command_id id, FILE *out)
{
    const command_text *t = &texts[id];
    fprintf(out, "plimsoll %s: %s\n\n", t->name, t->summary);
    wrap(out, t->answers, 0, 0);
    fprintf(out, "\noptions:\n");
    for (int i = 0; i < PLM_OPT_COUNT; i++) {
        if (!takes(id, i))
            continue;
        const plm_option *o = plm_option_get((plm_option_id)i);
        int n = o->letter != 0 ? fprintf(out, "  -%c, --%s %s", o->letter, o->name, o->meta)
                               : fprintf(out, "      --%s %s", o->name, o->meta);
        if (n > 37) {
            fprintf(out, "\n");
            n = 0;
        }
        fprintf(out, "%*s", 38 - n, "");
        wrap(out, o->help, 38, 38);
    }
    fprintf(out, "\nexample:\n  %s\n", t->example);
}

/* Text as roff: a leading dot or quote and every dash and backslash escaped. */
static void roff(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text != '\0'; text++) {
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            fputc(*text, out);
    }
    fputc('\n', out);
}

void plm_help_man(FILE *out)
{
    fputs(".TH PLIMSOLL 1 \"\" \"plimsoll " PLM_VERSION "\" \"User Commands\"\n.SH NAME\n", out);
    roff(out, "plimsoll - how hard a machine may be loaded with a language model");
    fputs(".SH SYNOPSIS\n.B plimsoll\n.I COMMAND\n[options]\n.SH DESCRIPTION\n", out);
    roff(out, "Plimsoll answers whether a model fits, how fast it will be, which parallel plan and "
              "batch meet the targets, and what a token costs. Sizes: 16GiB and 16GB differ and "
              "both work; counts take k = 1000 and Ki = 1024; times take ms, s, h.");
    for (int c = 0; c < PLM_CMD_COUNT; c++) {
        fprintf(out, ".SH \"COMMAND: %s\"\n", texts[c].name);
        roff(out, texts[c].summary);
        fputs(".PP\n", out);
        roff(out, texts[c].answers);
        for (int i = 0; i < PLM_OPT_COUNT; i++) {
            if (!takes((plm_command_id)c, i))
                continue;
            const plm_option *o = plm_option_get((plm_option_id)i);
            fputs(".TP\n.B ", out);
            if (o->letter != 0)
                fprintf(out, "\\-%c, ", o->letter);
            fprintf(out, "\\-\\-%s%s%s\n", o->name, o->meta[0] != '\0' ? " " : "", o->meta);
            roff(out, o->help);
        }
        fputs(".PP\nExample:\n.PP\n.nf\n", out);
        roff(out, texts[c].example);
        fputs(".fi\n", out);
    }
    fputs(".SH EXIT STATUS\n0 answered; 1 the answer is no; 2 bad usage or bad input; 3 trouble of "
          "the machine.\n.SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colour on a terminal.\n",
          out);
}

static void complete_bash(FILE *out)
{
    fputs("_plimsoll() {\n  local cur=${COMP_WORDS[COMP_CWORD]}\n"
          "  if [ \"$COMP_CWORD\" = 1 ]; then COMPREPLY=($(compgen -W \"",
          out);
    for (int c = 0; c < PLM_CMD_COUNT; c++)
        fprintf(out, "%s ", texts[c].name);
    fputs("\" -- \"$cur\")); return; fi\n  case ${COMP_WORDS[1]} in\n", out);
    for (int c = 0; c < PLM_CMD_COUNT; c++) {
        fprintf(out, "  %s) COMPREPLY=($(compgen -W \"", texts[c].name);
        for (int i = 0; i < PLM_OPT_COUNT; i++)
            if (takes((plm_command_id)c, i))
                fprintf(out, "--%s ", plm_option_get((plm_option_id)i)->name);
        fputs("\" -- \"$cur\"));;\n", out);
    }
    fputs("  esac\n}\ncomplete -o default -F _plimsoll plimsoll\n", out);
}

static void complete_zsh(FILE *out)
{
    fputs("#compdef plimsoll\n_plimsoll() {\n  if (( CURRENT == 2 )); then compadd", out);
    for (int c = 0; c < PLM_CMD_COUNT; c++)
        fprintf(out, " %s", texts[c].name);
    fputs("; return; fi\n  case $words[2] in\n", out);
    for (int c = 0; c < PLM_CMD_COUNT; c++) {
        fprintf(out, "  %s) compadd --", texts[c].name);
        for (int i = 0; i < PLM_OPT_COUNT; i++)
            if (takes((plm_command_id)c, i))
                fprintf(out, " --%s", plm_option_get((plm_option_id)i)->name);
        fputs("; _files ;;\n", out);
    }
    fputs("  esac\n}\n_plimsoll \"$@\"\n", out);
}

static void complete_fish(FILE *out)
{
    for (int c = 0; c < PLM_CMD_COUNT; c++) {
        fprintf(out, "complete -c plimsoll -n __fish_use_subcommand -a %s -d \"%s\"\n",
                texts[c].name, texts[c].summary);
        for (int i = 0; i < PLM_OPT_COUNT; i++) {
            const plm_option *o = plm_option_get((plm_option_id)i);
            if (takes((plm_command_id)c, i))
                fprintf(out, "complete -c plimsoll -n \"__fish_seen_subcommand_from %s\" -l %s%s\n",
                        texts[c].name, o->name, o->kind == PLM_KIND_FLAG ? "" : " -r");
        }
    }
}

plm_status plm_help_completion(const char *shell, FILE *out, plm_error *err)
{
    if (strcmp(shell, "bash") == 0)
        complete_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        complete_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        complete_fish(out);
    else
        return plm_fail(err, PLM_E_INVALID,
                        "unknown shell, --completion: \"%.40s\"; give bash, zsh or fish", shell);
    return PLM_OK;
}
