#include "memory/lua_tag.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "call/lua_type.h"
#include "lua_modules.h"
#include <string.h>

#define TAG "moonbeam.tag"
#define STACK "moonbeam.pool_tags"
#define MOST_TAGS 32

typedef struct tag_entry {
    const char *name; /* interned */
    lua_Integer serial;
} tag_entry;

typedef struct tag_stack {
    int count;
    tag_entry entries[MOST_TAGS];
} tag_stack;

/* The result of tag(name); user value 1 is its stack. */
typedef struct tag {
    tag_stack *stack;
    lua_Integer serial;
} tag;

static const char stacks_key = 0; /* a table in the registry: stacks by coroutine, weak keys */
static lua_Integer last_serial;
static int open_tags; /* in all coroutines; while it is 0, the usual case, tags cost nothing */

/* Pushes the stack of the running coroutine, or nil. */
static tag_stack *push_stack(lua_State *L)
{
    luaL_checkstack(L, 4, "tags");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &stacks_key);
    lua_pushthread(L);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return lua_touserdata(L, -1);
}

const char *mbl_tag(lua_State *L)
{
    if (open_tags == 0)
        return NULL;
    const tag_stack *stack = push_stack(L);
    lua_pop(L, 1);
    return stack && stack->count > 0 ? stack->entries[stack->count - 1].name : NULL;
}

static void cut(tag_stack *stack, int count)
{
    open_tags -= stack->count - count;
    stack->count = count;
}

/* begin(name): the tag is open until the returned value is closed, or finish(name) is called. */
static int tag_begin(lua_State *L)
{
    const char *name = mbl_check_string(L, 1, "name");
    tag_stack *stack = push_stack(L);
    if (!stack) {
        lua_pop(L, 1);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &stacks_key);
        lua_pushthread(L);
        stack = lua_newuserdatauv(L, sizeof *stack, 0);
        stack->count = 0;
        luaL_setmetatable(L, STACK);
        lua_pushvalue(L, -1);
        lua_insert(L, -4);
        lua_rawset(L, -3);
        lua_pop(L, 1);
    }
    if (stack->count == MOST_TAGS)
        mbl_fail(L, MB_STATUS_ARGUMENT, "name",
                 "%d tags are open; end some of them before '%s' begins", MOST_TAGS, name);
    tag *t = lua_newuserdatauv(L, sizeof *t, 1);
    *t = (tag){stack, ++last_serial};
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, TAG);
    stack->entries[stack->count++] = (tag_entry){mbl_intern(name), t->serial};
    open_tags++;
    return 1;
}

/* close(): ends the tag and those that were begun inside it. A second call does nothing. */
static int tag_close(lua_State *L)
{
    const tag *t = mbl_check_object(L, 1, TAG);
    for (int i = t->stack->count - 1; i >= 0; i--)
        if (t->stack->entries[i].serial == t->serial) {
            cut(t->stack, i);
            break;
        }
    return 0;
}

/* finish([name]): ends the innermost tag of the running coroutine, or the innermost one of that
** name and those inside it. */
static int tag_finish(lua_State *L)
{
    const char *name = lua_isnoneornil(L, 1) ? NULL : mbl_check_string(L, 1, "name");
    tag_stack *stack = push_stack(L);
    int i = stack ? stack->count - 1 : -1;
    while (name && i >= 0 && strcmp(stack->entries[i].name, name) != 0)
        i--;
    if (i < 0 && name)
        mbl_fail(L, MB_STATUS_ARGUMENT, "name", "no tag '%s' is open in this coroutine", name);
    if (i < 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "no tag is open in this coroutine");
    cut(stack, i);
    return 0;
}

/* open(): the names of the running coroutine's open tags, innermost last. */
static int tag_open(lua_State *L)
{
    const tag_stack *stack = push_stack(L);
    lua_newtable(L);
    for (int i = 0; stack && i < stack->count; i++) {
        lua_pushstring(L, stack->entries[i].name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Called when the coroutine was collected. */
static int stack_gc(lua_State *L)
{
    cut(mbl_check_object(L, 1, STACK), 0);
    return 0;
}

int mbl_open_tag(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"begin", tag_begin}, {"finish", tag_finish}, {"open", tag_open}, {NULL, NULL}};
    static const luaL_Reg stack_metamethods[] = {{"__gc", stack_gc}, {NULL, NULL}};
    static const luaL_Reg metamethods[] = {{"__close", tag_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"close", tag_close}, {NULL, NULL}};
    luaL_newmetatable(L, STACK);
    luaL_setfuncs(L, stack_metamethods, 0);
    lua_pop(L, 1);
    mbl_register_type(L, TAG, metamethods, methods);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &stacks_key) == LUA_TNIL) {
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &stacks_key);
    }
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
