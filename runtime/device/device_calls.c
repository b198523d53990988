/*
** The calls of a device's backend, and what happens when one loses the device.
**
** A lost device stays lost until the process ends: CUDA has no way back from most of the errors
** that lose a context. The flag is set after the cause is written, and is never taken back, so that
** threads may read it without a lock. What was under way on the device has no result. A driver may
** return late from a call that it had begun: the call fails then, whatever the driver says, because
** those that wait for its work have given up.
*/
#include "core/wake.h"
#include "device/device.h"
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all causes */

/* ---- lost devices ---- */

bool mb_device_lost(const mb_device *device)
{
    return __atomic_load_n(&device->loss.lost, __ATOMIC_ACQUIRE);
}

mb_status mb_device_alive(const mb_device *device)
{
    if (!mb_device_lost(device))
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_DEVICE, NULL,
                   "%s is lost: %s. Release its arrays and go on with other devices; to use %s "
                   "again, start the program again",
                   device->id, device->loss.cause, device->id);
}

mb_status mb_device_lose(mb_device *device, const char *cause)
{
    pthread_mutex_lock(&lock);
    if (!device->loss.lost) {
        snprintf(device->loss.cause, sizeof device->loss.cause, "%s", cause);
        __atomic_store_n(&device->loss.lost, 1, __ATOMIC_RELEASE);
        if (device->backend->lose)
            device->backend->lose(device->self);
    }
    pthread_mutex_unlock(&lock);
    mb_wake_ring();
    return mb_device_alive(device);
}

void mb_device_add_orphans(mb_device *device, int change)
{
    __atomic_add_fetch(&device->loss.orphans, change, __ATOMIC_ACQ_REL);
}

/* ---- injection ---- */

void mb_device_lose_at(mb_device *device, uint64_t n, uint64_t delay_ms)
{
    __atomic_store_n(&device->loss.delay_ms, (int64_t)delay_ms, __ATOMIC_RELAXED);
    __atomic_store_n(&device->loss.countdown, (int64_t)n, __ATOMIC_RELEASE);
}

/* Does this call lose the device? Counts down past 0 where several threads call at a time. */
static bool is_chosen(mb_device *device)
{
    int64_t *countdown = &device->loss.countdown;
    return __atomic_load_n(countdown, __ATOMIC_RELAXED) > 0 &&
           __atomic_fetch_sub(countdown, 1, __ATOMIC_ACQ_REL) == 1;
}

/* The device is lost at once; the call that lost it may return later. */
static mb_status lose_as_chosen(mb_device *device)
{
    const int64_t ms = __atomic_load_n(&device->loss.delay_ms, __ATOMIC_RELAXED);
    const struct timespec delay = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)mb_device_lose(device, "injected for a test");
    if (ms > 0)
        nanosleep(&delay, NULL);
    return mb_device_alive(device);
}

/* ---- calls ---- */

/* Before a call that the injection counts. */
static inline mb_status begin(mb_device *device)
{
    MB_TRY(mb_device_alive(device));
    return is_chosen(device) ? lose_as_chosen(device) : MB_STATUS_OK;
}

/* After every call. A backend reports MB_STATUS_DEVICE only for failures that leave the device
** unusable. */
static inline mb_status seen(mb_device *device, mb_status status)
{
    return status == MB_STATUS_DEVICE ? mb_device_lose(device, mb_error_last()->text) : status;
}

/* After a call that waits: it fails if the device has been lost in the meantime. */
static inline mb_status waited(mb_device *device, mb_status status)
{
    MB_TRY(seen(device, status));
    return mb_device_alive(device);
}

#define CALL(device, function, ...)                                                                \
    seen(device, (device)->backend->function((device)->self, __VA_ARGS__))

mb_status mb_device_memory(mb_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    MB_TRY(begin(device));
    MB_TRY(CALL(device, memory, free_bytes, total_bytes));
    if (device->pretended) {
        mb_pool_stats stats;
        mb_pool_get_stats(device->pool, &stats);
        *free_bytes = device->pretended > stats.committed ? device->pretended - stats.committed : 0;
    }
    return MB_STATUS_OK;
}

void mb_device_pretend(mb_device *device, uint64_t bytes)
{
    device->pretended = bytes;
}

mb_status mb_device_upload(mb_device *device, void *to, const void *host, uint64_t bytes)
{
    MB_TRY(begin(device));
    return CALL(device, upload, to, host, bytes);
}

mb_status mb_device_download(mb_device *device, void *host, const void *from, uint64_t bytes)
{
    MB_TRY(begin(device));
    return waited(device, device->backend->download(device->self, host, from, bytes));
}

mb_status mb_device_copy(mb_device *device, void *to, const void *from, uint64_t bytes)
{
    MB_TRY(begin(device));
    return CALL(device, copy, to, from, bytes);
}

mb_status mb_device_fill(mb_device *device, void *to, int byte, uint64_t bytes)
{
    MB_TRY(begin(device));
    return CALL(device, fill, to, byte, bytes);
}

mb_status mb_device_sync(mb_device *device)
{
    MB_TRY(begin(device));
    return waited(device,
                  device->backend->sync ? device->backend->sync(device->self) : MB_STATUS_OK);
}

mb_status mb_device_launch(mb_device *device, mb_op_kernel kernel, const mb_op_call *call)
{
    MB_TRY(begin(device));
    return CALL(device, launch, kernel, call);
}

mb_status mb_device_pin(mb_device *device, uint64_t bytes, void **host)
{
    MB_TRY(begin(device));
    return CALL(device, pin, bytes, host);
}

void mb_device_unpin(mb_device *device, void *host, uint64_t bytes)
{
    device->backend->unpin(device->self, host, bytes);
}

mb_status mb_device_lane_copy(mb_device *device, mb_lane lane, void *to, const void *from,
                              const mb_lane_rows *rows)
{
    MB_TRY(begin(device));
    return CALL(device, lane_copy, lane, to, from, rows);
}

mb_status mb_device_lane_wait(mb_device *device, mb_lane lane, void *event)
{
    MB_TRY(begin(device));
    return CALL(device, lane_wait, lane, event);
}

mb_status mb_device_event_create(mb_device *device, void **event)
{
    MB_TRY(begin(device));
    return CALL(device, event_create, event);
}

void mb_device_event_destroy(mb_device *device, void *event)
{
    device->backend->event_destroy(device->self, event);
}

mb_status mb_device_event_record(mb_device *device, mb_lane lane, void *event)
{
    MB_TRY(begin(device));
    return CALL(device, event_record, lane, event);
}

mb_status mb_device_event_wait(mb_device *device, void *event)
{
    MB_TRY(begin(device));
    return waited(device, device->backend->event_wait
                              ? device->backend->event_wait(device->self, event)
                              : MB_STATUS_OK);
}

mb_status mb_device_event_elapsed_ms(mb_device *device, void *from, void *to, double *ms)
{
    MB_TRY(begin(device));
    return CALL(device, event_elapsed_ms, from, to, ms);
}

mb_status mb_device_commit(mb_device *device, void *base, uint64_t offset, uint64_t bytes)
{
    MB_TRY(begin(device));
    return CALL(device, commit, base, offset, bytes);
}

mb_status mb_device_fft_create(mb_device *device, const mb_fft_desc *desc, mb_fft_plan *plan)
{
    MB_TRY(begin(device));
    return CALL(device, fft_create, desc, &plan->handle, &plan->work_bytes, &plan->library_bytes);
}

/* Not counted: operators call it from kernels on the host, whose launch is counted. */
mb_status mb_device_fft_exec(mb_device *device, const mb_fft_plan *plan, void *in, void *out,
                             void *work)
{
    MB_TRY(mb_device_alive(device));
    return CALL(device, fft_exec, plan->handle, &plan->desc, in, out, work);
}
