/*
** The backend vtable: everything the runtime asks of a kind of device. Two backends compute: host
** (device/host) and the CUDA plug-in (cuda/). Two do not: dry (device/dry) and planned
** (device/planned). An entry may be NULL only where its comment says so.
**
** Queued calls run in order on the device's one compute stream. `self` is what `open` returned.
** Beside the compute stream, a device has two lanes for copies from and to pinned host memory;
** events order the lanes. Any thread may call the functions of lanes and events, but only one
** thread at a time may use a lane. A plug-in must not use symbols of the runtime, because the
** program that loads it may not export any: it is given mb_core_api, and it exports one function,
** mb_backend_entry.
*/
#ifndef MB_DEVICE_BACKEND_H
#define MB_DEVICE_BACKEND_H

#include "device/fft.h"

#define MB_BACKEND_ABI 6

typedef struct mb_op_call mb_op_call; /* an operator's call, defined in ops/op.h */
typedef mb_status (*mb_op_kernel)(const mb_op_call *call);

/* The kernel of the operator named `name`. */
typedef struct mb_named_kernel {
    const char *name;
    mb_op_kernel run;
} mb_named_kernel;

typedef struct mb_device_facts {
    char name[128];         /* "AMD EPYC, 2 threads", "NVIDIA H200" */
    int threads;            /* host: worker threads; cuda: multiprocessors */
    int compute_capability; /* cuda: 90 for sm_90; host: 0 */
    uint64_t total_bytes;
    uint64_t commit_granularity;
    uint64_t l2_bytes;
    uint64_t block_shared_bytes; /* cuda: the most shared memory that a block can request, or 0 */
    char pci[24];                /* cuda: its PCI address, "0000:3B:00.0"; else "" */
} mb_device_facts;

/* block_shared_bytes by compute capability (table of technical specifications in the CUDA C++
** Programming Guide). */
static inline uint64_t mb_block_shared_bytes(int capability)
{
    const bool large = capability == 80 || capability == 87;
    const bool largest = capability >= 90 && capability < 120;
    return (uint64_t)(capability < 80 ? 64 : large ? 163 : largest ? 227 : 99) << 10;
}

typedef enum mb_lane {
    MB_LANE_COMPUTE, /* the compute stream */
    MB_LANE_UPLOAD,
    MB_LANE_DOWNLOAD,
    MB_LANE_COUNT
} mb_lane;

/* Rows of a copy: `count` runs of `width` bytes. At each end, consecutive runs begin one pitch
** apart. */
typedef struct mb_lane_rows {
    uint64_t width, count, to_pitch, from_pitch;
} mb_lane_rows;

typedef struct mb_backend {
    int abi;
    const char *name; /* "host", "cuda" */
    int (*count)(void);
    /* The facts of a device that need not be open; those that only opening tells are 0. */
    mb_status (*describe)(int index, mb_device_facts *facts);
    mb_status (*open)(int index, void **self, mb_device_facts *facts);
    void (*close)(void *self);
    /* The device is lost. Later calls fail without using it, and those that free something free
    ** only the host's records of it. Any thread may call it. NULL: there is nothing to do. */
    void (*lose)(void *self);
    /* Bytes free now and in total, as the system or driver reports them. */
    mb_status (*memory)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

    /* Address range (see mb_pool_source). */
    mb_status (*reserve)(void *self, uint64_t bytes, void **base);
    void (*unreserve)(void *self, void *base, uint64_t bytes);
    mb_status (*commit)(void *self, void *base, uint64_t offset, uint64_t bytes);
    void (*decommit)(void *self, void *base, uint64_t offset, uint64_t bytes);

    /* Data. `upload` returns when the host bytes may be reused, `download` when they have arrived.
    ** `copy` and `fill` are queued and stay on the device. */
    mb_status (*upload)(void *self, void *device, const void *host, uint64_t bytes);
    mb_status (*download)(void *self, void *host, const void *device, uint64_t bytes);
    mb_status (*copy)(void *self, void *to, const void *from, uint64_t bytes);
    mb_status (*fill)(void *self, void *device, int byte, uint64_t bytes);
    mb_status (*sync)(void *self); /* NULL: nothing is ever queued */
    void *(*stream)(void *self);   /* the native compute stream; NULL: there is none */

    /* Pinned host memory, which the lanes copy from and to. It is zeroed, so that every page is
    ** present before its first use. Every device of the backend can copy from it. */
    mb_status (*pin)(void *self, uint64_t bytes, void **host);
    void (*unpin)(void *self, void *host, uint64_t bytes);
    /* Queues a copy between pinned and device memory, in the lane's direction. */
    mb_status (*lane_copy)(void *self, mb_lane lane, void *to, const void *from,
                           const mb_lane_rows *rows);
    /* Work that is queued on the lane from now on waits for the latest recording of the event. */
    mb_status (*lane_wait)(void *self, mb_lane lane, void *event);

    /* Events mark a point of a lane. */
    mb_status (*event_create)(void *self, void **event);
    void (*event_destroy)(void *self, void *event);
    mb_status (*event_record)(void *self, mb_lane lane, void *event);
    mb_status (*event_wait)(void *self,
                            void *event); /* sleeps until it has passed; NULL: all have */
    /* The time between two events that have passed. */
    mb_status (*event_elapsed_ms)(void *self, void *begin, void *end, double *ms);

    mb_status (*fft_create)(void *self, const mb_fft_desc *desc, void **plan, uint64_t *work_bytes,
                            uint64_t *library_bytes);
    void (*fft_destroy)(void *self, void *plan);
    mb_status (*fft_exec)(void *self, void *plan, const mb_fft_desc *desc, void *in, void *out,
                          void *work);

    /* The kernels of this backend; the last name is NULL. A device looks up the kernel of every
    ** operator when it opens. NULL: it uses the operators' own kernels, which run on the host. */
    const mb_named_kernel *kernels;
    /* Runs or queues the kernel. */
    mb_status (*launch)(void *self, mb_op_kernel kernel, const mb_op_call *call);

    /* Bytes that the backend itself holds on the device / in pinned host memory outside the pool.
    ** May be NULL. */
    void (*overhead)(void *self, uint64_t *device_bytes, uint64_t *pinned_bytes);
    /* Name and version of the FFT library ("cuFFT 12.0.0"). */
    void (*fft_library)(void *self, char *text, size_t bytes);
} mb_backend;

/* The functions that a plug-in may call. */
typedef struct mb_core_api {
    int abi;
    mb_status (*fail)(mb_status code, const char *arg, const char *format, ...);
    bool (*cancelled)(void);
} mb_core_api;

typedef const mb_backend *(*mb_backend_entry_function)(const mb_core_api *api);
#define MB_BACKEND_ENTRY "mb_backend_entry"

#endif
