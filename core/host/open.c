/* open.c - the backends that are linked in, and the services lent to any. */
#include "core/host/open.h"

#include <string.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/host/ref.h"

static const struct {
    const char *name;
    plm_backend_open_fn *open;
} linked[] = {
    {"ref", plm_ref_open},
};

const char *plm_open_name(size_t i)
{
    return i < sizeof linked / sizeof *linked ? linked[i].name : NULL;
}

/* ---- services ---- */

/* The block that plm_malloc gave lies before the aligned one, its address just before it. */
static void *host_alloc(void *ctx, size_t bytes, size_t align)
{
    (void)ctx;
    size_t step = align > sizeof(void *) ? align : sizeof(void *), extra = step + sizeof(void *);
    if ((step & (step - 1)) != 0 || bytes > SIZE_MAX - extra)
        return NULL;
    unsigned char *whole = plm_malloc(bytes + extra);
    if (whole == NULL)
        return NULL;
    uintptr_t at = ((uintptr_t)whole + sizeof(void *) + step - 1) & ~(uintptr_t)(step - 1);
    unsigned char *p = whole + (at - (uintptr_t)whole);
    memcpy(p - sizeof(void *), &whole, sizeof whole);
    return p;
}

static void host_free(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    if (ptr == NULL)
        return;
    void *whole;
    memcpy(&whole, (unsigned char *)ptr - sizeof(void *), sizeof whole);
    plm_free(whole);
}

static void host_log(void *ctx, int32_t level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text; /* nothing below cli/ prints */
}

static uint64_t host_now_ns(void *ctx)
{
    (void)ctx;
    struct timespec t;
    return clock_gettime(CLOCK_MONOTONIC, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec
               : 0;
}

static const char *no_option(void *ctx, const char *key)
{
    (void)ctx;
    (void)key;
    return NULL;
}

/* ---- tables ---- */

plm_status plm_open_check(const plm_backend *be, plm_error *err)
{
    if (be == NULL)
        return plm_fail(err, PLM_E_INVALID, "backend: gave no table; see its own message");
    if (be->struct_size < PLM_END(plm_backend, major) || be->major != PLM_BACKEND_MAJOR)
        return plm_fail(err, PLM_E_VERSION, "backend, contract %u: this build wants %u; use a backend "
                        "built for it", be->struct_size < PLM_END(plm_backend, major) ? 0 : be->major,
                        PLM_BACKEND_MAJOR);
    const char *name = be->name != NULL ? be->name : "backend without a name";
    if (!PLM_HAS(be, plm_backend, close))
        return plm_fail(err, PLM_E_VERSION, "%s: its table is shorter than that of minor 0; rebuild "
                        "it", name);
    if (be->name == NULL || be->device_count == NULL || be->device_open == NULL ||
        be->device_close == NULL || be->device_info == NULL || be->supports == NULL ||
        be->buffer_alloc == NULL || be->buffer_free == NULL || be->upload == NULL ||
        be->download == NULL || be->copy == NULL || be->fill_zero == NULL ||
        be->stream_create == NULL || be->stream_destroy == NULL || be->stream_sync == NULL ||
        be->event_create == NULL || be->event_destroy == NULL || be->event_record == NULL ||
        be->event_wait == NULL || be->event_elapsed_ns == NULL || be->compile == NULL ||
        be->execute == NULL || be->exec_info == NULL || be->exec_free == NULL || be->close == NULL)
        return plm_fail(err, PLM_E_INVALID, "%s: a function of its table is missing; all but "
                        "buffer_import and prepare are needed", name);
    return PLM_OK;
}

plm_status plm_open_table(const plm_backend *be, uint32_t index, plm_opened *out, plm_error *err)
{
    plm_status status = PLM_OK;
    uint32_t count = 0;
    plm_error why = {PLM_OK, ""};
    *out = (plm_opened){0};
    PLM_TRY(plm_open_check(be, err));
    out->be = be;
    PLM_GOTO(be->device_count(&count, &why));
    if (index >= count) {
        status = plm_fail(err, PLM_E_NO_DEVICE, "backend %s, device %u: %s%s; choose another backend",
                          be->name, index, count == 0 ? "it has none" : "there is no such device",
                          why.text[0] != '\0' ? why.text : "");
        goto done;
    }
    PLM_GOTO(be->device_open(index, &out->dev, err));
    out->info.struct_size = sizeof out->info;
    PLM_GOTO(be->device_info(out->dev, &out->info, err));
    PLM_GOTO(be->stream_create(out->dev, &out->stream, err));
done:
    if (status != PLM_OK && status == why.code && err != NULL)
        *err = why;
    if (status != PLM_OK)
        plm_close(out);
    return status;
}

plm_status plm_open(const char *name, uint32_t index, const plm_open_options *o,
                    plm_backend_host *host, plm_opened *out, plm_error *err)
{
    size_t i = 0;
    *out = (plm_opened){0};
    while (name != NULL && plm_open_name(i) != NULL && strcmp(name, plm_open_name(i)) != 0)
        i++;
    if (plm_open_name(i) == NULL)
        return plm_fail(err, PLM_E_NOT_FOUND, "backend, %.60s: this build has none of that name; "
                        "--backend %s is there", name, plm_open_name(0));
    *host = (plm_backend_host){.struct_size = sizeof *host,
                               .major = PLM_BACKEND_MAJOR,
                               .minor = PLM_BACKEND_MINOR,
                               .threads = o != NULL ? o->threads : 0,
                               .ctx = o != NULL ? o->ctx : NULL,
                               .alloc = host_alloc,
                               .free = host_free,
                               .log = host_log,
                               .now_ns = host_now_ns,
                               .option = o != NULL && o->option != NULL ? o->option : no_option};
    const plm_backend *be = linked[i].open(host, err);
    if (be == NULL)
        return err != NULL && err->code != PLM_OK ? err->code : PLM_E_INTERNAL;
    return plm_open_table(be, index, out, err);
}

void plm_close(plm_opened *o)
{
    if (o->be == NULL)
        return;
    if (o->stream != NULL)
        o->be->stream_destroy(o->stream);
    if (o->dev != NULL)
        o->be->device_close(o->dev);
    o->be->close();
    *o = (plm_opened){0};
}
