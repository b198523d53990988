/*
** The CUDA backend: the table the runtime sees, devices, the compute stream. Errors, memory,
** staging, lanes and FFT have files of their own (cuda_check.cu, cuda_memory.cu, cuda_staging.cu,
** cuda_lanes.cu, cuda_fft.cu); each operator has <name>.cu. The one exported symbol is
** mb_backend_entry. On a machine without a driver everything loads and count() is 0.
*/
#include "backend/cuda_device.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices ---- */

static int device_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return count;
}

/* Device memory in use by all processes, from the management library: CUDA itself cannot report it
** without a context, and the context is what must be measured. 0 if that library is missing. */
static uint64_t used_without_context(int index)
{
    struct {
        unsigned long long total, free, used;
    } memory = {0, 0, 0};
    char bus[32];
    void *handle = NULL;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 0;
    int (*start)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    int (*stop)(void) = (int (*)(void))dlsym(library, "nvmlShutdown");
    int (*find)(const char *, void **) =
        (int (*)(const char *, void **))dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    int (*ask)(void *, void *) = (int (*)(void *, void *))dlsym(library, "nvmlDeviceGetMemoryInfo");
    if (start && stop && find && ask && start() == 0) {
        if (cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess ||
            find(bus, &handle) != 0 || ask(handle, &memory) != 0)
            memory.used = 0;
        stop();
    }
    dlclose(library);
    return memory.used;
}

static void device_close(void *self)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    if (!device)
        return;
    if (mb_cuda_reach(device) && device->stream)
        cudaStreamSynchronize(device->stream);
    mb_cuda_lanes_close(device);
    mb_cuda_memory_close(device);
    mb_cuda_staging_close(device);
    if (mb_cuda_reach(device) && device->stream)
        cudaStreamDestroy(device->stream);
    mb_cuda_freed();
    free(device);
}

static void device_lose(void *self)
{
    __atomic_store_n(&((mb_cuda_device *)self)->lost, 1u, __ATOMIC_RELEASE);
}

/* With MOONBEAM_CUDA_CAPABILITY=80, operators choose kernels on newer devices as for compute
** capability 8.0, so that their kernels for older devices can be tested and timed. */
static mb_status limit_capability(mb_device_facts *facts)
{
    const char *given = getenv("MOONBEAM_CUDA_CAPABILITY");
    if (!given || !*given)
        return MB_STATUS_OK;
    char *end;
    long most = strtol(given, &end, 10);
    if (*end || most < 75 || most > 999)
        return mb_cuda_core->fail(
            MB_STATUS_ARGUMENT, NULL,
            "MOONBEAM_CUDA_CAPABILITY is '%s'; give a compute capability without its dot, "
            "such as 80, or unset it",
            given);
    if (facts->compute_capability <= most)
        return MB_STATUS_OK;
    uint64_t shared = mb_block_shared_bytes((int)most);
    facts->compute_capability = (int)most;
    facts->block_shared_bytes =
        shared < facts->block_shared_bytes ? shared : facts->block_shared_bytes;
    return MB_STATUS_OK;
}

static mb_status describe(int index, mb_device_facts *facts)
{
    struct cudaDeviceProp prop;
    MB_CUDA(cudaGetDeviceProperties(&prop, index));
    memset(facts, 0, sizeof *facts);
    snprintf(facts->name, sizeof facts->name, "%.120s", prop.name);
    facts->threads = prop.multiProcessorCount;
    facts->compute_capability = prop.major * 10 + prop.minor;
    facts->total_bytes = prop.totalGlobalMem;
    facts->l2_bytes = (uint64_t)prop.l2CacheSize;
    facts->block_shared_bytes = prop.sharedMemPerBlockOptin;
    MB_CUDA(cudaDeviceGetPCIBusId(facts->pci, sizeof facts->pci, index));
    return limit_capability(facts);
}

static mb_status start(mb_cuda_device *device, mb_device_facts *facts)
{
    MB_TRY(describe(device->index, facts));
    uint64_t before = used_without_context(device->index);
    MB_TRY(mb_cuda_select(device));
    MB_CUDA(cudaFree(NULL)); /* makes the context if selecting the device has not */
    MB_CUDA(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
    MB_TRY(mb_cuda_lanes_open(device));
    MB_TRY(mb_cuda_memory_open(device, &device->granularity));
    MB_TRY(mb_cuda_staging_open(device));
    uint64_t after = used_without_context(device->index);
    device->context_bytes = before && after > before ? after - before : 0;
    facts->commit_granularity = device->granularity;
    return MB_STATUS_OK;
}

static mb_status device_open(int index, void **self, mb_device_facts *facts)
{
    int count = device_count();
    if (index < 0 || index >= count)
        return mb_cuda_core->fail(MB_STATUS_DEVICE, NULL, "there is no CUDA device %d (%d found)",
                                  index, count);
    mb_cuda_device *device = (mb_cuda_device *)calloc(1, sizeof *device);
    if (!device)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "out of host memory for a device");
    device->index = index;
    mb_status status = start(device, facts);
    if (status != MB_STATUS_OK) {
        device_close(device);
        return status;
    }
    *self = device;
    return MB_STATUS_OK;
}

static mb_status device_memory(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t free_now = 0, total = 0;
    MB_TRY(mb_cuda_select((mb_cuda_device *)self));
    MB_CUDA(cudaMemGetInfo(&free_now, &total));
    *free_bytes = free_now;
    *total_bytes = total;
    return MB_STATUS_OK;
}

static void device_overhead(void *self, uint64_t *device_bytes, uint64_t *pinned_bytes)
{
    const mb_cuda_device *device = (const mb_cuda_device *)self;
    if (device_bytes)
        *device_bytes = device->context_bytes;
    if (pinned_bytes)
        *pinned_bytes = MB_STAGING_SEGMENTS * MB_STAGING_SEGMENT_BYTES;
}

/* ---- queued work ---- */

static mb_status queue_copy(void *self, void *to, const void *from, uint64_t bytes)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    if (bytes == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_cuda_select(device));
    MB_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device->stream));
    return MB_STATUS_OK;
}

static mb_status queue_fill(void *self, void *to, int byte, uint64_t bytes)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    if (bytes == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_cuda_select(device));
    MB_CUDA(cudaMemsetAsync(to, byte, bytes, device->stream));
    return MB_STATUS_OK;
}

static mb_status stream_sync(void *self)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    MB_CUDA(cudaStreamSynchronize(device->stream));
    return MB_STATUS_OK;
}

static void *native_stream(void *self)
{
    return ((mb_cuda_device *)self)->stream;
}

/* ---- kernels ---- */

#define MB_CUDA_OP(name) extern "C" mb_status mb_cuda_##name(const mb_op_call *call);
#include "cuda_registry.inc"
#undef MB_CUDA_OP

static const mb_named_kernel kernels[] = {
#define MB_CUDA_OP(name) {#name, mb_cuda_##name},
#include "cuda_registry.inc"
#undef MB_CUDA_OP
    {NULL, NULL},
};

/* Selects the device for the kernel, then runs it. An error that this thread has from other work
** must not be taken for one of the kernel. */
static mb_status launch(void *self, mb_op_kernel kernel, const mb_op_call *call)
{
    MB_TRY(mb_cuda_select((const mb_cuda_device *)self));
    (void)cudaGetLastError();
    return kernel(call);
}

/* ---- the table ---- */

static const mb_backend backend = {
    MB_BACKEND_ABI,
    "cuda",
    device_count,
    describe,
    device_open,
    device_close,
    device_lose,
    device_memory,
    mb_cuda_reserve,
    mb_cuda_unreserve,
    mb_cuda_commit,
    mb_cuda_decommit,
    mb_cuda_upload,
    mb_cuda_download,
    queue_copy,
    queue_fill,
    stream_sync,
    native_stream,
    mb_cuda_pin,
    mb_cuda_unpin,
    mb_cuda_lane_copy,
    mb_cuda_lane_wait,
    mb_cuda_event_create,
    mb_cuda_event_destroy,
    mb_cuda_event_record,
    mb_cuda_event_wait,
    mb_cuda_event_elapsed_ms,
    mb_cuda_fft_create,
    mb_cuda_fft_destroy,
    mb_cuda_fft_exec,
    kernels,
    launch,
    device_overhead,
    mb_cuda_fft_library,
};

extern "C" __attribute__((visibility("default"))) const mb_backend *
mb_backend_entry(const mb_core_api *api);

extern "C" const mb_backend *mb_backend_entry(const mb_core_api *api)
{
    if (!api || api->abi != MB_BACKEND_ABI)
        return NULL;
    mb_cuda_core = api;
    return &backend;
}
