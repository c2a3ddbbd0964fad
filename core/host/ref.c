/* ref.c - the reference backend's table: one device, memory of the host, everything in order at once. */
#include "core/host/ref.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/host/ref_parts.h"
#include "core/host/ref_table.h"

struct plm_backend_device {
    int open;
};
struct plm_backend_stream {
    int open;
};
struct plm_backend_event {
    uint64_t ns;
};

static plm_status device_count(uint32_t *out, plm_error *err)
{
    (void)err;
    *out = 1;
    return PLM_OK;
}

static plm_status device_open(uint32_t index, plm_backend_device **out, plm_error *err)
{
    *out = NULL;
    if (index != 0)
        return plm_fail(err, PLM_E_NO_DEVICE, "reference backend, device %u: it has one; give 0",
                        index);
    *out = plm_calloc(1, sizeof **out);
    return *out != NULL ? PLM_OK : plm_fail_memory(err, "a device");
}

static void device_close(plm_backend_device *dev)
{
    plm_free(dev);
}

static plm_status device_info(plm_backend_device *dev, plm_backend_device_info *out, plm_error *err)
{
    (void)dev;
    (void)err;
    uint32_t size = out->struct_size;
    plm_backend_device_info info = {.struct_size = size,
                                    .kind = PLM_BACKEND_CPU,
                                    .caps = PLM_BACKEND_CAP_HOST_MEMORY |
                                            PLM_BACKEND_CAP_TIMESTAMPS,
                                    .buffer_align = 1,
                                    .buffer_max_bytes = INT64_MAX,
                                    .tick_ps = 1000,
                                    .streams_max = 1,
                                    .name = "reference (scalar, double)",
                                    .id = "ref",
                                    .driver = "built in"};
    memcpy(out, &info, size < sizeof info ? size : sizeof info);
    return PLM_OK;
}

/* ---- memory ---- */

static plm_status new_buffer(unsigned char *data, uint64_t bytes, bool own,
                             plm_backend_buffer **out, plm_error *err)
{
    *out = plm_calloc(1, sizeof **out);
    if (*out == NULL)
        return plm_fail_memory(err, "a buffer");
    **out = (plm_backend_buffer){data, bytes, own};
    return PLM_OK;
}

static plm_status buffer_alloc(plm_backend_device *dev, uint64_t bytes, uint32_t usage,
                               plm_backend_buffer **out, plm_error *err)
{
    (void)dev;
    (void)usage;
    *out = NULL;
    unsigned char *data = bytes <= (uint64_t)PTRDIFF_MAX ? plm_malloc((size_t)bytes) : NULL;
    if (data == NULL)
        return plm_fail(err, PLM_E_NO_MEMORY, "out of memory, buffer of %llu bytes: an allocation "
                        "failed; free memory or ask for less", (unsigned long long)bytes);
    plm_status status = new_buffer(data, bytes, true, out, err);
    if (status != PLM_OK)
        plm_free(data);
    return status;
}

static plm_status buffer_import(plm_backend_device *dev, const void *host, uint64_t bytes,
                                uint32_t usage, plm_backend_buffer **out, plm_error *err)
{
    (void)dev;
    (void)usage;
    union { /* weights are never written, so the const may go */
        const void *in;
        unsigned char *out;
    } u = {host};
    return new_buffer(u.out, bytes, false, out, err);
}

static void buffer_free(plm_backend_buffer *buf)
{
    if (buf != NULL && buf->own)
        plm_free(buf->data);
    plm_free(buf);
}

static plm_status check_range(const plm_backend_buffer *b, uint64_t offset, uint64_t bytes,
                              plm_error *err)
{
    if (offset > b->bytes || bytes > b->bytes - offset)
        return plm_fail(err, PLM_E_INVALID, "buffer of %llu bytes: bytes %llu to %llu lie outside; "
                        "correct the range", (unsigned long long)b->bytes,
                        (unsigned long long)offset, (unsigned long long)(offset + bytes));
    return PLM_OK;
}

static plm_status upload(plm_backend_stream *s, plm_backend_buffer *dst, uint64_t offset,
                         const void *src, uint64_t bytes, plm_error *err)
{
    (void)s;
    PLM_TRY(check_range(dst, offset, bytes, err));
    if (bytes > 0)
        memcpy(dst->data + offset, src, (size_t)bytes);
    return PLM_OK;
}

static plm_status download(plm_backend_stream *s, void *dst, const plm_backend_buffer *src,
                           uint64_t offset, uint64_t bytes, plm_error *err)
{
    (void)s;
    PLM_TRY(check_range(src, offset, bytes, err));
    if (bytes > 0)
        memcpy(dst, src->data + offset, (size_t)bytes);
    return PLM_OK;
}

static plm_status copy(plm_backend_stream *s, plm_backend_buffer *dst, uint64_t dst_offset,
                       const plm_backend_buffer *src, uint64_t src_offset, uint64_t bytes,
                       plm_error *err)
{
    (void)s;
    PLM_TRY(check_range(dst, dst_offset, bytes, err));
    PLM_TRY(check_range(src, src_offset, bytes, err));
    if (bytes > 0)
        memmove(dst->data + dst_offset, src->data + src_offset, (size_t)bytes);
    return PLM_OK;
}

static plm_status fill_zero(plm_backend_stream *s, plm_backend_buffer *dst, uint64_t offset,
                            uint64_t bytes, plm_error *err)
{
    (void)s;
    PLM_TRY(check_range(dst, offset, bytes, err));
    if (bytes > 0)
        memset(dst->data + offset, 0, (size_t)bytes);
    return PLM_OK;
}

/* ---- order and time ---- */

static plm_status stream_create(plm_backend_device *dev, plm_backend_stream **out, plm_error *err)
{
    (void)dev;
    *out = plm_calloc(1, sizeof **out);
    return *out != NULL ? PLM_OK : plm_fail_memory(err, "a stream");
}

static void stream_destroy(plm_backend_stream *s)
{
    plm_free(s);
}

static plm_status stream_sync(plm_backend_stream *s, plm_error *err)
{
    (void)s;
    (void)err;
    return PLM_OK;
}

static plm_status event_create(plm_backend_device *dev, plm_backend_event **out, plm_error *err)
{
    (void)dev;
    *out = plm_calloc(1, sizeof **out);
    return *out != NULL ? PLM_OK : plm_fail_memory(err, "an event");
}

static void event_destroy(plm_backend_event *ev)
{
    plm_free(ev);
}

static plm_status event_record(plm_backend_stream *s, plm_backend_event *ev, plm_error *err)
{
    (void)s;
    (void)err;
    ev->ns = ref_now_ns();
    return PLM_OK;
}

static plm_status event_wait(plm_backend_stream *s, plm_backend_event *ev, plm_error *err)
{
    (void)s;
    (void)ev;
    (void)err;
    return PLM_OK;
}

static plm_status event_elapsed_ns(plm_backend_event *from, plm_backend_event *to, uint64_t *out,
                                   plm_error *err)
{
    (void)err;
    *out = to->ns >= from->ns ? to->ns - from->ns : 0;
    return PLM_OK;
}

static void close_table(void)
{
}

static const plm_backend table = {
    .struct_size = sizeof table,
    .major = PLM_BACKEND_MAJOR,
    .minor = PLM_BACKEND_MINOR,
    .n_ops = PLM_BACKEND_OPS,
    .name = "ref",
    .version = PLM_VERSION,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_info = device_info,
    .supports = ref_supports,
    .buffer_alloc = buffer_alloc,
    .buffer_import = buffer_import,
    .buffer_free = buffer_free,
    .upload = upload,
    .download = download,
    .copy = copy,
    .fill_zero = fill_zero,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_elapsed_ns = event_elapsed_ns,
    .compile = ref_compile,
    .execute = ref_execute,
    .exec_info = ref_exec_info,
    .exec_free = ref_exec_free,
    .close = close_table,
};

const plm_backend *plm_ref_open(const plm_backend_host *host, plm_error *err)
{
    if (host != NULL && host->major != PLM_BACKEND_MAJOR) {
        (void)plm_fail(err, PLM_E_VERSION, "reference backend: host of major %u, want %u; build "
                       "both of one version", host->major, PLM_BACKEND_MAJOR);
        return NULL;
    }
    return &table;
}
