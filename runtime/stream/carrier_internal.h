/*
** The records that the parts of a carrier share: its ring and its transfers. carrier.c and
** carrier_wait.c are the work of the calling thread, carrier_queue.c makes transfers,
** carrier_worker.c has the workers and the lane, carrier_ends.c moves the bytes at the other ends,
** carrier_hash.c hashes them, and carrier_records.c gives everything back.
*/
#ifndef MB_STREAM_CARRIER_INTERNAL_H
#define MB_STREAM_CARRIER_INTERNAL_H

#include "stream/carrier.h"
#include <pthread.h>
#include <time.h>

typedef struct slot {
    unsigned char *memory;
    void *begin, *end; /* events around its latest copy */
    bool copied;       /* the events were recorded, and their time is not counted yet */
} slot;

typedef struct transfer {
    struct transfer *next;
    uint64_t number;        /* how many transfers were queued before it */
    mb_h5_dataset *dataset; /* the other end; or NULL: one of the following */
    mb_range ranges[MB_H5_MAX_RANK];
    mb_rawfile *file;                 /* in use */
    mb_spread *spread;                /* a reference */
    uint64_t offset;                  /* of its first row */
    mb_storage *host_storage;         /* a reference */
    unsigned char *host;              /* its first row */
    uint64_t line_pitch, frame_pitch; /* bytes from row to row, from frame to frame */
    bool direct;                      /* the lane copies from or to it */
    mb_dtype dtype;
    bool raw, packed, last;
    mb_storage *storage;   /* a reference */
    unsigned char *memory; /* device address of the array */
    void *queued;          /* event: the work on the compute lane that copies must wait for */
    bool lane_waits;       /* the lane waits for `queued` */
    uint64_t line_bytes, lines, frame_lines; /* rows of the slab, and how many make a frame */
    uint64_t piece_lines, next_line;
    int active;      /* workers on it */
    uint64_t copied; /* lines that are through the ring */
    uint64_t done;   /* lines whose work is over at both ends */
    uint64_t hash;   /* the sum over these lines, if the carrier has hashes */
    bool hash_taken; /* by mb_carrier_hash */
} transfer;

/* The hash of a transfer that is off the list. */
typedef struct transfer_hash {
    uint64_t number, hash;
} transfer_hash;

struct mb_carrier {
    mb_device *device;
    mb_carrier_options options;
    uint64_t slot_bytes, pinned_bytes;
    unsigned char *pinned;
    int slot_count, thread_count;
    slot *slots;
    pthread_t *threads;
    bool opened; /* the slots and workers exist: from the first transfer on */
    bool stop;
    bool abandoned; /* files that were not written completely are not spoiled */
    int running;    /* workers whose thread has not ended */
    int in_device;  /* workers in a call of the device */
    int orphans;    /* workers that were left behind there; the last one frees the carrier */

    pthread_mutex_t lock, lane_lock;
    pthread_cond_t work;               /* new pieces; progress rings the bell (core/wake.h) */
    pthread_cond_t left;               /* after stop: `running` or `in_device` has changed */
    int *ring, ring_first, ring_count; /* free slots: never fewer than idle workers */
    transfer *first, **last;
    uint64_t queued;  /* number of transfers so far */
    mb_error failure; /* latched */
    void **events;    /* unused ones for transfers */
    int event_count, event_room;
    void *joined;          /* event: the end of the uploads, which computing waits for */
    transfer_hash *hashes; /* of finished transfers, until they are asked for */
    int hash_count, hash_room;

    int file_active;
    struct timespec file_since;
    mb_carrier_stats stats;
};

/* carrier_ends.c: without the lock */

/* Finds the lines of a transfer's host memory, or file, from `line` on that are one pitch apart.
** Returns how many of the `lines` these are; gives their distance in bytes from the first row, and
** their rows. A row may be a whole frame. */
uint64_t mb_carrier_rows(const transfer *t, uint64_t line, uint64_t lines, uint64_t *at,
                         uint64_t *pitch, mb_lane_rows *rows);
/* Moves some lines of a transfer between the other end and the memory of a slot. */
mb_status mb_carrier_move(const transfer *t, uint64_t line, uint64_t lines, void *memory,
                          bool writing);

/* carrier_records.c */

/* Waits until the slot's latest copy is over and counts its time. Without the lock. */
mb_status mb_carrier_settle(mb_carrier *c, slot *s);
void mb_carrier_free_transfer(mb_carrier *c, transfer *t);
/* Gives back what all transfers have of others; they stay on the list. */
void mb_carrier_leave_ends(mb_carrier *c);
/* Frees what is left of a carrier that has no workers. */
void mb_carrier_free(mb_carrier *c);

/* carrier_worker.c */

mb_status mb_carrier_start_workers(mb_carrier *c);
/* Ends the workers. False: workers were left behind in a lost device. */
bool mb_carrier_stop_workers(mb_carrier *c);

static inline double mb_carrier_seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

/* carrier.c: the thread of the device */

/* Under the lock: puts the latched failure, or the loss of the device, on this thread's record. */
mb_status mb_carrier_report(mb_carrier *c);
/* Hands the transfer to the workers. Frees it if `status` is a failure or this call fails. */
mb_status mb_carrier_enqueue(mb_carrier *c, transfer *t, mb_status status);

/* carrier_hash.c */

/* The sum of the hashes of some lines of a transfer, which are dense in `memory`. */
uint64_t mb_carrier_hash_lines(const transfer *t, uint64_t line, uint64_t lines,
                               const void *memory);
/* Under the lock: keeps the hash of a transfer that leaves the list. */
void mb_carrier_keep_hash(mb_carrier *c, const transfer *t);
/* Under the lock: mb_carrier_hash. */
mb_status mb_carrier_take_hashes(mb_carrier *c, uint64_t from, uint64_t to, uint64_t *sum);

#endif
