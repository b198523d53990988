/*
** A carrier moves slabs between files or host memory and a device while the device computes. It has
** worker threads, a ring of pinned slots, and one lane of the device, and works in one direction.
**
**   reading   file -> slot -> device      a worker reads a piece into a slot and queues its upload
**   writing   device -> slot -> file      a worker queues a piece's download, waits and writes it
**
** A transfer is one contiguous array and its other end: a slab of a dataset, a view of an array in
** host memory, or a block of a file of plain elements (files/rawfile.h). It is divided into pieces
** of at most one slot, which workers take in turn. Workers read and write the bytes of datasets
** without libhdf5 if possible (mb_h5_raw_possible), and decode compressed frames themselves if they
** know the filter (mb_h5_packed_possible). All other datasets go through libhdf5, under its lock.
** Pinned host memory needs no slot, and neither does any host memory if the device is the host: the
** lane copies from or to it directly, and the worker only waits for the copy. Other host memory is
** copied to and from slots. A carrier that makes only direct transfers needs no ring (pinned_bytes
** = 0). Queueing a transfer allocates only the transfer's record.
**
** Events keep the order of device work; no thread waits for it. Uploads begin after the work that
** was on the compute lane when the transfer was queued, because the array's memory may have had
** another use before. Work that is queued after wait runs after the uploads. Downloads begin after
** the work that was queued before the transfer. The carrier holds a reference to the memory of
** arrays while bytes move.
**
** The first failure is latched and ends the work: later pieces are dropped, and every later call
** reports the failure.
**
** Threads: all calls come from one thread, that of the device. One thread may use several devices,
** and sleep until a carrier of any of them makes progress (mb_carrier_wait_any). That thread owns
** the list of transfers and their references to memory, datasets and files: only it adds, removes
** and frees them. A worker owns the pieces that it has taken, and counts finished lines under the
** carrier's lock. No thread holds the locks of two carriers at the same time. A waiting thread
** sleeps on the bell of the process (core/wake.h), which the workers ring; no carrier has a list of
** sleepers. Workers never use a lua_State, the pool or the ledger, and receive no signals but those
** of their own crashes.
*/
#ifndef MB_STREAM_CARRIER_H
#define MB_STREAM_CARRIER_H

#include "cluster/spread.h"
#include "files/h5/h5.h"
#include "files/rawfile.h"

typedef struct mb_carrier mb_carrier;

typedef struct mb_carrier_options {
    bool writing;
    int threads; /* 1 ... MB_CARRIER_MAX_THREADS */
    /* at most; mb_carrier_plan gives what is taken. 0: no ring, direct transfers only */
    uint64_t pinned_bytes;
    uint64_t slot_bytes; /* limit on a slot; at least 8 MiB are allowed */
    bool hashes;         /* writing: hash what is written to files (mb_carrier_hash) */
} mb_carrier_options;

#define MB_CARRIER_MAX_THREADS 64

/* The ring that a carrier with these options will have. Fails when the pinned memory is too small
** for the slots of all threads. */
mb_status mb_carrier_plan(const mb_carrier_options *options, int *slots, uint64_t *slot_bytes);

/* Takes the pinned memory. The first transfer starts the workers; a dry device has no workers.
** `owner` as for mb_pool_alloc. */
mb_status mb_carrier_create(mb_device *device, const mb_carrier_options *options, const char *owner,
                            mb_carrier **out);
/* Stops the carrier: drops the pieces that have not begun and waits for those that have. A file to
** which a transfer was not written completely never gets its name. On a lost device, a worker that
** is in a call of the device is left behind after a second, and ends by itself; what it used is
** freed then. NULL is legal. */
void mb_carrier_destroy(mb_carrier *carrier, const char *owner);
/* The same for a caller who moves again what was not moved: the files stay as they are. */
void mb_carrier_abandon(mb_carrier *carrier, const char *owner);
/* For a carrier that outlives its dry device: destroy then leaves the device's account alone. */
void mb_carrier_forget_device(mb_carrier *carrier);

/* Queues the transfer of a slab (ranges as for mb_h5_dataset_read). Until its transfers are over,
** the dataset must stay open and the array's memory must not be changed. `last`, for writing: this
** is the dataset's last transfer, so the worker that ends it makes the system write the file's
** cached bytes to the disk; finishing the file then takes little time. */
mb_status mb_carrier_queue(mb_carrier *carrier, mb_h5_dataset *dataset, const mb_range *ranges,
                           mb_array *array, bool last);
/* The same with a view of an array in host memory, of the array's shape and type, with a
** dense last axis and at most three axes. It must be neither changed nor read before its
** transfers are over. */
mb_status mb_carrier_queue_host(mb_carrier *carrier, const mb_array *host, mb_array *array);
/* The same with a file of plain elements. Element (i, j, k) of the array is at offset + i *
** steps[0] + j * steps[1] + k * steps[2]; the last step is one element, and the file must be long
** enough. The file may be closed before the transfer is over. */
mb_status mb_carrier_queue_file(mb_carrier *carrier, mb_rawfile *file, uint64_t offset,
                                const int64_t *steps, mb_array *array);
/* The same with memory that is spread over ranks, which must not be closed before the transfer is
** over. */
mb_status mb_carrier_queue_spread(mb_carrier *carrier, mb_spread *spread, uint64_t offset,
                                  const int64_t *steps, mb_array *array);
/* Can the carriers of a device move this array's memory without a ring? */
bool mb_carrier_direct(const mb_device *device, const mb_array *host);
/* Waits until every queued transfer is through the ring. Reading: all uploads are queued, and
** later computing runs after them. Writing: all downloads are over, so the arrays may be released;
** the files may still be incomplete. Sleeps until then, or until the cancel flag is set. `count`
** limits the wait to the first `count` transfers that were ever queued (mb_carrier_queued). */
#define MB_CARRIER_ALL UINT64_MAX
mb_status mb_carrier_wait(mb_carrier *carrier, uint64_t count);
/* The number of transfers that were ever queued. */
uint64_t mb_carrier_queued(const mb_carrier *carrier);
/* Waits until the work at the other ends is over too: files are complete, and host memory that was
** read may be changed. */
mb_status mb_carrier_finish(mb_carrier *carrier);

/* A point in the work of a carrier: its first `count` transfers are through the ring, as
** mb_carrier_wait requires, or with `to_end` they are over, as mb_carrier_finish requires. */
typedef struct mb_carrier_point {
    mb_carrier *carrier;
    uint64_t count;
    bool to_end;
} mb_carrier_point;

/* Has the carrier reached the point? Does not wait. Reports the carrier's failure. */
mb_status mb_carrier_reached(mb_carrier *carrier, uint64_t count, bool to_end, bool *reached);
/* Sleeps until one of the points is reached, and sets *which to its number. The points are looked
** at in their order, while the workers go on. The carriers may belong to different devices. *which
** is -1 if a signal handler ran on this thread during the sleep: the caller decides what to do.
** Fails if a carrier has failed or the cancel flag is set. After it, mb_carrier_wait or
** mb_carrier_finish for that point does not sleep; call one of them, because they order later
** computing and release arrays. */
mb_status mb_carrier_wait_any(const mb_carrier_point *points, int count, int *which);

/* The sum, modulo 2^64, of the hashes (core/line_hash.h) of all lines of the transfers with the
** numbers `from` to `to` - 1 (mb_carrier_queued), which must be over. A line is a row of the last
** axis, as the array has it; its place is the distance in bytes of its first element from that of
** the dataset, or from the beginning of the file. So the sum does not depend on how transfers are
** cut into pieces. Transfers to host memory, of this rank or of several, count as 0. The hashes are
** forgotten. */
mb_status mb_carrier_hash(mb_carrier *carrier, uint64_t from, uint64_t to, uint64_t *sum);

/* Are transfers of this dataset under way? After a failure nobody knows: then they are. */
bool mb_carrier_pending(mb_carrier *carrier, const mb_h5_dataset *dataset);

typedef struct mb_carrier_stats {
    uint64_t bytes;     /* moved to or from the other ends */
    uint64_t raw_bytes; /* part of `bytes` that did not go through libhdf5 */
    /* while at least one worker was reading or writing (or copying from and to slots) */
    double file_seconds;
    double lane_seconds; /* while the lane was copying */
    double wait_seconds; /* the calling thread's, in wait and finish */
    int slots, threads;
    uint64_t pinned_bytes;
} mb_carrier_stats;

void mb_carrier_get_stats(mb_carrier *carrier, mb_carrier_stats *stats);

#endif
