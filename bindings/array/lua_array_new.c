/*
** Making arrays: empty, from Lua tables, from strings, from a random sequence, from another device.
** Host data goes to a device through a buffer of at most CHUNK_BYTES that Lua owns, so making a
** large array never doubles its host memory. On a dry device the shapes are checked and nothing is
** written.
*/
#include "array/lua_array_new.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "device/lua_device.h"
#include "device/lua_dry.h"
#include "memory/lua_allocate.h"
#include "memory/lua_array_box.h"
#include <math.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)4 << 20)

/* A position in the row-major sequence of an array's elements, with the buffer that collects
** them. */
typedef struct writer {
    lua_State *L;
    mb_array *array; /* contiguous */
    unsigned char *buffer;
    size_t element, room, used; /* bytes */
    uint64_t written;           /* bytes that left the buffer */
} writer;

/* Pushes the buffer. */
static void writer_begin(writer *w, lua_State *L, mb_array *array)
{
    uint64_t bytes = mb_array_bytes(array);
    w->L = L;
    w->array = array;
    w->element = mb_dtype_bytes(array->dtype);
    w->room = bytes < CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES / w->element * w->element;
    w->used = 0;
    w->written = 0;
    w->buffer = lua_newuserdatauv(L, w->room > 0 ? w->room : 1, 0);
}

static void writer_flush(writer *w)
{
    if (w->used > 0) {
        mbl_check(w->L, mb_device_upload(w->array->device, (char *)w->array->data + w->written,
                                         w->buffer, w->used));
        w->written += w->used;
        w->used = 0;
    }
}

static void writer_put(writer *w, double real, double imag)
{
    if (w->used == w->room)
        writer_flush(w);
    mb_element_set(w->array->dtype, w->buffer + w->used, real, imag);
    w->used += w->element;
}

/* The options of every creation, on the stack from the index that take_options returns. */
enum { DTYPE, DEVICE, PINNED, SEED, LOW, HIGH };
static const char *const creation_options[] = {"dtype", "device", "pinned", NULL};

/* Raises if the extents were written one by one, "random(4, 30, 64)", with the braces to write. */
static void refuse_loose_extents(lua_State *L, const char *what)
{
    if (lua_type(L, 1) != LUA_TNUMBER || lua_type(L, 2) != LUA_TNUMBER)
        return;
    const int count = lua_gettop(L);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 1; i <= count && i <= MB_MAX_RANK && lua_type(L, i) == LUA_TNUMBER; i++) {
        lua_pushfstring(L, i > 1 ? ", %s" : "%s", luaL_tolstring(L, i, NULL));
        lua_remove(L, -2);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    mbl_fail(L, MB_STATUS_ARGUMENT, "shape", "several extents are one table: write mb.%s({%s})",
             what, lua_tostring(L, -1));
}

static int take_options(lua_State *L, int index, const char *what)
{
    if (index == 2)
        refuse_loose_extents(L, what);
    return mbl_take_options(L, index, creation_options, what);
}

/* The array that the options ask for: `device` (the default one), or, with `pinned` = true or a
** device, host memory that is pinned for the default device or for that one, so that carriers move
** it without a copy. */
static mb_array *create(lua_State *L, int options, mb_dtype dtype, const mb_shape *shape)
{
    const int device = options + DEVICE, pinned = options + PINNED;
    const bool choice = lua_isboolean(L, pinned);
    if (choice ? !lua_toboolean(L, pinned) : lua_isnil(L, pinned))
        return mbl_create_array(L, mbl_opt_device(L, device), dtype, shape);
    mb_device *pinned_for = choice ? mbl_default_device(L) : mbl_check_device(L, pinned);
    if (lua_isnil(L, device)) {
        lua_pushliteral(L, "host");
        lua_replace(L, device);
    }
    mb_device *host = mbl_check_device(L, device);
    if (strcmp(host->backend->name, "host") != 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "pinned",
                 "a pinned array is in host memory, not on %s: leave the device out", host->id);
    if (host->dry != mbl_is_dry_run_device(host) ||
        pinned_for->dry != mbl_is_dry_run_device(pinned_for))
        mbl_fail(L, MB_STATUS_ARGUMENT, "pinned", "a dry device has no pinned arrays");
    return mbl_create_pinned_array(L, host, pinned_for, dtype, shape);
}

/* empty(shape [, opts]): not initialized. */
static int array_empty(lua_State *L)
{
    mb_shape shape = mbl_check_shape(L, 1, "shape");
    const int options = take_options(L, 2, "empty");
    create(L, options, mbl_opt_dtype(L, options + DTYPE, MB_F32), &shape);
    return 1;
}

/* zeros(shape [, opts]) */
static int array_zeros(lua_State *L)
{
    mb_shape shape = mbl_check_shape(L, 1, "shape");
    const int options = take_options(L, 2, "zeros");
    mb_array *array = create(L, options, mbl_opt_dtype(L, options + DTYPE, MB_F32), &shape);
    uint64_t bytes = mb_array_bytes(array);
    if (bytes > 0 && !mb_storage_pinned_for(array->storage))
        mbl_check(L, mb_device_fill(array->device, array->data, 0, bytes));
    return 1;
}

/* The shape of a nested table, from its first elements. Complex elements are pairs {re, im}. */
static mb_shape table_shape(lua_State *L, int index, bool complex)
{
    mb_shape shape = {0, {0}};
    int top = lua_gettop(L);
    lua_pushvalue(L, index);
    while (lua_istable(L, -1)) {
        if (shape.rank == MB_MAX_RANK + complex)
            mbl_fail(L, MB_STATUS_SHAPE, NULL, "tables nested more than %d deep", MB_MAX_RANK);
        lua_Unsigned extent = mbl_length(L, -1);
        if (shape.rank < MB_MAX_RANK)
            shape.dims[shape.rank] = (int64_t)extent;
        shape.rank++;
        luaL_checkstack(L, 2, "tables nested too deep");
        if (extent == 0)
            break;
        lua_geti(L, -1, 1);
    }
    if (complex && shape.rank > 0) {
        if (!lua_isnumber(L, -1))
            mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "complex elements are written {re, im}");
        shape.rank--;
    }
    lua_settop(L, top);
    return shape;
}

/* The place of an error in the nested table, for example "[2][1]". */
static const char *path_text(lua_State *L, const int64_t *path, int depth)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 0; i < depth; i++) {
        lua_pushfstring(L, "[%I]", (LUAI_UACINT)path[i]);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

static double table_number(lua_State *L, const int64_t *path, int depth)
{
    if (lua_type(L, -1) != LUA_TNUMBER)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "element %s is a %s, not a number",
                 path_text(L, path, depth), luaL_typename(L, -1));
    return lua_tonumber(L, -1);
}

/* Writes the table (or number) on the top of the stack. */
static void write_table(writer *w, const mb_shape *shape, int axis, int64_t *path)
{
    lua_State *L = w->L;
    bool complex = mb_dtype_kind(w->array->dtype) == MB_CLASS_COMPLEX;
    if (axis == shape->rank) {
        double real, imag = 0;
        if (complex && lua_istable(L, -1)) {
            if (mbl_length(L, -1) != 2)
                mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                         "element %s: complex elements are written {re, im}",
                         path_text(L, path, axis));
            lua_geti(L, -1, 1);
            real = table_number(L, path, axis);
            lua_geti(L, -2, 2);
            imag = table_number(L, path, axis);
            lua_pop(L, 2);
        } else {
            real = table_number(L, path, axis);
        }
        writer_put(w, real, imag);
        return;
    }
    if (!lua_istable(L, -1) || (int64_t)mbl_length(L, -1) != shape->dims[axis]) {
        bool table = lua_istable(L, -1);
        int64_t count = table ? (int64_t)mbl_length(L, -1) : 0;
        const char *type = luaL_typename(L, -1);
        const char *where = path_text(L, path, axis);
        if (table)
            mbl_fail(L, MB_STATUS_SHAPE, NULL,
                     "ragged table: %s%s has %lld elements where %s has %lld",
                     axis == 0 ? "it" : "element ", where, (long long)count,
                     axis == 0 ? "it" : "the first", (long long)shape->dims[axis]);
        mbl_fail(L, MB_STATUS_SHAPE, NULL, "ragged table: element %s is a %s, not a table of %lld",
                 where, type, (long long)shape->dims[axis]);
    }
    for (int64_t i = 1; i <= shape->dims[axis]; i++) {
        path[axis] = i;
        lua_geti(L, -1, i);
        write_table(w, shape, axis + 1, path);
        lua_pop(L, 1);
    }
}

/* array(nested table or number [, opts]) */
static int array_from_table(lua_State *L)
{
    int64_t path[MB_MAX_RANK + 1];
    writer w;
    const int options = take_options(L, 2, "array");
    const mb_dtype dtype = mbl_opt_dtype(L, options + DTYPE, MB_F32);
    if (lua_type(L, 1) != LUA_TNUMBER && !lua_istable(L, 1))
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "an array is made from a table or a number, not a %s",
                 mbl_type_name(L, 1));
    mb_shape shape = table_shape(L, 1, mb_dtype_kind(dtype) == MB_CLASS_COMPLEX);
    if (shape.rank > MB_MAX_RANK)
        mbl_fail(L, MB_STATUS_SHAPE, NULL, "tables nested more than %d deep", MB_MAX_RANK);
    mb_array *array = create(L, options, dtype, &shape);
    int result = lua_gettop(L);
    writer_begin(&w, L, array);
    luaL_checkstack(L, 2 * MB_MAX_RANK + 8, "tables nested too deep");
    lua_pushvalue(L, 1);
    write_table(&w, &shape, 0, path);
    writer_flush(&w);
    lua_settop(L, result);
    return 1;
}

/* range(first, step, count [, opts]): first + i * step. */
static int array_range(lua_State *L)
{
    writer w;
    double first = mbl_check_number(L, 1, "first"), step = mbl_check_number(L, 2, "step");
    int64_t count = mbl_check_integer(L, 3, "count");
    const int options = take_options(L, 4, "range");
    const mb_dtype dtype = mbl_opt_dtype(L, options + DTYPE, MB_F32);
    if (count < 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "count", "count is %lld; it must not be negative",
                 (long long)count);
    mb_shape shape = mb_shape_of(1, &count);
    mb_array *array = create(L, options, dtype, &shape);
    writer_begin(&w, L, array);
    for (int64_t i = 0; i < count; i++)
        writer_put(&w, first + (double)i * step, 0);
    writer_flush(&w);
    lua_pop(L, 1);
    return 1;
}

/* from_string(bytes, shape [, opts]): raw elements in row-major order. */
static int array_from_string(lua_State *L)
{
    size_t length;
    uint64_t bytes;
    mbl_check_binary(L, 1, "bytes");
    const char *text = lua_tolstring(L, 1, &length);
    mb_shape shape = mbl_check_shape(L, 2, "shape");
    const int options = take_options(L, 3, "from_string");
    const mb_dtype dtype = mbl_opt_dtype(L, options + DTYPE, MB_F32);
    mbl_check(L, mb_shape_bytes(&shape, dtype, &bytes));
    if (bytes != length) {
        char format[160];
        mbl_fail(L, MB_STATUS_SHAPE, "bytes", "%llu bytes given, but %s of %s takes %llu",
                 (unsigned long long)length, mb_shape_format(&shape, format, sizeof format),
                 mb_dtype_name(dtype), (unsigned long long)bytes);
    }
    mb_array *array = create(L, options, dtype, &shape);
    if (bytes > 0)
        mbl_check(L, mb_device_upload(array->device, array->data, text, bytes));
    return 1;
}

/*
** Random numbers: the value of element i depends on the seed and i alone (splitmix64 as a
** counter-based generator, Steele, Lea and Flood 2014), so an array is the same on every device and
** in every order.
*/

static uint64_t splitmix64(uint64_t seed, uint64_t counter)
{
    uint64_t z = seed + (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* In [0, 1). */
static double random_unit(uint64_t seed, uint64_t counter)
{
    return (double)(splitmix64(seed, counter) >> 11) * 0x1p-53;
}

/* random(shape [, {seed, low, high, dtype, device}]): uniform in [low, high); integers are in
** low..high. */
static int array_random(lua_State *L)
{
    static const char *const names[] = {"dtype", "device", "pinned", "seed", "low", "high", NULL};
    writer w;
    mb_shape shape = mbl_check_shape(L, 1, "shape");
    refuse_loose_extents(L, "random");
    const int options = mbl_take_options(L, 2, names, "random");
    const mb_dtype dtype = mbl_opt_dtype(L, options + DTYPE, MB_F32);
    const mb_dtype_class class = mb_dtype_kind(dtype);
    const double low = mbl_opt_number(L, options + LOW, "low", 0);
    const double high = mbl_opt_number(L, options + HIGH, "high", class == MB_CLASS_INT ? 255 : 1);
    const int64_t number = mbl_opt_integer(L, options + SEED, "seed", 0);
    /* Small seeds are spread over the sequence space; otherwise 1 and 2 would be shifted copies. */
    uint64_t seed = splitmix64((uint64_t)number, 0);
    if (!(low <= high))
        mbl_fail(L, MB_STATUS_ARGUMENT, "high", "high (%g) is below low (%g); give both", high,
                 low);
    double span = class == MB_CLASS_INT ? high - low + 1 : high - low;
    mb_array *array = create(L, options, dtype, &shape);
    if (array->device->dry)
        return 1;
    writer_begin(&w, L, array);
    uint64_t count = mb_array_elements(array), counter = 0;
    for (uint64_t i = 0; i < count; i++) {
        double real = low + span * random_unit(seed, counter++), imag = 0;
        if (class == MB_CLASS_COMPLEX)
            imag = low + span * random_unit(seed, counter++);
        if (class == MB_CLASS_INT && fabs(real) < 0x1p53) {
            int64_t whole = (int64_t)real;
            real = (double)(whole - (real < (double)whole));
        } else if (dtype == MB_F32 && real > low) {
            /* Rounding to float must not give `high` itself. */
            float narrow = (float)real;
            real = narrow < (float)high ? narrow : low;
        }
        writer_put(&w, real, imag);
    }
    writer_flush(&w);
    lua_pop(L, 1);
    return 1;
}

/* transfer(contiguous array, device): a copy on another (or the same) device. */
static int array_transfer(lua_State *L)
{
    mb_array *from = mbl_check_array(L, 1);
    mb_device *device = mbl_check_device(L, 2);
    bool from_host = strcmp(from->device->backend->name, "host") == 0;
    bool to_host = strcmp(device->backend->name, "host") == 0;
    if (!mb_array_contiguous(from))
        mbl_fail(L, MB_STATUS_SHAPE, NULL,
                 "only a contiguous array can be copied to another device; call a:copy() first");
    if (from->device->dry && !device->dry)
        mbl_fail(L, MB_STATUS_DRY_RUN, NULL,
                 "arrays of a dry run have no data: %s cannot be copied to %s", from->device->id,
                 device->id);
    mb_array *to = mbl_create_array(L, device, from->dtype, &from->shape);
    uint64_t bytes = mb_array_bytes(to);
    if (device->dry || bytes == 0)
        return 1;
    if (from->device == device) {
        mbl_check(L, mb_device_copy(device, to->data, from->data, bytes));
    } else if (from_host) {
        mbl_check(L, mb_device_sync(from->device));
        mbl_check(L, mb_device_upload(device, to->data, from->data, bytes));
    } else if (to_host) {
        mbl_check(L, mb_device_download(from->device, to->data, from->data, bytes));
    } else {
        size_t room = bytes < CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES;
        void *buffer = lua_newuserdatauv(L, room, 0);
        for (uint64_t at = 0; at < bytes; at += room) {
            uint64_t part = bytes - at < room ? bytes - at : room;
            mbl_check(L, mb_device_download(from->device, buffer, (char *)from->data + at, part));
            mbl_check(L, mb_device_upload(device, (char *)to->data + at, buffer, part));
        }
        lua_pop(L, 1);
    }
    return 1;
}

const luaL_Reg mbl_array_new_functions[] = {
    {"empty", array_empty},
    {"zeros", array_zeros},
    {"array", array_from_table},
    {"range", array_range},
    {"from_string", array_from_string},
    {"random", array_random},
    {"transfer", array_transfer},
    {NULL, NULL},
};
