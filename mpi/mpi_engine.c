/*
** moonbeam_mpi.so: ranks and messages by MPI (runtime/cluster/engine.h). One file against mpi.h,
** compiled where the MPI is that it will run with:
**
**   mpicc -std=c11 -O2 -shared -fPIC -Iruntime -o moonbeam_mpi.so mpi/mpi_engine.c
**
** One thread makes all calls, so MPI need not know of threads. One-sided calls are not used: without
** hardware for them they wait until the other rank enters MPI. MPI sees only memory from malloc.
*/
#define _GNU_SOURCE
#include "cluster/engine.h"
#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message on its way. */
typedef struct leaving {
    struct leaving *next;
    MPI_Request request;
    char bytes[];
} leaving;

static leaving *on_the_way;
static MPI_Comm everybody = MPI_COMM_NULL;
static MPI_Comm pieces = MPI_COMM_NULL; /* which `receive` does not look at */

/* For containers, which lack the rights for copies between processes, and for more ranks than
** processors, which start together. Of a piece 64 fragments of 32 KiB are on their way: with the
** usual three, ranks that look at them now and then move 0.1 GB/s. What the user has set stays. */
static void set_environment(void)
{
    setenv("OMPI_MCA_pml_ob1_send_pipeline_depth", "64", 0);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("PMIX_MCA_gds", "hash", 0);
}

/* Says whether Open MPI leaves the processor in each call that finds no message; nothing with other
** MPIs. A thread that looks now and then sleeps in between. If it yields in a look, too, it gets
** its processor back 5 to 20 ms later where all processors compute. */
static void set_yielding(bool on)
{
    bool (*set)(bool);
    *(void **)&set = dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
    if (set)
        set(on);
}

static bool split_by_node(mb_place *place)
{
    MPI_Comm node;
    if (MPI_Comm_split_type(everybody, MPI_COMM_TYPE_SHARED, place->rank, MPI_INFO_NULL, &node) !=
        MPI_SUCCESS)
        return false;
    MPI_Comm_rank(node, &place->node_rank);
    MPI_Comm_size(node, &place->node_size);
    MPI_Comm_free(&node);
    int first = place->node_rank == 0;
    return MPI_Allreduce(&first, &place->nodes, 1, MPI_INT, MPI_SUM, everybody) == MPI_SUCCESS;
}

static bool start(mb_place *place, char *problem, size_t bytes)
{
    int given = 0, length = 0;
    char name[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING];
    set_environment();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) {
        snprintf(problem, bytes, "MPI_Init_thread has failed");
        return false;
    }
    if (given < MPI_THREAD_FUNNELED) {
        snprintf(problem, bytes, "this MPI does not allow other threads beside it");
        return false;
    }
    if (MPI_Comm_dup(MPI_COMM_WORLD, &everybody) != MPI_SUCCESS ||
        MPI_Comm_dup(MPI_COMM_WORLD, &pieces) != MPI_SUCCESS) {
        snprintf(problem, bytes, "MPI_Comm_dup has failed");
        return false;
    }
    MPI_Comm_rank(everybody, &place->rank);
    MPI_Comm_size(everybody, &place->size);
    MPI_Get_processor_name(name, &length);
    snprintf(place->node, sizeof place->node, "%.*s", length, name);
    MPI_Get_library_version(version, &length);
    snprintf(place->library, sizeof place->library, "%.*s", (int)strcspn(version, ",\n"), version);
    if (!split_by_node(place)) {
        snprintf(problem, bytes, "MPI_Comm_split_type has failed");
        return false;
    }
    set_yielding(false);
    return true;
}

static bool send_copy(int to, const void *data, size_t bytes)
{
    leaving *own = bytes <= INT_MAX ? malloc(sizeof *own + bytes) : NULL;
    if (!own)
        return false;
    memcpy(own->bytes, data, bytes);
    if (MPI_Isend(own->bytes, (int)bytes, MPI_BYTE, to, 0, everybody, &own->request) !=
        MPI_SUCCESS) {
        free(own);
        return false;
    }
    own->next = on_the_way;
    on_the_way = own;
    return true;
}

static bool receive(int *from, void **data, size_t *bytes)
{
    int there = 0, count = 0;
    MPI_Status status;
    MPI_Message message;
    if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, everybody, &there, &message, &status) !=
            MPI_SUCCESS ||
        !there)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &count);
    *data = malloc(count > 0 ? (size_t)count : 1);
    if (!*data)
        MPI_Abort(everybody, EXIT_FAILURE);
    MPI_Mrecv(*data, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    *from = status.MPI_SOURCE;
    *bytes = (size_t)count;
    return true;
}

static bool sent(void)
{
    for (leaving **place = &on_the_way; *place;) {
        leaving *own = *place;
        int done = 0;
        if (MPI_Test(&own->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
            place = &own->next;
            continue;
        }
        *place = own->next;
        free(own);
    }
    return !on_the_way;
}

/* A piece whose transfer begins, or NULL. */
static void *begun(MPI_Request request, int result)
{
    MPI_Request *piece = result == MPI_SUCCESS ? malloc(sizeof *piece) : NULL;
    if (piece)
        *piece = request;
    return piece;
}

static void *push(int to, int tag, const void *data, size_t bytes)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int result = bytes <= INT_MAX
                           ? MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, pieces, &request)
                           : MPI_ERR_COUNT;
    return begun(request, result);
}

static void *pull(int from, int tag, void *data, size_t bytes)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int result = bytes <= INT_MAX
                           ? MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, pieces, &request)
                           : MPI_ERR_COUNT;
    return begun(request, result);
}

static bool over(void *piece)
{
    int done = 0;
    if (MPI_Test(piece, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        MPI_Abort(everybody, EXIT_FAILURE);
    if (done)
        free(piece);
    return done != 0;
}

static void finish(void)
{
    set_yielding(true);
    MPI_Comm_free(&pieces);
    MPI_Comm_free(&everybody);
    MPI_Finalize();
}

static void abort_all(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status);
}

const mb_engine *mb_engine_entry(void);

const mb_engine *mb_engine_entry(void)
{
    static const mb_engine engine = {.abi = MB_ENGINE_ABI,
                                     .start = start,
                                     .send = send_copy,
                                     .receive = receive,
                                     .sent = sent,
                                     .push = push,
                                     .pull = pull,
                                     .over = over,
                                     .finish = finish,
                                     .abort = abort_all};
    return &engine;
}
