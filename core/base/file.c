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
    return plm_fail(err, PLM_E_IO, "cannot read, %.200s: %s; check the path and its permissions", path,
                    strerror(number));
}

/* Opens a regular file; *bytes is its size. Anything else is refused: a pipe or a terminal could be
** waited for without end, a device read without end. */
static plm_status open_file(const char *path, int *out, off_t *bytes, plm_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int number = errno;
        if (fd >= 0)
            close(fd);
        return fail_errno(err, path, number);
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return plm_fail(err, PLM_E_IO, "cannot read, %.200s: %s; name a file", path,
                        S_ISDIR(st.st_mode) ? "it is a folder" : "not a regular file");
    }
    *out = fd;
    *bytes = st.st_size;
    return PLM_OK;
}

plm_status plm_file_map(const char *path, plm_file *out, plm_error *err)
{
    out->data = NULL;
    out->bytes = 0;
    int fd;
    off_t size;
    plm_status status = PLM_OK;
    PLM_TRY(open_file(path, &fd, &size, err));
    if (size > 0) {
        void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            status = fail_errno(err, path, errno);
        } else {
            out->data = p;
            out->bytes = (size_t)size;
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

static plm_status fail_large(const char *path, size_t max_bytes, plm_error *err)
{
    return plm_fail(err, PLM_E_LIMIT, "file too large, %.200s: more than %zu bytes; split it", path,
                    max_bytes);
}

static plm_status open_text(const char *path, size_t max_bytes, FILE **out, plm_error *err)
{
    int fd;
    off_t size;
    PLM_TRY(open_file(path, &fd, &size, err));
    if ((uint64_t)size > max_bytes) {
        close(fd);
        return fail_large(path, max_bytes, err);
    }
    *out = fdopen(fd, "rb");
    if (*out != NULL)
        return PLM_OK;
    close(fd);
    return plm_fail_memory(err, path);
}

plm_status plm_file_read(const char *path, size_t max_bytes, char **text, size_t *bytes,
                         plm_error *err)
{
    *text = NULL;
    *bytes = 0;
    FILE *in = stdin;
    if (strcmp(path, "-") != 0)
        PLM_TRY(open_text(path, max_bytes, &in, err));
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
            status = fail_large(path, max_bytes, err);
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
