/*
** What there is to say about the last request that the ladder (lua_allocate.h) could not serve: the
** state of the pool, its largest owners, and what was tried. It is taken down when the request
** fails, and told once, by the error object.
*/
#ifndef MB_BINDINGS_LUA_BUDGET_H
#define MB_BINDINGS_LUA_BUDGET_H

#include "device/device.h"
#include <lua.h>

/* What the ladder did. */
typedef struct mbl_tried {
    uint64_t arrays, bytes; /* freed by a collection */
    int plans;              /* idle FFT plans that were dropped */
} mbl_tried;

/* Nothing is to be told. */
void mbl_budget_forget(void);
/* `owner`: the line that made the request, interned. */
void mbl_budget_note(const mb_device *device, const char *owner, const mbl_tried *tried);
/* Adds what was noted to the error table on the top of the stack: device, owner, live, peak, free,
** largest_hole, tried, owners. */
void mbl_budget_tell(lua_State *L);

#endif
