/*
** Arguments and option tables: checks whose messages name the argument, what was expected and what
** was given. Every function here may raise and holds no resources. Option getters take the index of
** the table (nil or none is an empty table).
*/
#ifndef MB_BINDINGS_LUA_ARGS_H
#define MB_BINDINGS_LUA_ARGS_H

#include "core/shape.h"
#include <lauxlib.h>
#include <lua.h>

/* Raises: `what` has no option `key`. Names the nearest one, or all. */
_Noreturn void mbl_unknown_option(lua_State *L, const char *key, const char *const *names,
                                  const char *what);
/* Raises naming an unknown key and the nearest valid one. `names` is NULL-terminated. */
void mbl_check_options(lua_State *L, int index, const char *const *names, const char *what);
/* The same, and pushes the options in the order of `names`, nil for what is not given. Returns the
** index of the first. At most 10 names. */
int mbl_take_options(lua_State *L, int index, const char *const *names, const char *what);
/* Pushes the option and returns true, or returns false with nothing pushed. */
bool mbl_option(lua_State *L, int index, const char *name);
bool mbl_option_flag(lua_State *L, int index, const char *name); /* is it there, and true? */
int64_t mbl_option_integer(lua_State *L, int index, const char *name, int64_t initial);
double mbl_option_number(lua_State *L, int index, const char *name, double initial);
/* The `dtype` member. */
mb_dtype mbl_option_dtype(lua_State *L, int index, mb_dtype initial);

int64_t mbl_check_integer(lua_State *L, int index, const char *arg);
double mbl_check_number(lua_State *L, int index, const char *arg);
/* A text: a byte 0 in it is an error, for what C takes as a name would end there. */
const char *mbl_check_string(lua_State *L, int index, const char *arg);
void mbl_check_binary(lua_State *L, int index, const char *arg);   /* a string with any bytes */
void *mbl_check_object(lua_State *L, int index, const char *kind); /* kind: its metatable's name */
/* A number of bytes: 8000000, "8M", "8Mi", "1.5G" (K, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of
** 1024). */
uint64_t mbl_check_bytes(lua_State *L, int index, const char *arg);
mb_shape mbl_check_shape(lua_State *L, int index, const char *arg); /* extents, or one integer */
mb_dtype mbl_check_dtype(lua_State *L, int index, const char *arg); /* a name */
/* The same, or `initial` for nil or none. */
int64_t mbl_opt_integer(lua_State *L, int index, const char *arg, int64_t initial);
double mbl_opt_number(lua_State *L, int index, const char *arg, double initial);
mb_dtype mbl_opt_dtype(lua_State *L, int index, mb_dtype initial);

/* The length of a user's list. The list may be a proxy with __len and __index, so read its elements
** with lua_geti. */
lua_Unsigned mbl_length(lua_State *L, int index);

#endif
