/*
** The probe of HDF5 files (h5probe.h): both ends.
**
** The verdict is the way in which the other process ends. Errors that libhdf5 reports are none:
** they come up again, and are told, where this process meets them, if it does. A file's verdict
** is kept by its identity (device, inode, size, times).
**
** Threads: the list of known files has a lock of its own; the wait is without any.
*/
#define _GNU_SOURCE
#include "files/h5/h5probe.h"
#include "files/h5/h5internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CPU_SECONDS 2            /* of one call of libhdf5, or little more: then it hangs */
#define WALL_SECONDS 120         /* a slow file system may take its time */
#define ENOUGH_SECONDS 0.5       /* of looking at a file with very many objects */
#define MEMORY_BYTES (160 << 20) /* beyond what the program takes anyway */
#define STATUS_GOOD 0
#define STATUS_MEMORY 3
#define MOST_DEPTH 64
#define VALUE_ELEMENTS 65536
#define ROW_BYTES ((uint64_t)1 << 20)
#define CHUNK_BYTES ((uint64_t)16 << 20)

/* ---- files that are known ---- */

typedef struct identity {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified, changed;
} identity;

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static identity known[64];
static unsigned known_next;

static bool identify(const char *path, identity *who)
{
    struct stat status;
    memset(who, 0, sizeof *who); /* they are compared byte by byte */
    if (stat(path, &status) != 0)
        return false;
    who->device = status.st_dev;
    who->inode = status.st_ino;
    who->bytes = status.st_size;
    who->modified = status.st_mtim;
    who->changed = status.st_ctim;
    return true;
}

static bool is_known(const identity *who)
{
    bool found = false;
    pthread_mutex_lock(&known_lock);
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !found; i++)
        found = memcmp(&known[i], who, sizeof *who) == 0;
    pthread_mutex_unlock(&known_lock);
    return found;
}

static void remember(const identity *who)
{
    if (is_known(who))
        return;
    pthread_mutex_lock(&known_lock);
    known[known_next++ % (sizeof known / sizeof known[0])] = *who;
    pthread_mutex_unlock(&known_lock);
}

void mb_h5_probe_trust(const char *path)
{
    identity who;
    if (identify(path, &who))
        remember(&who);
}

/* ---- this process ---- */

static bool by_self;

void mb_h5_probe_by_self(void)
{
    by_self = true;
}

/* The program to start: this one, or bin/moonbeam beside the module in lib/moonbeam. */
static bool find_prober(char *name, size_t bytes)
{
    Dl_info about;
    if (by_self) {
        snprintf(name, bytes, "/proc/self/exe");
        return true;
    }
    if (dladdr(&known, &about) == 0 || about.dli_fname == NULL ||
        realpath(about.dli_fname, name) == NULL)
        return false;
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(name, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    return strlen(name) + 16 < bytes && access(strcat(name, "/bin/moonbeam"), X_OK) == 0;
}

/* Starts the other process; `out` is the reading end of a pipe that it holds until it ends. */
static bool start(const char *program, const char *path, const mb_h5_access *how, pid_t *child,
                  int *out)
{
    char *const arguments[] = {"moonbeam", MB_H5_PROBE_OPTION, (char *)path,
                               how != NULL && how->allow_external ? "e" : "-", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int failed = posix_spawn(child, program, &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    *out = ends[0];
    if (failed != 0)
        close(ends[0]);
    return failed == 0;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Waits until the other process ends, the limit is over, or the user has had enough. */
static mb_status wait_for(pid_t child, int out, int *ended, bool *late)
{
    const double limit = seconds_now() + WALL_SECONDS;
    mb_status status = MB_STATUS_OK;
    struct pollfd end = {.fd = out, .events = POLLIN};
    while (status == MB_STATUS_OK && !*late && poll(&end, 1, 50) <= 0) {
        status = mb_cancel_check();
        *late = seconds_now() > limit;
    }
    if (status != MB_STATUS_OK || *late)
        kill(child, SIGKILL);
    while (waitpid(child, ended, 0) < 0 && errno == EINTR)
        ;
    return status == MB_STATUS_OK && !*late ? mb_cancel_check() : status;
}

static mb_status judge(const char *path, int ended, bool late)
{
    static const char WHAT[] =
        ", so it is damaged, most likely: copy it again, or take another copy";
    const int number = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    const int status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 0;
    if (late || number == SIGXCPU)
        return mb_fail(MB_STATUS_IO, NULL,
                       "cannot open '%s': libhdf5 does not come to an end with it%s", path, WHAT);
    if (status == STATUS_MEMORY || number == SIGKILL)
        return mb_fail(MB_STATUS_IO, NULL,
                       "cannot open '%s': its structure takes libhdf5 more than %d MiB%s", path,
                       MEMORY_BYTES >> 20, WHAT);
    const bool crashed = number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
                         number == SIGABRT || number == SIGILL;
    if (crashed || (status != STATUS_GOOD && by_self))
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': it makes libhdf5 crash%s", path,
                       WHAT);
    return MB_STATUS_OK;
}

mb_status mb_h5_probe(const char *path, const mb_h5_access *how)
{
    identity before, after;
    char program[PATH_MAX];
    pid_t child = -1;
    int out = -1, ended = 0;
    bool late = false;
    if (!identify(path, &before) || is_known(&before) || !find_prober(program, sizeof program) ||
        !start(program, path, how, &child, &out))
        return MB_STATUS_OK;
    const mb_status status = wait_for(child, out, &ended, &late);
    close(out);
    MB_TRY(status);
    MB_TRY(judge(path, ended, late));
    if (identify(path, &after) && memcmp(&before, &after, sizeof before) == 0)
        remember(&before);
    return MB_STATUS_OK;
}

/* ---- the other process ---- */

typedef struct look {
    mb_h5 *file;
    bool memory; /* an allocation was refused */
    int depth;
    struct place {
        unsigned long file;
        haddr_t address;
    } * visited; /* groups */
    int64_t visited_count, visited_capacity;
} look;

static bool enough(const look *l)
{
    return l->memory || (double)clock() / CLOCKS_PER_SEC > ENOUGH_SECONDS;
}

/* An error is not this process's to tell, but for one. */
static bool went_well(look *l, mb_status status)
{
    if (status == MB_STATUS_OK)
        return true;
    if (status == MB_STATUS_MEMORY || strstr(mb_error_last()->text, "alloc") != NULL)
        l->memory = true;
    return false;
}

static void look_at_attributes(look *l, const char *path)
{
    const mb_h5_value *value;
    char **names;
    int64_t count;
    if (!went_well(l, mb_h5_attribute_names(l->file, path, &names, &count)))
        return;
    char **copies = calloc((size_t)count + 1, sizeof *copies);
    for (int64_t i = 0; copies != NULL && i < count; i++)
        copies[i] = strdup(names[i]); /* they are the file's until the next call */
    for (int64_t i = 0; copies != NULL && i < count && !enough(l); i++)
        if (copies[i] != NULL)
            went_well(l, mb_h5_attribute_read(l->file, path, copies[i], &value));
    for (int64_t i = 0; copies != NULL && i < count; i++)
        free(copies[i]);
    free(copies);
}

/* One row, so that the conversion and the filters of its chunk are tried. */
static void look_at_row(look *l, mb_h5_dataset *dataset)
{
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    mb_range ranges[MB_H5_MAX_RANK];
    uint64_t row = mb_dtype_bytes(info->dtype), chunk = row;
    for (int axis = 0; axis < info->rank; axis++) {
        if (info->dims[axis] < 1)
            return;
        const bool last = axis == info->rank - 1;
        ranges[axis] = (mb_range){.count = last ? info->dims[axis] : 1, .step = 1};
        row = last ? mb_bytes_mul(row, (uint64_t)info->dims[axis]) : row;
        chunk = info->chunked ? mb_bytes_mul(chunk, (uint64_t)info->chunks[axis]) : 0;
    }
    if (info->empty || row > ROW_BYTES || chunk > CHUNK_BYTES)
        return;
    void *memory = malloc(row);
    if (memory != NULL)
        went_well(l, mb_h5_dataset_read_host(dataset, ranges, info->dtype, memory));
    free(memory);
}

static void look_at_dataset(look *l, const char *path)
{
    const int64_t(*runs)[2];
    const mb_h5_value *value;
    const char *why = NULL;
    mb_h5_dataset *dataset = NULL;
    int64_t count, elements = 1;
    if (!went_well(l, mb_h5_dataset_open(l->file, path, &dataset)))
        return;
    const mb_h5_info info = *mb_h5_dataset_info(dataset);
    for (int axis = 0; axis < info.rank; axis++)
        elements = (int64_t)mb_bytes_mul((uint64_t)elements, (uint64_t)info.dims[axis]);
    if (went_well(l, mb_h5_dataset_missing(dataset, &runs, &count, &why)) && count == 0 &&
        info.numeric)
        look_at_row(l, dataset);
    mb_h5_dataset_destroy(dataset);
    if (count == 0 && (info.text || (info.numeric && elements <= VALUE_ELEMENTS)))
        went_well(l, mb_h5_value_read(l->file, path, &value));
}

static bool enter(look *l, hid_t group)
{
    H5O_info_t about;
    if (H5Oget_info2(group, &about, H5O_INFO_BASIC) < 0)
        return false;
    for (int64_t i = 0; i < l->visited_count; i++)
        if (l->visited[i].file == about.fileno && l->visited[i].address == about.addr)
            return false;
    if (l->visited_count == l->visited_capacity) {
        const int64_t capacity = l->visited_capacity == 0 ? 64 : 2 * l->visited_capacity;
        void *grown = realloc(l->visited, (size_t)capacity * sizeof *l->visited);
        if (grown == NULL)
            return false;
        l->visited = grown;
        l->visited_capacity = capacity;
    }
    l->visited[l->visited_count].file = about.fileno;
    l->visited[l->visited_count++].address = about.addr;
    return true;
}

typedef struct name_list {
    char **names;
    int64_t count;
} name_list;

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *link, void *user)
{
    name_list *list = user;
    (void)group;
    (void)link;
    if ((list->count & (list->count - 1)) == 0) { /* full at each power of two */
        const size_t capacity = list->count == 0 ? 1 : 2 * (size_t)list->count;
        char **names = realloc(list->names, capacity * sizeof *names);
        if (names == NULL)
            return -1;
        list->names = names;
    }
    list->names[list->count] = strdup(name);
    return list->names[list->count++] != NULL ? 0 : -1;
}

static void look_at_object(look *l, const char *path);

static void look_at_members(look *l, const char *path)
{
    name_list list = {0};
    const hid_t group = H5Gopen2(l->file->id, path, l->file->links);
    if (group < 0)
        return;
    if (enter(l, group) && l->depth < MOST_DEPTH && H5Lexists(group, "\177", H5P_DEFAULT) >= 0)
        H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_link, &list);
    H5Gclose(group);
    l->depth++;
    for (int64_t i = 0; i < list.count; i++) {
        char *inner = NULL;
        if (!enough(l) && list.names[i] != NULL &&
            asprintf(&inner, "%s/%s", strcmp(path, "/") == 0 ? "" : path, list.names[i]) >= 0)
            look_at_object(l, inner);
        free(inner);
        free(list.names[i]);
    }
    l->depth--;
    free(list.names);
}

static void look_at_object(look *l, const char *path)
{
    mb_h5_info info;
    if (!went_well(l, mb_h5_describe(l->file, path, &info)))
        return;
    look_at_attributes(l, path);
    if (info.kind == MB_H5_DATASET)
        look_at_dataset(l, path);
    else if (info.kind == MB_H5_GROUP)
        look_at_members(l, path);
}

static void limit(int what, rlim_t soft, rlim_t hard)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return;
    now.rlim_cur = soft < now.rlim_cur ? soft : now.rlim_cur;
    now.rlim_max = hard < now.rlim_max ? hard : now.rlim_max;
    setrlimit(what, &now);
}

static void set_limits(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* What libhdf5 takes from beyond its memory is no small number that happens to be harmless
    ** here. */
    mallopt(M_PERTURB, 0x55);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, CPU_SECONDS, CPU_SECONDS + 2);
#ifndef __SANITIZE_ADDRESS__ /* which takes 20 TiB of addresses */
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm != NULL && fscanf(statm, "%llu", &pages) == 1) {
        const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
        limit(RLIMIT_AS, most, most);
    }
    if (statm != NULL)
        fclose(statm);
#endif
}

int mb_h5_probe_child(const char *path, const char *flags)
{
    const mb_h5_access how = {.allow_external = flags != NULL && flags[0] == 'e'};
    look l = {0};
    set_limits();
    if (went_well(&l, mb_h5_open_unprobed(path, &how, &l.file)))
        look_at_object(&l, "/");
    /* What libhdf5 would do at the end is not done: this process has said what it has to say. */
    _exit(l.memory ? STATUS_MEMORY : STATUS_GOOD);
}
