/*
** The account of pinned memory, and its rows in the ledger.
*/
#include "memory/pinned.h"
#include "memory/ledger.h"

#define VIRTUAL_BASE UINT64_C(0x40000000000)

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

mb_status mb_pinned_alloc(mb_device *device, uint64_t bytes, const char *owner, void **address)
{
    mb_pinned *p = &device->pinned;
    char need[32], live[32], limit[32];
    *address = NULL;
    if (p->live > p->limit || bytes > p->limit - p->live)
        return mb_fail_bytes(
            MB_STATUS_BUDGET, bytes, p->limit,
            "%s of pinned host memory do not fit the limit of %s for %s, of which "
            "%s are in use: raise the limit (device:pinned(bytes)), or ask for less",
            mb_bytes_format(bytes, need, sizeof need),
            mb_bytes_format(p->limit, limit, sizeof limit), device->id,
            mb_bytes_format(p->live, live, sizeof live));
    if (!device->dry) {
        MB_TRY(device->backend->pin(device->self, bytes, address));
    } else {
        *address = (void *)(uintptr_t)(VIRTUAL_BASE + p->placed);
        p->placed += (bytes + 4095) / 4096 * 4096;
    }
    p->live += bytes;
    if (p->live > p->peak)
        p->peak = p->live;
    note(device, (int64_t)bytes, p->live, owner);
    return MB_STATUS_OK;
}

void mb_pinned_free(mb_device *device, void *address, uint64_t bytes, const char *owner)
{
    if (!device->dry)
        device->backend->unpin(device->self, address, bytes);
    uint64_t before = device->pinned.live;
    device->pinned.live -= bytes;
    note(device, -(int64_t)bytes, before, owner);
}
