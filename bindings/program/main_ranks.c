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
#include <string.h>
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

/* A line of all processes, where MPI has not started: the first of them says it. The others end later,
** because a launcher may end all at once. */
static void say_first(const char *line)
{
    if (mb_cluster_is_first())
        fprintf(stderr, "%s\n", line);
    else
        usleep(500000);
}

/* Says that something works on one rank, of so many. */
static void refuse(const char *what, int ranks)
{
    char line[200];
    snprintf(line, sizeof line,
             "%s: %s works on one rank, and there are %d: start it without the launcher, or with "
             "--no-mpi on one",
             mbm_program, what, ranks);
    mbm_failure_status = MBM_STATUS_MISUSE;
    if (mbm_several_ranks())
        mbm_say_failure(line);
    else
        say_first(line);
}

/* The same of a command, before MPI has started. Returns false. */
static bool refuse_processes(const char *command, int launched)
{
    char what[120];
    snprintf(what, sizeof what, "the command %s", command);
    refuse(what, launched);
    return false;
}

bool mbm_check_ranks(const char *command)
{
    return !mbm_several_ranks() || mbm_command_has_ranks(command) ||
           refuse_processes(command, mb_cluster_place()->size);
}

bool mbm_check_prompt(unsigned flags)
{
    if (!mbm_several_ranks() || !(flags & MBM_INTERACTIVE))
        return true;
    refuse("the prompt", mb_cluster_place()->size);
    return false;
}

bool mbm_several_ranks(void)
{
    return mb_cluster_place()->size > 1;
}

/* What a command line asks for. A plan of several processes is that of ranks, where MPI can say so. */
typedef enum { WORK, PLAN, HELP } asked;

/* `script`: its words from the script on. */
static asked asked_for(unsigned flags, char **script)
{
    asked found = WORK;
    if (!script[0])
        return (flags & (MBM_VERSION | MBM_EXECUTE | MBM_INTERACTIVE)) == MBM_VERSION ? HELP : WORK;
    for (int i = 1; mbm_is_command(script[0]) && script[i] && strcmp(script[i], "--") != 0; i++) {
        if (strcmp(script[i], "--help") == 0 || strcmp(script[i], "-h") == 0)
            return HELP;
        if (strcmp(script[i], "--plan") == 0)
            found = PLAN;
    }
    return found;
}

/* What a launcher has started without a PMI: one process works without MPI, and so do several that
** plan. Others are refused, by the first of them. */
static bool goes_without(int launched, const char *variable, bool plans)
{
    if (launched == 1 || plans)
        return true;
    char line[500];
    snprintf(
        line, sizeof line,
        "%s: the launcher has started %d processes (%s) without a PMI, by which MPI finds the "
        "others: each would do the whole work; start them by srun --mpi=pmix (srun --mpi=list "
        "shows what there is) or by mpirun, or one process alone with --no-mpi; --mpi starts an "
        "MPI that needs no PMI",
        mbm_program, launched, variable);
    say_first(line);
    return false;
}

bool mbm_start_ranks(unsigned flags, char **script)
{
    const char *variable;
    char plugin[PATH_MAX + 64];
    const int launched = mb_cluster_launched(&variable);
    const asked what = asked_for(flags, script);
    if (flags & MBM_ALONE || !(launched > 0 || flags & MBM_RANKS))
        return true;
    if (!(flags & MBM_RANKS)) {
        const bool alone = script[0] && !mbm_command_has_ranks(script[0]);
        if (what == HELP || (launched == 1 && (what == PLAN || alone)))
            return true;
        if (!mb_cluster_has_pmi())
            return alone ? refuse_processes(script[0], launched)
                         : goes_without(launched, variable, what == PLAN);
    }
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
