/*
** What a plug-in that starts ranks offers (mpi/mpi_engine.c): who is who, and messages. The program
** is not linked with MPI; it loads the plug-in when a launcher has started it.
**
** All functions are called by one thread, which has called `start`. A message is bytes; messages
** from one rank to another arrive in their order. A piece is bytes between the memory of two ranks
** that have agreed on it by messages: one calls `push`, the other `pull` with the same tag.
*/
#ifndef MB_CLUSTER_ENGINE_H
#define MB_CLUSTER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#define MB_ENGINE_ABI 2
#define MB_ENGINE_ENTRY "mb_engine_entry"

typedef struct mb_place {
    int rank, size;           /* among all ranks, from 0 */
    int node_rank, node_size; /* among those of this node */
    int nodes;
    char node[128];    /* its name */
    char library[128]; /* the MPI, with its version */
} mb_place;

typedef struct mb_engine {
    int abi;
    /* Returns false where it fails; `problem` then has the reason. */
    bool (*start)(mb_place *place, char *problem, size_t bytes);
    /* Sends a copy of the bytes, and does not wait. Returns false where memory is missing. */
    bool (*send)(int to, const void *data, size_t bytes);
    /* The next message that has come: *data is for free(). Returns false if there is none. */
    bool (*receive)(int *from, void **data, size_t *bytes);
    /* Lets messages get on. Returns whether all have left. */
    bool (*sent)(void);
    /* Begin to send a piece, and to receive one. The memory is in use until `over`. The tag, 0 to
    ** 32767, tells pieces between the same two ranks apart. NULL: no memory. */
    void *(*push)(int to, int tag, const void *data, size_t bytes);
    void *(*pull)(int from, int tag, void *data, size_t bytes);
    /* Is a piece over? Then it is freed. */
    bool (*over)(void *piece);
    void (*finish)(void);
    /* Ends all ranks with this exit status. */
    void (*abort)(int status);
} mb_engine;

typedef const mb_engine *(*mb_engine_entry_function)(void);

#endif
