/* file.h - whole files, mapped read-only or read with a maximum. */
#ifndef PLM_BASE_FILE_H
#define PLM_BASE_FILE_H
#include <stddef.h>

#include "core/base/status.h"

typedef struct plm_file {
    const unsigned char *data; /* not NUL-terminated; NULL when bytes == 0 */
    size_t bytes;
} plm_file;

/* Maps a regular file. Directories, pipes and devices are refused. PLM_E_IO when it cannot be
** read. The file must not shrink while mapped. */
plm_status plm_file_map(const char *path, plm_file *out, plm_error *err) PLM_MUST_USE;
void plm_file_unmap(plm_file *f);
/* Reads a whole regular file (or "-", standard input) of at most max_bytes into a NUL-terminated heap
** block that the caller frees with plm_free. */
plm_status plm_file_read(const char *path, size_t max_bytes, char **text, size_t *bytes,
                         plm_error *err) PLM_MUST_USE;

#endif
