/*
** The processes of the ranks on this node, by which the one that has died without a word is found.
**
** Threads: those of rank 0's messages alone.
*/
#ifndef MB_CLUSTER_PEERS_H
#define MB_CLUSTER_PEERS_H

#include <stdint.h>

/* Notes the process of a rank on this node. One that cannot be seen, as in a container of its own,
** is not noted, and neither is one without memory. */
void mb_peers_note(int rank, int64_t pid);

/* The first rank whose process is not there any more, or is dead; -1: none. */
int mb_peers_dead(void);

#endif
