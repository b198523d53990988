/*
** Owners: the Lua line that an allocation, a release or an error belongs to, as "file.lua:12". It
** is the line of the nearest Lua caller outside the module's own Lua half, because a user can
** change that line. The texts are interned for the life of the process: pools, traces and errors
** keep the pointers.
**
** Every allocation looks up its owner, so a small table per thread finds known lines, by source and
** line, without composing their text. An entry holds a copy of its source, so it remains valid when
** Lua frees a chunk and reuses its address.
*/
#include "call/lua_owner.h"
#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
** Interned texts
*/

#define TEXT_BUCKETS 256

typedef struct text {
    struct text *next;
    char bytes[];
} text;

static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static text *texts[TEXT_BUCKETS];

const char *mbl_intern(const char *bytes)
{
    unsigned hash = 5381;
    for (const char *p = bytes; *p != '\0'; p++)
        hash = hash * 33u + (unsigned char)*p;
    text **bucket = &texts[hash % TEXT_BUCKETS];
    pthread_mutex_lock(&text_lock);
    text *found = *bucket;
    while (found && strcmp(found->bytes, bytes) != 0)
        found = found->next;
    if (!found && (found = malloc(sizeof *found + strlen(bytes) + 1))) {
        strcpy(found->bytes, bytes);
        found->next = *bucket;
        *bucket = found;
    }
    pthread_mutex_unlock(&text_lock);
    return found ? found->bytes : "Lua";
}

/*
** Lines
*/

#define LINE_SLOTS 256          /* a power of two */
#define LONGEST_KEPT_SOURCE 200 /* chunks made from long strings are looked up in full */

typedef struct line {
    const char *source; /* interned */
    size_t source_length;
    int number; /* 0: an empty slot */
    const char *owner;
} line;

static char home[1024]; /* with the final slash; set when the module is loaded */
static size_t home_length;

void mbl_set_home(const char *folder)
{
    if (strlen(folder) < sizeof home) {
        strcpy(home, folder);
        home_length = strlen(home);
    }
}

/* Is the frame one of the module's own Lua half? ar has been filled by "S". */
static bool is_ours(const lua_Debug *ar)
{
    return home_length > 0 && ar->srclen > home_length && ar->source[0] == '@' &&
           memcmp(ar->source + 1, home, home_length) == 0;
}

bool mbl_in_library(lua_State *L)
{
    lua_Debug ar;
    return lua_getstack(L, 0, &ar) && lua_getinfo(L, "S", &ar) && is_ours(&ar);
}

static _Thread_local line lines[LINE_SLOTS];

/* Composes the owner and keeps it in the slot. */
static const char *new_owner(const lua_Debug *ar, line *slot)
{
    char composed[LUA_IDSIZE + 16];
    snprintf(composed, sizeof composed, "%s:%d", ar->short_src, ar->currentline);
    const char *owner = mbl_intern(composed);
    if (ar->srclen > LONGEST_KEPT_SOURCE || strlen(ar->source) != ar->srclen)
        return owner;
    const char *source = mbl_intern(ar->source);
    if (strcmp(source, ar->source) == 0) /* else there is no memory for the copy */
        *slot = (line){source, ar->srclen, ar->currentline, owner};
    return owner;
}

/* The owner that the frame's line is; ar has been filled by "Sl". */
static inline const char *owner_of(const lua_Debug *ar)
{
    const size_t place = ((uintptr_t)ar->source >> 4) * 31 + (unsigned)ar->currentline;
    line *slot = &lines[place & (LINE_SLOTS - 1)];
    if (slot->number == ar->currentline && slot->source_length == ar->srclen &&
        memcmp(slot->source, ar->source, ar->srclen) == 0)
        return slot->owner;
    return new_owner(ar, slot);
}

int mbl_call_apart(lua_State *L)
{
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Is this the frame of mbl_call_apart? */
static bool is_apart(lua_State *L, lua_Debug *ar)
{
    lua_getinfo(L, "f", ar);
    bool found = lua_tocfunction(L, -1) == mbl_call_apart;
    lua_pop(L, 1);
    return found;
}

/* The line to blame, from this level of the stack on: one of the Lua half only if there is no other.
** Lines of the Lua half that are passed are not looked up, because that takes time. */
static const char *blame(lua_State *L, int level)
{
    lua_Debug ar;
    const char *what = "Sl";
    int own = -1; /* the nearest frame of the Lua half */
    for (; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, what, &ar);
        if (*ar.what == 'C') {
            if (level > 0 && is_apart(L, &ar))
                break; /* a tail call has no line, and the next frame's line is not its caller's */
        } else if (is_ours(&ar)) {
            own = own < 0 ? level : own;
            what = "S";
        } else {
            if (!what[1])
                lua_getinfo(L, "l", &ar);
            if (ar.currentline > 0)
                return owner_of(&ar);
        }
    }
    if (own < 0 || !lua_getstack(L, own, &ar))
        return NULL;
    lua_getinfo(L, "Sl", &ar);
    return owner_of(&ar);
}

const char *mbl_caller(lua_State *L)
{
    return blame(L, 0);
}

const char *mbl_owner(lua_State *L)
{
    lua_Debug ar;
    if (lua_getstack(L, 1, &ar)) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline > 0 && !is_ours(&ar)) /* nearly always */
            return owner_of(&ar);
    }
    const char *caller = blame(L, 1);
    return caller ? caller : "C";
}

int mbl_push_callers(lua_State *L, const char *first, int levels)
{
    lua_Debug ar;
    const char *last = first;
    int count = 0;
    lua_createtable(L, 0, 0);
    for (int level = 0; level < levels && count < MBL_MOST_CALLERS && lua_getstack(L, level, &ar);
         level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0 || is_ours(&ar))
            continue;
        const char *owner = owner_of(&ar);
        if (owner == last) /* texts are interned */
            continue;
        last = owner;
        lua_pushstring(L, last);
        lua_rawseti(L, -2, ++count);
    }
    return count;
}
