/*
** Devices: a backend instance with its pool, FFT cache and compute stream. The registry opens a
** device on first use and keeps it until mb_devices_close. There is no hidden current device: an
** array belongs to its device, and an operator runs where its inputs are. A dry device has the
** facts, the allocator and the planner of a device, over addresses without memory: its operators
** are planned and accounted for but not run, and its data cannot be read. A planned device stands
** for one that is not here (device/planned): dry runs, estimates and plans use a record of it.
*/
#ifndef MB_DEVICE_DEVICE_H
#define MB_DEVICE_DEVICE_H

#include "device/backend.h"
#include "device/pinned.h"
#include "memory/pool.h"

typedef struct mb_device_record mb_device_record; /* device/planned/planned_backend.h */
typedef struct mb_numa mb_numa;

/* Whether a device is lost, and why (device_calls.c). Any thread may lose a device, so the members
** are read and written by the functions below alone. */
typedef struct mb_loss {
    uint32_t lost;
    char cause[300];
    int64_t countdown; /* of mb_device_lose_at; not above 0: none */
    int64_t delay_ms;  /* how long the call takes that loses the device */
    int64_t orphans;   /* of mb_device_add_orphans */
} mb_loss;

struct mb_device {
    const mb_backend *backend;
    void *self; /* the backend's */
    int index;
    char id[24];                    /* "host", "host:1", "cuda:0", "planned:h200" */
    const mb_device_record *record; /* of a planned device; else NULL */
    mb_device_facts facts;
    mb_pool *pool;
    uint64_t default_budget; /* of the pool when it was made */
    uint64_t pretended;      /* for specs: what is free beside the pool; 0: what the backend says */
    mb_fft_cache *ffts;
    mb_pinned pinned;
    /* Indexed by operator number (mb_device_set_operators); NULL: the backend has no such
    ** kernel. */
    mb_op_kernel *kernels;
    mb_loss loss;
    mb_numa *numa; /* the processors near it (device/numa.h); NULL: all are alike */
    bool dry;      /* plan and account, run nothing (device/dry) */
    /* the ledger does not note its steps: a dry device opened for a question, or a device that a
    ** dry run replaces */
    bool silent;
};

/* The devices of one record are numbered from 0: a node of several can be planned for. */
#define MB_PLANNED_DEVICES 16

/* "host" (or "host:0"), "host:1", "cuda" (or "cuda:0"), "cuda:1", "planned:h200", "planned:h200:1".
** Opens the device on first use. */
mb_status mb_device_open(const char *id, mb_device **out);
/* The number of devices, and the id of each (index 0 is the host; "host:1" and so on are not
** counted); tries to load the plug-in. */
int mb_device_count(void);
mb_status mb_device_id(int number, char *id, size_t bytes);
/* The facts of one of them, which is not opened. */
mb_status mb_device_describe(int number, mb_device_facts *facts);
/* Why no CUDA device can be used; "" when one can. */
const char *mb_device_cuda_problem(void);
/* Finds the processors near a device that is open (device/numa.h). Opening does it with "" as root
** and the device's own PCI address; specs do it with trees of their own. */
void mb_device_locate(mb_device *device, const char *root, const char *pci);
/* Sets the folder that holds moonbeam_cuda.so; MOONBEAM_CUDA_PLUGIN (a file) overrides it. Call
** this before the first look-up. */
void mb_device_set_plugin_folder(const char *folder);
/* Says that so many processes of one run are on this machine: each takes its part of the host's
** memory, and of a GPU's if there are fewer GPUs. Before a device is opened. */
void mb_device_set_sharing(int processes);
int mb_device_sharing(void);

/* Sets the operators, by number: their names and their kernels on the host. Devices that are opened
** later look up their kernels in it. The list must remain valid. */
void mb_device_set_operators(const mb_named_kernel *list, int count);

/* ---- calls of a device ----
**
** Every call of a backend's function goes through one of these. A call that fails with
** MB_STATUS_DEVICE loses the device: it fails at once from then on, with the cause, and is not
** called again. Functions that free something never fail, and do not wait for a lost device. Other
** devices go on. Each device can be lost at a chosen call, for specs. */

/* Free and total bytes, as the system or driver reports them. */
mb_status mb_device_memory(mb_device *device, uint64_t *free_bytes, uint64_t *total_bytes);
mb_status mb_device_upload(mb_device *device, void *to, const void *host, uint64_t bytes);
mb_status mb_device_download(mb_device *device, void *host, const void *from, uint64_t bytes);
mb_status mb_device_copy(mb_device *device, void *to, const void *from, uint64_t bytes);
mb_status mb_device_fill(mb_device *device, void *to, int byte, uint64_t bytes);
mb_status mb_device_sync(mb_device *device);
/* For specs: from now on as many bytes are free as the committed memory of the pool leaves of
** `bytes`; 0 ends this. */
void mb_device_pretend(mb_device *device, uint64_t bytes);
mb_status mb_device_launch(mb_device *device, mb_op_kernel kernel, const mb_op_call *call);
mb_status mb_device_pin(mb_device *device, uint64_t bytes, void **host);
void mb_device_unpin(mb_device *device, void *host, uint64_t bytes);
mb_status mb_device_lane_copy(mb_device *device, mb_lane lane, void *to, const void *from,
                              const mb_lane_rows *rows);
mb_status mb_device_lane_wait(mb_device *device, mb_lane lane, void *event);
mb_status mb_device_event_create(mb_device *device, void **event);
void mb_device_event_destroy(mb_device *device, void *event);
mb_status mb_device_event_record(mb_device *device, mb_lane lane, void *event);
mb_status mb_device_event_wait(mb_device *device, void *event);
mb_status mb_device_event_elapsed_ms(mb_device *device, void *begin, void *end, double *ms);
mb_status mb_device_commit(mb_device *device, void *base, uint64_t offset, uint64_t bytes);
mb_status mb_device_fft_create(mb_device *device, const mb_fft_desc *desc, mb_fft_plan *plan);
mb_status mb_device_fft_exec(mb_device *device, const mb_fft_plan *plan, void *in, void *out,
                             void *work);

/* Fails if the device is lost. */
mb_status mb_device_alive(const mb_device *device);
bool mb_device_lost(const mb_device *device);
/* Loses the device for a reason in words, and fails as each later call will. Wakes all that wait
** for work of the device. Any thread may call it. */
mb_status mb_device_lose(mb_device *device, const char *cause);
/* Failure injection for specs: the n-th call from now on that queues, waits for or asks for work
** loses the device, after `delay_ms` (0 for n: none does). */
void mb_device_lose_at(mb_device *device, uint64_t n, uint64_t delay_ms);
/* Counts those that still use the record of a lost device, because nobody waits for their threads.
** mb_devices_close leaves the device alone then. */
void mb_device_add_orphans(mb_device *device, int change);

/* Closes every device (arrays must be gone). Returns the number of blocks that were still live. */
uint64_t mb_devices_close(void);

#endif
