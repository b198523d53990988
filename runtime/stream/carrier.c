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
#include <errno.h>
#include <stdio.h>
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

/* A backend reports MB_STATUS_DEVICE only when the device is lost. */
mb_status mb_carrier_seen(mb_carrier *c, mb_status status)
{
    if (status == MB_STATUS_DEVICE)
        c->device->dead = true;
    return status;
}

mb_status mb_carrier_report(mb_carrier *c)
{
    if (c->failure.code == MB_STATUS_OK)
        return MB_STATUS_OK;
    mb_error_put(&c->failure);
    return mb_carrier_seen(c, c->failure.code);
}

static mb_status take_event(mb_carrier *c, void **event)
{
    if (c->event_count > 0) {
        *event = c->events[--c->event_count];
        return MB_STATUS_OK;
    }
    return c->device->backend->event_create(c->device->self, event);
}

static void destroy_event(mb_carrier *c, void *event)
{
    if (event)
        c->device->backend->event_destroy(c->device->self, event);
}

static void return_event(mb_carrier *c, void *event)
{
    if (!event)
        return;
    if (c->event_count == c->event_room) {
        const int room = c->event_room == 0 ? 16 : 2 * c->event_room;
        void **list = realloc(c->events, (size_t)room * sizeof *list);
        if (!list) {
            destroy_event(c, event);
            return;
        }
        c->events = list;
        c->event_room = room;
    }
    c->events[c->event_count++] = event;
}

void mb_carrier_free_transfer(mb_carrier *c, transfer *t)
{
    mb_storage_release(t->storage);
    mb_storage_release(t->host_storage);
    if (t->dataset)
        mb_h5_dataset_use(t->dataset, -1);
    if (t->file) {
        if (c->options.writing && t->queued &&
            (t->done < t->lines || c->failure.code != MB_STATUS_OK))
            mb_rawfile_spoil(t->file);
        (void)mb_rawfile_use(t->file, c->options.writing, -1);
    }
    return_event(c, t->queued);
    free(t);
}

static mb_status open_slots(mb_carrier *c)
{
    const mb_backend *backend = c->device->backend;
    c->slots = calloc((size_t)c->slot_count, sizeof *c->slots);
    c->ring = calloc((size_t)c->slot_count, sizeof *c->ring);
    c->threads = calloc((size_t)c->options.threads, sizeof *c->threads);
    if (!c->slots || !c->ring || !c->threads)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a carrier");
    for (int i = 0; i < c->slot_count; i++) {
        c->slots[i].memory = c->pinned + (uint64_t)i * c->slot_bytes;
        MB_TRY(mb_carrier_seen(c, backend->event_create(c->device->self, &c->slots[i].begin)));
        MB_TRY(mb_carrier_seen(c, backend->event_create(c->device->self, &c->slots[i].end)));
        c->ring[i] = i;
    }
    c->ring_count = c->slot_count;
    return mb_carrier_seen(c, backend->event_create(c->device->self, &c->joined));
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
        status = mb_carrier_seen(c, take_event(c, &t->queued));
    if (status == MB_STATUS_OK)
        status = mb_carrier_seen(
            c, c->device->backend->event_record(c->device->self, MB_LANE_COMPUTE, t->queued));
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
    bool pending = false;
    pthread_mutex_lock(&c->lock);
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

mb_status mb_carrier_create(mb_device *device, const mb_carrier_options *options, const char *owner,
                            mb_carrier **out)
{
    int slots = 0;
    uint64_t slot_bytes = 0;
    void *pinned = NULL;
    *out = NULL;
    if (device->dead)
        return mb_device_sync(device); /* raises that error */
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
}

void mb_carrier_destroy(mb_carrier *c, const char *owner)
{
    MB_KEEP_ERROR;
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->thread_count; i++)
        pthread_join(c->threads[i], NULL);
    for (int i = 0; c->slots && i < c->slot_count; i++) {
        mb_carrier_settle(c, &c->slots[i]); /* a copy under way still uses the slot and the array */
        destroy_event(c, c->slots[i].begin);
        destroy_event(c, c->slots[i].end);
    }
    while (c->first) {
        transfer *next = c->first->next;
        mb_carrier_free_transfer(c, c->first);
        c->first = next;
    }
    for (int i = 0; i < c->event_count; i++)
        destroy_event(c, c->events[i]);
    destroy_event(c, c->joined);
    if (c->pinned_bytes > 0)
        mb_pinned_free(c->device, c->pinned, c->pinned_bytes, owner);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->lane_lock);
    pthread_cond_destroy(&c->work);
    free(c->hashes);
    free(c->events);
    free(c->threads);
    free(c->ring);
    free(c->slots);
    free(c);
}
