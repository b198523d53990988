#include "device/lua_dry_arrays.h"
#include "device/lua_dry.h"
#include "memory/lua_array_box.h"
#include <stdlib.h>

/* Under the lock: the array of the dry device that stands for `array`. */
static mb_status make_dry(mb_array *array, mb_device *device, mb_array **out)
{
    mb_array *dry = malloc(sizeof *dry);
    if (!dry)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an array's record");
    *dry = *array;
    dry->device = device;
    const mb_device *pinned_for = mb_storage_pinned_for(array->storage);
    mb_status status = mb_storage_dry_copy(
        array->storage, device, pinned_for ? mbl_dry_of(pinned_for) : NULL, &dry->storage);
    if (status != MB_STATUS_OK) {
        free(dry);
        return status;
    }
    *out = dry;
    return MB_STATUS_OK;
}

/* Under the lock. */
static mb_status replace(mbl_array_box *box, mb_device *dry)
{
    mb_array *array = NULL;
    mbl_replaced *saved = malloc(sizeof *saved);
    if (!saved)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an array's record");
    mb_status status = make_dry(box->array, dry, &array);
    if (status != MB_STATUS_OK) {
        free(saved);
        return status;
    }
    *saved = (mbl_replaced){box->array, box->saved};
    box->saved = saved;
    box->array = array;
    return MB_STATUS_OK;
}

mb_status mbl_dry_replace_arrays(mb_device *device, mb_device *dry)
{
    mb_status status = MB_STATUS_OK;
    mbl_array_box *boxes = mbl_lock_array_boxes();
    for (mbl_array_box *box = boxes; box && status == MB_STATUS_OK; box = box->next)
        if (box->array && box->array->device == device)
            status = replace(box, dry);
    for (mbl_array_box *box = boxes; box; box = box->next)
        if (box->saved && box->saved->array->device == device)
            mb_storage_forget_dry_copy(box->saved->array->storage);
    mbl_unlock_array_boxes();
    return status;
}

void mbl_dry_restore_arrays(const mb_device *device)
{
    bool found = true;
    while (found) {
        mb_array *dry = NULL;
        found = false;
        for (mbl_array_box *box = mbl_lock_array_boxes(); box && !found; box = box->next)
            if (box->saved && box->saved->array->device == device) {
                mbl_replaced *saved = box->saved;
                found = true;
                dry = box->array;
                box->array = saved->array;
                box->saved = saved->below;
                free(saved);
            }
        mbl_unlock_array_boxes();
        mb_array_destroy(dry);
    }
}
