/*
** Types of values: the metatables of userdata, and how messages name a type.
*/
#ifndef MB_BINDINGS_LUA_TYPE_H
#define MB_BINDINGS_LUA_TYPE_H

#include <lauxlib.h>
#include <lua.h>

/* Raises: `what` ("an array") has no `key`. The message names the nearest of `properties`
** (NULL-terminated, or NULL) and of the names in the table of methods at index `methods`. */
int mbl_unknown_key(lua_State *L, const char *what, const char *key, int methods,
                    const char *const *properties);
/* Makes the metatable of a userdata type, with its methods under __index. Any other name is an
** error. Pushes nothing. */
void mbl_register_type(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *methods);
/*
** Types whose objects every allocation looks at. An object begins with a mark, the address of its
** type's record, so that no metatable has to be fetched to know it. Its finalizer clears the mark:
** what lies in free memory looks like no object. Objects without a mark are told by their
** metatable.
*/
typedef struct mbl_type {
    const char *name;
    size_t bytes;    /* of an object */
    lua_Integer key; /* of the metatable in the registry, which finds integers fastest */
} mbl_type;

/* Keys in the registry: beyond those of luaL_ref, within 32 bits. */
enum {
    MBL_KEY_ARRAY = 0x4d420001,
    MBL_KEY_RELEASED_ARRAY,
    MBL_KEY_DEVICE,
    MBL_KEY_DEFAULT_DEVICE, /* its id */
};

/* Pushes the type's metatable, which is made on the first call in a state. */
void mbl_new_metatable(lua_State *L, const mbl_type *type);
/* Pushes an object. What is behind the mark is for the caller to set at once. */
void *mbl_new_userdata(lua_State *L, const mbl_type *type);
/* The object at `index`; NULL for any other value. */
void *mbl_test_userdata(lua_State *L, int index, const mbl_type *type);
/* The type of a value for messages: "number", "moonbeam.array", "no value". */
const char *mbl_type_name(lua_State *L, int index);

#endif
