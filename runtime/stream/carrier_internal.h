/*
** What the parts of a carrier share: its ring and its transfers. carrier.c has what the calling
** thread does, carrier_queue.c makes transfers, carrier_worker.c has the workers and the lane,
** carrier_ends.c moves the bytes at the other ends.
*/
#ifndef MB_STREAM_CARRIER_INTERNAL_H
#define MB_STREAM_CARRIER_INTERNAL_H

#include "stream/carrier.h"
#include <pthread.h>
#include <time.h>

typedef struct slot {
    unsigned char *memory;
    void *begin, *end; /* events around its latest copy */
    bool copied;       /* they have been recorded, and their time is not counted yet */
} slot;

typedef struct transfer {
    struct transfer *next;
    uint64_t number;        /* of those queued before it */
    mb_h5_dataset *dataset; /* the other end; or NULL: a file of plain elements, or host memory */
    mb_range ranges[MB_H5_MAX_RANK];
    mb_rawfile *file;                 /* in use */
    uint64_t offset;                  /* of its first row */
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
    bool opened; /* slots and workers are there: from the first transfer on */
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

/* carrier_ends.c: without the lock */

/* The lines of a transfer's host memory, or file, from `line` on that lie a pitch apart. Returns how
** many of the `lines` they are; the bytes from its first row to theirs and their rows go to the
** rest. A row may be a whole frame. */
uint64_t mb_carrier_rows(const transfer *t, uint64_t line, uint64_t lines, uint64_t *at,
                         uint64_t *pitch, mb_lane_rows *rows);
/* Moves some lines of a transfer between the other end and the memory of a slot. */
mb_status mb_carrier_move(const transfer *t, uint64_t line, uint64_t lines, void *memory,
                          bool writing);

/* carrier_worker.c */

/* Waits until the slot's latest copy is over, and counts its time. Without the lock. */
mb_status mb_carrier_settle(mb_carrier *c, slot *s);
mb_status mb_carrier_start_workers(mb_carrier *c);

/* carrier.c */

/* Hands the transfer to the workers. Frees it when `status`, or what happens here, is a failure. */
mb_status mb_carrier_enqueue(mb_carrier *c, transfer *t, mb_status status);

#endif
