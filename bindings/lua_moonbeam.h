/*
** What the binding files share: userdata access, raising errors, option tables, allocation with
** pool points. The metatables are "moonbeam.array", "moonbeam.device", "moonbeam.h5", ... Userdata
** are created closed (NULL inside) and then filled, so a Lua memory error leaks nothing.
**
** The order of work in every binding function: parse all arguments (may raise), make the result
** userdata (may raise), call the runtime into them, and only then raise what it reported.
*/
#ifndef MB_BINDINGS_LUA_MOONBEAM_H
#define MB_BINDINGS_LUA_MOONBEAM_H

#include "array/array.h"
#include "ops/op.h"
#include <lauxlib.h>
#include <lua.h>

#define MB_VERSION "0.1.0"

#define MBL_ARRAY "moonbeam.array"
#define MBL_DEVICE "moonbeam.device"
#define MBL_ERROR "moonbeam.error"

/*
** lua_error.c
*/

/* Raises the thread's error record as an error object {code, message, op, arg, need, limit, where}
** and clears it. `where` is the Lua line of the nearest Lua caller outside the module's own Lua
** half. It returns int so that `return mbl_raise(L)` reads as in Lua's own API. */
_Noreturn int mbl_raise(lua_State *L);
/* The same for a status: does nothing when it is MB_STATUS_OK. */
void mbl_check(lua_State *L, mb_status status);
/* Raises with a message of its own. `arg` may be NULL. The operation is the running C function's
** name. */
_Noreturn int mbl_fail(lua_State *L, mb_status code, const char *arg, const char *format, ...)
    MB_PRINTF(4, 5);
/* Pushes the record as an error object and clears it, for functions that return nil, err. */
void mbl_push_error(lua_State *L);
/* Pushes text as a terminal may see it (core/text.h). */
void mbl_push_printable(lua_State *L, const char *text, size_t length, bool lines);
/* Registers the metatable "moonbeam.error"; pushes {new, raise, nearest, printable}. */
int mbl_open_error(lua_State *L);

/*
** lua_owner.c: the Lua line that something belongs to, interned for the life of the process
*/

/* "file.lua:12" of the nearest Lua caller outside the module's own Lua half, or NULL when no Lua
** function runs. */
const char *mbl_caller(lua_State *L);
/* The same, or "C"; quicker. Only for C functions that Lua has called (not for hooks). */
const char *mbl_owner(lua_State *L);
/* The text, interned. */
const char *mbl_intern(const char *text);
/* Where the module's own Lua files are: callers there are skipped. */
void mbl_set_home(const char *folder);
/* Is this the frame that a recording of the ledger runs its function in (lua_ledger.c)? */
bool mbl_is_recording_call(lua_State *L, lua_Debug *ar);

/*
** lua_args.c: arguments and option tables. Option getters take the table's index (nil or none is an
** empty table).
*/

/* Raises naming an unknown key and the nearest valid one. `names` is NULL-terminated. */
void mbl_check_options(lua_State *L, int index, const char *const *names, const char *what);
/* The nearest name of a NULL-terminated list by edit distance, or NULL when none is near. */
const char *mbl_nearest(const char *name, const char *const *names);
/* Pushes the option and returns true, or returns false with nothing pushed. */
bool mbl_option(lua_State *L, int index, const char *name);
int64_t mbl_option_integer(lua_State *L, int index, const char *name, int64_t initial);
double mbl_option_number(lua_State *L, int index, const char *name, double initial);
/* The `dtype` member. */
mb_dtype mbl_option_dtype(lua_State *L, int index, mb_dtype initial);

int64_t mbl_check_integer(lua_State *L, int index, const char *arg);
double mbl_check_number(lua_State *L, int index, const char *arg);
const char *mbl_check_string(lua_State *L, int index, const char *arg);
void *mbl_check_object(lua_State *L, int index, const char *kind); /* kind: its metatable's name */
/* A number of bytes: 8000000, "8M", "8Mi", "1.5G" (K, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of
** 1024). */
uint64_t mbl_check_bytes(lua_State *L, int index, const char *arg);
mb_shape mbl_check_shape(lua_State *L, int index, const char *arg); /* extents, or one integer */
mb_dtype mbl_check_dtype(lua_State *L, int index, const char *arg); /* a name */
/* As luaL_testudata, by a metatable's address key in the registry instead of its name: this is on
** the way of every allocation. */
void *mbl_test_userdata(lua_State *L, int index, const void *key);
/* The type of a value for messages: "number", "moonbeam.array", "no value". */
const char *mbl_type_name(lua_State *L, int index);
void mbl_push_shape(lua_State *L, const mb_shape *shape);

/* Member 1, 2 or 3 of a range {first, last [, step]}. */
int64_t mbl_range_member(lua_State *L, int table, int member, int64_t initial);
/* The length of a list that a user gave, which may be a proxy with __len and __index: read its
** elements by lua_geti. */
lua_Unsigned mbl_length(lua_State *L, int index);

/*
** lua_table.c
*/

/* Members of the table on top of the stack; NULL is an empty text. */
void mbl_set_integer(lua_State *L, const char *key, int64_t value);
void mbl_set_number(lua_State *L, const char *key, double value);
void mbl_set_text(lua_State *L, const char *key, const char *text);
/* The metatable of a userdata type, with its methods under __index. Pushes nothing. */
void mbl_register_type(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *methods);

/*
** lua_garbage.c: the life of arrays, and pool points. A finalizer never frees: it puts the array on
** the garbage list, which is drained at pool points, after a full Lua collection.
*/

/* The array userdata's slot, NULL for any other value; the slot holds NULL once it is released. */
mb_array **mbl_array_slot(lua_State *L, int index);
/* Its address is the metatable's second key in the registry (see mbl_test_userdata). */
extern const char mbl_array_key;
/* An empty array userdata on the stack; fill *slot. Once filled it owns the mb_array. */
mb_array **mbl_new_array(lua_State *L);
/* Makes an array (with pool points and the retry below) and pushes it; raises on failure. */
mb_array *mbl_create_array(lua_State *L, mb_device *device, mb_dtype dtype, const mb_shape *shape);
/* The same on the host, in memory that is pinned for `pinned_for`: zeros. */
mb_array *mbl_create_pinned_array(lua_State *L, mb_device *host, mb_device *pinned_for,
                                  mb_dtype dtype, const mb_shape *shape);
/* Runs a request that takes pool memory on `device`: a pool point before it when one is due; when
** the request fails with MB_STATUS_BUDGET, a pool point, idle FFT plans dropped, and one more try.
** `request` must leave nothing behind when it fails. May run finalizers, so the caller's resources
** must be on the Lua stack. */
typedef mb_status (*mbl_request)(void *user);
mb_status mbl_allocate(lua_State *L, mb_device *device, mbl_request request, void *user);
/* Tells the pool points how many bytes of arrays were made. */
void mbl_allocated(mb_device *device, uint64_t bytes);
/* Adds to the error table on the top of the stack what there is to say about the last request that
** climbed the ladder in vain: live, peak, free, largest_hole, tried, owners. Once. */
void mbl_describe_budget(lua_State *L);
/* Replaces the arrays on `device` by dry copies on `dry`, which stands in for it; puts them back.
** In pairs: what has been replaced can be replaced again. */
mb_status mbl_dry_replace_arrays(mb_device *device, mb_device *dry);
void mbl_dry_restore_arrays(mb_device *device);
/* A full collection, then the garbage list is freed. */
void mbl_pool_point(lua_State *L);
/* Releases what is on the garbage list now. */
void mbl_garbage_drain(void);
/* Has a closing state free the arrays that finalizers made while it closed. Call when the state
** is new: the first object with a finalizer is finalized last. */
void mbl_release_at_close(lua_State *L);
/* Before a device goes away: releases every array on it, whoever refers to it. */
void mbl_forget_device(mb_device *device);
int mbl_array_gc(lua_State *L);      /* __gc */
int mbl_array_release(lua_State *L); /* release, __close */
int mbl_open_garbage(lua_State *L);  /* pushes {collect, ...} */

/*
** lua_array.c
*/

/* Raises for a wrong type and for a released array. */
mb_array *mbl_check_array(lua_State *L, int index);
/* NULL when it is not an array, or a released one. */
mb_array *mbl_test_array(lua_State *L, int index);
/* Parts of the "array" table and of the methods. */
extern const luaL_Reg mbl_array_new_functions[];
extern const luaL_Reg mbl_array_read_methods[];
extern const luaL_Reg mbl_array_unknown_functions[];
/* What is said where a value is used that a dry run does not have. */
#define MBL_UNKNOWN                                                                                \
    "a value of an array was asked for in a dry run, where arrays have no data; where it decides " \
    "what is done next, write mb.bound(BOUND, function() return VALUE end): the dry run takes "    \
    "the "                                                                                         \
    "bound"
/* Raises that for such a value. */
void mbl_check_known(lua_State *L, int index);

/*
** lua_device.c
*/

/* A device userdata or an id such as "cuda:0". */
mb_device *mbl_check_device(lua_State *L, int index);
mb_device *mbl_default_device(lua_State *L);
/* The device at `index`, or the default one when it is nil or none. */
mb_device *mbl_opt_device(lua_State *L, int index);
/* The `device` member of the option table at `index` (nil or no table: the default device). */
mb_device *mbl_option_device(lua_State *L, int index);
void mbl_push_device(lua_State *L, mb_device *device);
/* What the figures of a planned device rest on, as text; nil for a device that is here. */
void mbl_push_basis(lua_State *L, const mb_device *device);
/* The devices that this process has opened through Lua, in order, into a list of
** MBL_MOST_DEVICES; how many. */
#define MBL_MOST_DEVICES 64
int mbl_opened_devices(mb_device **list);
bool mbl_is_opened(const mb_device *device);

/*
** lua_dry.c: dry runs. Dry devices and arrays stand in for the program's while one goes on.
*/

/* What stands in for the device now; the device itself outside dry runs. */
mb_device *mbl_dry_active(lua_State *L, mb_device *device);
/* What a dry run's device stands in for; any other device itself. */
mb_device *mbl_dry_original(mb_device *device);
/* The default device of what is being planned, or NULL where nothing is. Sets it unless NULL. */
mb_device *mbl_dry_default(mb_device *device);
/* What the innermost dry run put in the device's place; NULL: nothing. */
mb_device *mbl_dry_of(const mb_device *device);
/* Did a dry run make the device? (device:dry_device() makes others.) */
bool mbl_is_dry_run_device(const mb_device *device);
extern const luaL_Reg mbl_dry_functions[]; /* of core.device */

/*
** lua_op.c and lua_op_describe.c
*/

/* One call's arguments: parsed by the descriptor. `params` and vectors are userdata on the Lua
** stack. */
const mb_operator *mbl_check_op(lua_State *L, int index);
/* Fills the member of `params` from the value on the top of the stack; may push a buffer that must
** stay on the stack while the parameters are used. */
void mbl_set_param(lua_State *L, const mb_op *op, const mb_op_arg *arg, void *params);
/* The index of an array argument among the operator's array arguments. */
int mbl_op_array_index(const mb_op *op, const mb_op_arg *arg);
_Noreturn int mbl_op_fail(lua_State *L, const mb_op *op, mb_status code, const char *arg,
                          const char *format, ...) MB_PRINTF(5, 6);
/* Raises for the option `key`, which the operator does not have. */
_Noreturn int mbl_op_unknown(lua_State *L, const mb_op *op, const char *key);
extern const luaL_Reg mbl_op_describe_functions[];

/*
** lua_interrupt.c
*/

/* lua_pcall with a traceback, interruptible by Ctrl-C, SIGTERM and SIGHUP: the first one sets the
** cancel flag and raises a "cancelled" error at the next Lua instruction; a second one ends the
** process. The flag is clear afterwards. */
int mbl_call(lua_State *L, int arguments, int results);
/* The signal that stopped the last mbl_call, or 0. */
int mbl_stop_signal(void);
/* Has coroutine.resume and coroutine.wrap of the state tell mbl_call which coroutine runs, so
** that it can be stopped. */
void mbl_open_coroutines(lua_State *L);

/* Sub-modules: each pushes its table. */
int mbl_open_array(lua_State *L);
int mbl_open_device(lua_State *L);
int mbl_open_op(lua_State *L);
int mbl_open_pool(lua_State *L);
int mbl_open_ledger(lua_State *L);
int mbl_open_fft(lua_State *L);
int mbl_open_h5(lua_State *L);
int mbl_open_rawfile(lua_State *L); /* files of plain elements, pages of TIFFs */
int mbl_open_carrier(lua_State *L);
int mbl_open_timer(lua_State *L);
int mbl_open_picture(lua_State *L); /* PNG */
int mbl_open_target(lua_State *L);  /* how files get their names */
void mbl_open_print(lua_State *L);  /* sets the global `print` to one that fails */
bool mbl_output_lost(void);         /* has that `print` failed? */
int mbl_open_system(lua_State *L);  /* clock, terminal, signals, file names */
int mbl_open_input(lua_State *L);   /* line editing for the REPL (repl_input.c) */

int luaopen_moonbeam_core(lua_State *L);

#endif
