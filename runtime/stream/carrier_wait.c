/*
** Waiting for one carrier, or for one of several. Nothing polls. A waiting thread takes a ticket of
** the bell (core/wake.h), looks at the carriers, under the lock of one at a time, and sleeps.
** Workers ring the bell, under the lock, when a transfer is through the ring, when it is over, and
** when it fails. Setting the cancel flag rings the bell too.
*/
#include "core/wake.h"
#include "stream/carrier_internal.h"

/* ---- where transfers are: under the lock ---- */

/* Is the transfer over or, without `to_end`, as far as mb_carrier_wait requires? A reader that uses
** the ring must then have queued its uploads. */
static bool through(const mb_carrier *c, const transfer *t, bool to_end)
{
    const bool done = to_end || (!c->options.writing && !t->direct);
    return (done ? t->done : t->copied) == t->lines;
}

/* Are the first `count` transfers that far? */
static bool all_through(const mb_carrier *c, bool to_end, uint64_t count)
{
    const transfer *t = c->first;
    while (t && (t->number >= count || through(c, t, to_end)))
        t = t->next;
    return !t;
}

/* Takes finished transfers off the list. After a failure those to files stay: how the carrier ends
** decides whether the files are spoiled. */
static transfer *take_finished(mb_carrier *c)
{
    transfer *list = NULL, **link = &c->first;
    while (*link) {
        transfer *t = *link;
        const bool stays = c->failure.code != MB_STATUS_OK && t->file && c->options.writing;
        if (t->done < t->lines || stays) {
            link = &t->next;
            continue;
        }
        *link = t->next;
        mb_carrier_keep_hash(c, t);
        t->next = list;
        list = t;
    }
    c->last = link;
    return list;
}

/* ---- one carrier ---- */

/* Ends a wait: releases what the transfers no longer need. Only the thread of the device uses the
** references and takes transfers off the list. */
static void end_wait(mb_carrier *c, mb_status status, double seconds)
{
    pthread_mutex_lock(&c->lock);
    transfer *finished = take_finished(c);
    c->stats.wait_seconds += seconds;
    /* Bytes that are through the ring no longer need the array. After a failure nothing orders
    ** later computing after the copies, so the arrays stay. */
    for (transfer *t = c->first; t && status == MB_STATUS_OK; t = t->next)
        if (t->copied == t->lines) {
            mb_storage_release(t->storage);
            t->storage = NULL;
        }
    pthread_mutex_unlock(&c->lock);
    while (finished) {
        transfer *next = finished->next;
        mb_carrier_free_transfer(c, finished);
        finished = next;
    }
}

mb_status mb_carrier_reached(mb_carrier *c, uint64_t count, bool to_end, bool *reached)
{
    pthread_mutex_lock(&c->lock);
    *reached = all_through(c, to_end, count);
    const mb_status status = mb_carrier_report(c);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static mb_status sleep_until(mb_carrier *c, bool to_end, uint64_t count)
{
    for (;;) {
        bool reached;
        const uint32_t ticket = mb_wake_ticket();
        MB_TRY(mb_carrier_reached(c, count, to_end, &reached));
        if (reached)
            return MB_STATUS_OK;
        MB_TRY(mb_cancel_check());
        mb_wake_sleep(ticket);
    }
}

static mb_status wait_until(mb_carrier *c, bool to_end, uint64_t count)
{
    struct timespec began;
    clock_gettime(CLOCK_MONOTONIC, &began);
    const mb_status status = sleep_until(c, to_end, count);
    end_wait(c, status, mb_carrier_seconds_since(&began));
    return status;
}

mb_status mb_carrier_wait(mb_carrier *c, uint64_t count)
{
    MB_TRY(wait_until(c, false, count));
    if (c->options.writing || !c->opened)
        return MB_STATUS_OK;
    pthread_mutex_lock(&c->lane_lock);
    const mb_status status = mb_device_event_record(c->device, MB_LANE_UPLOAD, c->joined);
    pthread_mutex_unlock(&c->lane_lock);
    MB_TRY(status);
    return mb_device_lane_wait(c->device, MB_LANE_COMPUTE, c->joined);
}

mb_status mb_carrier_finish(mb_carrier *c)
{
    return wait_until(c, true, MB_CARRIER_ALL);
}

mb_status mb_carrier_hash(mb_carrier *c, uint64_t from, uint64_t to, uint64_t *sum)
{
    *sum = 0;
    if (!c->options.hashes)
        return mb_fail(MB_STATUS_ARGUMENT, "hashes",
                       "this carrier has no hashes: open it with hashes = true");
    pthread_mutex_lock(&c->lock);
    mb_status status = mb_carrier_report(c);
    if (status == MB_STATUS_OK)
        status = mb_carrier_take_hashes(c, from, to, sum);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- the first of several ---- */

mb_status mb_carrier_wait_any(const mb_carrier_point *points, int count, int *which)
{
    *which = -1;
    if (count < 1)
        return mb_fail(MB_STATUS_ARGUMENT, "points", "there is nothing to wait for");
    for (;;) {
        const uint32_t ticket = mb_wake_ticket();
        for (int i = 0; i < count; i++) {
            bool reached;
            MB_TRY(
                mb_carrier_reached(points[i].carrier, points[i].count, points[i].to_end, &reached));
            if (reached) {
                *which = i;
                return MB_STATUS_OK;
            }
        }
        MB_TRY(mb_cancel_check());
        if (!mb_wake_sleep(ticket))
            return mb_cancel_check();
    }
}
