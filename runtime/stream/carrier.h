/*
** A carrier moves slabs between files or host memory and a device while the device computes: worker
** threads, a ring of pinned slots, and one lane of the device, in one direction.
**
**   reading   file -> slot -> device      a worker reads a piece into a slot and queues its upload
**   writing   device -> slot -> file      a worker queues a piece's download, waits and writes it
**
** A transfer is one contiguous array and its other end: a slab of a dataset, a view of an array in
** host memory, or a block of a file of plain elements (files/rawfile.h). It is cut into pieces of at most a slot, which workers take as they come. Bytes
** of files go around libhdf5 where that is possible (mb_h5_raw_possible), compressed frames are
** decoded by the workers where they know how (mb_h5_packed_possible), and the rest goes through
** libhdf5, under its lock. Host memory that is pinned, or the host's own where that is the device,
** needs no slot: the lane copies from or to it directly, and the worker only waits for the copy;
** other host memory is copied to and from slots. A carrier for direct transfers alone needs no ring
** (pinned_bytes = 0). When transfers are queued nothing is allocated but their own records.
**
** The order of device work is kept by events, not by waiting: uploads begin after what was queued
** on the compute lane when the transfer was queued (the array's memory may have had another use
** before), computing after wait goes on after the uploads, downloads begin after what was queued
** before the transfer. The carrier keeps a reference to the memory of arrays while bytes move.
**
** The first failure is latched and ends the work: the following pieces are dropped, and every later
** call reports it. Threads: all calls come from one thread, that of the device. Workers never touch
** a lua_State, the pool or the ledger, and take no signals.
*/
#ifndef MB_STREAM_CARRIER_H
#define MB_STREAM_CARRIER_H

#include "files/h5/library/h5types.h"
#include "files/rawfile.h"

typedef struct mb_carrier mb_carrier;

typedef struct mb_carrier_options {
    bool writing;
    int threads; /* 1 ... MB_CARRIER_MAX_THREADS */
    /* at most; what is taken is mb_carrier_plan's. 0: no ring, direct transfers only */
    uint64_t pinned_bytes;
    uint64_t slot_bytes; /* slots may be as large as that, or 8 MiB if that is more */
} mb_carrier_options;

#define MB_CARRIER_MAX_THREADS 64

/* The ring that a carrier with these options will have. Fails when it cannot have one slot a
** thread. */
mb_status mb_carrier_plan(const mb_carrier_options *options, int *slots, uint64_t *slot_bytes);

/* Takes the pinned memory. The first transfer starts the workers; on a dry device there is none.
** `owner` as for mb_pool_alloc. */
mb_status mb_carrier_create(mb_device *device, const mb_carrier_options *options, const char *owner,
                            mb_carrier **out);
/* Stops: what is not under way is dropped, what is under way is waited for. NULL is fine. */
void mb_carrier_destroy(mb_carrier *carrier, const char *owner);
/* For a carrier whose dry device is gone before it: destroy leaves the device's account alone. */
void mb_carrier_forget_device(mb_carrier *carrier);

/* Queues the transfer of a slab (ranges as for mb_h5_dataset_read). The dataset must stay until its
** transfers are over, and the array's memory must not be changed before they are. `last`, for
** writing: nothing more will be written to this dataset, so the worker that ends the transfer has
** the disk take what is still in memory; finishing the file then waits for little. */
mb_status mb_carrier_queue(mb_carrier *carrier, mb_h5_dataset *dataset, const mb_range *ranges,
                           mb_array *array, bool last);
/* The same with a view of an array in host memory, of the array's shape and type, with a dense last
** axis and no more than three axes; it must not be changed, or looked at, before its transfers are
** over. */
mb_status mb_carrier_queue_host(mb_carrier *carrier, const mb_array *host, mb_array *array);
/* The same with a file of plain elements: element (i, j, k) of the array lies at offset + i *
** steps[0] + j * steps[1] + k * steps[2], the last step being one element, and the file is as long
** as that. It may be closed meanwhile. */
mb_status mb_carrier_queue_file(mb_carrier *carrier, mb_rawfile *file, uint64_t offset,
                                const int64_t *steps, mb_array *array);
/* Can the carriers of a device move this array's memory without a ring? */
bool mb_carrier_direct(const mb_device *device, const mb_array *host);
/* Waits until every queued transfer is through the ring. Reading: all uploads are queued, and
** computing goes on after them. Writing: all downloads have happened, so that the arrays may be
** released; the files may not have everything yet. Sleeps; polls the cancel flag. `count`: of the
** transfers queued so far, only the first so many (mb_carrier_queued). */
#define MB_CARRIER_ALL UINT64_MAX
mb_status mb_carrier_wait(mb_carrier *carrier, uint64_t count);
/* How many transfers have been queued. */
uint64_t mb_carrier_queued(const mb_carrier *carrier);
/* Waits until the other ends are done with as well: files have everything, host memory that was
** read may change. */
mb_status mb_carrier_finish(mb_carrier *carrier);

/* Are transfers of this dataset under way? */
bool mb_carrier_pending(mb_carrier *carrier, const mb_h5_dataset *dataset);

typedef struct mb_carrier_stats {
    uint64_t bytes;     /* moved to or from the other ends */
    uint64_t raw_bytes; /* of them around libhdf5 */
    /* while at least one worker was reading or writing (or copying from and to slots) */
    double file_seconds;
    double lane_seconds; /* while the lane was copying */
    double wait_seconds; /* the calling thread's, in wait and finish */
    int slots, threads;
    uint64_t pinned_bytes;
} mb_carrier_stats;

void mb_carrier_get_stats(mb_carrier *carrier, mb_carrier_stats *stats);

#endif
