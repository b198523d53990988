/*
** Memory that is spread over the ranks: a range of bytes, of which rank r keeps those from r times
** `share_bytes` on, in memory of its own. Any rank reads and writes all of them.
**
** What belongs to this rank is copied. For the rest a thread asks the owner, whose thread for
** messages (cluster.h) answers alone, whatever its main thread does. Bytes travel in pieces of at
** most `piece_bytes`, through memory that the caller has given: ASKING pieces for what this rank
** asks for, ANSWERING pieces for what it is asked for. So the engine sees only that memory, and
** nothing is allocated. An answer needs nothing but one of the latter pieces, which the transfer
** frees again: no rank waits for one that waits for it.
**
** All ranks open the same memory in the same order, and none reads or writes before all have. A
** write is over when it is at the owner: a rank that has heard of it afterwards reads what was
** written. Two ranks must not write the same bytes, nor one read what another writes, at the same
** time.
*/
#ifndef MB_CLUSTER_SPREAD_H
#define MB_CLUSTER_SPREAD_H

#include "core/status.h"
#include <stddef.h>

#define MB_SPREAD_ASKING 2
#define MB_SPREAD_ANSWERING 2
#define MB_SPREAD_PIECES (MB_SPREAD_ASKING + MB_SPREAD_ANSWERING)

typedef struct mb_spread mb_spread;

typedef struct mb_spread_facts {
    int rank, size; /* this rank, among so many */
    uint64_t bytes, share_bytes, piece_bytes;
    void *share;  /* share_bytes */
    void *pieces; /* MB_SPREAD_PIECES times piece_bytes */
} mb_spread_facts;

/* Lines of bytes: line i begins at offset + i / frame_lines * frame_pitch + i % frame_lines *
** line_pitch. No line belongs to two ranks. */
typedef struct mb_spread_lines {
    uint64_t offset, line_bytes, line_pitch, frame_pitch, frame_lines;
    uint64_t first, count; /* of these lines, from 0 */
} mb_spread_lines;

/* Both memories stay until the spread memory is closed. */
mb_status mb_spread_open(const mb_spread_facts *facts, mb_spread **out);
/* Waits until no piece is under way; what others ask for is refused from then on. Returns false
** where that takes too long, because a rank is dead: then both memories must stay. NULL is fine. */
bool mb_spread_close(mb_spread *spread);
/* Others that keep it: it can be used until it is closed, and fails then. */
mb_spread *mb_spread_retain(mb_spread *spread);
void mb_spread_release(mb_spread *spread);
uint64_t mb_spread_bytes(const mb_spread *spread);

/* Moves lines between spread memory and dense memory. Any thread; waits until it is done. Polls the
** cancel flag. */
mb_status mb_spread_move(mb_spread *spread, const mb_spread_lines *lines, void *memory,
                         bool writing);

#endif
