/*
** Carriers in Lua: userdata "moonbeam.carrier" (runtime/stream/carrier.h). Their threads move slabs
** of HDF5 datasets, arrays on the host, or blocks of files of plain elements to and from a device.
** moonbeam/stream.lua is built on them.
**
** A carrier keeps the userdata of its datasets alive (a table in user value 1), and that of its
** device (user value 2). Closing is idempotent; close and __gc stop the threads before they free
** anything.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "call/lua_table.h"
#include "call/lua_type.h"
#include "cluster/lua_spread.h"
#include "device/lua_device.h"
#include "files/lua_h5.h"
#include "files/lua_rawfile.h"
#include "lua_modules.h"
#include "memory/lua_array_box.h"
#include "stream/carrier.h"

#define CARRIER "moonbeam.carrier"
#define MOST_POINTS 256 /* that are waited for at a time */

typedef struct carrier_box {
    mb_carrier *carrier; /* NULL: closed */
    mb_device *device;
} carrier_box;

static mb_carrier *check_carrier_at(lua_State *L, int index)
{
    carrier_box *box = mbl_check_object(L, index, CARRIER);
    if (!box->carrier)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "this carrier has been closed; mb.stream.carrier opens another");
    return box->carrier;
}

static mb_carrier *check_carrier(lua_State *L)
{
    return check_carrier_at(L, 1);
}

/* The mark at `index`, or all transfers if there is none. */
static uint64_t check_mark(lua_State *L, int index)
{
    return lua_isnoneornil(L, index) ? MB_CARRIER_ALL
                                     : (uint64_t)mbl_check_integer(L, index, "mark");
}

static mb_carrier_options check_options(lua_State *L, int index)
{
    mb_carrier_options options = {.threads = 1};
    options.threads = (int)mbl_option_integer(L, index, "threads", 4);
    options.writing = mbl_option_flag(L, index, "writing");
    options.hashes = mbl_option_flag(L, index, "hashes");
    if (mbl_option(L, index, "slot"))
        options.slot_bytes = mbl_check_bytes(L, -1, "slot");
    options.pinned_bytes = (uint64_t)64 << 20;
    if (mbl_option(L, index, "pinned"))
        options.pinned_bytes = mbl_check_bytes(L, -1, "pinned");
    return options;
}

/* open({device =, writing = false, threads = 4, pinned = "64Mi", slot =, hashes = false}) */
static int carrier_open(lua_State *L)
{
    static const char *const names[] = {"device", "writing", "threads", "pinned",
                                        "slot",   "hashes",  NULL};
    mbl_check_options(L, 1, names, "carrier.open");
    const mb_carrier_options options = check_options(L, 1);
    mb_device *device = mbl_option_device(L, 1);
    carrier_box *box = lua_newuserdatauv(L, sizeof *box, 2);
    box->carrier = NULL;
    box->device = device;
    luaL_setmetatable(L, CARRIER);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    mbl_push_device(L, device);
    lua_setiuservalue(L, -2, 2);
    mbl_check(L, mb_carrier_create(device, &options, mbl_owner(L), &box->carrier));
    return 1;
}

/* plan({writing =, threads =, pinned =, slot =}): the pinned bytes of a carrier with these
** options. */
static int carrier_plan(lua_State *L)
{
    static const char *const names[] = {"writing", "threads", "pinned", "slot", "hashes", NULL};
    int slots = 0;
    uint64_t slot_bytes = 0;
    mbl_check_options(L, 1, names, "carrier.plan");
    const mb_carrier_options options = check_options(L, 1);
    mbl_check(L, mb_carrier_plan(&options, &slots, &slot_bytes));
    lua_pushinteger(L, (lua_Integer)((uint64_t)slots * slot_bytes));
    return 1;
}

static int queue(lua_State *L, bool last)
{
    mb_range ranges[MB_H5_MAX_RANK];
    mb_carrier *carrier = check_carrier(L);
    if (mbl_array_slot(L, 2) != NULL) {
        const mb_array *host = mbl_check_array(L, 2);
        mb_array *array = mbl_check_array(L, 3);
        mbl_check(L, mb_carrier_queue_host(carrier, host, array));
        return 0;
    }
    mb_rawfile *file = mbl_test_rawfile(L, 2);
    if (file) {
        int64_t steps[MB_MAX_RANK];
        mb_array *array = mbl_check_array(L, 3);
        mbl_check_steps(L, 5, array, steps);
        mbl_check(L, mb_carrier_queue_file(carrier, file, mbl_check_offset(L, 4), steps, array));
        return 0;
    }
    mb_spread *spread = mbl_test_spread(L, 2);
    if (spread) {
        int64_t steps[MB_MAX_RANK];
        mb_array *array = mbl_check_array(L, 3);
        mbl_check_steps(L, 5, array, steps);
        const uint64_t offset = mbl_check_offset(L, 4);
        mbl_check(L, mb_carrier_queue_spread(carrier, spread, offset, steps, array));
        return 0;
    }
    mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 2);
    mb_array *array = mbl_check_array(L, 3);
    mbl_check_h5_ranges(L, 4, lua_gettop(L), mb_h5_dataset_info(dataset), ranges);
    lua_getiuservalue(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    mbl_check(L, mb_carrier_queue(carrier, dataset, ranges, array, last));
    return 0;
}

/* carry(dataset, array, range, ...): queues the transfer; carry(view of an array on the host,
** array), carry(rawfile, array, offset, steps) and carry(spread, array, offset, steps) likewise. */
static int carrier_carry(lua_State *L)
{
    return queue(L, false);
}

/* carry_last(dataset, array, range, ...): the same for the last transfer to this dataset. */
static int carrier_carry_last(lua_State *L)
{
    return queue(L, true);
}

/* wait([mark]): waits until all transfers, or those before the mark, are through the ring. */
static int carrier_wait(lua_State *L)
{
    mb_carrier *carrier = check_carrier(L);
    mbl_check(L, mb_carrier_wait(carrier, check_mark(L, 2)));
    return 0;
}

/* mark(): for wait, the transfers that were queued so far. */
static int carrier_mark(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mb_carrier_queued(check_carrier(L)));
    return 1;
}

static int reached(lua_State *L, bool to_end)
{
    bool yes = false;
    mbl_check(L, mb_carrier_reached(check_carrier(L), check_mark(L, 2), to_end, &yes));
    lua_pushboolean(L, yes);
    return 1;
}

/* passed([mark]): are all transfers, or those before the mark, through the ring? Does not wait. */
static int carrier_passed(lua_State *L)
{
    return reached(L, false);
}

/* ready([mark]): are they over at the other ends too, as after finish()? Does not wait. */
static int carrier_ready(lua_State *L)
{
    return reached(L, true);
}

/* Pops the value on top, a carrier or {carrier, mark, ready = false}, and returns its point. The
** list that the value comes from keeps the carrier alive. */
static mb_carrier_point pop_point(lua_State *L)
{
    mb_carrier_point point = {.count = MB_CARRIER_ALL};
    const int top = lua_gettop(L);
    if (lua_istable(L, top)) {
        lua_getfield(L, top, "ready");
        point.to_end = lua_toboolean(L, -1);
        lua_rawgeti(L, top, 2);
        point.count = check_mark(L, -1);
        lua_rawgeti(L, top, 1);
    }
    point.carrier = check_carrier_at(L, -1);
    lua_settop(L, top - 1);
    return point;
}

/* wait_any(list): sleeps until one of several carriers, of any devices, has got far enough. An
** element of the list is a carrier (it has passed all transfers), {carrier, mark} (it has passed
** the mark) or {carrier, mark, ready = true} (it is ready up to the mark). Returns the index of the
** first element that is found to have got there, or nil if a signal came. Call wait or finish
** afterwards: they do not sleep then, and they release arrays. */
static int carrier_wait_any(lua_State *L)
{
    if (!lua_istable(L, 1))
        mbl_fail(L, MB_STATUS_ARGUMENT, "list", "list must be a table of carriers, not a %s",
                 mbl_type_name(L, 1));
    lua_settop(L, 1);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    if (count > MOST_POINTS)
        mbl_fail(L, MB_STATUS_ARGUMENT, "list",
                 "list has %d carriers; at most %d can be waited for", (int)count, MOST_POINTS);
    mb_carrier_point points[MOST_POINTS];
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        points[i] = pop_point(L);
    }
    int which = -1;
    mbl_check(L, mb_carrier_wait_any(points, (int)count, &which));
    if (which < 0)
        lua_pushnil(L);
    else
        lua_pushinteger(L, which + 1);
    return 1;
}

/* hash(from, to): the sum of the hashes of all lines of the transfers that were queued between two
** marks, as an integer that wraps. Legal after ready(to); they are forgotten. */
static int carrier_hash(lua_State *L)
{
    uint64_t sum = 0;
    mb_carrier *carrier = check_carrier(L);
    const uint64_t from = (uint64_t)mbl_check_integer(L, 2, "from");
    mbl_check(L, mb_carrier_hash(carrier, from, (uint64_t)mbl_check_integer(L, 3, "to"), &sum));
    lua_pushinteger(L, (lua_Integer)sum);
    return 1;
}

static int carrier_finish(lua_State *L)
{
    mbl_check(L, mb_carrier_finish(check_carrier(L)));
    lua_newtable(L); /* no transfer is left: the datasets may be collected */
    lua_setiuservalue(L, 1, 1);
    return 0;
}

/* pending(dataset): are transfers of the dataset in progress? */
static int carrier_pending(lua_State *L)
{
    mb_carrier *carrier = check_carrier(L);
    lua_pushboolean(L, mb_carrier_pending(carrier, mbl_check_h5_dataset(L, 2)));
    return 1;
}

/* stats(): {bytes, raw_bytes, file_seconds, lane_seconds, wait_seconds, slots, threads, pinned} */
static int carrier_stats(lua_State *L)
{
    mb_carrier_stats s;
    mb_carrier_get_stats(check_carrier(L), &s);
    lua_createtable(L, 0, 8);
    mbl_set_integer(L, "bytes", s.bytes);
    mbl_set_integer(L, "raw_bytes", s.raw_bytes);
    mbl_set_number(L, "file_seconds", s.file_seconds);
    mbl_set_number(L, "lane_seconds", s.lane_seconds);
    mbl_set_number(L, "wait_seconds", s.wait_seconds);
    mbl_set_integer(L, "slots", (uint64_t)s.slots);
    mbl_set_integer(L, "threads", (uint64_t)s.threads);
    mbl_set_integer(L, "pinned", s.pinned_bytes);
    return 1;
}

static int end_carrier(lua_State *L, void (*end)(mb_carrier *, const char *))
{
    carrier_box *box = mbl_check_object(L, 1, CARRIER);
    mb_carrier *carrier = box->carrier;
    box->carrier = NULL;
    if (!carrier)
        return 0;
    lua_getiuservalue(L, 1, 2);
    if (mbl_test_device(L, -1) != box->device)
        mb_carrier_forget_device(carrier); /* a closed dry device no longer has an account */
    end(carrier, mbl_owner(L));
    return 0;
}

static int carrier_close(lua_State *L)
{
    return end_carrier(L, mb_carrier_destroy);
}

/* abandon(): closes the carrier of a lost device. Files that it has not written completely stay
** usable, because the caller writes again what is missing. */
static int carrier_abandon(lua_State *L)
{
    return end_carrier(L, mb_carrier_abandon);
}

/* direct(device, array): can carriers of the device move this array on the host without a ring? */
static int carrier_direct(lua_State *L)
{
    const mb_device *device = mbl_check_device(L, 1);
    lua_pushboolean(L, mb_carrier_direct(device, mbl_check_array(L, 2)));
    return 1;
}

int mbl_open_carrier(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", carrier_open},
                                         {"plan", carrier_plan},
                                         {"direct", carrier_direct},
                                         {"wait_any", carrier_wait_any},
                                         {NULL, NULL}};
    static const luaL_Reg metamethods[] = {
        {"__gc", carrier_close}, {"__close", carrier_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"carry", carrier_carry},
                                       {"carry_last", carrier_carry_last},
                                       {"wait", carrier_wait},
                                       {"passed", carrier_passed},
                                       {"ready", carrier_ready},
                                       {"finish", carrier_finish},
                                       {"mark", carrier_mark},
                                       {"hash", carrier_hash},
                                       {"stats", carrier_stats},
                                       {"pending", carrier_pending},
                                       {"close", carrier_close},
                                       {"abandon", carrier_abandon},
                                       {NULL, NULL}};
    mbl_register_type(L, CARRIER, metamethods, methods);
    luaL_newlib(L, functions);
    return 1;
}
