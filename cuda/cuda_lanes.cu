/*
** Lanes: the compute stream and two streams of their own for copies from and to pinned memory, the events that order them,
** and the pinned memory itself.
**
** Pinned memory is anonymous memory of huge pages that is touched and then registered: that takes a third of the time that
** cudaHostAlloc takes, and copies run at the same rate.
** Threads: events and lanes may be used by any thread; whoever shares a lane has a lock for it. The two copy streams are
** made by the first pin, which comes before any copy.
*/
#include "cuda_device.h"
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE (2ull << 20)

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static cudaStream_t stream_of(const mb_cuda_device *device, mb_lane lane)
{
    return lane == MB_LANE_COMPUTE ? device->stream : device->copies[lane - MB_LANE_UPLOAD];
}

static mb_status open_copies(mb_cuda_device *device)
{
    for (int i = 0; i < 2; i++)
        if (!device->copies[i])
            MB_CUDA(cudaStreamCreateWithFlags(&device->copies[i], cudaStreamNonBlocking));
    return MB_STATUS_OK;
}

void mb_cuda_lanes_close(mb_cuda_device *device)
{
    for (int i = 0; i < 2; i++)
        if (device->copies[i]) {
            cudaStreamSynchronize(device->copies[i]);
            cudaStreamDestroy(device->copies[i]);
            device->copies[i] = NULL;
        }
}

/* Reserves one huge page more than needed, and gives back what lies outside the aligned range. */
static void *map_aligned(uint64_t bytes)
{
    char *address = (char *)mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED)
        return NULL;
    char *aligned = (char *)whole_pages((uint64_t)(uintptr_t)address);
    if (aligned > address)
        munmap(address, (size_t)(aligned - address));
    if (aligned < address + HUGE_PAGE)
        munmap(aligned + bytes, (size_t)(address + HUGE_PAGE - aligned));
    return aligned;
}

mb_status mb_cuda_pin(void *self, uint64_t bytes, void **host)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    MB_TRY(open_copies(device));
    uint64_t size = whole_pages(bytes);
    char *memory = (char *)map_aligned(size);
    if (!memory)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL,
                                  "the system refused %llu bytes of host memory",
                                  (unsigned long long)size);
    madvise(memory, size, MADV_HUGEPAGE);
    for (uint64_t i = 0; i < size; i += 4096)
        memory[i] = 0;
    cudaError_t error = cudaHostRegister(memory, size, cudaHostRegisterPortable);
    if (error != cudaSuccess) {
        munmap(memory, size);
        return mb_cuda_status(error, "pinning host memory");
    }
    *host = memory;
    return MB_STATUS_OK;
}

void mb_cuda_unpin(void *self, void *host, uint64_t bytes)
{
    cudaSetDevice(((mb_cuda_device *)self)->index);
    cudaHostUnregister(host);
    munmap(host, whole_pages(bytes));
}

mb_status mb_cuda_lane_copy(void *self, mb_lane lane, void *to, const void *from, uint64_t bytes)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    MB_CUDA(cudaMemcpyAsync(
        to, from, bytes, lane == MB_LANE_UPLOAD ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
        stream_of(device, lane)));
    return MB_STATUS_OK;
}

mb_status mb_cuda_lane_wait(void *self, mb_lane lane, void *event)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    MB_CUDA(cudaStreamWaitEvent(stream_of(device, lane), (cudaEvent_t)event, 0));
    return MB_STATUS_OK;
}

mb_status mb_cuda_event_create(void *self, void **event)
{
    cudaEvent_t made = NULL;
    MB_TRY(mb_cuda_select((mb_cuda_device *)self));
    MB_CUDA(cudaEventCreateWithFlags(&made, cudaEventBlockingSync));
    *event = made;
    return MB_STATUS_OK;
}

void mb_cuda_event_destroy(void *self, void *event)
{
    if (!event)
        return;
    cudaSetDevice(((mb_cuda_device *)self)->index);
    cudaEventDestroy((cudaEvent_t)event);
}

mb_status mb_cuda_event_record(void *self, mb_lane lane, void *event)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    MB_CUDA(cudaEventRecord((cudaEvent_t)event, stream_of(device, lane)));
    return MB_STATUS_OK;
}

mb_status mb_cuda_event_wait(void *self, void *event)
{
    MB_TRY(mb_cuda_select((mb_cuda_device *)self));
    MB_CUDA(cudaEventSynchronize((cudaEvent_t)event));
    return MB_STATUS_OK;
}

mb_status mb_cuda_event_elapsed_ms(void *self, void *begin, void *end, double *ms)
{
    float elapsed = 0;
    MB_TRY(mb_cuda_select((mb_cuda_device *)self));
    MB_CUDA(cudaEventElapsedTime(&elapsed, (cudaEvent_t)begin, (cudaEvent_t)end));
    *ms = elapsed;
    return MB_STATUS_OK;
}
