#include "memory/lua_allocate.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "device/ledger.h"
#include "memory/garbage_list.h"
#include "memory/lua_array_box.h"
#include "memory/lua_tag.h"
#include "memory/pool_point.h"
#include <stdio.h>

/* Makes the request under the coroutine's tag. */
static mb_status tagged(lua_State *L, mbl_request request, void *user)
{
    const char *tag = mbl_tag(L);
    if (!tag)
        return request(user);
    mb_pool_tag(tag);
    const mb_status status = request(user);
    mb_pool_tag(NULL);
    return status;
}

mb_status mbl_allocate(lua_State *L, mb_device *device, mbl_request request, void *user)
{
    if (mbl_point_is_due(device))
        mbl_pool_point_of(L, device);
    mb_status status = tagged(L, request, user);
    if (status != MB_STATUS_BUDGET)
        return status;
    uint64_t waiting, before, after;
    const uint64_t live = mb_pool_live(device->pool);
    mbl_garbage_count(&waiting, &before);
    mbl_pool_point_of(L, device);
    mbl_garbage_count(&waiting, &after);
    const int plans = mb_fft_cache_drop(device, 0);
    const uint64_t left = mb_pool_live(device->pool);
    status = tagged(L, request, user);
    if (status == MB_STATUS_BUDGET) {
        mb_budget *budget = mb_error_budget();
        mb_pool_explain(device->pool);
        snprintf(budget->device, sizeof budget->device, "%s", device->id);
        budget->owner = mbl_owner(L);
        budget->collected_arrays = after - before;
        budget->collected_bytes = live - left;
        budget->dropped_plans = (uint64_t)plans;
    }
    return status;
}

typedef struct create_request {
    mb_device *device, *pinned_for;
    mb_dtype dtype;
    const mb_shape *shape;
    const char *owner;
    mb_array **out;
} create_request;

static mb_status create(void *user)
{
    const create_request *r = user;
    const mb_status status =
        mb_array_create_pinned(r->device, r->pinned_for, r->dtype, r->shape, r->owner, r->out);
    if (status == MB_STATUS_BUDGET) {
        mb_budget *budget = mb_error_budget();
        char shape[100];
        snprintf(budget->request, sizeof budget->request, "%s %s", mb_dtype_name(r->dtype),
                 mb_shape_format(r->shape, shape, sizeof shape));
    }
    return status;
}

/* The ledger labels an array by the function that made it: "zeros", "read". */
static void label_creation(lua_State *L)
{
    lua_Debug ar;
    if (lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) && ar.name)
        mb_ledger_label(mbl_intern(ar.name));
}

mb_array *mbl_create_array(lua_State *L, mb_device *device, mb_dtype dtype, const mb_shape *shape)
{
    mb_array **slot = mbl_new_array(L);
    create_request request = {device, NULL, dtype, shape, mbl_owner(L), slot};
    if (mb_ledger_on(device))
        label_creation(L);
    mb_status status = mbl_allocate(L, device, create, &request);
    mb_ledger_label(NULL);
    mbl_check(L, status);
    mbl_allocated(device, mb_storage_block((*slot)->storage)->bytes);
    return *slot;
}

mb_array *mbl_create_pinned_array(lua_State *L, mb_device *host, mb_device *pinned_for,
                                  mb_dtype dtype, const mb_shape *shape)
{
    mb_array **slot = mbl_new_array(L);
    create_request request = {host, pinned_for, dtype, shape, mbl_owner(L), slot};
    mb_status status = tagged(L, create, &request);
    if (status == MB_STATUS_BUDGET) { /* garbage arrays may still be counted */
        mbl_pool_point_of(L, host);
        mb_pool_trim(host->pool);
        status = tagged(L, create, &request);
    }
    mbl_check(L, status);
    return *slot;
}
