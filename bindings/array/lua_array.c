/*
** Array userdata: properties, views and printing. Arrays are made in lua_array_new.c and read in
** lua_array_read.c; lua_array_box.c manages their lifetime. Arithmetic, reductions and casts are in
** moonbeam/array.lua, which calls operators. Indices are 1-based and inclusive; negative ones count
** from the end.
*/
#include "array/lua_array_new.h"
#include "array/lua_array_read.h"
#include "array/lua_range.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "call/lua_type.h"
#include "device/lua_device.h"
#include "lua_modules.h"
#include "memory/lua_array_box.h"
#include <string.h>

/* Axis number, 1-based or negative -> 0-based. */
static int check_axis(lua_State *L, int index, int rank)
{
    int64_t axis = mbl_check_integer(L, index, "axis");
    int64_t position = axis < 0 ? axis + rank : axis - 1;
    if (axis == 0 || position < 0 || position >= rank)
        mbl_fail(L, MB_STATUS_ARGUMENT, "axis", "axis %lld does not exist; the array has %d",
                 (long long)axis, rank);
    return (int)position;
}

/* view(range, ...): a missing range means the whole axis. */
static int array_view(lua_State *L)
{
    mb_range ranges[MB_MAX_RANK];
    mb_array *array = mbl_check_array(L, 1);
    int given = lua_gettop(L) - 1;
    if (given > array->shape.rank)
        mbl_fail(L, MB_STATUS_ARGUMENT, "range",
                 "%d ranges for an array of %d ax%cs; give at most one for each axis", given,
                 array->shape.rank, array->shape.rank == 1 ? 'i' : 'e');
    for (int axis = 0; axis < array->shape.rank; axis++)
        ranges[axis] = mbl_check_range(L, axis + 2, array->shape.dims[axis], mbl_axis_name(axis));
    mb_array **slot = mbl_new_view(L);
    mbl_check(L, mb_array_view(array, ranges, slot));
    return 1;
}

/* Unpacks a single table argument onto the stack, from index 2 on. */
static int spread_arguments(lua_State *L)
{
    if (lua_gettop(L) == 2 && lua_istable(L, 2)) {
        const int count = (int)mbl_length(L, 2);
        if (count > MB_MAX_RANK)
            return mbl_fail(L, MB_STATUS_SHAPE, "axis",
                            "%d axes are given; at most %d are possible", count, MB_MAX_RANK);
        for (int i = 1; i <= count; i++)
            lua_geti(L, 2, i);
        lua_remove(L, 2);
    }
    return lua_gettop(L) - 1;
}

/* permute(axis, ...): axis k of the result is axis `axes[k]` of the array. */
static int array_permute(lua_State *L)
{
    int axes[MB_MAX_RANK] = {0};
    bool used[MB_MAX_RANK] = {false};
    mb_array *array = mbl_check_array(L, 1);
    int given = spread_arguments(L);
    if (given != array->shape.rank)
        mbl_fail(L, MB_STATUS_ARGUMENT, "axis", "%d axes for an array of %d: name each once", given,
                 array->shape.rank);
    for (int i = 0; i < given; i++) {
        axes[i] = check_axis(L, i + 2, array->shape.rank);
        if (used[axes[i]])
            mbl_fail(L, MB_STATUS_ARGUMENT, "axis", "axis %d is named twice; name each once",
                     axes[i] + 1);
        used[axes[i]] = true;
    }
    mb_array **slot = mbl_new_view(L);
    mbl_check(L, mb_array_permute(array, axes, slot));
    return 1;
}

/* transpose(): exchanges the last two axes. */
static int array_transpose(lua_State *L)
{
    int axes[MB_MAX_RANK];
    mb_array *array = mbl_check_array(L, 1);
    int rank = array->shape.rank;
    if (rank < 2)
        mbl_fail(L, MB_STATUS_SHAPE, NULL, "transpose needs two axes; the array has %d", rank);
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    axes[rank - 2] = rank - 1;
    axes[rank - 1] = rank - 2;
    mb_array **slot = mbl_new_view(L);
    mbl_check(L, mb_array_permute(array, axes, slot));
    return 1;
}

/* The arguments as extents; -1 is among the possible ones. */
static mb_shape extent_arguments(lua_State *L)
{
    mb_shape shape = {.rank = spread_arguments(L)};
    if (shape.rank > MB_MAX_RANK)
        mbl_fail(L, MB_STATUS_SHAPE, "shape", "%d axes; at most %d are possible", shape.rank,
                 MB_MAX_RANK);
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = mbl_check_integer(L, i + 2, "extent");
        if (shape.dims[i] < -1)
            mbl_fail(L, MB_STATUS_SHAPE, "shape", "extent %lld is negative; it must be 0 or more",
                     (long long)shape.dims[i]);
    }
    return shape;
}

/* reshape(extent, ...) or reshape(shape): the same elements; one extent may be -1. */
static int array_reshape(lua_State *L)
{
    mb_array *array = mbl_check_array(L, 1);
    const mb_shape shape = extent_arguments(L);
    mb_array **slot = mbl_new_view(L);
    mbl_check(L, mb_array_reshape(array, &shape, slot));
    return 1;
}

static int array_broadcast_to(lua_State *L)
{
    mb_array *array = mbl_check_array(L, 1);
    const mb_shape shape = extent_arguments(L);
    mb_array **slot = mbl_new_view(L);
    mbl_check(L, mb_array_broadcast(array, &shape, slot));
    return 1;
}

/* reinterpret(dtype): the same bytes as elements of another type, along a dense last axis, for
** example pairs of f32 as c64. */
static int array_reinterpret(lua_State *L)
{
    mb_array *array = mbl_check_array(L, 1);
    mb_dtype dtype = mbl_check_dtype(L, 2, "dtype");
    mb_array **slot = mbl_new_view(L);
    mbl_check(L, mb_array_reinterpret(array, dtype, slot));
    return 1;
}

/* overlaps(other): do the address ranges of the two arrays overlap? */
static int array_overlaps(lua_State *L)
{
    mb_array *a = mbl_check_array(L, 1), *b = mbl_check_array(L, 2);
    lua_pushboolean(L, mb_array_overlap(a, b));
    return 1;
}

/*
** Properties
*/

static void push_shape(lua_State *L, mb_array *a)
{
    mbl_push_extents(L, a->shape.rank, a->shape.dims);
}

static void push_rank(lua_State *L, mb_array *a)
{
    lua_pushinteger(L, a->shape.rank);
}

static void push_dtype(lua_State *L, mb_array *a)
{
    lua_pushstring(L, mb_dtype_name(a->dtype));
}

static void push_bytes(lua_State *L, mb_array *a)
{
    lua_pushinteger(L, (lua_Integer)mb_array_bytes(a));
}

static void push_elements(lua_State *L, mb_array *a)
{
    lua_pushinteger(L, (lua_Integer)mb_array_elements(a));
}

static void push_array_device(lua_State *L, mb_array *a)
{
    mbl_push_device(L, a->device);
}

static void push_strides(lua_State *L, mb_array *a)
{
    mbl_push_extents(L, a->shape.rank, a->strides);
}

static void push_contiguous(lua_State *L, mb_array *a)
{
    lua_pushboolean(L, mb_array_contiguous(a));
}

/* The id of the device that the array's memory is pinned for, or nil. */
static void push_pinned(lua_State *L, mb_array *a)
{
    const mb_device *device = mb_storage_pinned_for(a->storage);
    lua_pushstring(L, device ? device->id : NULL);
}

static void push_references(lua_State *L, mb_array *a)
{
    lua_pushinteger(L, mb_storage_references(a->storage));
}

static const struct {
    const char *name;
    void (*push)(lua_State *L, mb_array *array);
} properties[] = {
    {"shape", push_shape},
    {"rank", push_rank},
    {"dtype", push_dtype},
    {"bytes", push_bytes},
    {"elements", push_elements},
    {"device", push_array_device},
    {"strides", push_strides},
    {"contiguous", push_contiguous},
    {"references", push_references},
    {"pinned", push_pinned},
    {NULL, NULL},
};

/* Names that arrays have in other programs, and what is here instead. */
static const char *const OTHER_NAMES[][2] = {
    {"T", "a:transpose() exchanges the last two axes, a:permute(2, 1, 3) any"},
    {"astype", "a:cast(\"u16\") gives another element type"},
    {"get", "a:item(i, j, k) reads an element, a:to_table() all"},
    {"ndim", "a.rank is the number of axes"},
    {"numpy", "a:to_table() gives the values, mb.npy.write a file for NumPy"},
    {"plot", "mb.plot(a) draws lines, mb.show(a) a picture"},
    {"save", "mb.images.write(name, a) writes an image, mb.view.save(name, a) a picture"},
    {"show", "mb.show(a) shows it in the terminal"},
    {"size", "a.elements is the number of elements, a.shape the extents"},
};

/* Raises for an unknown key, with the nearest property or method. Upvalue 1: methods. */
static int unknown_key(lua_State *L, const char *key)
{
    for (size_t i = 0; i < sizeof OTHER_NAMES / sizeof OTHER_NAMES[0]; i++)
        if (strcmp(OTHER_NAMES[i][0], key) == 0)
            return mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "an array has no '%s'; %s", key,
                            OTHER_NAMES[i][1]);
    const char *names[sizeof properties / sizeof properties[0]];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        names[i] = properties[i].name;
    return mbl_unknown_key(L, "an array", key, lua_upvalueindex(1), names);
}

static int array_index(lua_State *L)
{
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1; /* a method, which checks its arguments */
    if (lua_type(L, 2) == LUA_TSTRING) {
        const char *key = lua_tostring(L, 2);
        const mbl_array_box *box = mbl_check_array_box(L, 1);
        if (strcmp(key, "released") == 0) {
            lua_pushboolean(L, !box->array);
            return 1;
        }
        for (int i = 0; properties[i].name; i++)
            if (strcmp(key, properties[i].name) == 0) {
                properties[i].push(L, mbl_check_array(L, 1));
                return 1;
            }
        return unknown_key(L, key);
    }
    if (lua_type(L, 2) == LUA_TNUMBER) {
        mb_range ranges[MB_MAX_RANK];
        mb_array *array = mbl_check_array(L, 1);
        if (array->shape.rank == 0)
            mbl_fail(L, MB_STATUS_SHAPE, NULL, "a scalar array has no axis to index; use a:item()");
        ranges[0] = mbl_check_range(L, 2, array->shape.dims[0], mbl_axis_name(0));
        for (int axis = 1; axis < array->shape.rank; axis++)
            ranges[axis] = mbl_full_range(array->shape.dims[axis]);
        mb_array **view = mbl_new_view(L);
        mbl_check(L, mb_array_view(array, ranges, view));
        return 1;
    }
    return mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                    "an array is indexed by integers and names, not by a %s", mbl_type_name(L, 2));
}

static int array_newindex(lua_State *L)
{
    if (lua_type(L, 2) == LUA_TSTRING)
        return mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                        "an array's %s cannot be assigned; a:reshape, a:cast and a:to give other "
                        "arrays",
                        lua_tostring(L, 2));
    return mbl_fail(
        L, MB_STATUS_ARGUMENT, NULL,
        "elements cannot be assigned by index; use a view with fill, or an operator with out =");
}

static int array_length(lua_State *L)
{
    mb_array *array = mbl_check_array(L, 1);
    if (array->shape.rank == 0)
        mbl_fail(L, MB_STATUS_SHAPE, NULL, "a scalar array has no length");
    lua_pushinteger(L, array->shape.dims[0]);
    return 1;
}

static int array_tostring(lua_State *L)
{
    char shape[160], bytes[40];
    const mb_array *a = mbl_check_array_box(L, 1)->array;
    if (!a) {
        lua_pushliteral(L, "released array");
        return 1;
    }
    mb_shape_format(&a->shape, shape, sizeof shape);
    mb_bytes_format(mb_array_bytes(a), bytes, sizeof bytes);
    lua_pushfstring(L, "%s array %s, %s, %s%s%s", mb_dtype_name(a->dtype), shape, bytes,
                    a->device->id, mb_storage_pinned_for(a->storage) ? ", pinned" : "",
                    a->device->dry ? " (dry run)" : "");
    return 1;
}

/* is_array(value): also true of a released one. */
static int is_array(lua_State *L)
{
    lua_pushboolean(L, mbl_array_slot(L, 1) != NULL);
    return 1;
}

/* complete(): for the Lua half, which adds metamethods. */
static int complete(lua_State *L)
{
    mbl_complete_array_type(L);
    return 0;
}

int mbl_open_array(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"is_array", is_array}, {"complete", complete}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"view", array_view},
                                       {"permute", array_permute},
                                       {"transpose", array_transpose},
                                       {"reshape", array_reshape},
                                       {"broadcast_to", array_broadcast_to},
                                       {"reinterpret", array_reinterpret},
                                       {"overlaps", array_overlaps},
                                       {"release", mbl_array_release},
                                       {NULL, NULL}};
    static const luaL_Reg metamethods[] = {{"__newindex", array_newindex}, {"__len", array_length},
                                           {"__tostring", array_tostring}, {"__gc", mbl_array_gc},
                                           {"__close", mbl_array_release}, {NULL, NULL}};
    lua_newtable(L); /* the sub-module */
    luaL_setfuncs(L, mbl_array_new_functions, 0);
    luaL_setfuncs(L, functions, 0);
    mbl_push_all(L);
    lua_setfield(L, -2, "all");
    lua_newtable(L);
    for (int i = 0; properties[i].name; i++) {
        lua_pushstring(L, properties[i].name);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "properties");

    mbl_new_metatable(L, &mbl_array_type);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlib(L, methods);
    luaL_setfuncs(L, mbl_array_read_methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, "methods"); /* the Lua half adds to both tables */
    lua_pushcclosure(L, array_index, 1);
    lua_setfield(L, -2, "__index");
    lua_setfield(L, -2, "metatable");
    return 1;
}
