/*
** How the ranks of a run end before its time: because one of them fails, or is gone.
**
** A rank that fails tells rank 0. One that has died is known by the end of its lifeline (lifeline.h),
** as rank 0 is to the others. Rank 0 (if it is gone, one of the others, the herald: the first that
** is not on its node, or else rank 1) prints one line with the rank and its node. All main threads
** are then stopped as by a signal from outside, so that what is in flight is finished and noted,
** and all processes end within 17 s (ALARM_SECONDS), whether the launcher ends them or not.
**
** A rank that gives no sign for a while (MOONBEAM_SILENCE, in seconds) may be stopped, or wait for
** its processor or disk. Of that one line is printed, and nothing ends: if the process dies, its
** lifeline tells. Of a rank without a lifeline nothing more than silence is known. A rank whose
** machine answers no more (the kernel, which answers for stopped processes, too) is gone after
** the same time.
**
** Threads: as of lifeline.h, but for what is named.
*/
#ifndef MB_CLUSTER_ENDING_H
#define MB_CLUSTER_ENDING_H

#include "cluster/engine.h"
#include "cluster/lifeline.h"
#include "core/status.h"
#include <stdint.h>

typedef struct mb_ending_links {
    const mb_engine *engine;
    const mb_place *place;
    /* Sends a sign to a rank by the engine. */
    void (*sign)(int rank, mb_sign sign);
    /* Called when all ranks begin to end, and when another one is gone then. */
    void (*ends)(void);
} mb_ending_links;

/* Reads MOONBEAM_SILENCE. */
mb_status mb_ending_read_environment(void);
/* The engine has started. */
void mb_ending_start(const mb_ending_links *links);

/* Rank 0: the rank and its node. When all are known, returns the text that all others need for
** mb_ending_join; else NULL. */
const char *mb_ending_meet(int rank, const char *node);
void mb_ending_join(const char *text);
/* A message has come from a rank. */
void mb_ending_heard(int rank);
/* A sign has come by the engine. */
void mb_ending_sign(int rank, mb_sign sign);
/* Rank 0: a rank has failed. `text`: its node, 0, and the line. */
void mb_ending_fail(int rank, int status, const char *text, size_t bytes);
/* Is the rank gone? Then nothing is sent to it. */
bool mb_ending_lost(int rank);
/* Has this rank its lifelines, as far as they can be made? */
bool mb_ending_is_connected(void);
/* At each look at messages. Does not return when this process ends. */
void mb_ending_work(void);
/* Ends all ranks now, with this status. */
_Noreturn void mb_ending_now(int status);

/* Of the main thread. */

/* The main thread has come to its end: it needs no stop. */
void mb_ending_main_over(void);
/* This rank removes what others use, because it fails. */
void mb_ending_failing(void);
/* Is this the rank that speaks for all? */
bool mb_ending_speaks(void);
/* If all ranks end before their time, waits until the others have noted what was in flight. */
void mb_ending_await_others(void);
/* The thread for messages is in engine->finish(): ends this process where another rank is gone. */
void mb_ending_look_finishing(void);

/* Of any thread, and of signal handlers. */

/* Do all ranks end before their time, or is one gone? */
bool mb_ending_begun(void);
/* A signal from outside has come, which stops this rank. */
void mb_ending_stopped(void);
/* The value of the signal by which the thread for messages stops the main thread: so that it
** finishes what is in flight, or now. */
void *mb_ending_signal_value(bool now);

#endif
