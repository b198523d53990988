/*
** The backend of dry devices. The device and its backend are one record, because each dry device
** has a table of its own, with the name and the kernels of the device that it stands in for.
*/
#include "device/dry/dry_backend.h"
#include <stdlib.h>

/* Addresses without memory. */
#define POOL_BASE UINT64_C(0x10000000000)
#define PINNED_BASE UINT64_C(0x40000000000)

typedef struct dry_device {
    mb_device device;
    mb_backend table;
    const mb_backend *real;
    void *real_self;
    uint64_t pinned; /* bytes of addresses handed out so far */
} dry_device;

static mb_status dry_memory(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const dry_device *dry = self;
    return dry->real->memory(dry->real_self, free_bytes, total_bytes);
}

static void dry_fft_library(void *self, char *text, size_t bytes)
{
    const dry_device *dry = self;
    dry->real->fft_library(dry->real_self, text, bytes);
}

static mb_status dry_reserve(void *self, uint64_t bytes, void **base)
{
    (void)self, (void)bytes;
    *base = (void *)(uintptr_t)POOL_BASE;
    return MB_STATUS_OK;
}

static void dry_unreserve(void *self, void *base, uint64_t bytes)
{
    (void)self, (void)base, (void)bytes;
}

static mb_status dry_upload(void *self, void *to, const void *from, uint64_t bytes)
{
    (void)self, (void)to, (void)from, (void)bytes;
    return MB_STATUS_OK;
}

static mb_status dry_download(void *self, void *to, const void *from, uint64_t bytes)
{
    (void)self, (void)to, (void)from, (void)bytes;
    return mb_fail(MB_STATUS_DRY_RUN, NULL,
                   "a value was read in a dry run, where arrays have no data; if it decides what "
                   "is done next, write mb.bound(BOUND, function() return VALUE end): the dry run "
                   "uses the bound");
}

static mb_status dry_fill(void *self, void *to, int byte, uint64_t bytes)
{
    (void)self, (void)to, (void)byte, (void)bytes;
    return MB_STATUS_OK;
}

/* Each piece has addresses of its own. */
static mb_status dry_pin(void *self, uint64_t bytes, void **host)
{
    dry_device *dry = self;
    *host = (void *)(uintptr_t)(PINNED_BASE + dry->pinned);
    dry->pinned += (bytes + 4095) / 4096 * 4096;
    return MB_STATUS_OK;
}

static mb_status dry_lane_copy(void *self, mb_lane lane, void *to, const void *from,
                               const mb_lane_rows *rows)
{
    (void)self, (void)lane, (void)to, (void)from, (void)rows;
    return MB_STATUS_OK;
}

/* Records an event, or has a lane wait for it. */
static mb_status dry_lane_event(void *self, mb_lane lane, void *event)
{
    (void)self, (void)lane, (void)event;
    return MB_STATUS_OK;
}

static mb_status dry_event_create(void *self, void **event)
{
    (void)self;
    *event = NULL;
    return MB_STATUS_OK;
}

static void dry_event_destroy(void *self, void *event)
{
    (void)self, (void)event;
}

static mb_status dry_event_elapsed_ms(void *self, void *begin, void *end, double *ms)
{
    (void)self, (void)begin, (void)end;
    *ms = 0;
    return MB_STATUS_OK;
}

static mb_status dry_launch(void *self, mb_op_kernel kernel, const mb_op_call *call)
{
    (void)self, (void)kernel, (void)call;
    return MB_STATUS_OK;
}

/* It has no functions to open, close, commit or make FFT plans: the pool of a dry device commits
** nothing, and its plan cache is that of the device that it stands in for. */
static const mb_backend dry_table = {
    .abi = MB_BACKEND_ABI,
    .memory = dry_memory,
    .reserve = dry_reserve,
    .unreserve = dry_unreserve,
    .upload = dry_upload,
    .download = dry_download,
    .copy = dry_upload,
    .fill = dry_fill,
    .pin = dry_pin,
    .unpin = dry_unreserve,
    .lane_copy = dry_lane_copy,
    .lane_wait = dry_lane_event,
    .event_create = dry_event_create,
    .event_destroy = dry_event_destroy,
    .event_record = dry_lane_event,
    .event_elapsed_ms = dry_event_elapsed_ms,
    .launch = dry_launch,
    .fft_library = dry_fft_library,
};

/* A dry device without a pool. */
static mb_status make(const mb_device *device, dry_device **out)
{
    dry_device *dry = calloc(1, sizeof *dry);
    if (!dry)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a device's record");
    dry->device = *device;
    dry->table = dry_table;
    dry->table.name = device->backend->name;
    dry->table.kernels = device->backend->kernels;
    dry->real = device->backend;
    dry->real_self = device->self;
    if (device->dry) {
        const dry_device *outer = device->self;
        dry->real = outer->real;
        dry->real_self = outer->real_self;
        dry->pinned = outer->pinned;
    }
    dry->device.backend = &dry->table;
    dry->device.self = dry;
    dry->device.dry = true;
    dry->device.pinned.refuse = 0;
    dry->device.loss.countdown = 0;
    *out = dry;
    return MB_STATUS_OK;
}

static mb_status finish(dry_device *dry, mb_status status, mb_device **out)
{
    if (status == MB_STATUS_OK)
        *out = &dry->device;
    else
        free(dry);
    return status;
}

mb_status mb_device_open_dry(mb_device *device, uint64_t budget, mb_device **out)
{
    dry_device *dry = NULL;
    mb_pool_stats stats;
    MB_TRY(make(device, &dry));
    dry->device.silent = true;
    dry->device.pinned.live = dry->device.pinned.peak = 0;
    mb_pool_get_stats(device->pool, &stats);
    const mb_pool_source source = {
        .self = dry,
        .name = "a dry device",
        .reserve = dry_reserve,
        .unreserve = dry_unreserve,
        .granularity = device->facts.commit_granularity,
        .capacity = stats.reserved / 2,
    };
    return finish(dry, mb_pool_create(&source, budget ? budget : stats.budget, &dry->device.pool),
                  out);
}

mb_status mb_device_open_dry_copy(mb_device *device, uint64_t room, mb_device **out)
{
    dry_device *dry = NULL;
    MB_TRY(make(device, &dry));
    dry->device.pinned.refusal = NULL;
    const mb_pool_source source = {.self = dry, .name = "a dry device", .unreserve = dry_unreserve};
    return finish(dry, mb_pool_clone(device->pool, &source, room, &dry->device.pool), out);
}

void mb_device_close_dry(mb_device *dry)
{
    if (!dry)
        return;
    mb_pool_destroy(dry->pool);
    free(dry->self);
}
