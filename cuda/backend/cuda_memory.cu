/*
** Device memory for the pool: one reserved address range, backed on demand through CUDA's virtual
** memory management.
**
** Memory is mapped in chunks of exactly `granularity` bytes, one driver handle each, because a
** mapping can only be removed as a whole. So any multiple of the granularity can be freed, however
** it was committed. Access rights are set once per commit, over all its chunks. The driver's
** functions are looked up at run time; libcuda is not linked. Threads: the pool's mutex covers
** every call.
*/
#include "backend/cuda_device.h"
#include <cuda.h>
#include <stdlib.h>

/* Chunk of a commit: large enough that 64 GiB take only a few thousand driver calls, and small
** enough for exact budgets. */
#define CHUNK_BYTES (16ull << 20)

struct mb_cuda_range {
    mb_cuda_range *next;
    CUdeviceptr base;
    uint64_t bytes;  /* reserved, a multiple of the granularity */
    uint64_t chunks; /* entries of handles */
    bool *mapped;
    CUmemGenericAllocationHandle *handles;
};

static struct {
    CUresult (*granularity)(size_t *, const CUmemAllocationProp *,
                            CUmemAllocationGranularity_flags);
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*unreserve)(CUdeviceptr, size_t);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
    CUresult (*error_name)(CUresult, const char **);
} driver;

void *mb_cuda_driver_function(const char *name)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return function;
}

static mb_status driver_status(CUresult result, const char *what, uint64_t bytes)
{
    if (result == CUDA_SUCCESS)
        return MB_STATUS_OK;
    const char *name = NULL;
    if (driver.error_name)
        driver.error_name(result, &name);
    /* the driver's numbers are those of the runtime's errors */
    return mb_cuda_core->fail(result == CUDA_ERROR_OUT_OF_MEMORY           ? MB_STATUS_MEMORY
                              : mb_cuda_harmless((cudaError_t)(int)result) ? MB_STATUS_INTERNAL
                                                                           : MB_STATUS_DEVICE,
                              NULL,
                              "the CUDA driver refused to %s %llu bytes of device memory (%s)",
                              what, (unsigned long long)bytes, name ? name : "unknown error");
}

static CUmemAllocationProp properties(const mb_cuda_device *device)
{
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device->index;
    return prop;
}

mb_status mb_cuda_memory_open(mb_cuda_device *device, uint64_t *granularity)
{
    const struct {
        const char *name;
        void **function;
    } wanted[] = {
        {"cuMemGetAllocationGranularity", (void **)&driver.granularity},
        {"cuMemAddressReserve", (void **)&driver.reserve},
        {"cuMemAddressFree", (void **)&driver.unreserve},
        {"cuMemCreate", (void **)&driver.create},
        {"cuMemRelease", (void **)&driver.release},
        {"cuMemMap", (void **)&driver.map},
        {"cuMemUnmap", (void **)&driver.unmap},
        {"cuMemSetAccess", (void **)&driver.access},
        {"cuGetErrorName", (void **)&driver.error_name},
    };
    /* Once: threads of a device that is open already use the table. */
    for (size_t i = 0; !driver.error_name && i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].function = mb_cuda_driver_function(wanted[i].name);
        if (!*wanted[i].function)
            return mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL,
                                      "the NVIDIA driver has no %s: driver 450 or newer is needed",
                                      wanted[i].name);
    }
    CUmemAllocationProp prop = properties(device);
    size_t smallest = 0;
    MB_TRY(driver_status(driver.granularity(&smallest, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                         "state the granularity of", 0));
    *granularity = smallest ? (CHUNK_BYTES + smallest - 1) / smallest * smallest : CHUNK_BYTES;
    return MB_STATUS_OK;
}

static mb_cuda_range *range_of(mb_cuda_device *device, const void *base)
{
    mb_cuda_range *range = device->ranges;
    while (range && range->base != (CUdeviceptr)base)
        range = range->next;
    return range;
}

static void unmap_chunks(mb_cuda_device *device, mb_cuda_range *range, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end && !mb_cuda_lost(device); i++)
        if (range->mapped[i]) {
            driver.unmap(range->base + i * device->granularity, device->granularity);
            driver.release(range->handles[i]);
            range->mapped[i] = false;
        }
}

mb_status mb_cuda_reserve(void *self, uint64_t bytes, void **base)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    uint64_t chunk = device->granularity;
    if (bytes == 0 || bytes > UINT64_MAX - chunk)
        return mb_cuda_core->fail(MB_STATUS_ARGUMENT, NULL,
                                  "cannot reserve an address range of %llu bytes",
                                  (unsigned long long)bytes);
    mb_cuda_range *range = (mb_cuda_range *)calloc(1, sizeof *range);
    mb_status status = MB_STATUS_OK;
    if (range) {
        range->chunks = (bytes + chunk - 1) / chunk;
        range->bytes = range->chunks * chunk;
        range->mapped = (bool *)calloc(range->chunks, sizeof *range->mapped);
        range->handles =
            (CUmemGenericAllocationHandle *)calloc(range->chunks, sizeof *range->handles);
    }
    if (!range || !range->mapped || !range->handles)
        status = mb_cuda_core->fail(MB_STATUS_MEMORY, NULL,
                                    "out of host memory for the map of a device range");
    else
        status = driver_status(driver.reserve(&range->base, range->bytes, 0, 0, 0), "reserve",
                               range->bytes);
    if (status != MB_STATUS_OK) {
        if (range) {
            free(range->mapped);
            free(range->handles);
        }
        free(range);
        return status;
    }
    range->next = device->ranges;
    device->ranges = range;
    *base = (void *)range->base;
    return MB_STATUS_OK;
}

void mb_cuda_unreserve(void *self, void *base, uint64_t bytes)
{
    (void)bytes;
    mb_cuda_device *device = (mb_cuda_device *)self;
    mb_cuda_range *range = range_of(device, base);
    if (!range)
        return;
    if (mb_cuda_reach(device)) {
        cudaStreamSynchronize(device->stream);
        unmap_chunks(device, range, 0, range->chunks);
        driver.unreserve(range->base, range->bytes);
    }
    mb_cuda_freed();
    mb_cuda_range **link = &device->ranges;
    while (*link != range)
        link = &(*link)->next;
    *link = range->next;
    free(range->mapped);
    free(range->handles);
    free(range);
}

void mb_cuda_memory_close(mb_cuda_device *device)
{
    while (device->ranges)
        mb_cuda_unreserve(device, (void *)device->ranges->base, device->ranges->bytes);
}

mb_status mb_cuda_commit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    mb_cuda_range *range = range_of(device, base);
    uint64_t chunk = device->granularity;
    if (!range || offset % chunk || bytes % chunk || offset > range->bytes ||
        bytes > range->bytes - offset)
        return mb_cuda_core->fail(MB_STATUS_INTERNAL, NULL,
                                  "a commit outside the reserved range or off its grid");
    uint64_t first = offset / chunk, end = first + bytes / chunk, at = first;
    for (uint64_t i = first; i < end; i++)
        if (range->mapped[i])
            return mb_cuda_core->fail(MB_STATUS_INTERNAL, NULL,
                                      "a commit of memory that is committed already");
    CUmemAllocationProp prop = properties(device);
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    mb_status status = MB_STATUS_OK;
    for (; at < end; at++) {
        status =
            driver_status(driver.create(&range->handles[at], chunk, &prop, 0), "commit", bytes);
        if (status != MB_STATUS_OK)
            break;
        status = driver_status(
            driver.map(range->base + at * chunk, chunk, 0, range->handles[at], 0), "map", bytes);
        if (status != MB_STATUS_OK) {
            driver.release(range->handles[at]);
            break;
        }
        range->mapped[at] = true;
    }
    if (status == MB_STATUS_OK && bytes > 0)
        status = driver_status(driver.access(range->base + offset, bytes, &access, 1),
                               "open access to", bytes);
    if (status != MB_STATUS_OK)
        unmap_chunks(device, range, first, at);
    return status;
}

void mb_cuda_decommit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    mb_cuda_range *range = range_of(device, base);
    uint64_t chunk = device->granularity;
    if (!range || offset % chunk || bytes % chunk || offset > range->bytes ||
        bytes > range->bytes - offset)
        return;
    if (!mb_cuda_reach(device))
        return;
    cudaStreamSynchronize(device->stream); /* queued work may still use what the pool has freed */
    unmap_chunks(device, range, offset / chunk, (offset + bytes) / chunk);
    mb_cuda_freed();
}
