/* ops_doc.c - prints docs/ops.md from core/ir/ops.def and core/ir/attrs.def (scripts/ops_doc.sh).
** A host program; part of no library. */
#include <stdio.h>

/* '|' would end a table's cell. */
static void cell(const char *text)
{
    printf("| ");
    for (; *text != '\0'; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
    printf(" ");
}

static void code(const char *text)
{
    printf("| ");
    if (*text != '\0') {
        printf("`");
        for (; *text != '\0'; text++)
            printf(*text == '|' ? "\\|" : "%c", *text);
        printf("`");
    }
    printf(" ");
}

int main(void)
{
    puts("# Ops\n\n"
         "Made by `scripts/ops_doc.sh` from `core/ir/ops.def` and `core/ir/attrs.def`; change those, "
         "not this page.\n\n"
         "T tokens, S sequences, R logit rows, E routed pairs, C cache slots, H heads, G KV heads, "
         "X experts. `?` marks an optional input. Rows are tokens, the innermost dim is last.\n\n"
         "| op | inputs | outputs | attributes | class | flags | what it computes |\n"
         "|---|---|---|---|---|---|---|");
#define PLM_OP(id, name, min_in, max_in, n_out, flags, cls, shape, work, oracle, inputs, attrs,    \
               doc)                                                                                \
    code(name);                                                                                    \
    code(inputs);                                                                                  \
    cell(#n_out);                                                                                  \
    cell(attrs);                                                                                   \
    cell(#cls);                                                                                    \
    flags_cell(#flags);                                                                            \
    cell(doc);                                                                                     \
    puts("|");
#define flags_cell(text) cell((text)[0] == '0' ? "" : (text))
#include "core/ir/ops.def"
#undef PLM_OP
    puts("\n## Attributes\n\nF: real, I: integer.\n\n| attribute | type | meaning |\n|---|---|---|");
#define PLM_ATTR(id, name, type, doc)                                                              \
    code(name);                                                                                    \
    cell(#type);                                                                                   \
    cell(doc);                                                                                     \
    puts("|");
#include "core/ir/attrs.def"
#undef PLM_ATTR
    return 0;
}
