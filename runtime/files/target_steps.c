/*
** The steps of the target protocol: the system calls that change names or wait for the disk,
** counted, so that a spec can kill the process before any of them, or have any of them fail.
*/
#define _GNU_SOURCE
#include "files/target_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic int64_t steps_done;
static _Atomic int64_t steps_left; /* 0: nothing is injected */
static _Atomic int injected;       /* errno, or 0: the process is killed */

void mb_target_inject(int64_t n, int error)
{
    injected = error;
    steps_left = n;
}

int64_t mb_target_steps(void)
{
    return steps_done;
}

/* True, with errno, where this step is to fail. */
static bool refused(void)
{
    steps_done++;
    if (steps_left == 0 || --steps_left != 0)
        return false;
    if (injected == 0)
        kill(getpid(), SIGKILL);
    errno = injected;
    return true;
}

int mb_step_open(const char *name, int flags)
{
    return refused() ? -1 : open(name, flags | O_CLOEXEC | O_NOFOLLOW, 0666);
}

int mb_step_mkdir(const char *name)
{
    return refused() ? -1 : mkdir(name, 0777);
}

int mb_step_unlink(const char *name)
{
    return refused() ? -1 : unlink(name);
}

int mb_step_rmdir(const char *name)
{
    return refused() ? -1 : rmdir(name);
}

/* Without `replace` an existing file is EEXIST, also where the file system has no RENAME_NOREPLACE:
** a hard link does not replace either. */
int mb_step_rename(const char *from, const char *to, bool replace)
{
    struct stat facts;
    if (refused())
        return -1;
    if (replace)
        return rename(from, to);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(from, to) == 0)
        return unlink(from);
    if (errno == EEXIST)
        return -1;
    if (lstat(to, &facts) == 0) { /* neither: the best there is */
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

int mb_step_rename_new(const char *from, const char *to)
{
    return refused() ? -1 : renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

int mb_step_exchange(const char *one, const char *other)
{
    return refused() ? -1 : renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

int mb_step_sync(int fd)
{
    return refused() ? -1 : fsync(fd);
}

int mb_step_append(int fd, const void *text, size_t bytes)
{
    if (refused())
        return -1;
    for (size_t done = 0; done < bytes;) { /* what is cut short says why when it goes on */
        const ssize_t count = write(fd, (const char *)text + done, bytes - done);
        if (count == 0)
            errno = ENOSPC;
        if (count <= 0)
            return -1;
        done += (size_t)count;
    }
    return 0;
}

/* The names, too, shall survive a power cut. Some network file systems cannot; that is no
** failure. */
void mb_step_sync_folder(const char *folder)
{
    const int fd = refused() ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}
