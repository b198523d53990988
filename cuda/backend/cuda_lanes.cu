/*
** Lanes: the compute stream and two separate streams for copies from and to pinned memory, the
** events that order them, and the pinned memory itself.
**
** Pinned memory is anonymous memory of huge pages that is touched, by several threads if it is
** large, and then registered. That takes a fraction of the time of cudaHostAlloc, and copies are as
** fast. Threads: events and lanes may be used by any thread; threads that share a lane need a lock.
** The two copy streams are made when the device is opened.
*/
#include "backend/cuda_device.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE (2ull << 20)
#define MOST_PITCH 0x7fffffffull /* the limit of cudaMemcpy2D */

/* Each thread touches at least this many bytes, because the kernel zeroes pages at some GB/s per
** thread. */
#define TOUCH_BYTES (64ull << 20)
#define TOUCH_THREADS 16

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static cudaStream_t stream_of(const mb_cuda_device *device, mb_lane lane)
{
    return lane == MB_LANE_COMPUTE ? device->stream : device->copies[lane - MB_LANE_UPLOAD];
}

mb_status mb_cuda_lanes_open(mb_cuda_device *device)
{
    for (int i = 0; i < 2; i++)
        MB_CUDA(cudaStreamCreateWithFlags(&device->copies[i], cudaStreamNonBlocking));
    return MB_STATUS_OK;
}

void mb_cuda_lanes_close(mb_cuda_device *device)
{
    for (int i = 0; mb_cuda_reach(device) && i < 2; i++)
        if (device->copies[i]) {
            cudaStreamSynchronize(device->copies[i]);
            cudaStreamDestroy(device->copies[i]);
            device->copies[i] = NULL;
        }
    mb_cuda_freed();
}

/* Reserves one huge page more than needed and frees what is outside the aligned range. */
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

typedef struct touch_job {
    char *memory;
    uint64_t bytes;
} touch_job;

static void *touch(void *user)
{
    const touch_job *job = (const touch_job *)user;
    for (uint64_t i = 0; i < job->bytes; i += 4096)
        ((volatile char *)job->memory)[i] = 0;
    return NULL;
}

/* Touches every page, with as many threads as are worthwhile. A thread that cannot be started is
** not a failure. */
static void touch_all(char *memory, uint64_t bytes)
{
    pthread_t threads[TOUCH_THREADS];
    touch_job jobs[TOUCH_THREADS];
    cpu_set_t allowed; /* the processors near the device, where the runtime has chosen them */
    const int processors =
        sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
    uint64_t count = bytes / TOUCH_BYTES, part;
    if (count > TOUCH_THREADS)
        count = TOUCH_THREADS;
    if (processors > 0 && count > (uint64_t)processors)
        count = (uint64_t)processors;
    if (count < 1)
        count = 1;
    part = whole_pages(bytes / count);
    bool started[TOUCH_THREADS] = {false};
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t begin = i * part < bytes ? i * part : bytes;
        jobs[i].memory = memory + begin;
        jobs[i].bytes = bytes - begin < part ? bytes - begin : part;
        started[i] = i > 0 && pthread_create(&threads[i], NULL, touch, &jobs[i]) == 0;
    }
    for (uint64_t i = 0; i < count; i++)
        if (!started[i])
            touch(&jobs[i]);
    for (uint64_t i = 0; i < count; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
}

mb_status mb_cuda_pin(void *self, uint64_t bytes, void **host)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    uint64_t size = whole_pages(bytes);
    char *memory = (char *)map_aligned(size);
    if (!memory)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL,
                                  "the system refused %llu bytes of host memory",
                                  (unsigned long long)size);
    madvise(memory, size, MADV_HUGEPAGE);
    touch_all(memory, size);
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
    if (!mb_cuda_reach((const mb_cuda_device *)self))
        return;
    if (cudaHostUnregister(host) == cudaSuccess) /* else the driver may still use the pages */
        munmap(host, whole_pages(bytes));
    mb_cuda_freed();
}

mb_status mb_cuda_lane_copy(void *self, mb_lane lane, void *to, const void *from,
                            const mb_lane_rows *rows)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    const cudaMemcpyKind kind =
        lane == MB_LANE_UPLOAD ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    mb_lane_rows r = *rows;
    if (r.to_pitch == r.width && r.from_pitch == r.width) { /* one run */
        r.width *= r.count;
        r.count = 1;
    }
    MB_TRY(mb_cuda_select(device));
    if (r.count > 1 && r.to_pitch <= MOST_PITCH && r.from_pitch <= MOST_PITCH) {
        MB_CUDA(cudaMemcpy2DAsync(to, r.to_pitch, from, r.from_pitch, r.width, r.count, kind,
                                  stream_of(device, lane)));
        return MB_STATUS_OK;
    }
    for (uint64_t row = 0; row < r.count; row++)
        MB_CUDA(cudaMemcpyAsync((char *)to + row * r.to_pitch,
                                (const char *)from + row * r.from_pitch, r.width, kind,
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
    if (event && mb_cuda_reach((const mb_cuda_device *)self))
        cudaEventDestroy((cudaEvent_t)event);
    mb_cuda_freed();
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
