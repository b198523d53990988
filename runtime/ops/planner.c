/*
** Slot placement: largest first, each at the lowest offset where no slot that lives at the same
** time stands. For the few slots of an operator this is optimal or within a few per cent of it, and
** it is what the estimate promises.
*/
#include "ops/planner.h"
#include "device/device.h"

void mb_planner_begin(mb_planner *planner, mb_device *device)
{
    planner->device = device;
    planner->slot_count = planner->fft_count = 0;
    planner->extent = 0;
    planner->status = MB_STATUS_OK;
}

int mb_planner_slot(mb_planner *planner, const char *name, uint64_t bytes, int first, int last)
{
    int index = planner->slot_count;
    if (planner->status != MB_STATUS_OK)
        return index;
    if (index == MB_PLAN_MAX_SLOTS) {
        planner->status =
            mb_fail(MB_STATUS_INTERNAL, NULL, "more than %d scratch slots", MB_PLAN_MAX_SLOTS);
        return 0;
    }
    if (mb_pool_round(bytes) == UINT64_MAX || bytes > INT64_MAX)
        planner->status = mb_fail_bytes(MB_STATUS_SHAPE, bytes, 0,
                                        "scratch '%s' is larger than can be addressed", name);
    planner->slots[index] = (mb_slot){.name = name, .bytes = bytes, .first = first, .last = last};
    planner->slot_count++;
    return index;
}

int mb_planner_fft(mb_planner *planner, const mb_fft_desc *desc, const char *name, int first,
                   int last, int *work_slot)
{
    int index = planner->fft_count;
    uint64_t work_bytes = 0;
    if (planner->status == MB_STATUS_OK && index == MB_PLAN_MAX_FFTS)
        planner->status = mb_fail(MB_STATUS_INTERNAL, NULL,
                                  "more than %d transforms in one operator", MB_PLAN_MAX_FFTS);
    if (planner->status == MB_STATUS_OK) {
        planner->status = mb_fft_acquire(planner->device, desc, &planner->ffts[index]);
        if (planner->status == MB_STATUS_OK) {
            work_bytes = planner->ffts[index]->work_bytes;
            planner->fft_count++;
        }
    }
    int slot = mb_planner_slot(planner, name, work_bytes, first, last);
    if (slot < planner->slot_count)
        planner->slots[slot].fft = true;
    if (work_slot)
        *work_slot = slot;
    return index;
}

static bool together(const mb_slot *a, const mb_slot *b)
{
    return a->first <= b->last && b->first <= a->last;
}

mb_status mb_planner_assign(mb_planner *planner)
{
    if (planner->status != MB_STATUS_OK)
        return planner->status;
    int order[MB_PLAN_MAX_SLOTS];
    for (int i = 0; i < planner->slot_count; i++) { /* stable insertion sort, largest first */
        int at = i;
        while (at > 0 && planner->slots[order[at - 1]].bytes < planner->slots[i].bytes) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    planner->extent = 0;
    for (int i = 0; i < planner->slot_count; i++) {
        mb_slot *slot = &planner->slots[order[i]];
        uint64_t size = mb_pool_round(slot->bytes), offset = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int j = 0; j < i; j++) {
                const mb_slot *placed = &planner->slots[order[j]];
                uint64_t end = placed->offset + mb_pool_round(placed->bytes);
                if (together(slot, placed) && offset < end &&
                    placed->offset < mb_bytes_add(offset, size)) {
                    offset = end;
                    moved = true;
                }
            }
        }
        slot->offset = offset;
        uint64_t end = mb_bytes_add(offset, size);
        if (end == UINT64_MAX)
            return planner->status =
                       mb_fail(MB_STATUS_SHAPE, NULL, "scratch is larger than can be addressed");
        if (end > planner->extent)
            planner->extent = end;
    }
    return MB_STATUS_OK;
}

uint64_t mb_planner_work(const mb_planner *planner)
{
    uint64_t work = 0;
    for (int i = 0; i < planner->slot_count; i++)
        if (planner->slots[i].fft)
            work = mb_bytes_add(work, mb_pool_round(planner->slots[i].bytes));
    return work < planner->extent ? work : planner->extent;
}

void mb_planner_finish(mb_planner *planner)
{
    for (int i = 0; i < planner->fft_count; i++)
        mb_fft_release(planner->device, planner->ffts[i]);
    planner->fft_count = 0;
}
