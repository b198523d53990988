/*
** Results of binding functions: members of the table on the top of the stack, lists, texts.
*/
#ifndef MB_BINDINGS_LUA_TABLE_H
#define MB_BINDINGS_LUA_TABLE_H

#include "core/shape.h"
#include <lauxlib.h>
#include <lua.h>

void mbl_set_integer(lua_State *L, const char *key, int64_t value);
void mbl_set_number(lua_State *L, const char *key, double value);
void mbl_set_text(lua_State *L, const char *key, const char *text);   /* NULL is an empty text */
void mbl_set_string(lua_State *L, const char *key, const char *text); /* NULL: no member */
void mbl_set_boolean(lua_State *L, const char *key, bool value);
void mbl_set_extents(lua_State *L, const char *key, int rank, const int64_t *extents);
void mbl_push_extents(lua_State *L, int rank, const int64_t *extents);
void mbl_push_names(lua_State *L, const char *const *names); /* NULL-terminated; NULL: none */
/* Pushes the text, made safe for a terminal (core/text.h). */
void mbl_push_printable(lua_State *L, const char *text, size_t length, bool lines);

#endif
