/*
** Copies between pageable host memory and the device, through a ring of pinned segments.
**
** Both directions are pipelined: while one segment is on the link, the next is filled or emptied by
** the processor. Copies are queued on the compute stream, so they are in order with the kernels
** before and after them. Host memory that is already pinned is copied directly.
** Threads: one lock around each transfer.
*/
#include "backend/cuda_device.h"
#include <string.h>

#define DIRECT_BYTES                                                                               \
    (1u << 20) /* below this the look-up of the host pointer costs more than it saves */

mb_status mb_cuda_staging_open(mb_cuda_device *device)
{
    mb_cuda_staging *ring = &device->staging;
    pthread_mutex_init(&ring->lock, NULL);
    MB_CUDA(cudaHostAlloc((void **)&ring->base, MB_STAGING_SEGMENTS * MB_STAGING_SEGMENT_BYTES,
                          cudaHostAllocDefault));
    for (int i = 0; i < MB_STAGING_SEGMENTS; i++) {
        MB_CUDA(cudaEventCreateWithFlags(&ring->last[i], cudaEventDisableTiming));
    }
    return MB_STATUS_OK;
}

void mb_cuda_staging_close(mb_cuda_device *device)
{
    mb_cuda_staging *ring = &device->staging;
    const bool there = mb_cuda_reach(device);
    for (int i = 0; there && i < MB_STAGING_SEGMENTS; i++)
        if (ring->last[i])
            cudaEventDestroy(ring->last[i]);
    if (there && ring->base)
        cudaFreeHost(ring->base);
    mb_cuda_freed();
    pthread_mutex_destroy(&ring->lock);
    memset(ring, 0, sizeof *ring);
}

/* Moves on to the next segment and waits until its last copy has finished. An event that was never
** recorded counts as finished. */
static mb_status next_segment(mb_cuda_staging *ring)
{
    ring->current = (ring->current + 1) % MB_STAGING_SEGMENTS;
    ring->used = 0;
    MB_CUDA(cudaEventSynchronize(ring->last[ring->current]));
    return MB_STATUS_OK;
}

static bool pinned(const void *host, uint64_t bytes)
{
    struct cudaPointerAttributes at;
    if (bytes < DIRECT_BYTES)
        return false;
    if (cudaPointerGetAttributes(&at, host) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    if (at.type != cudaMemoryTypeHost)
        return false;
    /* A registered piece may end before the transfer does. */
    return cudaPointerGetAttributes(&at, (const char *)host + bytes - 1) == cudaSuccess &&
           at.type == cudaMemoryTypeHost;
}

static mb_status upload_staged(mb_cuda_device *device, unsigned char *to, const unsigned char *host,
                               uint64_t bytes)
{
    mb_cuda_staging *ring = &device->staging;
    while (bytes > 0) {
        uint64_t part = bytes < MB_STAGING_SEGMENT_BYTES ? bytes : MB_STAGING_SEGMENT_BYTES;
        if (part > MB_STAGING_SEGMENT_BYTES - ring->used)
            MB_TRY(next_segment(ring));
        unsigned char *stage =
            ring->base + (uint64_t)ring->current * MB_STAGING_SEGMENT_BYTES + ring->used;
        memcpy(stage, host, part);
        MB_CUDA(cudaMemcpyAsync(to, stage, part, cudaMemcpyHostToDevice, device->stream));
        MB_CUDA(cudaEventRecord(ring->last[ring->current], device->stream));
        ring->used += (part + 255) & ~(uint64_t)255;
        to += part;
        host += part;
        bytes -= part;
    }
    return MB_STATUS_OK;
}

static mb_status download_staged(mb_cuda_device *device, unsigned char *host,
                                 const unsigned char *from, uint64_t bytes)
{
    mb_cuda_staging *ring = &device->staging;
    const uint64_t size = MB_STAGING_SEGMENT_BYTES;
    uint64_t parts = (bytes + size - 1) / size, queued = 0, taken = 0;
    int segment_of[MB_STAGING_SEGMENTS];
    while (taken < parts) {
        while (queued < parts && queued - taken < MB_STAGING_SEGMENTS) {
            MB_TRY(next_segment(ring));
            uint64_t part = queued + 1 < parts ? size : bytes - queued * size;
            MB_CUDA(cudaMemcpyAsync(ring->base + (uint64_t)ring->current * size,
                                    from + queued * size, part, cudaMemcpyDeviceToHost,
                                    device->stream));
            MB_CUDA(cudaEventRecord(ring->last[ring->current], device->stream));
            segment_of[queued % MB_STAGING_SEGMENTS] = ring->current;
            queued++;
        }
        int segment = segment_of[taken % MB_STAGING_SEGMENTS];
        uint64_t part = taken + 1 < parts ? size : bytes - taken * size;
        MB_CUDA(cudaEventSynchronize(ring->last[segment]));
        memcpy(host + taken * size, ring->base + (uint64_t)segment * size, part);
        taken++;
    }
    ring->used = size; /* the next upload starts a fresh segment */
    return MB_STATUS_OK;
}

static mb_status direct(mb_cuda_device *device, void *to, const void *from, uint64_t bytes,
                        enum cudaMemcpyKind kind)
{
    MB_CUDA(cudaMemcpyAsync(to, from, bytes, kind, device->stream));
    MB_CUDA(cudaStreamSynchronize(device->stream));
    return MB_STATUS_OK;
}

static mb_status transfer(mb_cuda_device *device, void *to, const void *from, uint64_t bytes,
                          enum cudaMemcpyKind kind)
{
    const bool up = kind == cudaMemcpyHostToDevice;
    if (bytes == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_cuda_select(device));
    if (pinned(up ? from : to, bytes))
        return direct(device, to, from, bytes, kind);
    pthread_mutex_lock(&device->staging.lock);
    mb_status status = (up ? upload_staged : download_staged)(device, (unsigned char *)to,
                                                              (const unsigned char *)from, bytes);
    pthread_mutex_unlock(&device->staging.lock);
    return status;
}

mb_status mb_cuda_upload(void *self, void *to, const void *host, uint64_t bytes)
{
    return transfer((mb_cuda_device *)self, to, host, bytes, cudaMemcpyHostToDevice);
}

mb_status mb_cuda_download(void *self, void *host, const void *from, uint64_t bytes)
{
    return transfer((mb_cuda_device *)self, host, from, bytes, cudaMemcpyDeviceToHost);
}
