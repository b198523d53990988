/*
** What the slots, the events and the transfers of a carrier hold, and how it is given back.
*/
#include "stream/carrier_internal.h"
#include <stdlib.h>

mb_status mb_carrier_settle(mb_carrier *c, slot *s)
{
    double ms = 0;
    if (!s->copied)
        return MB_STATUS_OK;
    MB_TRY(mb_device_event_wait(c->device, s->end));
    s->copied = false;
    MB_TRY(mb_device_event_elapsed_ms(c->device, s->begin, s->end, &ms));
    pthread_mutex_lock(&c->lock);
    c->stats.lane_seconds += 1e-3 * ms;
    pthread_mutex_unlock(&c->lock);
    return MB_STATUS_OK;
}

static void destroy_event(mb_carrier *c, void *event)
{
    if (event)
        mb_device_event_destroy(c->device, event);
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

/* Gives back what a transfer has of others. */
static void leave_ends(const mb_carrier *c, transfer *t)
{
    mb_storage_release(t->storage);
    mb_storage_release(t->host_storage);
    mb_spread_release(t->spread);
    if (t->dataset)
        mb_h5_dataset_use(t->dataset, -1);
    if (t->file) {
        if (c->options.writing && !c->abandoned && t->queued &&
            (t->done < t->lines || c->failure.code != MB_STATUS_OK))
            mb_rawfile_spoil(t->file);
        (void)mb_rawfile_use(t->file, c->options.writing, -1);
    }
    t->storage = t->host_storage = NULL;
    t->dataset = NULL;
    t->file = NULL;
    t->spread = NULL;
}

void mb_carrier_free_transfer(mb_carrier *c, transfer *t)
{
    leave_ends(c, t);
    return_event(c, t->queued);
    free(t);
}

void mb_carrier_leave_ends(mb_carrier *c)
{
    for (transfer *t = c->first; t; t = t->next)
        leave_ends(c, t);
}

void mb_carrier_free(mb_carrier *c)
{
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
        mb_device_unpin(c->device, c->pinned, c->pinned_bytes);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->lane_lock);
    pthread_cond_destroy(&c->work);
    free(c->hashes);
    pthread_cond_destroy(&c->left);
    free(c->events);
    free(c->threads);
    free(c->ring);
    free(c->slots);
    free(c);
}
