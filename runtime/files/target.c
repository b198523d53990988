/*
** Targets (target.h): their states, and the list of those that the exit handler removes.
**
** Invariants: while a target is a part or kept, target->fd is open on its file (until it is
** discarded) and `now` is the file's name. A part is locked where the file system can. Parts are on
** a list, guarded by a mutex; what is on it goes when the process that made it exits (a forked
** child leaves its parent's alone).
*/
#define _GNU_SOURCE
#include "files/target_internal.h"
#include "files/inputs/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct mb_target {
    char *path;
    char *now;    /* the name that the file has; NULL: gone */
    char *folder; /* of slices, or NULL */
    mb_own_id id;
    int fd;
    pid_t owner;
    bool overwrite;
    bool holds; /* named, and the file that was replaced has the name `now` until the end */
    mb_target_state state;
    mb_error latched;
    mb_target *next, **link; /* the list; !link: not on it */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static mb_target *listed;

/* ---- the list of parts ---- */

void mb_target_remove_parts(void)
{
    for (const mb_target *target = listed; target; target = target->next)
        if (target->owner == getpid() && !target->folder && target->now)
            unlink(target->now);
}

static void remove_at_exit(void)
{
    for (const mb_target *target = listed; target; target = target->next) {
        if (target->owner != getpid())
            continue;
        if (target->folder)
            mb_remove_slices(target->folder);
        unlink(target->now);
    }
}

/* Under the lock. */
static void enlist(mb_target *target)
{
    static bool registered = false;
    if (!registered)
        registered = atexit(remove_at_exit) == 0;
    target->owner = getpid();
    target->next = listed;
    target->link = &listed;
    if (listed)
        listed->link = &target->next;
    listed = target;
}

static void delist(mb_target *target)
{
    mb_own_id_remove(&target->id);
    pthread_mutex_lock(&list_lock);
    if (target->link) {
        *target->link = target->next;
        if (target->next)
            target->next->link = target->link;
        target->link = NULL;
    }
    pthread_mutex_unlock(&list_lock);
}

/* Does a target of this process own the folder of `path`? Nobody else writes there then. */
static bool in_own_folder(const char *path)
{
    const size_t length = (size_t)(mb_base_of(path) - path);
    bool found = false;
    pthread_mutex_lock(&list_lock);
    for (const mb_target *target = listed; target && !found; target = target->next)
        found = target->folder && length == strlen(target->folder) + 1 &&
                strncmp(target->folder, path, length - 1) == 0;
    pthread_mutex_unlock(&list_lock);
    return found;
}

/* ---- checks ---- */

static mb_status check_folder(const char *path)
{
    char buffer[PATH_MAX];
    struct stat facts;
    const char *folder = mb_folder_of(path, buffer);
    if (stat(folder, &facts) != 0)
        return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': folder '%s': %s", path, folder,
                       strerror(errno));
    if (!S_ISDIR(facts.st_mode))
        return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': '%s' is not a folder", path,
                       folder);
    if (access(folder, W_OK | X_OK) != 0)
        return mb_fail(MB_STATUS_IO, "path",
                       "cannot create '%s': folder '%s' is not writable (%s); choose another "
                       "folder for the output",
                       path, folder, strerror(errno));
    return MB_STATUS_OK;
}

mb_status mb_target_check(const char *path, bool overwrite)
{
    struct stat facts;
    const char *base = mb_base_of(path);
    if (base[0] == '\0' || strlen(path) >= PATH_MAX - 3 * PART_EXTRA)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' is not a valid file name", path);
    if (strlen(base) > NAME_MAX - 2 * PART_EXTRA) /* a temporary name, and that of a folder */
        return mb_fail(MB_STATUS_ARGUMENT, "path",
                       "the file name '%s' has %zu characters; give one of %d at most", base,
                       strlen(base), NAME_MAX - 2 * PART_EXTRA);
    MB_TRY(mb_input_check(path));
    if (lstat(path, &facts) != 0)
        return check_folder(path);
    if (S_ISLNK(facts.st_mode) && stat(path, &facts) != 0)
        return mb_fail(MB_STATUS_IO, "path",
                       "cannot create '%s': it is a symbolic link to nothing; remove the link, or "
                       "choose another name",
                       path);
    if (S_ISDIR(facts.st_mode))
        return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': a folder has this name", path);
    if (!S_ISREG(facts.st_mode))
        return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': it is not an ordinary file",
                       path);
    if (!overwrite)
        return mb_fail(
            MB_STATUS_IO, "overwrite",
            "'%s' already exists: choose another name, or give the option overwrite = true", path);
    return check_folder(path);
}

/* ---- beginning ---- */

static mb_target *make(const char *path, bool overwrite)
{
    mb_target *target = calloc(1, sizeof *target);
    if (target) {
        target->fd = -1;
        target->overwrite = overwrite;
        target->state = MB_TARGET_GONE;
        target->path = strdup(path);
        target->now = malloc(strlen(path) + PART_EXTRA);
    }
    if (!target || !target->path || !target->now) {
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to create '%s'", path);
        mb_target_destroy(target);
        return NULL;
    }
    return target;
}

mb_status mb_target_create(const char *path, bool overwrite, mb_target **out)
{
    *out = NULL;
    MB_TRY(mb_target_check(path, overwrite));
    if (!in_own_folder(path))
        mb_target_scavenge(path, NULL);
    mb_target *target = make(path, overwrite);
    if (!target)
        return MB_STATUS_MEMORY;
    pthread_mutex_lock(&list_lock);
    for (int attempt = 0; attempt < 100 && target->fd < 0; attempt++) {
        mb_own_id_remove(&target->id);
        mb_random_id(target->id.text);
        mb_own_id_add(&target->id); /* before the part is there: nobody takes it for a dead one's */
        mb_part_name(path, target->id.text, target->now, strlen(path) + PART_EXTRA);
        target->fd = mb_step_open(target->now, O_RDWR | O_CREAT | O_EXCL);
        if (target->fd < 0 && errno != EEXIST)
            break;
    }
    const int cause = errno;
    if (target->fd >= 0) {
        flock(target->fd, LOCK_EX | LOCK_NB); /* best effort */
        target->state = MB_TARGET_PART;
        enlist(target);
    }
    pthread_mutex_unlock(&list_lock);
    if (target->fd < 0) {
        mb_fail(MB_STATUS_IO, "path", "cannot create '%s': %s%s", target->now, strerror(cause),
                cause == EACCES || cause == EROFS ? "; choose another folder for the output" : "");
        mb_target_destroy(target);
        return MB_STATUS_IO;
    }
    *out = target;
    return MB_STATUS_OK;
}

static mb_target *make_kept(const char *path, const char *now, bool overwrite)
{
    mb_target *target = make(path, overwrite);
    char *name = target ? realloc(target->now, strlen(now) + PART_EXTRA) : NULL;
    if (!name) {
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to create '%s'", path);
        mb_target_destroy(target);
        return NULL;
    }
    target->now = strcpy(name, now);
    target->owner = getpid();
    return target;
}

mb_status mb_target_keep(const char *path, const char *now, bool overwrite, mb_target **out)
{
    *out = NULL;
    MB_TRY(mb_target_check(path, overwrite));
    mb_target *target = make_kept(path, now, overwrite);
    if (!target)
        return MB_STATUS_MEMORY;
    mb_random_id(target->id.text); /* of a slices folder */
    target->fd = mb_step_open(now, O_RDWR | O_CREAT | O_EXCL);
    if (target->fd < 0) {
        mb_fail(MB_STATUS_IO, "path", "cannot create '%s': %s", now, strerror(errno));
        mb_target_destroy(target);
        return MB_STATUS_IO;
    }
    target->state = MB_TARGET_KEPT;
    *out = target;
    return MB_STATUS_OK;
}

/* The slices folder of a kept file: beside it, or, where a process was killed between two renames,
** beside the final name. */
static mb_status resume_folder(mb_target *target, const char *name)
{
    char here[PATH_MAX], there[PATH_MAX], buffer[PATH_MAX];
    struct stat facts;
    if ((size_t)snprintf(here, sizeof here, "%s/%s", mb_folder_of(target->now, buffer), name) >=
            sizeof here ||
        (size_t)snprintf(there, sizeof there, "%s/%s", mb_folder_of(target->path, buffer), name) >=
            sizeof there)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' is too long a name", target->path);
    if (lstat(here, &facts) != 0 && mb_step_rename(there, here, false) != 0)
        return mb_fail(MB_STATUS_IO, "path", "cannot find the folder '%s': %s", here,
                       strerror(errno));
    target->folder = strdup(here);
    return target->folder ? MB_STATUS_OK
                          : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a name");
}

mb_status mb_target_resume(const char *path, const char *now, const char *folder, bool overwrite,
                           mb_target **out)
{
    struct stat facts;
    mb_status status = MB_STATUS_OK;
    *out = NULL;
    MB_TRY(mb_target_check(path, overwrite));
    mb_target *target = make_kept(path, now, overwrite);
    if (!target)
        return MB_STATUS_MEMORY;
    target->fd = open(now, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (target->fd < 0 || fstat(target->fd, &facts) != 0)
        status = mb_fail(MB_STATUS_IO, "path", "cannot open '%s': %s", now, strerror(errno));
    else if (!S_ISREG(facts.st_mode))
        status = mb_fail(MB_STATUS_IO, "path", "'%s' is not an ordinary file", now);
    else if (folder)
        status = resume_folder(target, folder);
    if (status != MB_STATUS_OK) {
        mb_target_destroy(target);
        return status;
    }
    target->state = MB_TARGET_KEPT;
    *out = target;
    return MB_STATUS_OK;
}

mb_status mb_target_scratch(const char *folder, int *fd)
{
    char name[PATH_MAX];
    *fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return MB_STATUS_OK;
    /* Not every file system has files without names. */
    snprintf(name, sizeof name, "%s/moonbeam-scratch-XXXXXX", folder);
    *fd = mkostemp(name, O_CLOEXEC);
    if (*fd < 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot create the scratch file '%s': %s", name,
                       strerror(errno));
    unlink(name);
    return MB_STATUS_OK;
}

/* ---- facts ---- */

int mb_target_fd(const mb_target *target)
{
    return target->fd;
}

const char *mb_target_now(const mb_target *target)
{
    return target->state == MB_TARGET_GONE    ? NULL
           : target->state == MB_TARGET_NAMED ? target->path
                                              : target->now;
}

mb_status mb_target_latch(mb_target *target, mb_status status)
{
    if (status != MB_STATUS_OK && target->latched.code == MB_STATUS_OK)
        target->latched = *mb_error_last();
    return status;
}

mb_status mb_target_failure(const mb_target *target)
{
    if (target->latched.code != MB_STATUS_OK)
        mb_error_put(&target->latched);
    return target->latched.code;
}

/* ---- going on ---- */

mb_status mb_target_make_folder(mb_target *target, const char **out)
{
    char name[PATH_MAX];
    *out = NULL;
    const bool kept = target->state == MB_TARGET_KEPT;
    if ((target->state != MB_TARGET_PART && !kept) || target->folder)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' already has a slices folder, or is finished and takes none",
                       target->path);
    mb_slices_name(kept ? target->now : target->path, target->id.text, name, sizeof name);
    if (mb_step_mkdir(name) != 0)
        return mb_fail(MB_STATUS_IO, "path", "cannot create the folder '%s': %s", name,
                       strerror(errno));
    target->folder = strdup(name);
    if (!target->folder) {
        mb_step_rmdir(name);
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to create '%s'", name);
    }
    *out = target->folder;
    return MB_STATUS_OK;
}

/* Is the file under its temporary name still ours, and whole? */
static mb_status check_part(const mb_target *target, int64_t bytes)
{
    struct stat facts, named;
    if (fstat(target->fd, &facts) != 0 || lstat(target->now, &named) != 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot find '%s' again: %s", target->now,
                       strerror(errno));
    if (facts.st_dev != named.st_dev || facts.st_ino != named.st_ino)
        return mb_fail(MB_STATUS_IO, NULL,
                       "'%s' was replaced by another file while it was being written", target->now);
    if (bytes >= 0 && named.st_size != bytes)
        return mb_fail_bytes(MB_STATUS_IO, (uint64_t)bytes, (uint64_t)named.st_size,
                             "only %lld of %lld bytes of '%s' are in the file",
                             (long long)named.st_size, (long long)bytes, target->path);
    return MB_STATUS_OK;
}

/* Names the part "<part>.swap", which it has where it may be published before it loses a name: a
** dead process's "<part>" was never published. */
static bool mark_swap(mb_target *target)
{
    static const char MARK[] = ".swap";
    char name[PATH_MAX];
    const size_t length = strlen(target->now), mark = sizeof MARK - 1;
    if (length > mark && strcmp(target->now + length - mark, MARK) == 0)
        return true;
    snprintf(name, sizeof name, "%s%s", target->now, MARK);
    if (mb_step_rename(target->now, name, false) != 0)
        return false;
    strcpy(target->now, name);
    return true;
}

/* Gives the part its name, and keeps what it replaces under the name that the part had: by an
** exchange where there is a file, else by a rename that replaces none. Another process may make or
** remove the file between any two of these steps: then again, for one that is replaced unseen
** leaves its slices folder behind. A file system that can do neither gets a plain rename. */
static int rename_held(mb_target *target)
{
    struct stat facts;
    for (int attempt = 0; attempt < 1000; attempt++) {
        const bool there = lstat(target->path, &facts) == 0;
        if (there && !mark_swap(target))
            break;
        if (there ? mb_step_exchange(target->now, target->path) == 0
                  : mb_step_rename_new(target->now, target->path) == 0) {
            target->holds = there;
            return 0;
        }
        if (errno != (there ? ENOENT : EEXIST))
            break;
    }
    return mb_step_rename(target->now, target->path, true);
}

/* The slices folder of a kept file goes beside the final name. */
static mb_status rename_folder(mb_target *target)
{
    char buffer[PATH_MAX], name[PATH_MAX];
    if (target->state != MB_TARGET_KEPT || !target->folder)
        return MB_STATUS_OK;
    snprintf(name, sizeof name, "%s/%s", mb_folder_of(target->path, buffer),
             mb_base_of(target->folder));
    if (mb_step_rename(target->folder, name, false) == 0)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_IO, NULL, "cannot rename the folder '%s' to '%s': %s", target->folder,
                   name, strerror(errno));
}

static mb_status rename_part(mb_target *target, bool hold)
{
    MB_TRY(rename_folder(target));
    if ((hold && target->overwrite
             ? rename_held(target)
             : mb_step_rename(target->now, target->path, target->overwrite)) == 0)
        return MB_STATUS_OK;
    const int cause = errno;
    if (cause == EEXIST)
        return mb_fail(
            MB_STATUS_IO, "overwrite",
            "'%s' was created by another process while this one ran; it was not replaced",
            target->path);
    return mb_fail(MB_STATUS_IO, NULL, "cannot rename the finished file to '%s': %s", target->path,
                   strerror(cause));
}

mb_status mb_target_name(mb_target *target, int64_t bytes, bool sync, const char **held)
{
    char buffer[PATH_MAX];
    if (held)
        *held = NULL;
    if (target->state != MB_TARGET_PART && target->state != MB_TARGET_KEPT)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "'%s' is not being written", target->path);
    MB_TRY(mb_target_failure(target));
    MB_TRY(mb_input_check(target->path));
    if (sync && mb_step_sync(target->fd) != 0)
        return mb_target_latch(target,
                               mb_fail(MB_STATUS_IO, NULL, "cannot write '%s' to the disk: %s",
                                       target->path, strerror(errno)));
    MB_TRY(mb_target_latch(target, check_part(target, bytes)));
    MB_TRY(rename_part(target, held));
    if (!target->holds)
        delist(target);
    target->state = MB_TARGET_NAMED;
    free(target->folder); /* it belongs to the file now */
    target->folder = NULL;
    if (sync)
        mb_step_sync_folder(mb_folder_of(target->path, buffer));
    mb_input_made(target->fd);
    mb_input_made_name(target->path); /* some file systems number files anew */
    close(target->fd);
    target->fd = -1;
    if (target->holds)
        *held = target->now;
    return MB_STATUS_OK;
}

/* ---- ending ---- */

void mb_target_discard(mb_target *target)
{
    struct stat facts, named;
    const bool unnamed = target->state == MB_TARGET_PART;
    if (unnamed && target->owner == getpid()) { /* a forked child leaves its parent's alone */
        if (target->folder)
            mb_remove_slices(target->folder);
        if (fstat(target->fd, &facts) == 0 && lstat(target->now, &named) == 0 &&
            facts.st_dev == named.st_dev && facts.st_ino == named.st_ino)
            mb_step_unlink(target->now);
    }
    if (target->holds && target->owner == getpid())
        mb_step_unlink(target->now);
    if (unnamed || target->holds)
        delist(target);
    if (unnamed)
        target->state = MB_TARGET_GONE;
    target->holds = false;
    if (target->fd >= 0)
        close(target->fd);
    target->fd = -1;
}

void mb_target_destroy(mb_target *target)
{
    if (!target)
        return;
    mb_target_discard(target);
    mb_own_id_remove(&target->id);
    free(target->folder);
    free(target->now);
    free(target->path);
    free(target);
}
