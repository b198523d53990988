/*
** Timers of queued work in Lua: userdata "moonbeam.timer". start() and stop() mark points of a
** device's compute stream and do not wait; seconds() waits for the last mark and returns the sum.
** A limited number of pairs may be unread at a time. When another pair is needed, the oldest is
** read; if the program waits for results between pairs, that pair has passed long before.
** The events of a dry device are NULL. A timer with NULL events does not use its device, so it may
** outlive the device.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "device/lua_device.h"
#include "lua_modules.h"

#define TIMER "moonbeam.timer"
#define PAIRS 8

typedef struct timer {
    mb_device *device;
    void *begin[PAIRS], *end[PAIRS];
    int first, unread; /* stopped pairs */
    bool running, closed;
    double seconds;
} timer;

static timer *check_timer(lua_State *L)
{
    timer *t = mbl_check_object(L, 1, TIMER);
    if (t->closed)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "this timer has been closed");
    return t;
}

/* timer([device]) */
static int timer_new(lua_State *L)
{
    mb_device *device = mbl_opt_device(L, 1);
    timer *t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (timer){.device = device};
    luaL_setmetatable(L, TIMER);
    for (int i = 0; i < PAIRS; i++) {
        mbl_check(L, mb_device_event_create(device, &t->begin[i]));
        mbl_check(L, mb_device_event_create(device, &t->end[i]));
    }
    return 1;
}

static mb_status read_oldest(timer *t)
{
    double ms = 0;
    void *begin = t->begin[t->first], *end = t->end[t->first];
    if (end) {
        MB_TRY(mb_device_event_wait(t->device, end));
        MB_TRY(mb_device_event_elapsed_ms(t->device, begin, end, &ms));
    }
    t->seconds += 1e-3 * ms;
    t->first = (t->first + 1) % PAIRS;
    t->unread--;
    return MB_STATUS_OK;
}

static mb_status mark(timer *t, void *event)
{
    if (!event)
        return MB_STATUS_OK;
    return mb_device_event_record(t->device, MB_LANE_COMPUTE, event);
}

static int timer_start(lua_State *L)
{
    timer *t = check_timer(L);
    if (t->unread == PAIRS)
        mbl_check(L, read_oldest(t));
    mbl_check(L, mark(t, t->begin[(t->first + t->unread) % PAIRS]));
    t->running = true;
    return 0;
}

static int timer_stop(lua_State *L)
{
    timer *t = check_timer(L);
    if (!t->running)
        return 0;
    mbl_check(L, mark(t, t->end[(t->first + t->unread) % PAIRS]));
    t->running = false;
    t->unread++;
    return 0;
}

static int timer_seconds(lua_State *L)
{
    timer *t = check_timer(L);
    while (t->unread > 0)
        mbl_check(L, read_oldest(t));
    lua_pushnumber(L, t->seconds);
    return 1;
}

static int timer_close(lua_State *L)
{
    timer *t = mbl_check_object(L, 1, TIMER);
    for (int i = 0; i < PAIRS; i++) {
        if (t->begin[i])
            mb_device_event_destroy(t->device, t->begin[i]);
        if (t->end[i])
            mb_device_event_destroy(t->device, t->end[i]);
        t->begin[i] = t->end[i] = NULL;
    }
    t->unread = 0;
    t->closed = true;
    return 0;
}

int mbl_open_timer(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__gc", timer_close}, {"__close", timer_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"start", timer_start}, {"stop", timer_stop}, {"seconds", timer_seconds}, {NULL, NULL}};
    mbl_register_type(L, TIMER, metamethods, methods);
    lua_pushcfunction(L, timer_new);
    return 1;
}
