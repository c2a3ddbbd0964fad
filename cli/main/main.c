/* main.c - the program: the command line on the process's own streams. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    bool terminal = isatty(STDERR_FILENO) != 0;
    const char *no_color = getenv("NO_COLOR");
    plm_io io = {stdout, stderr, terminal && (no_color == NULL || *no_color == '\0'), terminal};
    return plm_cli_main(argc, argv, &io);
}
