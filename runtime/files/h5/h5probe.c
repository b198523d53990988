/*
** The probe of HDF5 files, in this process (h5.h).
**
** The verdict is the way in which the other process ends. Errors that libhdf5 reports are none:
** they come up again, and are told, where this process meets them, if it does. A file's verdict
** is kept by its identity (device, inode, size, times).
**
** Threads: the list of known files has a lock of its own; the wait is without any.
*/
#define _GNU_SOURCE
#include "files/h5/h5whole.h"
#include "core/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WALL_NS (UINT64_C(120) * 1000000000) /* a slow file system may take its time */

/* ---- - files that are known ---- */

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

/* ---- - this process ---- */

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
    if (dladdr(&known, &about) == 0 || !about.dli_fname || realpath(about.dli_fname, name) == NULL)
        return false;
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(name, '/');
        if (!slash)
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
                               how && how->allow_external ? "e" : "-", NULL};
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

/* Waits until the other process ends, the limit is over, or the user has had enough. */
static mb_status wait_for(pid_t child, int out, int *ended, bool *late)
{
    const uint64_t limit = mb_now_ns() + WALL_NS;
    mb_status status = MB_STATUS_OK;
    struct pollfd end = {.fd = out, .events = POLLIN};
    while (status == MB_STATUS_OK && !*late && poll(&end, 1, 50) <= 0) {
        status = mb_cancel_check();
        *late = mb_now_ns() > limit;
    }
    if (status != MB_STATUS_OK || *late)
        kill(child, SIGKILL);
    while (waitpid(child, ended, 0) < 0 && errno == EINTR)
        ;
    return status == MB_STATUS_OK && !*late ? mb_cancel_check() : status;
}

static mb_status judge(const char *path, int ended, bool late)
{
    static const char WHAT[] = "; the file is probably damaged: copy it again, or use another copy";
    const int number = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    const int status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 0;
    if (late || number == SIGXCPU)
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': libhdf5 does not finish reading it%s",
                       path, WHAT);
    if (status == MB_H5_PROBE_MEMORY || number == SIGKILL)
        return mb_fail(MB_STATUS_IO, NULL,
                       "cannot open '%s': libhdf5 needs more than %d MiB for its structure%s", path,
                       MB_H5_PROBE_BYTES >> 20, WHAT);
    const bool crashed = number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
                         number == SIGABRT || number == SIGILL;
    if (crashed || (status != MB_H5_PROBE_GOOD && by_self))
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': libhdf5 crashes on it%s", path, WHAT);
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
