/*
** The program as one of several ranks: started by a launcher (mpirun, srun) or with --mpi. A rank
** that fails ends all of them, with one line and one exit status.
*/
#define _GNU_SOURCE
#include "program.h"
#include "cluster/cluster.h"
#include "cluster/lua_cluster.h"
#include "device/numa.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Runs at exit, also by os.exit. A status has 8 bits: a failure of which they are 0 has the status
** 1. */
static void end_rank(int status, void *unused)
{
    (void)unused;
    fflush(NULL);
    if (status != EXIT_SUCCESS && mb_cluster_place()->size > 1) {
        char line[80];
        const char *text = mbl_cluster_failure();
        snprintf(line, sizeof line, "%s: ended with status %d", mbm_program, status);
        mb_cluster_fail(text[0] != '\0' ? text : line, status & 255 ? status & 255 : EXIT_FAILURE);
    }
    mb_cluster_stop();
    if (status != EXIT_SUCCESS && (status & 255) == 0)
        _exit(EXIT_FAILURE);
}

/* A launcher may have bound each rank to a few of the processors that it could have. */
static void tell_bound(void)
{
    const mb_place *place = mb_cluster_place();
    const long online = sysconf(_SC_NPROCESSORS_ONLN), own = online / place->node_size;
    if (place->node_size > 1 && place->rank == 0 && mb_processors_count() < own &&
        !getenv("SLURM_JOB_ID"))
        fprintf(stderr,
                "%s: warning: the launcher has bound each rank to %d of %ld processors; with "
                "--bind-to none of mpirun each uses %ld\n",
                mbm_program, mb_processors_count(), online, own);
}

void mbm_say_failure(const char *line)
{
    if (!mbl_cluster_note_failure(line))
        fprintf(stderr, "%s\n", line);
}

/* Says that something works on one rank. */
static void refuse(const char *what)
{
    char line[200];
    snprintf(line, sizeof line,
             "%s: %s works on one rank, and there are %d: start it without the launcher, or with "
             "--no-mpi on one",
             mbm_program, what, mb_cluster_place()->size);
    mbm_failure_status = MBM_STATUS_MISUSE;
    mbm_say_failure(line);
}

bool mbm_check_ranks(const char *command)
{
    char what[120];
    if (!mbm_several_ranks() || mbm_command_has_ranks(command))
        return true;
    snprintf(what, sizeof what, "the command %s", command);
    refuse(what);
    return false;
}

bool mbm_check_prompt(unsigned flags)
{
    if (!mbm_several_ranks() || !(flags & MBM_INTERACTIVE))
        return true;
    refuse("the prompt");
    return false;
}

bool mbm_several_ranks(void)
{
    return mb_cluster_place()->size > 1;
}

bool mbm_start_ranks(unsigned flags)
{
    const char *variable;
    char plugin[PATH_MAX + 64];
    const int launched = mb_cluster_launched(&variable);
    if (flags & MBM_ALONE || !(launched > 0 || flags & MBM_RANKS))
        return true;
    mbm_plugin("moonbeam_mpi.so", plugin, sizeof plugin);
    const char *given = getenv("MOONBEAM_MPI_PLUGIN");
    if (mb_cluster_start(given ? given : plugin) != MB_STATUS_OK) {
        const bool needed = launched > 1 || flags & MBM_RANKS;
        if (needed)
            fprintf(stderr, "%s: %s\n", mbm_program, mb_error_last()->text);
        mb_cluster_stop();
        return !needed;
    }
    on_exit(end_rank, NULL);
    tell_bound();
    mbl_cluster_share_node(mb_cluster_place()->node_size);
    return true;
}
