/*
** The backend of planned devices. `self` is the record. It is immutable, so threads may share it.
*/
#include "device/planned/planned_backend.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

#define MB_DEVICE_RECORD(name) extern const mb_device_record mb_device_record_##name;
#include "record_registry.inc"
#undef MB_DEVICE_RECORD

static const mb_device_record *const records[] = {
#define MB_DEVICE_RECORD(name) &mb_device_record_##name,
#include "record_registry.inc"
#undef MB_DEVICE_RECORD
    NULL};

int mb_device_record_count(void)
{
    return (int)(sizeof records / sizeof *records) - 1;
}

const mb_device_record *mb_device_record_at(int index)
{
    return records[index];
}

int mb_device_record_find(const char *name)
{
    for (int i = 0; records[i]; i++)
        if (strcmp(records[i]->name, name) == 0)
            return i;
    return -1;
}

const mb_fft_record *mb_device_fft_record(const mb_device *device)
{
    if (device->record)
        return &device->record->fft;
    if (device->facts.compute_capability == 0 || mb_device_record_count() == 0)
        return NULL;
    for (int i = 0; records[i]; i++)
        if (strcmp(records[i]->fft.device, device->facts.name) == 0)
            return &records[i]->fft;
    return &records[0]->fft;
}

static mb_status refuse(const mb_device_record *record)
{
    return mb_fail(MB_STATUS_UNSUPPORTED, "device",
                   "planned:%s stands for an %s that is not here: it can be used in plans, with "
                   "mb.dry_run, mb.plan, "
                   "mb.op.estimate or moonbeam --plan, but it holds no data and runs nothing",
                   record->name, record->facts.name);
}

static mb_status planned_describe(int index, mb_device_facts *facts)
{
    *facts = records[index]->facts;
    if (facts->block_shared_bytes == 0 && facts->compute_capability > 0)
        facts->block_shared_bytes = mb_block_shared_bytes(facts->compute_capability);
    return MB_STATUS_OK;
}

static mb_status planned_open(int index, void **self, mb_device_facts *facts)
{
    *self = (void *)(uintptr_t)records[index];
    return planned_describe(index, facts);
}

static void planned_close(void *self)
{
    (void)self;
}

static mb_status planned_memory(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const mb_device_record *record = self;
    *free_bytes = record->free_bytes;
    *total_bytes = record->facts.total_bytes;
    return MB_STATUS_OK;
}

/* Addresses without memory, as on a dry device. */
static mb_status planned_reserve(void *self, uint64_t bytes, void **base)
{
    (void)self, (void)bytes;
    *base = (void *)(uintptr_t)0x10000000000;
    return MB_STATUS_OK;
}

static void planned_unreserve(void *self, void *base, uint64_t bytes)
{
    (void)self, (void)base, (void)bytes;
}

static mb_status planned_commit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    (void)base, (void)offset, (void)bytes;
    return refuse(self);
}

static void planned_decommit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    (void)self, (void)base, (void)offset, (void)bytes;
}

static mb_status planned_transfer(void *self, void *to, const void *from, uint64_t bytes)
{
    (void)to, (void)from;
    return bytes ? refuse(self) : MB_STATUS_OK;
}

static mb_status planned_fill(void *self, void *device, int byte, uint64_t bytes)
{
    (void)device, (void)byte;
    return bytes ? refuse(self) : MB_STATUS_OK;
}

static mb_status planned_event_create(void *self, void **event)
{
    (void)event;
    return refuse(self);
}

/* An event, or an FFT plan. */
static void planned_forget(void *self, void *made)
{
    (void)self, (void)made;
}

static mb_status planned_pin(void *self, uint64_t bytes, void **host)
{
    (void)bytes, (void)host;
    return refuse(self);
}

static mb_status planned_lane_copy(void *self, mb_lane lane, void *to, const void *from,
                                   const mb_lane_rows *rows)
{
    (void)lane;
    return planned_transfer(self, to, from, rows->count);
}

/* Records an event, or has a lane wait for it. */
static mb_status planned_lane_event(void *self, mb_lane lane, void *event)
{
    (void)lane, (void)event;
    return refuse(self);
}

static mb_status planned_event_wait(void *self, void *event)
{
    (void)event;
    return refuse(self);
}

static mb_status planned_event_elapsed_ms(void *self, void *begin, void *end, double *ms)
{
    (void)begin, (void)end, (void)ms;
    return refuse(self);
}

static mb_status planned_fft_create(void *self, const mb_fft_desc *desc, void **plan,
                                    uint64_t *work_bytes, uint64_t *library_bytes)
{
    const mb_device_record *record = self;
    const char *how;
    *plan = NULL;
    *work_bytes = mb_fft_record_work(&record->fft, desc, &how);
    *library_bytes = record->fft.plan_bytes;
    return MB_STATUS_OK;
}

static mb_status planned_fft_exec(void *self, void *plan, const mb_fft_desc *desc, void *in,
                                  void *out, void *work)
{
    (void)plan, (void)desc, (void)in, (void)out, (void)work;
    return refuse(self);
}

static mb_status planned_launch(void *self, mb_op_kernel kernel, const mb_op_call *call)
{
    (void)kernel, (void)call;
    return refuse(self);
}

/* Stands for every kernel, and is never called. */
static mb_status planned_run(const mb_op_call *call)
{
    (void)call;
    return MB_STATUS_UNSUPPORTED;
}

/* The operators with a CUDA kernel, whether or not the plug-in was built. */
static const mb_named_kernel kernels[] = {
#define MB_CUDA_OP(name) {#name, planned_run},
#include "cuda_registry.inc"
#undef MB_CUDA_OP
    {NULL, NULL}};

static void planned_fft_library(void *self, char *text, size_t bytes)
{
    const mb_device_record *record = self;
    snprintf(text, bytes, "%s", record->fft.library);
}

const mb_backend mb_planned_backend = {
    .abi = MB_BACKEND_ABI,
    .name = "cuda",
    .count = mb_device_record_count,
    .describe = planned_describe,
    .open = planned_open,
    .close = planned_close,
    .memory = planned_memory,
    .reserve = planned_reserve,
    .unreserve = planned_unreserve,
    .commit = planned_commit,
    .decommit = planned_decommit,
    .upload = planned_transfer,
    .download = planned_transfer,
    .copy = planned_transfer,
    .fill = planned_fill,
    .pin = planned_pin,
    .unpin = planned_unreserve,
    .lane_copy = planned_lane_copy,
    .lane_wait = planned_lane_event,
    .event_create = planned_event_create,
    .event_destroy = planned_forget,
    .event_record = planned_lane_event,
    .event_wait = planned_event_wait,
    .event_elapsed_ms = planned_event_elapsed_ms,
    .fft_create = planned_fft_create,
    .fft_destroy = planned_forget,
    .fft_exec = planned_fft_exec,
    .kernels = kernels,
    .launch = planned_launch,
    .fft_library = planned_fft_library,
};
