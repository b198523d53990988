/*
** A TCP connection between rank 0 and each other rank, by which a rank that has died is known.
**
** Why not by MPI: it says nothing of a rank that has died, or ends the process in its own way, and
** silence proves nothing, because a stopped or starved rank is silent, too. Why not by processes
** (/proc): they are those of one node, and of one container. The kernel closes the connections of a
** process that has died, however it died, on all nodes, within a millisecond, and keeps those of
** one that is stopped or busy. It answers for the machine, too: what is sent to a machine that has
** crashed is not acknowledged, and what is sent to a stopped process is. So an end of the
** connection is a proof, and no load of a machine makes a false one.
**
** Rank 0 listens at all its addresses until every other rank has come, and tells them by MPI which
** ones these are, with a secret of this run. A rank tries all of them at once, and keeps the first
** that answers. Where none does (a firewall, a container without the others' network) the rank has
** no lifeline.
**
** Threads: the thread for messages alone, until it ends the engine; then the main thread. Only
** mb_lifeline_any_ended is for all, and for signal handlers.
*/
#ifndef MB_CLUSTER_LIFELINE_H
#define MB_CLUSTER_LIFELINE_H

#include <stdbool.h>
#include <stddef.h>

/* What a byte says. Of the others: from rank 0 and to it. */
typedef enum mb_sign {
    MB_SIGN_PING = 'p', /* asks for a PONG */
    MB_SIGN_PONG = 'q',
    MB_SIGN_NONE = 'n', /* this rank has no lifeline (by the engine) */
    MB_SIGN_END = 'e',  /* ends the run before its time: finish what is in flight */
    MB_SIGN_OVER = 'o', /* the main thread has come to its end after END */
    MB_SIGN_BYE = 'b'   /* the process ends as it should */
} mb_sign;

/* How a connection ends. */
typedef enum mb_lifeline_end {
    MB_LIFELINE_OPEN,
    MB_LIFELINE_LEFT, /* after a BYE */
    MB_LIFELINE_DIED, /* the process is gone */
    MB_LIFELINE_CUT   /* the machine has not answered for the time */
} mb_lifeline_end;

/* Called for each sign that has come, and for the end of each connection, in the order of ends. */
typedef void (*mb_lifeline_news)(int rank, mb_sign sign, mb_lifeline_end end);

#define MB_LIFELINE_ADDRESS 1024 /* bytes that an address has at most */

/* `seconds`: how long a machine may be silent. Rank 0: opens the port, and writes what the others
** need; an empty text where it cannot. The others: called before `join`, with NULL. */
void mb_lifeline_open(int rank, int size, int seconds, char *address);
/* Begins to connect this rank. `same_node`: is rank 0 on this node? */
void mb_lifeline_join(const char *address, bool same_node);
/* Gets on with connecting. Returns whether it is over: all others have come, or this rank has come
** or tries no more. */
bool mb_lifeline_connect(void);
/* Rank 0: one of the others tries no more. */
void mb_lifeline_expect_less(void);
/* Tells what has come since. */
void mb_lifeline_hear(mb_lifeline_news news);
/* Has a connection ended of which mb_lifeline_hear has not told yet? */
bool mb_lifeline_any_ended(void);
/* Is there a connection with this rank? */
bool mb_lifeline_has(int rank);
/* Sends a sign to a rank that has one. */
void mb_lifeline_say(int rank, mb_sign sign);
/* Says BYE to all, and closes everything. */
void mb_lifeline_close(void);

#endif
