/*
** The pool in Lua: statistics, peak scopes, guards, consistency, live blocks. Every function takes
** a device (or its id); without one it uses the default device.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "call/lua_type.h"
#include "core/clock.h"
#include "device/lua_device.h"
#include "lua_modules.h"
#include "array/storage.h"
#include "memory/lua_allocate.h"
#include "memory/lua_array_box.h"
#include "memory/pool_trace.h"

#define SCOPE "moonbeam.scope"

/* stats([device]) */
static int pool_stats(lua_State *L)
{
    mb_pool_stats s;
    mb_device *device = mbl_opt_device(L, 1);
    mb_pool_get_stats(device->pool, &s);
    lua_createtable(L, 0, 22);
    mbl_set_integer(L, "budget", s.budget);
    mbl_set_integer(L, "reserved", s.reserved);
    mbl_set_integer(L, "committed", s.committed);
    mbl_set_integer(L, "live", s.live);
    mbl_set_integer(L, "live_peak", s.live_peak);
    mbl_set_integer(L, "live_arrays", s.live_end[MB_POOL_ARRAY]);
    mbl_set_integer(L, "live_scratch", s.live_end[MB_POOL_SCRATCH]);
    mbl_set_integer(L, "reach_arrays", s.reach[MB_POOL_ARRAY]);
    mbl_set_integer(L, "reach_scratch", s.reach[MB_POOL_SCRATCH]);
    mbl_set_integer(L, "requested", s.requested);
    mbl_set_integer(L, "rounding", s.live - s.requested);
    mbl_set_integer(L, "pitch_waste", s.pitch_waste);
    mbl_set_integer(L, "largest_hole", s.largest_hole);
    mbl_set_integer(L, "blocks", s.blocks);
    mbl_set_integer(L, "allocs", s.allocs);
    mbl_set_integer(L, "frees", s.frees);
    mbl_set_integer(L, "failures", s.failures);
    mbl_set_integer(L, "cross_end", s.cross_end);
    mbl_set_integer(L, "free", s.free_bytes);
    mbl_set_integer(L, "events", s.events);
    mbl_set_integer(L, "broken_guards", mb_pool_broken_guards(device->pool));
    return 1;
}

/* round(bytes): the bytes that a request of this size takes. */
static int pool_round(lua_State *L)
{
    uint64_t bytes = mbl_check_bytes(L, 1, "bytes");
    lua_pushinteger(L, (lua_Integer)mb_pool_round(bytes));
    return 1;
}

/* element_bytes(dtype): the bytes of one element. */
static int pool_element_bytes(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mb_dtype_bytes(mbl_check_dtype(L, 1, "dtype")));
    return 1;
}

/* alloc(bytes [, device or {device =, dtype =}]): a block as an array of one axis, u8 by default.
** 0 bytes are legal and take no memory. */
static int pool_alloc(lua_State *L)
{
    static const char *const names[] = {"device", "dtype", NULL};
    uint64_t bytes = mbl_check_bytes(L, 1, "bytes");
    mb_dtype dtype = MB_U8;
    mb_device *device = mbl_test_device(L, 2);
    if (!device && lua_istable(L, 2)) {
        mbl_check_options(L, 2, names, "pool.alloc");
        dtype = mbl_option_dtype(L, 2, MB_U8);
        device = mbl_option_device(L, 2);
    } else if (!device) {
        device = mbl_opt_device(L, 2);
    }
    uint64_t size = mb_dtype_bytes(dtype);
    if (bytes % size != 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "bytes",
                 "%llu bytes are not a whole number of %s (%llu bytes each)",
                 (unsigned long long)bytes, mb_dtype_name(dtype), (unsigned long long)size);
    mb_shape shape = {1, {(int64_t)(bytes / size)}};
    mbl_create_array(L, device, dtype, &shape);
    return 1;
}

typedef struct activation {
    mb_pool *pool;
    uint64_t low, high;
} activation;

static mb_status activate(void *user)
{
    const activation *a = user;
    return mb_pool_activate(a->pool, a->low, a->high);
}

/* activate(device, low, high): commits both ends of the pool. */
static int pool_activate(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    activation a = {device->pool, mbl_check_bytes(L, 2, "bytes"), mbl_check_bytes(L, 3, "high")};
    mbl_check(L, mbl_allocate(L, device, activate, &a));
    return 0;
}

/* reset_reach([device]) */
static int pool_reset_reach(lua_State *L)
{
    mb_pool_reset_reach(mbl_opt_device(L, 1)->pool);
    return 0;
}

static int pool_trim(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mb_pool_trim(mbl_opt_device(L, 1)->pool));
    return 1;
}

/* debug(on [, device]): guards around blocks, and patterns in new and freed ones. */
static int pool_debug(lua_State *L)
{
    bool on = lua_toboolean(L, 1);
    mb_device *device = mbl_opt_device(L, 2);
    mbl_check(L, mb_pool_set_debug(device->pool, on ? MB_POOL_GUARDS | MB_POOL_PATTERNS : 0));
    return 0;
}

/* damage([device]): damaged guards of freed and live blocks: {owner, freed, offset, bytes,
** distance, value, after}. */
static int pool_damage(lua_State *L)
{
    mb_pool_damage found[4 * MB_POOL_KEPT_DAMAGE];
    mb_device *device = mbl_opt_device(L, 1);
    uint64_t count = mb_pool_find_damage(device->pool, found, sizeof found / sizeof *found);
    lua_createtable(L, (int)count, 0);
    for (uint64_t i = 0; i < count; i++) {
        lua_createtable(L, 0, 7);
        mbl_set_string(L, "owner", found[i].owner ? found[i].owner : "C");
        lua_pushstring(L, found[i].freed); /* nil: live */
        lua_setfield(L, -2, "freed");
        mbl_set_integer(L, "offset", found[i].offset);
        mbl_set_integer(L, "bytes", found[i].bytes);
        mbl_set_integer(L, "distance", found[i].distance);
        mbl_set_integer(L, "value", found[i].value);
        mbl_set_boolean(L, "after", found[i].after);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* note_pitch(array, waste): records how many bytes of its block lie between rows. */
static int pool_note_pitch(lua_State *L)
{
    mb_array *array = mbl_check_array(L, 1);
    uint64_t waste = mbl_check_bytes(L, 2, "waste");
    mb_pool_note_pitch(array->device->pool, mb_storage_block(array->storage), waste);
    return 0;
}

/* check([device]): nil if the pool is consistent, otherwise what is wrong. */
static int pool_check(lua_State *L)
{
    lua_pushstring(L, mb_pool_check(mbl_opt_device(L, 1)->pool));
    return 1;
}

/*
** Live blocks. The visitor must not call Lua, which may raise an error, so it collects the blocks
** in a C list that is allocated beforehand.
*/

typedef struct block_list {
    mb_pool_block *rows;
    uint64_t count, room;
} block_list;

static void collect_block(void *user, const mb_pool_block *block)
{
    block_list *list = user;
    if (list->count < list->room)
        list->rows[list->count++] = *block;
}

/* blocks([device]): live blocks in address order: {offset, bytes, requested, pitch_waste, sequence,
** age (s), end, thread, owner, tag}. */
static int pool_blocks(lua_State *L)
{
    mb_pool_stats s;
    mb_device *device = mbl_opt_device(L, 1);
    mb_pool_get_stats(device->pool, &s);
    block_list list = {NULL, 0, s.blocks};
    list.rows = lua_newuserdatauv(L, (size_t)(s.blocks > 0 ? s.blocks : 1) * sizeof *list.rows, 0);
    mb_pool_each(device->pool, collect_block, &list);
    const uint64_t now = mb_now_ns();
    lua_createtable(L, (int)list.count, 0);
    for (uint64_t i = 0; i < list.count; i++) {
        const mb_pool_block *row = &list.rows[i];
        lua_createtable(L, 0, 10);
        mbl_set_integer(L, "offset", row->offset);
        mbl_set_integer(L, "bytes", row->bytes);
        mbl_set_integer(L, "requested", row->requested);
        mbl_set_integer(L, "pitch_waste", row->pitch_waste);
        mbl_set_integer(L, "sequence", row->sequence);
        mbl_set_integer(L, "thread", row->thread);
        mbl_set_number(L, "age", (double)(now - row->born_ns) * 1e-9);
        mbl_set_text(L, "end", row->end == MB_POOL_ARRAY ? "array" : "scratch");
        mbl_set_text(L, "owner", row->owner);
        mbl_set_text(L, "tag", row->tag);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* Notes the views that were made under a tag and are not released in `rows`, at most `room`; NULL:
** only counts them. Returns how many. */
static uint64_t tagged_views(const mb_device *device, mb_pool_block *rows, uint64_t room)
{
    uint64_t count = 0;
    for (const mbl_array_box *box = mbl_lock_array_boxes(); box && count < room; box = box->next) {
        const mb_array *array = box->tag ? box->array : NULL;
        if (!array || array->device != device || mb_storage_pinned_for(array->storage))
            continue;
        if (rows)
            rows[count] = (mb_pool_block){
                .offset = mb_pool_offset(device->pool, mb_storage_block(array->storage)),
                .sequence = box->sequence,
                .owner = box->owner,
                .tag = box->tag};
        count++;
    }
    mbl_unlock_array_boxes();
    return count;
}

/* views([device]): the views that were made under a tag and are not released: {offset (of the
** block), sequence, owner, tag}. */
static int pool_views(lua_State *L)
{
    mb_device *device = mbl_opt_device(L, 1);
    uint64_t count = tagged_views(device, NULL, UINT64_MAX);
    mb_pool_block *rows = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *rows, 0);
    count = tagged_views(device, rows, count);
    lua_createtable(L, (int)count, 0);
    for (uint64_t i = 0; i < count; i++) {
        lua_createtable(L, 0, 4);
        mbl_set_integer(L, "offset", rows[i].offset);
        mbl_set_integer(L, "sequence", rows[i].sequence);
        mbl_set_text(L, "owner", rows[i].owner);
        mbl_set_text(L, "tag", rows[i].tag);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* Pushes a userdata that holds the trace's events. */
static mb_pool_event *push_events(lua_State *L, mb_device *device, uint64_t *count)
{
    mb_pool_stats s;
    mb_pool_get_stats(device->pool, &s);
    if (s.events > MB_POOL_TRACE_EVENTS)
        s.events = MB_POOL_TRACE_EVENTS;
    mb_pool_event *events =
        lua_newuserdatauv(L, (size_t)(s.events > 0 ? s.events : 1) * sizeof *events, 0);
    *count = mb_pool_events(device->pool, events, s.events);
    return events;
}

/* events([device]): the latest events of the trace, oldest first: {action, ns, offset, bytes, live,
** owner, tag, thread, end, block}. Events of one block have the same `block`. */
static int pool_events(lua_State *L)
{
    static const char *const actions[] = {"alloc", "free", "refused"};
    uint64_t count;
    const mb_pool_event *events = push_events(L, mbl_opt_device(L, 1), &count);
    lua_createtable(L, (int)count, 0);
    for (uint64_t i = 0; i < count; i++) {
        const mb_pool_event *e = &events[i];
        lua_createtable(L, 0, 10);
        mbl_set_string(L, "action", actions[e->action]);
        mbl_set_integer(L, "ns", e->ns);
        mbl_set_integer(L, "offset", e->offset);
        mbl_set_integer(L, "bytes", e->bytes);
        mbl_set_integer(L, "live", e->live);
        mbl_set_integer(L, "thread", e->thread);
        mbl_set_text(L, "owner", e->owner);
        mbl_set_text(L, "tag", e->tag);
        mbl_set_text(L, "end", e->end == MB_POOL_ARRAY ? "array" : "scratch");
        if (e->action != MB_POOL_EVENT_REFUSED)
            mbl_set_integer(L, "block", (uint64_t)e->node << 32 | e->generation);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* smallest([device]): replays the trace. Returns the peak bytes of the traced blocks, the memory
** that would have been enough (committed on demand, as on the device), and the size of one fixed
** range that would have been enough. */
static int pool_smallest(lua_State *L)
{
    uint64_t count, peak, memory, range;
    mb_device *device = mbl_opt_device(L, 1);
    const mb_pool_event *events = push_events(L, device, &count);
    mbl_check(L, mb_pool_smallest(events, count, device->facts.commit_granularity, &peak, &memory));
    mbl_check(L, mb_pool_smallest(events, count, 0, &peak, &range));
    lua_pushinteger(L, (lua_Integer)peak);
    lua_pushinteger(L, (lua_Integer)memory);
    lua_pushinteger(L, (lua_Integer)range);
    return 3;
}

/*
** Scopes: the peak of live bytes between begin and finish, above what was live at the beginning.
*/

typedef struct scope {
    mb_device *device;
    int token; /* -1: finished */
    uint64_t entry, peak;
} scope;

/* scope([device]) */
static int pool_scope(lua_State *L)
{
    mb_device *device = mbl_opt_device(L, 1);
    scope *s = lua_newuserdatauv(L, sizeof *s, 1);
    *s = (scope){device, -1, 0, 0};
    luaL_setmetatable(L, SCOPE);
    mbl_push_device(L, device); /* a dry device must outlive its scopes */
    lua_setiuservalue(L, -2, 1);
    s->token = mb_pool_scope_begin(device->pool);
    if (s->token < 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "more than %d peak scopes are open",
                 MB_POOL_MAX_SCOPES);
    return 1;
}

static void end_scope(lua_State *L, scope *s)
{
    if (s->token < 0)
        return;
    lua_getiuservalue(L, 1, 1);
    if (mbl_test_device(L, -1) == s->device) /* closing a dry device also ends its scopes */
        mb_pool_scope_end(s->device->pool, s->token, &s->entry, &s->peak);
    lua_pop(L, 1);
    s->token = -1;
}

/* finish(): the peak above entry and the live bytes at entry. May be called again. */
static int scope_finish(lua_State *L)
{
    scope *s = mbl_check_object(L, 1, SCOPE);
    end_scope(L, s);
    lua_pushinteger(L, (lua_Integer)(s->peak - s->entry));
    lua_pushinteger(L, (lua_Integer)s->entry);
    return 2;
}

static int scope_close(lua_State *L)
{
    end_scope(L, mbl_check_object(L, 1, SCOPE));
    return 0;
}

int mbl_open_pool(lua_State *L)
{
    static const luaL_Reg functions[] = {{"stats", pool_stats},
                                         {"round", pool_round},
                                         {"alloc", pool_alloc},
                                         {"element_bytes", pool_element_bytes},
                                         {"activate", pool_activate},
                                         {"reset_reach", pool_reset_reach},
                                         {"trim", pool_trim},
                                         {"debug", pool_debug},
                                         {"damage", pool_damage},
                                         {"note_pitch", pool_note_pitch},
                                         {"check", pool_check},
                                         {"blocks", pool_blocks},
                                         {"views", pool_views},
                                         {"scope", pool_scope},
                                         {"events", pool_events},
                                         {"smallest", pool_smallest},
                                         {NULL, NULL}};
    static const luaL_Reg metamethods[] = {
        {"__gc", scope_close}, {"__close", scope_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"finish", scope_finish}, {NULL, NULL}};
    mbl_register_type(L, SCOPE, metamethods, methods);
    luaL_newlib(L, functions);
    return 1;
}
