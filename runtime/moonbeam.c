/*
** The C API (moonbeam.h): status, devices, dry runs and arrays. The public handles are the
** structures of the runtime under other names. moonbeam_op.c has the operators.
*/
#define _GNU_SOURCE
#include "moonbeam.h"
#include "array/array.h"
#include "device/dry/dry_backend.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)MOONBEAM_INTERNAL == (int)MB_STATUS_INTERNAL &&
                   (int)MB_STATUS_COUNT == (int)MOONBEAM_INTERNAL + 1,
               "the public status codes are those of the runtime");
_Static_assert(MOONBEAM_MAX_RANK == MB_MAX_RANK, "the public rank is that of the runtime");

static mb_device *inside(const moonbeam_device *device)
{
    return (mb_device *)(uintptr_t)device;
}

static mb_array *inside_array(const moonbeam_array *array)
{
    return (mb_array *)(uintptr_t)array;
}

static moonbeam_status missing(const char *what)
{
    return (moonbeam_status)mb_fail(MB_STATUS_ARGUMENT, what, "%s is NULL", what);
}

/* ---- status and errors ---- */

const char *moonbeam_version(void)
{
    return MOONBEAM_VERSION;
}

const char *moonbeam_status_name(moonbeam_status status)
{
    return mb_status_name((mb_status)status);
}

void moonbeam_last_error(moonbeam_error *out)
{
    const mb_error *e = mb_error_last();
    *out = (moonbeam_error){
        .status = (moonbeam_status)e->code,
        .op = e->op,
        .arg = e->arg,
        .text = e->text,
        .need_bytes = e->need_bytes,
        .limit_bytes = e->limit_bytes,
        .enough_bytes = e->budget.enough_bytes,
    };
}

void moonbeam_cancel(int cancelled)
{
    mb_cancel_set(cancelled != 0);
}

/* ---- devices ---- */

/* The plug-in is in lib/moonbeam beside an installed library, and in ../bin in the build tree. */
static void find_plugin(void)
{
    static const char *const PLACES[] = {"/moonbeam", "/../bin"};
    Dl_info facts;
    char folder[PATH_MAX - 40], name[PATH_MAX];
    if (dladdr((void *)(size_t)&moonbeam_version, &facts) == 0 || !facts.dli_fname)
        return;
    snprintf(folder, sizeof folder, "%s", facts.dli_fname);
    char *slash = strrchr(folder, '/');
    if (!slash)
        return;
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++) {
        snprintf(slash, sizeof folder - (size_t)(slash - folder), "%s", PLACES[i]);
        snprintf(name, sizeof name, "%s/moonbeam_cuda.so", folder);
        if (access(name, R_OK) == 0) {
            mb_device_set_plugin_folder(folder);
            return;
        }
    }
}

static void look_for_plugin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_plugin);
}

int moonbeam_device_count(void)
{
    look_for_plugin();
    return mb_device_count();
}

moonbeam_status moonbeam_device_id(int number, char *id, size_t id_bytes)
{
    look_for_plugin();
    return (moonbeam_status)mb_device_id(number, id, id_bytes);
}

moonbeam_status moonbeam_device_open(const char *id, moonbeam_device **out)
{
    look_for_plugin();
    *out = NULL;
    return id ? (moonbeam_status)mb_device_open(id, (mb_device **)out) : missing("id");
}

moonbeam_status moonbeam_device_memory(moonbeam_device *device, moonbeam_memory *out)
{
    mb_pool_stats stats;
    *out = (moonbeam_memory){0};
    if (!device)
        return missing("device");
    mb_pool_get_stats(inside(device)->pool, &stats);
    *out = (moonbeam_memory){stats.budget, stats.live, stats.live_peak, stats.largest_hole};
    return MOONBEAM_OK;
}

moonbeam_status moonbeam_device_set_budget(moonbeam_device *device, uint64_t bytes)
{
    if (!device)
        return missing("device");
    return (moonbeam_status)mb_pool_set_budget(inside(device)->pool, bytes);
}

moonbeam_status moonbeam_device_sync(moonbeam_device *device)
{
    return device ? (moonbeam_status)mb_device_sync(inside(device)) : missing("device");
}

uint64_t moonbeam_close(void)
{
    return mb_devices_close();
}

/* ---- memory of a stretch, and dry runs ---- */

moonbeam_status moonbeam_peak_begin(moonbeam_device *device, int *token)
{
    *token = -1;
    if (!device)
        return missing("device");
    *token = mb_pool_scope_begin(inside(device)->pool);
    if (*token < 0)
        return (moonbeam_status)mb_fail(MB_STATUS_ARGUMENT, NULL,
                                        "more than %d peaks are measured at a time",
                                        MB_POOL_MAX_SCOPES);
    return MOONBEAM_OK;
}

moonbeam_status moonbeam_peak_end(moonbeam_device *device, int token, uint64_t *bytes)
{
    uint64_t entry = 0, peak = 0;
    *bytes = 0;
    if (!device)
        return missing("device");
    if (token < 0)
        return (moonbeam_status)mb_fail(MB_STATUS_ARGUMENT, "token",
                                        "token is %d; give what moonbeam_peak_begin set", token);
    mb_pool_scope_end(inside(device)->pool, token, &entry, &peak);
    *bytes = peak - entry;
    return MOONBEAM_OK;
}

moonbeam_status moonbeam_device_open_dry(moonbeam_device *device, uint64_t budget,
                                         moonbeam_device **out)
{
    *out = NULL;
    if (!device)
        return missing("device");
    return (moonbeam_status)mb_device_open_dry(inside(device), budget, (mb_device **)out);
}

void moonbeam_device_close_dry(moonbeam_device *dry)
{
    if (dry && inside(dry)->dry)
        mb_device_close_dry(inside(dry));
}

int moonbeam_device_is_dry(const moonbeam_device *device)
{
    return device && inside(device)->dry;
}

/* ---- arrays ---- */

moonbeam_status moonbeam_array_create(moonbeam_device *device, const char *dtype, int rank,
                                      const int64_t *dims, moonbeam_array **out)
{
    mb_dtype type;
    *out = NULL;
    if (!device)
        return missing("device");
    if (!dtype || !mb_dtype_parse(dtype, &type))
        return (moonbeam_status)mb_fail(MB_STATUS_DTYPE, "dtype", "there is no element type '%s'",
                                        dtype ? dtype : "NULL");
    if (rank < 0 || rank > MB_MAX_RANK)
        return (moonbeam_status)mb_fail(MB_STATUS_SHAPE, "rank", "rank must be 0 to %d, got %d",
                                        MB_MAX_RANK, rank);
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return (moonbeam_status)mb_fail(MB_STATUS_SHAPE, "dims",
                                            "extents must not be negative, got %lld for axis %d",
                                            (long long)dims[i], i);
    const mb_shape shape = mb_shape_of(rank, dims);
    return (moonbeam_status)mb_array_create(inside(device), type, &shape, "C", (mb_array **)out);
}

void moonbeam_array_destroy(moonbeam_array *array)
{
    mb_array_destroy(inside_array(array));
}

moonbeam_status moonbeam_array_permute(const moonbeam_array *array, const int *axes,
                                       moonbeam_array **out)
{
    *out = NULL;
    if (!array || !axes)
        return missing(array ? "axes" : "array");
    return (moonbeam_status)mb_array_permute(inside_array(array), axes, (mb_array **)out);
}

int moonbeam_array_rank(const moonbeam_array *array)
{
    return inside_array(array)->shape.rank;
}

int64_t moonbeam_array_extent(const moonbeam_array *array, int axis)
{
    const mb_shape *shape = &inside_array(array)->shape;
    return axis >= 0 && axis < shape->rank ? shape->dims[axis] : -1;
}

const char *moonbeam_array_dtype(const moonbeam_array *array)
{
    return mb_dtype_name(inside_array(array)->dtype);
}

uint64_t moonbeam_array_bytes(const moonbeam_array *array)
{
    return mb_array_bytes(inside_array(array));
}

moonbeam_device *moonbeam_array_device(const moonbeam_array *array)
{
    return (moonbeam_device *)inside_array(array)->device;
}

moonbeam_status moonbeam_array_upload(moonbeam_array *array, const void *data, uint64_t bytes)
{
    if (!array || !data)
        return missing(array ? "data" : "array");
    return (moonbeam_status)mb_array_upload(inside_array(array), data, bytes);
}

moonbeam_status moonbeam_array_download(const moonbeam_array *array, void *data, uint64_t bytes)
{
    if (!array || !data)
        return missing(array ? "data" : "array");
    return (moonbeam_status)mb_array_download(inside_array(array), data, bytes);
}
