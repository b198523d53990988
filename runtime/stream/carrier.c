/*
** The carrier has one lock for its queue, its ring and its counters. A second lock, for the lane,
** is held while a copy and the events around it are queued, so that the events measure that copy.
**
** Slots circulate through a queue of free slots. A slot is free as soon as its upload is queued.
** Its next user first waits for that upload (its `end` event); the queue is first in, first out, so
** the upload is usually over by then. Transfers are a list in the order of queueing. A transfer
** leaves the list after all its pieces are done and wait or finish has seen that. Readers work on
** the oldest transfer with pieces left. A writer takes the transfer with the fewest writers and
** stays with it until it has no pieces left: one file accepts bytes from one writer at a time, so a
** volume in several files is written to several of them at a time.
*/
#include "stream/carrier_internal.h"
#include <stdlib.h>

#define MOST_SLOT_BYTES (UINT64_C(8) << 20)
#define LEAST_SLOT_BYTES (UINT64_C(64) << 10)

mb_status mb_carrier_plan(const mb_carrier_options *options, int *slots, uint64_t *slot_bytes)
{
    if (options->threads < 1 || options->threads > MB_CARRIER_MAX_THREADS)
        return mb_fail(MB_STATUS_ARGUMENT, "threads", "threads must lie in [1, %d], got %d",
                       options->threads, MB_CARRIER_MAX_THREADS);
    /* A worker fills or empties one of its slots while the other is on the lane. */
    *slots = 2 * options->threads;
    uint64_t each = options->pinned_bytes / (uint64_t)*slots / 4096 * 4096;
    const uint64_t most =
        options->slot_bytes > MOST_SLOT_BYTES ? options->slot_bytes : MOST_SLOT_BYTES;
    if (each > most)
        each = most / 4096 * 4096;
    *slot_bytes = each;
    if (options->pinned_bytes > 0 && each < LEAST_SLOT_BYTES)
        return mb_fail_bytes(MB_STATUS_BUDGET, (uint64_t)*slots * LEAST_SLOT_BYTES,
                             options->pinned_bytes,
                             "%llu bytes of pinned memory are too few for %d threads, which need "
                             "at least %llu: give more (pinned), or fewer threads",
                             (unsigned long long)options->pinned_bytes, options->threads,
                             (unsigned long long)((uint64_t)*slots * LEAST_SLOT_BYTES));
    return MB_STATUS_OK;
}

/* ---- queueing ---- */

mb_status mb_carrier_report(mb_carrier *c)
{
    if (c->failure.code ==
        MB_STATUS_OK) /* a closed dry device, which never opens its ring, is gone */
        return c->opened ? mb_device_alive(c->device) : MB_STATUS_OK;
    mb_error_put(&c->failure);
    return c->failure.code;
}

static mb_status take_event(mb_carrier *c, void **event)
{
    if (c->event_count > 0) {
        *event = c->events[--c->event_count];
        return MB_STATUS_OK;
    }
    return mb_device_event_create(c->device, event);
}

static mb_status open_slots(mb_carrier *c)
{
    c->slots = calloc((size_t)c->slot_count, sizeof *c->slots);
    c->ring = calloc((size_t)c->slot_count, sizeof *c->ring);
    c->threads = calloc((size_t)c->options.threads, sizeof *c->threads);
    if (!c->slots || !c->ring || !c->threads)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a carrier");
    for (int i = 0; i < c->slot_count; i++) {
        c->slots[i].memory = c->pinned + (uint64_t)i * c->slot_bytes;
        MB_TRY(mb_device_event_create(c->device, &c->slots[i].begin));
        MB_TRY(mb_device_event_create(c->device, &c->slots[i].end));
        c->ring[i] = i;
    }
    c->ring_count = c->slot_count;
    return mb_device_event_create(c->device, &c->joined);
}

/* Makes the slots and starts the workers for the first transfer. A carrier that moves nothing, as
** in a dry run, needs neither. A failure ends the carrier's work. */
static mb_status open_ring(mb_carrier *c)
{
    if (c->opened)
        return MB_STATUS_OK;
    c->opened = true;
    mb_status status = open_slots(c);
    if (status == MB_STATUS_OK)
        status = mb_carrier_start_workers(c);
    if (status != MB_STATUS_OK) {
        pthread_mutex_lock(&c->lock);
        c->failure = *mb_error_last();
        pthread_mutex_unlock(&c->lock);
    }
    return status;
}

mb_status mb_carrier_enqueue(mb_carrier *c, transfer *t, mb_status status)
{
    if (status == MB_STATUS_OK)
        status = open_ring(c);
    if (status == MB_STATUS_OK)
        status = take_event(c, &t->queued);
    if (status == MB_STATUS_OK)
        status = mb_device_event_record(c->device, MB_LANE_COMPUTE, t->queued);
    pthread_mutex_lock(&c->lock);
    if (status == MB_STATUS_OK)
        status = mb_carrier_report(c);
    if (status == MB_STATUS_OK) {
        t->number = c->queued++;
        *c->last = t;
        c->last = &t->next;
        pthread_cond_broadcast(&c->work);
    }
    pthread_mutex_unlock(&c->lock);
    if (status != MB_STATUS_OK)
        mb_carrier_free_transfer(c, t);
    return status;
}

uint64_t mb_carrier_queued(const mb_carrier *c)
{
    return c->queued;
}

bool mb_carrier_pending(mb_carrier *c, const mb_h5_dataset *dataset)
{
    pthread_mutex_lock(&c->lock);
    bool pending = c->failure.code != MB_STATUS_OK;
    for (const transfer *t = c->first; t && !pending; t = t->next)
        pending = t->dataset == dataset && t->done < t->lines;
    pthread_mutex_unlock(&c->lock);
    return pending;
}

void mb_carrier_get_stats(mb_carrier *c, mb_carrier_stats *stats)
{
    /* The copies that no thread has waited for. */
    for (int i = 0; c->slots && i < c->slot_count && !c->first; i++)
        (void)mb_carrier_settle(c, &c->slots[i]);
    pthread_mutex_lock(&c->lock);
    *stats = c->stats;
    pthread_mutex_unlock(&c->lock);
    stats->slots = c->slot_count;
    stats->threads = c->options.threads;
    stats->pinned_bytes = c->pinned_bytes;
}

/* ---- creation and end ---- */

/* A condition whose waits end by the clock that nobody sets. */
static void init_left(pthread_cond_t *left)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(left, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

mb_status mb_carrier_create(mb_device *device, const mb_carrier_options *options, const char *owner,
                            mb_carrier **out)
{
    int slots = 0;
    uint64_t slot_bytes = 0;
    void *pinned = NULL;
    *out = NULL;
    MB_TRY(mb_device_alive(device));
    MB_TRY(mb_carrier_plan(options, &slots, &slot_bytes));
    if (options->hashes && !options->writing)
        return mb_fail(MB_STATUS_ARGUMENT, "hashes", "only a carrier that writes has hashes");
    mb_carrier *c = calloc(1, sizeof *c);
    if (!c)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a carrier");
    c->device = device;
    c->options = *options;
    c->slot_bytes = slot_bytes;
    c->slot_count = slots;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->lane_lock, NULL);
    pthread_cond_init(&c->work, NULL);
    init_left(&c->left);
    mb_status status = slot_bytes > 0
                           ? mb_pinned_alloc(device, (uint64_t)slots * slot_bytes, owner, &pinned)
                           : MB_STATUS_OK;
    if (status == MB_STATUS_OK) {
        c->pinned = pinned;
        c->pinned_bytes = (uint64_t)slots * slot_bytes;
    }
    if (status != MB_STATUS_OK) {
        mb_carrier_destroy(c, owner);
        return status;
    }
    *out = c;
    return MB_STATUS_OK;
}

void mb_carrier_forget_device(mb_carrier *c)
{
    c->pinned_bytes = 0;
    c->device = NULL;
}

void mb_carrier_destroy(mb_carrier *c, const char *owner)
{
    MB_KEEP_ERROR;
    if (!c)
        return;
    mb_device *device = c->device;
    const uint64_t pinned_bytes = c->pinned_bytes;
    if (mb_carrier_stop_workers(c))
        mb_carrier_free(c);
    if (pinned_bytes > 0)
        mb_pinned_forget(device, pinned_bytes, owner);
}

void mb_carrier_abandon(mb_carrier *c, const char *owner)
{
    if (c)
        c->abandoned = true;
    mb_carrier_destroy(c, owner);
}
