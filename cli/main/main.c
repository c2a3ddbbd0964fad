/* main.c - the program: the command line on the process's own streams. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

/* A stream that was closed before the start must not become a file that is opened later: its number
** is taken by /dev/null, opened so that using the stream fails as it would have. */
static void hold_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    hold_streams();
    bool terminal = isatty(STDERR_FILENO) != 0;
    const char *no_color = getenv("NO_COLOR");
    plm_io io = {stdout, stderr, terminal && (no_color == NULL || *no_color == '\0'), terminal};
    return plm_cli_main(argc, argv, &io);
}
