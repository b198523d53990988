/*
** The workers of a carrier take pieces of transfers, have the lane copy them, and move the bytes at
** the other ends. A worker queues the copy of its next piece before it finishes the previous one,
** so that the lane stays busy.
*/
#define _GNU_SOURCE
#include "stream/carrier_internal.h"
#include "core/wake.h"
#include "device/numa.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

/* ---- the lane, without the lock ---- */

/* A worker's task: a part of a transfer, and a slot for it. */
typedef struct piece {
    transfer *transfer; /* NULL: none */
    int slot;
    uint64_t line, lines;
    mb_status status;
} piece;

static mb_lane lane_of(const mb_carrier *c)
{
    return c->options.writing ? MB_LANE_DOWNLOAD : MB_LANE_UPLOAD;
}

/* Queues the copy of some lines between the array's part at `memory` and the slot, or the other end
** of a direct transfer. */
static mb_status copy_on_lane(mb_carrier *c, const transfer *t, const slot *s,
                              unsigned char *memory, uint64_t line, uint64_t lines)
{
    const bool down = c->options.writing;
    mb_status status = MB_STATUS_OK;
    if (!t->direct) {
        const uint64_t bytes = lines * t->line_bytes;
        const mb_lane_rows all = {bytes, 1, bytes, bytes};
        return mb_device_lane_copy(c->device, lane_of(c), down ? s->memory : memory,
                                   down ? memory : s->memory, &all);
    }
    for (uint64_t end = line + lines; line < end && status == MB_STATUS_OK;) {
        uint64_t at, pitch;
        mb_lane_rows rows;
        line += mb_carrier_rows(t, line, end - line, &at, &pitch, &rows);
        unsigned char *host = t->host + at;
        rows.to_pitch = down ? pitch : rows.width;
        rows.from_pitch = down ? rows.width : pitch;
        status = mb_device_lane_copy(c->device, lane_of(c), down ? host : memory,
                                     down ? memory : host, &rows);
        memory += rows.width * rows.count;
    }
    return status;
}

/* Queues a piece's copy after the transfer's event, between two events of the slot. */
static mb_status queue_copy(mb_carrier *c, transfer *t, slot *s, uint64_t line, uint64_t lines)
{
    const mb_lane lane = lane_of(c);
    unsigned char *memory = t->memory + line * t->line_bytes;
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&c->lane_lock);
    if (!t->lane_waits)
        status = mb_device_lane_wait(c->device, lane, t->queued);
    t->lane_waits = true;
    if (status == MB_STATUS_OK)
        status = mb_device_event_record(c->device, lane, s->begin);
    if (status == MB_STATUS_OK)
        status = copy_on_lane(c, t, s, memory, line, lines);
    if (status == MB_STATUS_OK)
        status = mb_device_event_record(c->device, lane, s->end);
    s->copied = status == MB_STATUS_OK;
    pthread_mutex_unlock(&c->lane_lock);
    return status;
}

/* Notes that this worker enters or leaves a call of the device. */
static void device_work(mb_carrier *c, int change)
{
    pthread_mutex_lock(&c->lock);
    c->in_device += change;
    if (c->stop)
        pthread_cond_signal(&c->left);
    pthread_mutex_unlock(&c->lock);
}

/* A worker's settling and queueing. */
static mb_status settle(mb_carrier *c, slot *s)
{
    device_work(c, 1);
    const mb_status status = mb_carrier_settle(c, s);
    device_work(c, -1);
    return status;
}

static mb_status queue(mb_carrier *c, const piece *p)
{
    device_work(c, 1);
    const mb_status status = queue_copy(c, p->transfer, &c->slots[p->slot], p->line, p->lines);
    device_work(c, -1);
    return status;
}

/* ---- pieces, without the lock ---- */

static void file_work(mb_carrier *c, int change)
{
    pthread_mutex_lock(&c->lock);
    if (c->file_active == 0)
        clock_gettime(CLOCK_MONOTONIC, &c->file_since);
    c->file_active += change;
    if (c->file_active == 0)
        c->stats.file_seconds += mb_carrier_seconds_since(&c->file_since);
    pthread_mutex_unlock(&c->lock);
}

static void through_ring(mb_carrier *c, transfer *t, uint64_t lines)
{
    pthread_mutex_lock(&c->lock);
    t->copied += lines;
    if (t->copied == t->lines)
        mb_wake_ring();
    pthread_mutex_unlock(&c->lock);
}

/* Is there more work on a piece after its copy is queued? */
static bool held(const mb_carrier *c, const piece *p)
{
    return c->options.writing || p->transfer->direct;
}

/* Adds the hashes of a piece that is in its slot. */
static void hash_piece(mb_carrier *c, const piece *p)
{
    if (!c->options.hashes)
        return;
    const uint64_t sum =
        mb_carrier_hash_lines(p->transfer, p->line, p->lines, c->slots[p->slot].memory);
    pthread_mutex_lock(&c->lock);
    p->transfer->hash += sum;
    pthread_mutex_unlock(&c->lock);
}

static mb_status move_piece(mb_carrier *c, const piece *p)
{
    file_work(c, 1);
    hash_piece(c, p);
    const mb_status status = mb_carrier_move(p->transfer, p->line, p->lines,
                                             c->slots[p->slot].memory, c->options.writing);
    file_work(c, -1);
    return status;
}

/* The work on a piece until its copy is queued. */
static mb_status begin_piece(mb_carrier *c, const piece *p)
{
    MB_TRY(mb_cancel_check());
    MB_TRY(settle(c, &c->slots[p->slot]));
    if (!held(c, p))
        MB_TRY(move_piece(c, p));
    MB_TRY(queue(c, p));
    if (!c->options.writing)
        through_ring(c, p->transfer, p->lines);
    return MB_STATUS_OK;
}

/* The rest of the work on a piece. The other end is in use until the copy is over. */
static mb_status end_piece(mb_carrier *c, const piece *p)
{
    MB_TRY(settle(c, &c->slots[p->slot]));
    if (!c->options.writing)
        return MB_STATUS_OK;
    through_ring(c, p->transfer, p->lines);
    return p->transfer->direct ? MB_STATUS_OK : move_piece(c, p);
}

/* ---- the workers ---- */

/* Under the lock: the transfer to work on, or NULL. A writer stays with its latest transfer. */
static transfer *choose(const mb_carrier *c, transfer *latest)
{
    transfer *best = NULL;
    if (c->options.writing && latest && latest->next_line < latest->lines)
        return latest;
    for (transfer *t = c->first; t; t = t->next) {
        if (t->next_line == t->lines)
            continue;
        if (!best || (c->options.writing && t->active < best->active))
            best = t;
        if (best && (!c->options.writing || best->active == 0))
            break;
    }
    return best;
}

static uint64_t claim(transfer *t)
{
    uint64_t lines = t->piece_lines;
    if (lines < t->frame_lines && lines > t->frame_lines - t->next_line % t->frame_lines)
        lines = t->frame_lines - t->next_line % t->frame_lines;
    if (lines > t->lines - t->next_line)
        lines = t->lines - t->next_line;
    t->next_line += lines;
    return lines;
}

/* Under the lock: the next piece with a free slot, or a piece without a transfer if all are
** taken. */
static piece take_piece(mb_carrier *c, transfer *latest)
{
    transfer *t = choose(c, latest);
    if (!t)
        return (piece){.transfer = NULL};
    piece p = {.transfer = t, .slot = c->ring[c->ring_first], .line = t->next_line};
    c->ring_first = (c->ring_first + 1) % c->slot_count;
    c->ring_count--;
    p.lines = claim(t);
    p.status = c->failure.code; /* after a failure pieces are dropped */
    t->active++;
    return p;
}

/* Without the lock: does one half of a piece, and latches its failure. */
static void advance(mb_carrier *c, piece *p, mb_status (*half)(mb_carrier *, const piece *))
{
    if (!p->transfer || p->status != MB_STATUS_OK)
        return;
    p->status = half(c, p);
    if (p->status == MB_STATUS_OK)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->failure.code == MB_STATUS_OK)
        c->failure = *mb_error_last();
    mb_wake_ring();
    pthread_mutex_unlock(&c->lock);
}

/* Under the lock, which it may release for a while: makes the system write a dataset to the disk
** after its last piece. */
static void sync_last(mb_carrier *c, const piece *p)
{
    const transfer *t = p->transfer;
    if (p->status != MB_STATUS_OK || !t->last || !t->raw || t->done + p->lines < t->lines)
        return;
    pthread_mutex_unlock(&c->lock);
    file_work(c, 1);
    const mb_status status = mb_h5_raw_sync(t->dataset);
    file_work(c, -1);
    pthread_mutex_lock(&c->lock);
    if (status != MB_STATUS_OK && c->failure.code == MB_STATUS_OK)
        c->failure = *mb_error_last();
}

/* Under the lock: the work on a piece is over. */
static void complete(mb_carrier *c, piece *p)
{
    transfer *t = p->transfer;
    if (!t)
        return;
    sync_last(c, p);
    if (p->status == MB_STATUS_OK) {
        c->stats.bytes += p->lines * t->line_bytes;
        c->stats.raw_bytes += t->raw || !t->dataset ? p->lines * t->line_bytes : 0;
    }
    t->active--;
    t->done += p->lines;
    c->ring[(c->ring_first + c->ring_count++) % c->slot_count] = p->slot;
    if (t->done == t->lines || c->failure.code != MB_STATUS_OK)
        mb_wake_ring();
    p->transfer = NULL;
}

/* Under the lock, which it releases: the last of the workers that were left behind frees the
** carrier. */
static void end_worker(mb_carrier *c)
{
    const int orphans = c->orphans;
    const bool last = --c->running == 0 && orphans > 0;
    pthread_cond_signal(&c->left);
    pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    mb_device *device = c->device;
    mb_carrier_free(c);
    mb_device_add_orphans(device, -1);
}

static void *worker(void *user)
{
    mb_carrier *c = user;
    piece before = {.transfer = NULL};
    mb_numa_stay(c->device->numa);
    pthread_mutex_lock(&c->lock);
    for (;;) {
        piece p = take_piece(c, before.transfer);
        while (!c->stop && !p.transfer && !before.transfer) {
            pthread_cond_wait(&c->work, &c->lock);
            p = take_piece(c, NULL);
        }
        if (c->stop)
            break;
        pthread_mutex_unlock(&c->lock);
        advance(c, &p, begin_piece);
        advance(c, &before, end_piece);
        pthread_mutex_lock(&c->lock);
        complete(c, &before);
        if (p.transfer && (p.status != MB_STATUS_OK || !held(c, &p)))
            complete(c, &p);
        before = p;
    }
    end_worker(c);
    return NULL;
}

mb_status mb_carrier_start_workers(mb_carrier *c)
{
    static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL};
    sigset_t all, before;
    int failed = 0;
    sigfillset(&all); /* workers receive only the signals of their own crashes */
    for (size_t i = 0; i < sizeof CRASHES / sizeof CRASHES[0]; i++)
        sigdelset(&all, CRASHES[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (c->thread_count < c->options.threads && failed == 0) {
        failed = pthread_create(&c->threads[c->thread_count], NULL, worker, c);
        if (failed == 0) {
            c->thread_count++;
            pthread_mutex_lock(&c->lock);
            c->running++;
            pthread_mutex_unlock(&c->lock);
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0
               ? MB_STATUS_OK
               : mb_fail(MB_STATUS_MEMORY, NULL, "cannot start a thread: %s", strerror(failed));
}

/* Under the lock: waits until the workers have ended, or are all in a call of a lost device that
** takes longer than a second. Workers that read or write files get the time they need. */
static void wait_for_workers(mb_carrier *c)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec++;
    while (c->running > 0) {
        if (c->in_device < c->running)
            pthread_cond_wait(&c->left, &c->lock);
        else if (pthread_cond_timedwait(&c->left, &c->lock, &end) == ETIMEDOUT &&
                 c->in_device == c->running)
            return;
    }
}

bool mb_carrier_stop_workers(mb_carrier *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->work);
    if (c->running > 0 && mb_device_lost(c->device))
        wait_for_workers(c);
    /* Their calls fail, so they use neither end of a transfer again. */
    const bool lost = c->running > 0 && mb_device_lost(c->device);
    if (lost && c->in_device == c->running) {
        mb_device_add_orphans(c->device, 1);
        c->orphans = c->running;
        mb_carrier_leave_ends(c);
    }
    const bool orphaned = c->orphans > 0;
    for (int i = 0; orphaned && i < c->thread_count; i++)
        pthread_detach(c->threads[i]);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; !orphaned && i < c->thread_count; i++)
        pthread_join(c->threads[i], NULL);
    return !orphaned;
}
