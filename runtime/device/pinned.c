/*
** The account of pinned memory, and its rows in the ledger.
*/
#include "device/pinned.h"
#include "device/ledger.h"
#include "device/numa.h"

static void note(const mb_device *device, int64_t change, uint64_t peak, const char *owner)
{
    if (mb_ledger_on(device))
        mb_ledger_note(device, &(mb_ledger_row){.kind = MB_LEDGER_PIN,
                                                .label = change > 0 ? "pin" : "unpin",
                                                .owner = owner,
                                                .keep = change,
                                                .live = device->pinned.live,
                                                .peak = peak});
}

static mb_status fail_limit(const mb_device *device, uint64_t bytes)
{
    const mb_pinned *p = &device->pinned;
    char need[32], live[32], limit[32];
    mb_fail_bytes(MB_STATUS_BUDGET, bytes, p->limit,
                  "%s of pinned host memory do not fit the limit of %s for %s, with %s in use",
                  mb_bytes_format_like(bytes, p->limit, need, sizeof need),
                  mb_bytes_format(p->limit, limit, sizeof limit), device->id,
                  mb_bytes_format_like(p->live, p->limit, live, sizeof live));
    mb_error_remedy("raise the limit (device:pinned(%llu)), or request less",
                    (unsigned long long)mb_bytes_add(p->live, bytes));
    return MB_STATUS_BUDGET;
}

/* The limit allows it, but the system does not; the system's error is on record. */
static mb_status fail_refused(const mb_pinned *p, uint64_t bytes)
{
    char need[32];
    mb_fail_bytes(MB_STATUS_BUDGET, bytes, p->limit,
                  "%s of pinned host memory are within the limit, but the system refused them: %s",
                  mb_bytes_format(bytes, need, sizeof need), mb_error_last()->text);
    mb_error_remedy("end other programs that use this memory, or request less");
    return MB_STATUS_BUDGET;
}

static mb_status pin(mb_device *device, uint64_t bytes, void **address)
{
    if (device->pinned.refuse && device->pinned.refuse--)
        return mb_fail(MB_STATUS_MEMORY, NULL, "the system refused %llu bytes: injected for a test",
                       (unsigned long long)bytes);
    /* Memory belongs to the node whose processors touch it first. */
    mb_processors before;
    mb_numa_enter(device->numa, &before);
    const mb_status status = mb_device_pin(device, bytes, address);
    mb_numa_leave(device->numa, &before);
    return status;
}

void mb_pinned_refuse(mb_device *device, uint64_t n)
{
    device->pinned.refuse = n;
}

mb_status mb_pinned_alloc(mb_device *device, uint64_t bytes, const char *owner, void **address)
{
    mb_pinned *p = &device->pinned;
    *address = NULL;
    if (p->refusal)
        return mb_fail(MB_STATUS_ARGUMENT, "device", "%s", p->refusal);
    if (p->live > p->limit || bytes > p->limit - p->live)
        return fail_limit(device, bytes);
    mb_status status = pin(device, bytes, address);
    if (status != MB_STATUS_OK)
        return status == MB_STATUS_MEMORY ? fail_refused(p, bytes) : status;
    p->live += bytes;
    if (p->live > p->peak)
        p->peak = p->live;
    note(device, (int64_t)bytes, p->live, owner);
    return MB_STATUS_OK;
}

void mb_pinned_free(mb_device *device, void *address, uint64_t bytes, const char *owner)
{
    mb_device_unpin(device, address, bytes);
    mb_pinned_forget(device, bytes, owner);
}

void mb_pinned_forget(mb_device *device, uint64_t bytes, const char *owner)
{
    uint64_t before = device->pinned.live;
    device->pinned.live -= bytes;
    note(device, -(int64_t)bytes, before, owner);
}
