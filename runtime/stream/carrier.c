/*
** The carrier: one lock for its queue, its ring and its counters; one more for the lane, under
** which a copy and the events around it are queued together, so that the events tell the copy's
** time.
**
** Slots circulate through a queue of free slots. A slot that was uploaded is free at once, but its
** next user first waits for the upload (its `end` event), which is long over by then, because the
** queue is first in, first out. Transfers are a list in the order of queueing; one leaves it when
** all its pieces are through and wait or finish has seen that. Readers work on the oldest transfer
** that has pieces left. Writers take the transfer with the fewest writers: where a volume is spread
** over files, several files are written at a time, because one file takes bytes from one writer at
** a time; they stay with it as long as it has pieces.
*/
#define _GNU_SOURCE
#include "stream/carrier.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_SLOT_BYTES (UINT64_C(8) << 20)
#define LEAST_SLOT_BYTES (UINT64_C(64) << 10)
#define POLL_MS 20
/* Pieces of direct transfers: long enough that two of them in turn keep the lane busy. */
#define DIRECT_BYTES (UINT64_C(32) << 20)

typedef struct slot {
    unsigned char *memory;
    void *begin, *end; /* events around its latest copy */
    bool copied;       /* they have been recorded, and their time is not counted yet */
} slot;

typedef struct transfer {
    struct transfer *next;
    uint64_t number;        /* of those queued before it */
    mb_h5_dataset *dataset; /* the other end, or NULL: host memory */
    mb_range ranges[MB_H5_MAX_RANK];
    mb_storage *host_storage;         /* a reference */
    unsigned char *host;              /* its first row */
    uint64_t line_pitch, frame_pitch; /* bytes from row to row, from frame to frame */
    bool direct;                      /* the lane copies from or to it */
    mb_dtype dtype;
    bool raw, packed, last;
    mb_storage *storage;   /* a reference */
    unsigned char *memory; /* device address of the array */
    void *queued;          /* event: the state of the compute lane that copies have to wait for */
    bool lane_waits;       /* they do */
    uint64_t line_bytes, lines, frame_lines; /* rows of the slab, and how many make a frame */
    uint64_t piece_lines, next_line;
    int active;      /* workers on it */
    uint64_t copied; /* lines that are through the ring */
    uint64_t done;   /* lines that are through to the end */
} transfer;

struct mb_carrier {
    mb_device *device;
    mb_carrier_options options;
    uint64_t slot_bytes, pinned_bytes;
    unsigned char *pinned;
    int slot_count, thread_count;
    slot *slots;
    pthread_t *threads;
    bool stop;

    pthread_mutex_t lock, lane_lock;
    pthread_cond_t work, progress;     /* pieces to do; something got through */
    int *ring, ring_first, ring_count; /* free slots: never fewer than idle workers */
    transfer *first, **last;
    uint64_t queued;  /* transfers so far */
    mb_error failure; /* latched */
    void **events;    /* unused ones for transfers */
    int event_count, event_room;
    void *joined; /* event: the end of the uploads that computing waits for */

    int file_active;
    struct timespec file_since;
    mb_carrier_stats stats;
};

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

mb_status mb_carrier_plan(const mb_carrier_options *options, int *slots, uint64_t *slot_bytes)
{
    if (options->threads < 1 || options->threads > MB_CARRIER_MAX_THREADS)
        return mb_fail(MB_STATUS_ARGUMENT, "threads", "threads is %d; it must lie in [1, %d]",
                       options->threads, MB_CARRIER_MAX_THREADS);
    /* One of a worker's slots is on the lane while it fills or empties the other. */
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

/* ---- what workers do, without the lock ---- */

static mb_lane lane_of(const mb_carrier *c)
{
    return c->options.writing ? MB_LANE_DOWNLOAD : MB_LANE_UPLOAD;
}

/* Of lines of a transfer's host memory, those from `line` on that lie a pitch apart: how many lines
** they are; where they begin, and their rows, of which one may be a whole frame. */
static uint64_t next_rows(const transfer *t, uint64_t line, uint64_t lines, unsigned char **host,
                          uint64_t *pitch, mb_lane_rows *rows)
{
    const uint64_t row = line % t->frame_lines;
    *host = t->host + line / t->frame_lines * t->frame_pitch + row * t->line_pitch;
    if (row == 0 && lines >= t->frame_lines && t->line_pitch == t->line_bytes) {
        rows->width = t->frame_lines * t->line_bytes;
        rows->count = lines / t->frame_lines;
        *pitch = t->frame_pitch;
        return rows->count * t->frame_lines;
    }
    rows->width = t->line_bytes;
    rows->count = lines < t->frame_lines - row ? lines : t->frame_lines - row;
    *pitch = t->line_pitch;
    return rows->count;
}

/* Copies lines between a transfer's host memory and dense memory. */
static void copy_lines(const transfer *t, uint64_t line, uint64_t lines, unsigned char *memory,
                       bool writing)
{
    for (uint64_t end = line + lines; line < end;) {
        unsigned char *host;
        uint64_t pitch;
        mb_lane_rows rows;
        line += next_rows(t, line, end - line, &host, &pitch, &rows);
        for (uint64_t i = 0; i < rows.count; i++, host += pitch, memory += rows.width)
            memcpy(writing ? host : memory, writing ? memory : host, rows.width);
    }
}

/* Queues the copy of some lines between the array, whose part begins at `memory`, and the slot or,
** directly, the other end. */
static mb_status copy_on_lane(mb_carrier *c, const transfer *t, const slot *s,
                              unsigned char *memory, uint64_t line, uint64_t lines)
{
    const mb_backend *backend = c->device->backend;
    void *self = c->device->self;
    const bool down = c->options.writing;
    mb_status status = MB_STATUS_OK;
    if (!t->direct) {
        const uint64_t bytes = lines * t->line_bytes;
        const mb_lane_rows all = {bytes, 1, bytes, bytes};
        return backend->lane_copy(self, lane_of(c), down ? s->memory : memory,
                                  down ? memory : s->memory, &all);
    }
    for (uint64_t end = line + lines; line < end && status == MB_STATUS_OK;) {
        unsigned char *host;
        uint64_t pitch;
        mb_lane_rows rows;
        line += next_rows(t, line, end - line, &host, &pitch, &rows);
        rows.to_pitch = down ? pitch : rows.width;
        rows.from_pitch = down ? rows.width : pitch;
        status =
            backend->lane_copy(self, lane_of(c), down ? host : memory, down ? memory : host, &rows);
        memory += rows.width * rows.count;
    }
    return status;
}

/* Queues a piece's copy, in order after the transfer's event, between two events of the slot. */
static mb_status queue_copy(mb_carrier *c, transfer *t, slot *s, uint64_t line, uint64_t lines)
{
    const mb_backend *backend = c->device->backend;
    void *self = c->device->self;
    const mb_lane lane = lane_of(c);
    unsigned char *memory = t->memory + line * t->line_bytes;
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&c->lane_lock);
    if (!t->lane_waits)
        status = backend->lane_wait(self, lane, t->queued);
    t->lane_waits = true;
    if (status == MB_STATUS_OK)
        status = backend->event_record(self, lane, s->begin);
    if (status == MB_STATUS_OK)
        status = copy_on_lane(c, t, s, memory, line, lines);
    if (status == MB_STATUS_OK)
        status = backend->event_record(self, lane, s->end);
    s->copied = status == MB_STATUS_OK;
    pthread_mutex_unlock(&c->lane_lock);
    return status;
}

/* Waits until the slot's latest copy is over, and counts its time. */
static mb_status settle(mb_carrier *c, slot *s)
{
    double ms = 0;
    if (!s->copied)
        return MB_STATUS_OK;
    MB_TRY(c->device->backend->event_wait(c->device->self, s->end));
    s->copied = false;
    MB_TRY(c->device->backend->event_elapsed_ms(c->device->self, s->begin, s->end, &ms));
    pthread_mutex_lock(&c->lock);
    c->stats.lane_seconds += 1e-3 * ms;
    pthread_mutex_unlock(&c->lock);
    return MB_STATUS_OK;
}

static void file_work(mb_carrier *c, int change)
{
    pthread_mutex_lock(&c->lock);
    if (c->file_active == 0)
        clock_gettime(CLOCK_MONOTONIC, &c->file_since);
    c->file_active += change;
    if (c->file_active == 0)
        c->stats.file_seconds += seconds_since(&c->file_since);
    pthread_mutex_unlock(&c->lock);
}

/* Some lines of a transfer between the other end and the slot. */
static mb_status move_lines(const transfer *t, uint64_t line, uint64_t lines, void *memory,
                            bool writing)
{
    mb_range part[MB_H5_MAX_RANK];
    if (t->dataset == NULL) {
        copy_lines(t, line, lines, memory, writing);
        return MB_STATUS_OK;
    }
    const int rank = mb_h5_dataset_info(t->dataset)->rank;
    if (t->raw && writing)
        return mb_h5_raw_write(t->dataset, t->ranges, line * t->line_bytes, lines * t->line_bytes,
                               memory);
    if (t->raw)
        return mb_h5_raw_read(t->dataset, t->ranges, line * t->line_bytes, lines * t->line_bytes,
                              memory);
    /* Pieces are whole frames, or lie within one. */
    if (t->packed && lines >= t->frame_lines)
        return mb_h5_packed_read(t->dataset, t->ranges, (int64_t)(line / t->frame_lines),
                                 (int64_t)(lines / t->frame_lines), memory);
    memcpy(part, t->ranges, sizeof part);
    if (rank == 3) {
        part[0].first += (int64_t)(line / t->frame_lines) * part[0].step;
        part[0].count = lines > t->frame_lines ? (int64_t)(lines / t->frame_lines) : 1;
    }
    if (rank >= 2 && lines < t->frame_lines) {
        part[rank - 2].first += (int64_t)(line % t->frame_lines) * part[rank - 2].step;
        part[rank - 2].count = (int64_t)lines;
    }
    return writing ? mb_h5_dataset_write_host(t->dataset, part, t->dtype, memory)
                   : mb_h5_dataset_read_host(t->dataset, part, t->dtype, memory);
}

static void through_ring(mb_carrier *c, transfer *t, uint64_t lines)
{
    pthread_mutex_lock(&c->lock);
    t->copied += lines;
    if (t->copied == t->lines)
        pthread_cond_broadcast(&c->progress);
    pthread_mutex_unlock(&c->lock);
}

/* What a worker does: the part of a transfer, and the slot it has for that. */
typedef struct piece {
    transfer *transfer; /* NULL: none */
    int slot;
    uint64_t line, lines;
    mb_status status;
} piece;

/* Is there more to do about a piece once its copy is queued? */
static bool held(const mb_carrier *c, const piece *p)
{
    return c->options.writing || p->transfer->direct;
}

static mb_status move_piece(mb_carrier *c, const piece *p)
{
    file_work(c, 1);
    const mb_status status =
        move_lines(p->transfer, p->line, p->lines, c->slots[p->slot].memory, c->options.writing);
    file_work(c, -1);
    return status;
}

/* Until its copy is queued. */
static mb_status begin_piece(mb_carrier *c, const piece *p)
{
    slot *s = &c->slots[p->slot];
    MB_TRY(mb_cancel_check());
    MB_TRY(settle(c, s));
    if (!held(c, p))
        MB_TRY(move_piece(c, p));
    MB_TRY(queue_copy(c, p->transfer, s, p->line, p->lines));
    if (!c->options.writing)
        through_ring(c, p->transfer, p->lines);
    return MB_STATUS_OK;
}

/* From then on: the other end is in use until the copy is over. */
static mb_status end_piece(mb_carrier *c, const piece *p)
{
    MB_TRY(settle(c, &c->slots[p->slot]));
    if (!c->options.writing)
        return MB_STATUS_OK;
    through_ring(c, p->transfer, p->lines);
    return p->transfer->direct ? MB_STATUS_OK : move_piece(c, p);
}

/* ---- the workers ---- */

/* Under the lock: the transfer to work on, or NULL. A writer stays with the one it is at. */
static transfer *choose(const mb_carrier *c, transfer *latest)
{
    transfer *best = NULL;
    if (c->options.writing && latest != NULL && latest->next_line < latest->lines)
        return latest;
    for (transfer *t = c->first; t != NULL; t = t->next) {
        if (t->next_line == t->lines)
            continue;
        if (best == NULL || (c->options.writing && t->active < best->active))
            best = t;
        if (best != NULL && (!c->options.writing || best->active == 0))
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

/* Under the lock: the next piece and a free slot; none when there is nothing to do. */
static piece take_piece(mb_carrier *c, transfer *latest)
{
    transfer *t = choose(c, latest);
    if (t == NULL)
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
    if (p->transfer == NULL || p->status != MB_STATUS_OK)
        return;
    p->status = half(c, p);
    if (p->status == MB_STATUS_OK)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->failure.code == MB_STATUS_OK)
        c->failure = *mb_error_last();
    pthread_cond_broadcast(&c->progress);
    pthread_mutex_unlock(&c->lock);
}

/* Under the lock, which it may let go meanwhile: has the disk begin with what is the last of a
** dataset. */
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

/* Under the lock: a piece is done with. */
static void complete(mb_carrier *c, piece *p)
{
    transfer *t = p->transfer;
    if (t == NULL)
        return;
    sync_last(c, p);
    if (p->status == MB_STATUS_OK) {
        c->stats.bytes += p->lines * t->line_bytes;
        c->stats.raw_bytes += t->raw || t->dataset == NULL ? p->lines * t->line_bytes : 0;
    }
    t->active--;
    t->done += p->lines;
    c->ring[(c->ring_first + c->ring_count++) % c->slot_count] = p->slot;
    if (t->done == t->lines || c->failure.code != MB_STATUS_OK)
        pthread_cond_broadcast(&c->progress);
    p->transfer = NULL;
}

/* A worker has the copy of its next piece queued before it attends to the one before, so that the
** lane is not idle meanwhile. */
static void *worker(void *user)
{
    mb_carrier *c = user;
    piece before = {.transfer = NULL};
    pthread_mutex_lock(&c->lock);
    for (;;) {
        piece p = take_piece(c, before.transfer);
        while (!c->stop && p.transfer == NULL && before.transfer == NULL) {
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
        if (p.transfer != NULL && (p.status != MB_STATUS_OK || !held(c, &p)))
            complete(c, &p);
        before = p;
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- the calling thread ---- */

/* A backend reports MB_STATUS_DEVICE only when the device is lost. */
static mb_status seen(mb_carrier *c, mb_status status)
{
    if (status == MB_STATUS_DEVICE)
        c->device->dead = true;
    return status;
}

/* Under the lock: the latched failure, put on record here. */
static mb_status report(mb_carrier *c)
{
    if (c->failure.code == MB_STATUS_OK)
        return MB_STATUS_OK;
    mb_error_put(&c->failure);
    return seen(c, c->failure.code);
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
    if (event != NULL)
        c->device->backend->event_destroy(c->device->self, event);
}

static void return_event(mb_carrier *c, void *event)
{
    if (event == NULL)
        return;
    if (c->event_count == c->event_room) {
        const int room = c->event_room == 0 ? 16 : 2 * c->event_room;
        void **list = realloc(c->events, (size_t)room * sizeof *list);
        if (list == NULL) {
            destroy_event(c, event);
            return;
        }
        c->events = list;
        c->event_room = room;
    }
    c->events[c->event_count++] = event;
}

static void free_transfer(mb_carrier *c, transfer *t)
{
    mb_storage_release(t->storage);
    mb_storage_release(t->host_storage);
    if (t->dataset != NULL)
        mb_h5_dataset_use(t->dataset, -1);
    return_event(c, t->queued);
    free(t);
}

/* How the transfer is cut: whole rows, and whole frames where a slot holds one; then in whole
** chunks of so many frames, so that none is decoded twice. `what` names the other end. */
static mb_status cut(const mb_carrier *c, transfer *t, int rank, const int64_t *extents,
                     int64_t chunk_frames, const char *what)
{
    const uint64_t most = t->direct ? DIRECT_BYTES : c->slot_bytes;
    t->line_bytes = mb_dtype_bytes(t->dtype) * (rank > 0 ? (uint64_t)extents[rank - 1] : 1);
    t->frame_lines = rank > 1 ? (uint64_t)extents[rank - 2] : 1;
    t->lines = t->frame_lines * (rank > 2 ? (uint64_t)extents[0] : 1);
    t->piece_lines = t->line_bytes > 0 ? most / t->line_bytes : t->lines;
    if (t->piece_lines == 0 && t->direct)
        t->piece_lines = 1;
    if (t->piece_lines == 0)
        return mb_fail_bytes(MB_STATUS_BUDGET, t->line_bytes, c->slot_bytes,
                             "a row of %s has %llu bytes, a slot of the ring %llu: give more "
                             "pinned memory (pinned), or fewer threads",
                             what, (unsigned long long)t->line_bytes,
                             (unsigned long long)c->slot_bytes);
    if (t->piece_lines >= t->frame_lines) {
        uint64_t frames = t->piece_lines / t->frame_lines;
        if (rank == 3 && frames > (uint64_t)chunk_frames)
            frames -= frames % (uint64_t)chunk_frames;
        t->piece_lines = frames * t->frame_lines;
    }
    return MB_STATUS_OK;
}

static mb_status check_array(const mb_carrier *c, const mb_array *array, int rank, const char *what)
{
    if (array->device != c->device)
        return mb_fail(MB_STATUS_ARGUMENT, "array", "the array is on %s, the carrier for %s",
                       array->device->id, c->device->id);
    if (rank > 3)
        return mb_fail(MB_STATUS_SHAPE, NULL, "%s has %d axes; a carrier takes at most 3", what,
                       rank);
    if (!mb_array_contiguous(array))
        return mb_fail(MB_STATUS_SHAPE, "array", "a carrier needs a contiguous array");
    return MB_STATUS_OK;
}

static mb_status start_transfer(const mb_array *array, transfer **out)
{
    transfer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a transfer");
    t->dtype = array->dtype;
    t->memory = array->data;
    t->storage = mb_storage_retain(array->storage);
    *out = t;
    return MB_STATUS_OK;
}

/* Hands the transfer to the workers, or frees it. */
static mb_status enqueue(mb_carrier *c, transfer *t, mb_status status)
{
    if (status == MB_STATUS_OK)
        status = seen(c, take_event(c, &t->queued));
    if (status == MB_STATUS_OK)
        status =
            seen(c, c->device->backend->event_record(c->device->self, MB_LANE_COMPUTE, t->queued));
    pthread_mutex_lock(&c->lock);
    if (status == MB_STATUS_OK)
        status = report(c);
    if (status == MB_STATUS_OK) {
        t->number = c->queued++;
        *c->last = t;
        c->last = &t->next;
        pthread_cond_broadcast(&c->work);
    }
    pthread_mutex_unlock(&c->lock);
    if (status != MB_STATUS_OK)
        free_transfer(c, t);
    return status;
}

mb_status mb_carrier_queue(mb_carrier *c, mb_h5_dataset *dataset, const mb_range *ranges,
                           mb_array *array, bool last)
{
    transfer *t = NULL;
    char what[160];
    int64_t extents[3] = {0};
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    snprintf(what, sizeof what, "'%s'", mb_h5_dataset_path(dataset));
    MB_TRY(check_array(c, array, info->rank, what));
    MB_TRY(mb_h5_dataset_check(dataset, ranges, array, !c->options.writing));
    if (c->device->dry || mb_array_elements(array) == 0)
        return MB_STATUS_OK;
    MB_TRY(start_transfer(array, &t));
    t->dataset = dataset;
    mb_h5_dataset_use(dataset, 1);
    memcpy(t->ranges, ranges, (size_t)info->rank * sizeof *ranges);
    bool whole = info->rank >= 2 && ranges[info->rank - 1].count == info->dims[info->rank - 1];
    for (int axis = 0; axis < info->rank; axis++) {
        whole = whole && ranges[axis].step == 1;
        extents[axis] = ranges[axis].count;
    }
    t->last = last;
    t->raw = whole && mb_h5_raw_possible(dataset, t->dtype, !c->options.writing, NULL);
    t->packed = whole && !c->options.writing && mb_h5_packed_possible(dataset, t->dtype);
    return enqueue(c, t, cut(c, t, info->rank, extents, info->chunked ? info->chunks[0] : 1, what));
}

bool mb_carrier_direct(const mb_device *device, const mb_array *host)
{
    const mb_device *pinned_for = mb_storage_pinned_for(host->storage);
    return strcmp(device->backend->name, "host") == 0 ||
           (pinned_for != NULL && strcmp(pinned_for->backend->name, device->backend->name) == 0);
}

mb_status mb_carrier_queue_host(mb_carrier *c, const mb_array *host, mb_array *array)
{
    transfer *t = NULL;
    const int rank = host->shape.rank;
    const int64_t *strides = host->strides;
    const uint64_t element = mb_dtype_bytes(host->dtype);
    if (strcmp(host->device->backend->name, "host") != 0)
        return mb_fail(MB_STATUS_ARGUMENT, "host",
                       "the other end of a transfer is an array on the host, not on %s",
                       host->device->id);
    MB_TRY(check_array(c, array, rank, "the array on the host"));
    if (host->dtype != array->dtype || !mb_shape_equal(&host->shape, &array->shape))
        return mb_fail(MB_STATUS_SHAPE, "host",
                       "both ends of a transfer must have the same shape and element type");
    for (int axis = 0; axis < rank; axis++)
        if (host->shape.dims[axis] > 1 &&
            (axis == rank - 1 ? strides[axis] != 1 : strides[axis] < 1))
            return mb_fail(MB_STATUS_SHAPE, "host",
                           "a carrier needs host memory whose last axis is dense, and whose others "
                           "are neither reversed nor broadcast");
    if (c->device->dry || mb_array_elements(array) == 0)
        return MB_STATUS_OK;
    if (host->device->dry)
        return mb_fail(MB_STATUS_DRY_RUN, "host", "an array of a dry run has no data");
    MB_TRY(start_transfer(array, &t));
    t->host_storage = mb_storage_retain(host->storage);
    t->host = host->data;
    t->direct = mb_carrier_direct(c->device, host);
    const mb_status status = cut(c, t, rank, host->shape.dims, 1, "the array on the host");
    t->line_pitch =
        rank > 1 && t->frame_lines > 1 ? (uint64_t)strides[rank - 2] * element : t->line_bytes;
    t->frame_pitch = rank > 2 ? (uint64_t)strides[0] * element : t->line_bytes * t->frame_lines;
    return enqueue(c, t, status);
}

/* To the end, or as far as mb_carrier_wait waits: until both copies of a reader's piece are under
** way or over. */
static bool through(const mb_carrier *c, const transfer *t, bool to_end)
{
    const bool done = to_end || (!c->options.writing && !t->direct);
    return (done ? t->done : t->copied) == t->lines;
}

/* Under the lock: takes finished transfers off the list. */
static transfer *take_finished(mb_carrier *c)
{
    transfer *list = NULL, **link = &c->first;
    while (*link != NULL) {
        transfer *t = *link;
        if (t->done < t->lines) {
            link = &t->next;
            continue;
        }
        *link = t->next;
        t->next = list;
        list = t;
    }
    c->last = link;
    return list;
}

static mb_status wait_until(mb_carrier *c, bool to_end, uint64_t count)
{
    mb_status status = MB_STATUS_OK;
    struct timespec began;
    clock_gettime(CLOCK_MONOTONIC, &began);
    pthread_mutex_lock(&c->lock);
    for (;;) {
        const transfer *t = c->first;
        while (t != NULL && (t->number >= count || through(c, t, to_end)))
            t = t->next;
        status = report(c);
        if (t == NULL || status != MB_STATUS_OK)
            break;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&c->progress, &c->lock, &until) == ETIMEDOUT &&
            (status = mb_cancel_check()) != MB_STATUS_OK)
            break;
    }
    transfer *finished = take_finished(c);
    c->stats.wait_seconds += seconds_since(&began);
    /* What is through the ring needs its array no more: only this thread touches the references. */
    for (transfer *t = c->first; t != NULL && status == MB_STATUS_OK; t = t->next)
        if (t->copied == t->lines) {
            mb_storage_release(t->storage);
            t->storage = NULL;
        }
    pthread_mutex_unlock(&c->lock);
    while (finished != NULL) {
        transfer *next = finished->next;
        free_transfer(c, finished);
        finished = next;
    }
    return status;
}

mb_status mb_carrier_wait(mb_carrier *c, uint64_t count)
{
    if (c->device->dry)
        return MB_STATUS_OK;
    MB_TRY(wait_until(c, false, count));
    if (c->options.writing)
        return MB_STATUS_OK;
    const mb_backend *backend = c->device->backend;
    pthread_mutex_lock(&c->lane_lock);
    mb_status status = backend->event_record(c->device->self, MB_LANE_UPLOAD, c->joined);
    pthread_mutex_unlock(&c->lane_lock);
    if (status == MB_STATUS_OK)
        status = backend->lane_wait(c->device->self, MB_LANE_COMPUTE, c->joined);
    return seen(c, status);
}

uint64_t mb_carrier_queued(const mb_carrier *c)
{
    return c->queued;
}

mb_status mb_carrier_finish(mb_carrier *c)
{
    return c->device->dry ? MB_STATUS_OK : wait_until(c, true, MB_CARRIER_ALL);
}

bool mb_carrier_pending(mb_carrier *c, const mb_h5_dataset *dataset)
{
    bool pending = false;
    pthread_mutex_lock(&c->lock);
    for (const transfer *t = c->first; t != NULL && !pending; t = t->next)
        pending = t->dataset == dataset && t->done < t->lines;
    pthread_mutex_unlock(&c->lock);
    return pending;
}

void mb_carrier_get_stats(mb_carrier *c, mb_carrier_stats *stats)
{
    /* The copies that nobody has waited for since. */
    for (int i = 0; i < c->slot_count && !c->device->dry && c->first == NULL; i++)
        (void)settle(c, &c->slots[i]);
    pthread_mutex_lock(&c->lock);
    *stats = c->stats;
    pthread_mutex_unlock(&c->lock);
    stats->slots = c->slot_count;
    stats->threads = c->thread_count;
    stats->pinned_bytes = c->pinned_bytes;
}

/* ---- creation and end ---- */

static mb_status open_slots(mb_carrier *c)
{
    const mb_backend *backend = c->device->backend;
    c->slots = calloc((size_t)c->slot_count, sizeof *c->slots);
    c->ring = calloc((size_t)c->slot_count, sizeof *c->ring);
    c->threads = calloc((size_t)c->options.threads, sizeof *c->threads);
    if (c->slots == NULL || c->ring == NULL || c->threads == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a carrier");
    for (int i = 0; i < c->slot_count; i++) {
        c->slots[i].memory = c->pinned + (uint64_t)i * c->slot_bytes;
        MB_TRY(seen(c, backend->event_create(c->device->self, &c->slots[i].begin)));
        MB_TRY(seen(c, backend->event_create(c->device->self, &c->slots[i].end)));
        c->ring[i] = i;
    }
    c->ring_count = c->slot_count;
    return seen(c, backend->event_create(c->device->self, &c->joined));
}

static mb_status start_workers(mb_carrier *c)
{
    static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL};
    sigset_t all, before;
    int failed = 0;
    sigfillset(&all); /* signals are the calling thread's, but for those of a crash of this one */
    for (size_t i = 0; i < sizeof CRASHES / sizeof CRASHES[0]; i++)
        sigdelset(&all, CRASHES[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (c->thread_count < c->options.threads && failed == 0) {
        failed = pthread_create(&c->threads[c->thread_count], NULL, worker, c);
        if (failed == 0)
            c->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0
               ? MB_STATUS_OK
               : mb_fail(MB_STATUS_MEMORY, NULL, "cannot start a thread: %s", strerror(failed));
}

mb_status mb_carrier_create(mb_device *device, const mb_carrier_options *options, const char *owner,
                            mb_carrier **out)
{
    int slots = 0;
    uint64_t slot_bytes = 0;
    void *pinned = NULL;
    *out = NULL;
    if (device->dead)
        return mb_device_sync(device); /* says so */
    MB_TRY(mb_carrier_plan(options, &slots, &slot_bytes));
    mb_carrier *c = calloc(1, sizeof *c);
    if (c == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a carrier");
    c->device = device;
    c->options = *options;
    c->slot_bytes = slot_bytes;
    c->slot_count = slots;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->lane_lock, NULL);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->progress, NULL);
    mb_status status = slot_bytes > 0
                           ? mb_pinned_alloc(device, (uint64_t)slots * slot_bytes, owner, &pinned)
                           : MB_STATUS_OK;
    if (status == MB_STATUS_OK) {
        c->pinned = pinned;
        c->pinned_bytes = (uint64_t)slots * slot_bytes;
        if (!device->dry) {
            status = open_slots(c);
            if (status == MB_STATUS_OK)
                status = start_workers(c);
        }
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
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->thread_count; i++)
        pthread_join(c->threads[i], NULL);
    for (int i = 0; c->slots != NULL && i < c->slot_count; i++) {
        settle(c, &c->slots[i]); /* a copy under way still uses the slot and the array */
        destroy_event(c, c->slots[i].begin);
        destroy_event(c, c->slots[i].end);
    }
    while (c->first != NULL) {
        transfer *next = c->first->next;
        free_transfer(c, c->first);
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
    pthread_cond_destroy(&c->progress);
    free(c->events);
    free(c->threads);
    free(c->ring);
    free(c->slots);
    free(c);
}
