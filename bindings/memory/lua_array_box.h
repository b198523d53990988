/*
** The life of array userdata, "moonbeam.array". Userdata are created empty and then filled, so a
** Lua memory error leaks nothing. `release` and `<close>` free at once; the finalizer hands the
** array to the garbage list. A userdata that was released so gets another metatable, which differs
** in one thing: it has no finalizer.
**
** All array userdata of the process are on one list. So a dry device can be closed while userdata
** still refer to its arrays, and a dry run can replace the arrays of a device by dry ones. A lock
** guards the list. It is never held while Lua runs or arrays are freed.
*/
#ifndef MB_BINDINGS_LUA_ARRAY_BOX_H
#define MB_BINDINGS_LUA_ARRAY_BOX_H

#include "array/array.h"
#include "call/lua_type.h"
#include <lua.h>

#define MBL_ARRAY "moonbeam.array"

/* An array that a dry run replaced; the dry one is in the box. `below` is an array that an outer
** dry run replaced. */
typedef struct mbl_replaced {
    mb_array *array;
    struct mbl_replaced *below;
} mbl_replaced;

/* The userdata. */
typedef struct mbl_array_box {
    const mbl_type *mark;               /* NULL once it is released */
    mb_array *array;                    /* NULL: released, or not yet filled */
    mbl_replaced *saved;                /* during a dry run */
    const char *freed;                  /* where it was released; NULL: not released */
    struct mbl_array_box *next, **link; /* on the list of boxes */
    bool listed;                        /* only the userdata's own thread changes it */
    /* Of a view that was made under a tag: the tag and the line; the tag is NULL for others. */
    const char *tag, *owner;
    uint64_t sequence; /* how many of these were made before */
} mbl_array_box;

extern const mbl_type mbl_array_type;

/* Pushes an empty array userdata; fill the slot, and the userdata owns the mb_array. */
mb_array **mbl_new_array(lua_State *L);
/* The same for a view of another array. */
mb_array **mbl_new_view(lua_State *L);
/* The array userdata's slot, NULL for any other value; the slot holds NULL once it is released. */
mb_array **mbl_array_slot(lua_State *L, int index);
/* Raises for a wrong type. */
mbl_array_box *mbl_check_array_box(lua_State *L, int index);
/* Raises for a wrong type and for a released array. */
mb_array *mbl_check_array(lua_State *L, int index);

/* When the metatable of arrays is complete: makes that of released arrays after it. */
void mbl_complete_array_type(lua_State *L);

int mbl_array_gc(lua_State *L);      /* __gc */
int mbl_array_release(lua_State *L); /* release, __close */

/* Takes the lock and returns the first box of the list. */
mbl_array_box *mbl_lock_array_boxes(void);
void mbl_unlock_array_boxes(void);
/* Does any userdata hold an array? */
bool mbl_any_array(void);
/* Releases every array on the device, garbage included, even if userdata refer to it. `site`: the
** line that requested this, or NULL. */
void mbl_forget_arrays(const mb_device *device, const char *site);
/* Makes a closing state free the arrays that finalizers make while it closes. Call this while the
** state is new: the first object with a finalizer is finalized last. */
void mbl_release_at_close(lua_State *L);

#endif
