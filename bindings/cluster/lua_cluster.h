/*
** What a rank that fails says, kept until the process ends (bindings/program/main_ranks.c), and what
** ranks of one node share.
*/
#ifndef MB_BINDINGS_LUA_CLUSTER_H
#define MB_BINDINGS_LUA_CLUSTER_H

#include <stdbool.h>

/* Keeps a line, the first one that is given. Returns false if this process is the only rank: then
** the caller prints it. */
bool mbl_cluster_note_failure(const char *line);
/* The line that was kept; "" if there is none. */
const char *mbl_cluster_failure(void);
/* So many processes share the processors and the memory of this node. A launcher may have bound
** each to some of them. */
void mbl_cluster_share_node(int processes);

#endif
