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
    const char *source; /* interned; NULL: an empty slot */
    size_t source_length;
    int number;
    unsigned homes; /* the number of homes set when `ours` was determined */
    bool ours;      /* a line of the module's own Lua half */
    const char *owner;
} line;

static char home[1024]; /* with the final slash; set when the module is loaded */
static unsigned homes;

void mbl_set_home(const char *folder)
{
    if (strlen(folder) < sizeof home && strcmp(home, folder) != 0) {
        strcpy(home, folder);
        homes++;
    }
}

static line describe(const lua_Debug *ar)
{
    char owner[LUA_IDSIZE + 16];
    size_t length = strlen(home);
    snprintf(owner, sizeof owner, "%s:%d", ar->short_src, ar->currentline);
    return (line){.source_length = ar->srclen,
                  .number = ar->currentline,
                  .homes = homes,
                  .ours = length > 0 && ar->source[0] == '@' &&
                          strncmp(ar->source + 1, home, length) == 0,
                  .owner = mbl_intern(owner)};
}

/* The frame's line, until the next call; ar has been filled by "Sl". */
static const line *find_line(const lua_Debug *ar)
{
    static _Thread_local line lines[LINE_SLOTS], unkept;
    const size_t place = ((uintptr_t)ar->source >> 4) * 31 + (unsigned)ar->currentline;
    line *slot = &lines[place & (LINE_SLOTS - 1)];
    if (slot->source && slot->number == ar->currentline && slot->homes == homes &&
        slot->source_length == ar->srclen && memcmp(slot->source, ar->source, ar->srclen) == 0)
        return slot;
    if (ar->srclen > LONGEST_KEPT_SOURCE || strlen(ar->source) != ar->srclen)
        slot = &unkept;
    *slot = describe(ar);
    if (slot != &unkept) {
        slot->source = mbl_intern(ar->source);
        if (strcmp(slot->source, ar->source) != 0) /* no memory for the copy */
            slot->source = NULL;
    }
    return slot;
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

/* The line to blame, from this level of the stack on. */
static const char *blame(lua_State *L, int level)
{
    lua_Debug ar;
    const char *found = NULL;
    for (; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0) { /* a C function */
            if (level > 0 && is_apart(L, &ar))
                break; /* a tail call has no line, and the next frame's line is not its caller's */
            continue;
        }
        const line *at = find_line(&ar);
        if (!found || !at->ours) /* a line of the Lua half is better than none */
            found = at->owner;
        if (!at->ours)
            break;
    }
    return found;
}

const char *mbl_caller(lua_State *L)
{
    return blame(L, 0);
}

const char *mbl_owner(lua_State *L)
{
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
        if (ar.currentline <= 0)
            continue;
        const line *at = find_line(&ar);
        if (at->ours || at->owner == last) /* texts are interned */
            continue;
        last = at->owner;
        lua_pushstring(L, last);
        lua_rawseti(L, -2, ++count);
    }
    return count;
}
