/*
** Reading arrays: item, to_table, to_string. Only these functions of arrays wait for the device.
** Strided arrays are read without pool memory: in one piece if their elements are close together,
** else row by row.
*/
#include "array/lua_array_read.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_unknown.h"
#include "memory/lua_array_box.h"
#include "array/lua_range.h"
#include <string.h>

#define SMALL_BYTES ((uint64_t)64 << 10)

/* Elements of an array on the host, addressed by element offsets relative to the array's first
** element. */
typedef struct reader {
    lua_State *L;
    const mb_array *array;
    size_t element;
    unsigned char *piece; /* the bytes that were read, on the Lua stack; or the host array itself */
    int64_t piece_first;  /* offset of its first element */
    bool by_rows;
    int64_t row_low, row_high; /* least and greatest offset within a row */
} reader;

static void fetch(reader *r, int64_t first, int64_t last)
{
    mbl_check(r->L, mb_device_download(r->array->device, r->piece,
                                       (const char *)r->array->data + first * (int64_t)r->element,
                                       (uint64_t)(last - first + 1) * r->element));
    r->piece_first = first;
}

/* Pushes one value: the buffer, or nil. The array has at least one element. */
static void reader_begin(reader *r, lua_State *L, const mb_array *array)
{
    int64_t low = 0, high = 0;
    int rank = array->shape.rank;
    r->L = L;
    r->array = array;
    r->element = mb_dtype_bytes(array->dtype);
    r->by_rows = false;
    r->row_low = r->row_high = 0;
    for (int axis = 0; axis < rank; axis++) {
        int64_t reach = (array->shape.dims[axis] - 1) * array->strides[axis];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
        if (axis == rank - 1) {
            r->row_low = reach < 0 ? reach : 0;
            r->row_high = reach > 0 ? reach : 0;
        }
    }
    if (array->device->dry)
        mbl_fail_unknown(L);
    if (strcmp(array->device->backend->name, "host") == 0) {
        mbl_check(L, mb_device_sync(array->device));
        lua_pushnil(L);
        r->piece = array->data;
        r->piece_first = 0;
        return;
    }
    uint64_t span = (uint64_t)(high - low + 1) * r->element;
    r->by_rows = span > 2 * mb_array_bytes(array) && span > SMALL_BYTES;
    if (r->by_rows)
        span = (uint64_t)(r->row_high - r->row_low + 1) * r->element;
    r->piece = lua_newuserdatauv(L, span, 0);
    if (!r->by_rows)
        fetch(r, low, high);
}

static const void *element_at(const reader *r, int64_t offset)
{
    return r->piece + (offset - r->piece_first) * (int64_t)r->element;
}

/* Called before the elements of the row that starts at `offset` are used. */
static void begin_row(reader *r, int64_t offset)
{
    if (r->by_rows)
        fetch(r, offset + r->row_low, offset + r->row_high);
}

static void push_number(lua_State *L, mb_dtype dtype, double value)
{
    if (mb_dtype_kind(dtype) == MB_CLASS_INT)
        lua_pushinteger(L, (lua_Integer)value);
    else
        lua_pushnumber(L, value);
}

/* item(i, ...): one element as a number; a complex one as two. */
static int array_item(lua_State *L)
{
    int64_t index[MB_MAX_RANK];
    double real = 0, imag = 0;
    mb_array *array = mbl_check_array(L, 1);
    int given = lua_gettop(L) - 1;
    if (given != array->shape.rank)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "%d indices for an array of %d ax%cs: give one for each axis", given,
                 array->shape.rank, array->shape.rank == 1 ? 'i' : 'e');
    for (int axis = 0; axis < given; axis++) {
        const int64_t i = mbl_check_integer(L, axis + 2, "index");
        index[axis] = mbl_check_index(L, i, array->shape.dims[axis], mbl_axis_name(axis));
    }
    if (array->device->dry) {
        mbl_push_unknown(L);
        if (mb_dtype_kind(array->dtype) != MB_CLASS_COMPLEX)
            return 1;
        mbl_push_unknown(L);
        return 2;
    }
    mbl_check(L, mb_array_item(array, index, &real, &imag));
    push_number(L, array->dtype, real);
    if (mb_dtype_kind(array->dtype) != MB_CLASS_COMPLEX)
        return 1;
    lua_pushnumber(L, imag);
    return 2;
}

static void push_element(const reader *r, int64_t offset)
{
    lua_State *L = r->L;
    mb_dtype dtype = r->array->dtype;
    double imag = 0, real = mb_element_get(dtype, element_at(r, offset), &imag);
    if (mb_dtype_kind(dtype) != MB_CLASS_COMPLEX) {
        push_number(L, dtype, real);
        return;
    }
    lua_createtable(L, 2, 0);
    lua_pushnumber(L, real);
    lua_rawseti(L, -2, 1);
    lua_pushnumber(L, imag);
    lua_rawseti(L, -2, 2);
}

static void push_axis(reader *r, int axis, int64_t offset)
{
    lua_State *L = r->L;
    const mb_array *a = r->array;
    if (axis == a->shape.rank) {
        push_element(r, offset);
        return;
    }
    int64_t extent = a->shape.dims[axis];
    if (axis == a->shape.rank - 1)
        begin_row(r, offset);
    lua_createtable(L, extent < INT32_MAX ? (int)extent : 0, 0);
    for (int64_t i = 0; i < extent; i++) {
        push_axis(r, axis + 1, offset + i * a->strides[axis]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* The tables of an array without elements. */
static void push_empty(lua_State *L, const mb_shape *shape, int axis)
{
    lua_newtable(L);
    if (shape->dims[axis] == 0 || axis == shape->rank - 1)
        return;
    for (int64_t i = 1; i <= shape->dims[axis]; i++) {
        push_empty(L, shape, axis + 1);
        lua_rawseti(L, -2, i);
    }
}

/* to_table(): nested tables; a number for rank 0; complex elements are {re, im}. */
static int array_to_table(lua_State *L)
{
    reader r;
    mb_array *array = mbl_check_array(L, 1);
    luaL_checkstack(L, 3 * MB_MAX_RANK, "array");
    if (mb_array_elements(array) == 0) {
        push_empty(L, &array->shape, 0);
        return 1;
    }
    reader_begin(&r, L, array);
    push_axis(&r, 0, 0);
    return 1;
}

static void add_axis(reader *r, luaL_Buffer *b, int axis, int64_t offset)
{
    const mb_array *a = r->array;
    if (axis == a->shape.rank) {
        luaL_addlstring(b, element_at(r, offset), r->element);
        return;
    }
    if (axis == a->shape.rank - 1) {
        begin_row(r, offset);
        if (a->strides[axis] == 1) {
            luaL_addlstring(b, element_at(r, offset), (size_t)a->shape.dims[axis] * r->element);
            return;
        }
    }
    for (int64_t i = 0; i < a->shape.dims[axis]; i++)
        add_axis(r, b, axis + 1, offset + i * a->strides[axis]);
}

/* to_string(): the raw elements in row-major order. */
static int array_to_string(lua_State *L)
{
    reader r;
    luaL_Buffer b;
    mb_array *array = mbl_check_array(L, 1);
    if (mb_array_elements(array) == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (mb_array_contiguous(array)) {
        uint64_t bytes = mb_array_bytes(array);
        char *text = luaL_buffinitsize(L, &b, bytes);
        mbl_check(L, mb_array_download(array, text, bytes));
        luaL_pushresultsize(&b, bytes);
        return 1;
    }
    reader_begin(&r, L, array);
    luaL_buffinit(L, &b);
    add_axis(&r, &b, 0, 0);
    luaL_pushresult(&b);
    return 1;
}

const luaL_Reg mbl_array_read_methods[] = {
    {"item", array_item},
    {"to_table", array_to_table},
    {"to_string", array_to_string},
    {NULL, NULL},
};
