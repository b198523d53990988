/*
** Memory that is spread over the ranks, in Lua: userdata "moonbeam.spread" (runtime/cluster/
** spread.h). It keeps the memory of its arrays. Closing is idempotent; close and __gc wait until
** nothing is under way.
*/
#include "cluster/lua_spread.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "cluster/cluster.h"
#include "files/lua_rawfile.h"
#include "lua_modules.h"
#include "memory/lua_array_box.h"

#define SPREAD "moonbeam.spread"

typedef struct spread_box {
    mb_spread *spread; /* NULL: closed */
    mb_storage *share, *pieces;
} spread_box;

mb_spread *mbl_test_spread(lua_State *L, int index)
{
    const spread_box *box = luaL_testudata(L, index, SPREAD);
    return box ? box->spread : NULL;
}

static const mb_array *check_memory(lua_State *L, int index, const char *name)
{
    const mb_array *array = mbl_check_array(L, index);
    if (!mb_array_has_data(array) || !mb_array_contiguous(array))
        mbl_fail(L, MB_STATUS_ARGUMENT, name, "%s must be a contiguous array with data", name);
    return array;
}

/* spread(bytes, share, pieces): `share` and `pieces` are arrays on the host. */
static int spread_open(lua_State *L)
{
    const uint64_t bytes = mbl_check_bytes(L, 1, "bytes");
    const mb_array *share = check_memory(L, 2, "share"), *pieces = check_memory(L, 3, "pieces");
    const mb_spread_facts facts = {.rank = mb_cluster_place()->rank,
                                   .size = mb_cluster_place()->size,
                                   .bytes = bytes,
                                   .share_bytes = mb_array_bytes(share),
                                   .piece_bytes = mb_array_bytes(pieces) / MB_SPREAD_PIECES,
                                   .share = share->data,
                                   .pieces = pieces->data};
    spread_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = (spread_box){.spread = NULL};
    luaL_setmetatable(L, SPREAD);
    mbl_check(L, mb_spread_open(&facts, &box->spread));
    box->share = mb_storage_retain(share->storage);
    box->pieces = mb_storage_retain(pieces->storage);
    return 1;
}

/* Moves the array at 2, dense and on the host, which begins at the offset at 3 and has the steps
** at 4. */
static int move(lua_State *L, bool writing)
{
    int64_t steps[MB_MAX_RANK];
    const spread_box *box = mbl_check_object(L, 1, SPREAD);
    mb_array *array = mbl_check_array(L, 2);
    const int rank = array->shape.rank;
    const uint64_t offset = mbl_check_offset(L, 3), bytes = mb_array_bytes(array);
    mbl_check_steps(L, 4, array, steps);
    if (!mb_array_has_data(array))
        return 0;
    if (!box->spread || !mb_array_contiguous(array) || rank < 1 || rank > 3)
        return mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                        "this memory has been closed, or the array is not dense");
    mb_spread_lines lines = {.offset = offset, .frame_lines = 1};
    lines.line_bytes = mb_dtype_bytes(array->dtype);
    lines.line_bytes *= rank > 1 ? (uint64_t)array->shape.dims[rank - 1] : 1;
    lines.frame_lines = (uint64_t)array->shape.dims[rank > 1 ? rank - 2 : 0];
    lines.line_pitch = rank > 1 ? (uint64_t)steps[rank - 2] : lines.line_bytes;
    lines.frame_pitch = rank > 2 ? (uint64_t)steps[0] : lines.frame_lines * lines.line_pitch;
    lines.count = bytes / lines.line_bytes;
    mbl_check(L, mb_spread_move(box->spread, &lines, array->data, writing));
    return 0;
}

static int spread_read(lua_State *L)
{
    return move(L, false);
}

static int spread_write(lua_State *L)
{
    return move(L, true);
}

static int spread_close(lua_State *L)
{
    spread_box *box = mbl_check_object(L, 1, SPREAD);
    if (mb_spread_close(box->spread)) {
        mb_storage_release(box->share);
        mb_storage_release(box->pieces);
    }
    *box = (spread_box){.spread = NULL};
    return 0;
}

void mbl_open_spread(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__gc", spread_close}, {"__close", spread_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"read", spread_read}, {"write", spread_write}, {"close", spread_close}, {NULL, NULL}};
    mbl_register_type(L, SPREAD, metamethods, methods);
    lua_pushcfunction(L, spread_open);
}
