#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"

static plm_status fail_errno(plm_error *err, const char *path, int number)
{
    return plm_fail(err, PLM_E_IO, "cannot read, %s: %s; check the path and its permissions", path,
                    strerror(number));
}

plm_status plm_file_map(const char *path, plm_file *out, plm_error *err)
{
    out->data = NULL;
    out->bytes = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_errno(err, path, errno);
    struct stat st;
    plm_status status = PLM_OK;
    if (fstat(fd, &st) != 0) {
        status = fail_errno(err, path, errno);
    } else if (!S_ISREG(st.st_mode)) {
        status = plm_fail(err, PLM_E_IO, "cannot read, %s: not a regular file; name a file", path);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            status = fail_errno(err, path, errno);
        } else {
            out->data = p;
            out->bytes = (size_t)st.st_size;
        }
    }
    close(fd);
    return status;
}

void plm_file_unmap(plm_file *f)
{
    if (f->data != NULL)
        munmap((void *)(uintptr_t)f->data, f->bytes);
    f->data = NULL;
    f->bytes = 0;
}

plm_status plm_file_read(const char *path, size_t max_bytes, char **text, size_t *bytes,
                         plm_error *err)
{
    *text = NULL;
    *bytes = 0;
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    if (in == NULL)
        return fail_errno(err, path, errno);
    size_t room = 0, n = 0;
    char *buf = NULL;
    plm_status status = PLM_OK;
    for (;;) {
        if (n + 1 >= room) {
            size_t want = room ? room * 2 : 16384;
            char *bigger = plm_realloc(buf, want);
            if (bigger == NULL) {
                status = plm_fail_memory(err, path);
                break;
            }
            buf = bigger;
            room = want;
        }
        size_t got = fread(buf + n, 1, room - n - 1, in);
        n += got;
        if (n > max_bytes) {
            status = plm_fail(err, PLM_E_LIMIT, "file too large, %s: more than %zu bytes; split it",
                              path, max_bytes);
            break;
        }
        if (got == 0) {
            if (ferror(in))
                status = fail_errno(err, path, errno);
            break;
        }
    }
    if (in != stdin)
        fclose(in);
    if (status != PLM_OK) {
        plm_free(buf);
        return status;
    }
    buf[n] = '\0';
    *text = buf;
    *bytes = n;
    return PLM_OK;
}
