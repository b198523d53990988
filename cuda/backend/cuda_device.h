/*
** One opened CUDA device: its compute stream, its lanes for copies, its address ranges and its
** pinned staging ring. Private to the plug-in's cuda_*.cu files; operators see mb_op_call and
** cuda_launch.cuh. Threads: the stream is used by one thread at a time except for the staging ring,
** which has its own lock. Every entry of the backend table selects the device first, because CUDA's
** current device belongs to the calling thread.
**
** A lost device (mb_backend.lose) is not used again. Entries fail before they call CUDA, because
** CUDA may not return, and because the error of one device would stay with the thread and be taken
** for that of another. Entries that free something free the host's records alone; the driver frees
** the rest when the process ends. Pinned memory stays where it is, because the driver may still
** have it registered: the addresses must not become other memory.
*/
#ifndef MB_CUDA_DEVICE_H
#define MB_CUDA_DEVICE_H

#include "backend/cuda_check.h"
#include <pthread.h>

#define MB_STAGING_SEGMENTS 4
#define MB_STAGING_SEGMENT_BYTES (8ull << 20)

typedef struct mb_cuda_range mb_cuda_range;

/* A ring of pinned segments. `last[i]` is recorded after the newest copy that uses segment i, so a
** segment may be reused once its event has passed. Small uploads share a segment: a launcher that
** uploads a table does not wait for the work queued before it unless thousands of uploads are still
** pending. */
typedef struct mb_cuda_staging {
    pthread_mutex_t lock;
    unsigned char *base;
    cudaEvent_t last[MB_STAGING_SEGMENTS];
    int current;
    uint64_t used; /* bytes of the current segment */
} mb_cuda_staging;

typedef struct mb_cuda_device {
    int index;
    uint32_t lost; /* mb_cuda_lost */
    cudaStream_t stream;
    cudaStream_t copies[2]; /* MB_LANE_UPLOAD and MB_LANE_DOWNLOAD */
    uint64_t granularity;   /* bytes of a commit, one physical allocation */
    uint64_t context_bytes; /* device memory taken by opening, as far as it can be measured */
    mb_cuda_range *ranges;
    mb_cuda_staging staging;
} mb_cuda_device;

static inline bool mb_cuda_lost(const mb_cuda_device *device)
{
    return __atomic_load_n(&device->lost, __ATOMIC_ACQUIRE) != 0;
}

/* Makes the device the calling thread's, or fails because it is lost. */
static inline mb_status mb_cuda_select(const mb_cuda_device *device)
{
    if (mb_cuda_lost(device))
        return mb_cuda_core->fail(MB_STATUS_DEVICE, NULL, "cuda:%d is lost", device->index);
    return mb_cuda_status(cudaSetDevice(device->index), "selecting the device");
}

/* The same for what frees something: does not fail. False if the device is lost. Errors of the
** calls that follow are left to mb_cuda_freed. */
static inline bool mb_cuda_reach(const mb_cuda_device *device)
{
    return !mb_cuda_lost(device) && cudaSetDevice(device->index) == cudaSuccess;
}

/* After freeing: no error of it stays with the thread. */
static inline void mb_cuda_freed(void)
{
    (void)cudaGetLastError();
}

/* cuda_memory.cu */
mb_status mb_cuda_memory_open(mb_cuda_device *device, uint64_t *granularity);
void mb_cuda_memory_close(mb_cuda_device *device); /* drops every range */
mb_status mb_cuda_reserve(void *self, uint64_t bytes, void **base);
void mb_cuda_unreserve(void *self, void *base, uint64_t bytes);
mb_status mb_cuda_commit(void *self, void *base, uint64_t offset, uint64_t bytes);
void mb_cuda_decommit(void *self, void *base, uint64_t offset, uint64_t bytes);

/* cuda_staging.cu */
mb_status mb_cuda_staging_open(mb_cuda_device *device);
void mb_cuda_staging_close(mb_cuda_device *device);
mb_status mb_cuda_upload(void *self, void *to, const void *host, uint64_t bytes);
mb_status mb_cuda_download(void *self, void *host, const void *from, uint64_t bytes);

/* cuda_lanes.cu */
mb_status mb_cuda_lanes_open(mb_cuda_device *device);
void mb_cuda_lanes_close(mb_cuda_device *device);
mb_status mb_cuda_pin(void *self, uint64_t bytes, void **host);
void mb_cuda_unpin(void *self, void *host, uint64_t bytes);
mb_status mb_cuda_lane_copy(void *self, mb_lane lane, void *to, const void *from,
                            const mb_lane_rows *rows);
mb_status mb_cuda_lane_wait(void *self, mb_lane lane, void *event);
mb_status mb_cuda_event_create(void *self, void **event);
void mb_cuda_event_destroy(void *self, void *event);
mb_status mb_cuda_event_record(void *self, mb_lane lane, void *event);
mb_status mb_cuda_event_wait(void *self, void *event);
mb_status mb_cuda_event_elapsed_ms(void *self, void *begin, void *end, double *ms);

/* cuda_fft.cu */
mb_status mb_cuda_fft_create(void *self, const mb_fft_desc *desc, void **plan, uint64_t *work_bytes,
                             uint64_t *library_bytes);
void mb_cuda_fft_destroy(void *self, void *plan);
mb_status mb_cuda_fft_exec(void *self, void *plan, const mb_fft_desc *desc, void *in, void *out,
                           void *work);
void mb_cuda_fft_library(void *self, char *text, size_t bytes);

#endif
