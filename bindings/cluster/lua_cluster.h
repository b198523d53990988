/*
** What a rank that fails says, kept until the process ends (bindings/program/main_ranks.c).
*/
#ifndef MB_BINDINGS_LUA_CLUSTER_H
#define MB_BINDINGS_LUA_CLUSTER_H

#include <stdbool.h>

/* Keeps a line, the first one that is given. Returns false if this process is the only rank: then
** the caller prints it. */
bool mbl_cluster_note_failure(const char *line);
/* The line that was kept; "" if there is none. */
const char *mbl_cluster_failure(void);

#endif
