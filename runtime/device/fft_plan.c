/*
** The plan cache of a device: a short list, searched linearly, least recently used dropped first.
** Plans in use are never dropped. A dry device shares the cache of the device it stands in for, so
** a dry run asks for the same work areas as the real run.
*/
#include "device/fft.h"
#include "device/device.h"
#include "device/planned/planned_backend.h"
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define KEPT_PLANS 64 /* idle plans beyond this many are dropped when a new one is made */

struct mb_fft_cache {
    mb_device *device; /* not a dry one */
    pthread_mutex_t lock;
    mb_fft_plan **plans;
    int count, room;
    uint64_t limit; /* on the library's bytes for all plans */
    uint64_t clock;
    uint64_t derived; /* acquisitions of plans with a derived work area */
    const char *how;  /* how the work area of the latest of them was derived */
};

mb_fft_desc mb_fft_describe(mb_fft_kind kind, int rank, const int64_t *dims, int64_t batch,
                            bool in_place)
{
    mb_fft_desc desc = {.kind = kind, .in_place = in_place, .rank = rank, .batch = batch};
    int64_t outer = 1;
    for (int i = 0; i < rank; i++) {
        desc.dims[i] = dims[i];
        if (i < rank - 1)
            outer *= dims[i];
    }
    int64_t n = dims[rank - 1], half = n / 2 + 1;
    bool real_in = kind == MB_FFT_R2C, real_out = kind == MB_FFT_C2R;
    int64_t real_pitch = in_place ? 2 * half : n;
    desc.in_pitch = real_in ? real_pitch : real_out ? half : n;
    desc.out_pitch = real_out ? real_pitch : real_in ? half : n;
    desc.in_distance = outer * desc.in_pitch;
    desc.out_distance = outer * desc.out_pitch;
    return desc;
}

mb_status mb_fft_cache_create(mb_device *device, mb_fft_cache **out)
{
    mb_fft_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for the FFT plan cache");
    cache->device = device;
    cache->limit = UINT64_MAX;
    pthread_mutex_init(&cache->lock, NULL);
    *out = cache;
    return MB_STATUS_OK;
}

/* Waits before plans are dropped: queued work may still use one. */
static void sync(mb_device *device)
{
    if (!mb_device_lost(device))
        (void)mb_device_sync(device);
}

static void destroy_plan(mb_device *device, mb_fft_plan *plan)
{
    device->backend->fft_destroy(device->self, plan->handle);
    free(plan);
}

static uint64_t library_bytes(const mb_fft_cache *cache)
{
    uint64_t bytes = 0;
    for (int i = 0; i < cache->count; i++)
        bytes += cache->plans[i]->library_bytes;
    return bytes;
}

/* Drops idle plans, oldest first, until at most `keep` plans are left and the library holds at most
** `bytes` for them. */
static int drop_idle(mb_fft_cache *cache, int keep, uint64_t bytes)
{
    int dropped = 0;
    while (cache->count > keep || library_bytes(cache) > bytes) {
        int oldest = -1;
        for (int i = 0; i < cache->count; i++)
            if (!cache->plans[i]->users &&
                (oldest < 0 || cache->plans[i]->last_use < cache->plans[oldest]->last_use))
                oldest = i;
        if (oldest < 0)
            break;
        destroy_plan(cache->device, cache->plans[oldest]);
        cache->plans[oldest] = cache->plans[--cache->count];
        dropped++;
    }
    return dropped;
}

static bool desc_equal(const mb_fft_desc *a, const mb_fft_desc *b)
{
    bool same = a->kind == b->kind && a->in_place == b->in_place && a->rank == b->rank &&
                a->batch == b->batch && a->in_pitch == b->in_pitch &&
                a->out_pitch == b->out_pitch && a->in_distance == b->in_distance &&
                a->out_distance == b->out_distance;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static mb_status make_plan(mb_fft_cache *cache, const mb_fft_desc *desc, mb_fft_plan **out)
{
    mb_device *device = cache->device;
    if (cache->count == cache->room) {
        int room = cache->room ? cache->room * 2 : 16;
        mb_fft_plan **plans = realloc(cache->plans, (size_t)room * sizeof *plans);
        if (!plans)
            return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for the FFT plan cache");
        cache->plans = plans;
        cache->room = room;
    }
    mb_fft_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an FFT plan");
    plan->desc = *desc;
    mb_status status = mb_device_fft_create(device, desc, plan);
    if (status != MB_STATUS_OK) {
        free(plan);
        return status;
    }
    if (device->record)
        mb_fft_record_work(&device->record->fft, desc, &plan->derived);
    cache->plans[cache->count++] = plan;
    *out = plan;
    return MB_STATUS_OK;
}

mb_status mb_fft_acquire(mb_device *device, const mb_fft_desc *desc, mb_fft_plan **out)
{
    if (desc->rank < 1 || desc->rank > 3 || desc->batch < 1)
        return mb_fail(MB_STATUS_INTERNAL, NULL, "FFT of rank %d, batch %lld", desc->rank,
                       (long long)desc->batch);
    for (int i = 0; i < desc->rank; i++)
        if (desc->dims[i] < 1)
            return mb_fail(MB_STATUS_SHAPE, NULL, "FFT over an axis of %lld elements",
                           (long long)desc->dims[i]);
        else if (desc->dims[i] > MB_FFT_LONGEST)
            return mb_fail(MB_STATUS_SHAPE, NULL,
                           "FFT over an axis of %lld elements; %lld are the most",
                           (long long)desc->dims[i], (long long)MB_FFT_LONGEST);
    mb_fft_cache *cache = device->ffts;
    mb_fft_plan *plan = NULL;
    mb_status status = MB_STATUS_OK;
    bool made = false;
    pthread_mutex_lock(&cache->lock);
    for (int i = 0; i < cache->count && !plan; i++)
        if (desc_equal(&cache->plans[i]->desc, desc))
            plan = cache->plans[i];
    if (!plan) {
        drop_idle(cache, KEPT_PLANS - 1, UINT64_MAX);
        status = make_plan(cache, desc, &plan);
        made = status == MB_STATUS_OK;
    }
    if (plan) {
        plan->users++;
        plan->last_use = ++cache->clock;
        if (made && library_bytes(cache) > cache->limit) {
            sync(cache->device);
            drop_idle(cache, INT_MAX, cache->limit);
        }
        if (plan->derived) {
            cache->derived++;
            cache->how = plan->derived;
        }
        *out = plan;
    }
    pthread_mutex_unlock(&cache->lock);
    return status;
}

void mb_fft_release(mb_device *device, mb_fft_plan *plan)
{
    mb_fft_cache *cache = device->ffts;
    pthread_mutex_lock(&cache->lock);
    plan->users--;
    pthread_mutex_unlock(&cache->lock);
}

int mb_fft_cache_drop(mb_device *device, int keep)
{
    MB_KEEP_ERROR;
    mb_fft_cache *cache = device->ffts;
    sync(cache->device);
    pthread_mutex_lock(&cache->lock);
    int dropped = drop_idle(cache, keep, UINT64_MAX);
    pthread_mutex_unlock(&cache->lock);
    return dropped;
}

void mb_fft_cache_set_limit(mb_device *device, uint64_t bytes)
{
    MB_KEEP_ERROR;
    mb_fft_cache *cache = device->ffts;
    sync(cache->device);
    pthread_mutex_lock(&cache->lock);
    cache->limit = bytes;
    drop_idle(cache, INT_MAX, bytes);
    pthread_mutex_unlock(&cache->lock);
}

/* The most recently used first. */
static int by_last_use(const void *a, const void *b)
{
    const mb_fft_plan *x = a, *y = b;
    return x->last_use < y->last_use ? 1 : -1;
}

int mb_fft_cache_plans(mb_device *device, mb_fft_plan *out, int room, uint64_t *limit)
{
    mb_fft_cache *cache = device->ffts;
    pthread_mutex_lock(&cache->lock);
    const int count = cache->count;
    *limit = cache->limit;
    for (int i = 0; i < count && count <= room; i++)
        out[i] = *cache->plans[i];
    pthread_mutex_unlock(&cache->lock);
    if (count <= room)
        qsort(out, (size_t)count, sizeof *out, by_last_use);
    return count;
}

uint64_t mb_fft_cache_library_bytes(mb_device *device)
{
    mb_fft_cache *cache = device->ffts;
    pthread_mutex_lock(&cache->lock);
    const uint64_t bytes = library_bytes(cache);
    pthread_mutex_unlock(&cache->lock);
    return bytes;
}

uint64_t mb_fft_cache_derived(const mb_device *device, const char **how)
{
    mb_fft_cache *cache = device->ffts;
    pthread_mutex_lock(&cache->lock);
    *how = cache->how;
    uint64_t count = cache->derived;
    pthread_mutex_unlock(&cache->lock);
    return count;
}

void mb_fft_cache_destroy(mb_fft_cache *cache)
{
    if (!cache)
        return;
    pthread_mutex_destroy(&cache->lock);
    free(cache->plans);
    free(cache);
}

mb_status mb_fft_exec(mb_device *device, const mb_fft_plan *plan, void *in, void *out, void *work)
{
    return mb_device_fft_exec(device, plan, in, out, work);
}
