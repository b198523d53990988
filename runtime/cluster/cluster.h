/*
** The ranks of a run: processes of this program that a launcher (mpirun, srun) has started, on one
** node or several.
**
** A rank has one thread that makes all calls of the engine (engine.h) and looks for messages every
** 0.2 ms, more often while large ones are on their way, and less often where none has come for a
** while. So a rank answers while its main thread computes. Rank 0's thread deals the work and
** collects what all ranks exchange. The functions below are for the main thread. A process that no
** launcher has started is rank 0 of 1: all functions work there, without an engine.
**
** All ranks must call mb_cluster_deal, mb_cluster_post and mb_cluster_collect in the same order.
*/
#ifndef MB_CLUSTER_CLUSTER_H
#define MB_CLUSTER_CLUSTER_H

#include "cluster/engine.h"
#include "core/status.h"
#include <signal.h>

/* The number of ranks that a launcher says it has started (environment variables), 0 if no launcher
** has started this process; *variable names what says so. */
int mb_cluster_launched(const char **variable);
/* Has the launcher given this process what MPI needs to find the others (PMIx, PMI)? Without that
** most MPIs end the process when they start. */
bool mb_cluster_has_pmi(void);
/* Is this the process that speaks for all that the launcher has started, where MPI does not say? */
bool mb_cluster_is_first(void);
/* Loads the plug-in and becomes a rank. Once, before any other thread uses the cluster. Fails where
** the plug-in is missing or does not work, and where the launcher has started several processes
** that do not know of each other. */
mb_status mb_cluster_start(const char *plugin);
/* Waits until all ranks have come here, and ends the engine. Nothing where there is none. */
void mb_cluster_stop(void);
const mb_place *mb_cluster_place(void);

/* Begins the next deal of the numbers 1 to `count`. */
void mb_cluster_deal(int64_t count);
/* The next number of this deal, or 0 if all are dealt. `done`: how much of the deal's work this rank
** has finished since it asked last, in any unit. */
mb_status mb_cluster_next(int64_t done, int64_t *number);
/* Tells of work that this rank has finished, and takes no number. */
mb_status mb_cluster_tell(int64_t done);
/* How much work of the latest deal all ranks have told of. For rank 0. */
int64_t mb_cluster_done(void);

/* Gives bytes to all ranks. Collect before the next one. */
mb_status mb_cluster_post(const void *data, size_t bytes);
/* What all ranks have posted, in the order of ranks, each after its length (uint64_t). *all is for
** free(). Waits at most `wait_ns`; *all is NULL if some ranks have not posted by then. */
mb_status mb_cluster_collect(uint64_t wait_ns, char **all, size_t *bytes);

/* Do all ranks end because one has failed, or is gone? Safe in a signal handler. */
bool mb_cluster_ending(void);
/* A signal from outside stops this rank: what ends after that is no death. Safe in a signal
** handler. */
void mb_cluster_stopped(void);
typedef enum mb_cluster_stop_kind {
    MB_CLUSTER_NO_STOP, /* a signal from outside */
    MB_CLUSTER_STOP,    /* all ranks end: finish what is in flight */
    MB_CLUSTER_STOP_NOW /* that took too long */
} mb_cluster_stop_kind;
/* Is this signal one by which the cluster stops the main thread, because all ranks end? */
mb_cluster_stop_kind mb_cluster_stops(const siginfo_t *info);
/* Is this the rank that speaks for all? Rank 0, or another one where that has died. */
bool mb_cluster_speaks(void);
/* On rank 0: if all ranks end, waits until the others have noted what was in flight. */
void mb_cluster_await_others(void);
/* This rank removes what others use, because it fails. If it is rank 0, a failure of another rank
** that follows is not told as the first one. */
void mb_cluster_failing(void);
/* Ends all ranks with this exit status (ending.h). Rank 0 prints one line: the text, with the rank
** and its node unless all ranks say the same. Does not return if there are several ranks. */
void mb_cluster_fail(const char *text, int status);

#endif
