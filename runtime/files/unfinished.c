/*
** The folder of an unfinished run (unfinished.h).
**
** Invariants: run->lock is open and, where the file system can, locked; run->journal is open for
** appending; run->bytes is the journal's length.
*/
#define _GNU_SOURCE
#include "files/unfinished.h"
#include "core/line_hash.h"
#include "files/positioned.h"
#include "files/target_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A checksum and the space after it. */
#define SUM_BYTES 17

struct mb_unfinished {
    char folder[PATH_MAX];
    int lock, journal; /* -1: none */
    uint64_t bytes;
};

/* ---- names ---- */

static bool folder_name(const char *path, char *name)
{
    return snprintf(name, PATH_MAX, "%s.unfinished", path) < PATH_MAX - 2 * PART_EXTRA;
}

static const char *inside(const char *folder, const char *name, char *buffer)
{
    return snprintf(buffer, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ? buffer : folder;
}

static bool is_there(const char *folder, const char *name)
{
    char buffer[PATH_MAX];
    struct stat facts;
    return lstat(inside(folder, name, buffer), &facts) == 0;
}

static bool is_file(const char *folder, const char *name)
{
    char buffer[PATH_MAX];
    struct stat facts;
    return lstat(inside(folder, name, buffer), &facts) == 0 && S_ISREG(facts.st_mode);
}

/* ---- the lock ---- */

/* What the lock of a run says that keeps nothing. */
#define SCRATCH "scratch"

/* "4711 0a1b2c3d node7": PID, kernel and host, name of the host; and SCRATCH. */
typedef struct lock_text {
    long pid;
    char host[9], name[65], kind[16];
} lock_text;

static bool read_lock(int fd, lock_text *who)
{
    char text[160];
    const int64_t count = mb_read_at(fd, text, sizeof text - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    who->kind[0] = '\0';
    return sscanf(text, "%ld %8s %64s %15s", &who->pid, who->host, who->name, who->kind) >= 3;
}

static bool is_scratch(int fd)
{
    lock_text who;
    return read_lock(fd, &who) && strcmp(who.kind, SCRATCH) == 0;
}

static mb_status write_lock(const char *folder, int fd, bool scratch)
{
    char name[65] = "", text[PATH_MAX];
    gethostname(name, sizeof name - 1);
    const int count = snprintf(text, sizeof text, "%ld %s %s%s\n", (long)getpid(), mb_host_text(),
                               name[0] != '\0' ? name : "?", scratch ? " " SCRATCH : "");
    if (ftruncate(fd, 0) == 0 && mb_write_at(fd, text, (uint64_t)count, 0) == count)
        return MB_STATUS_OK;
    const int cause = errno;
    unlink(inside(folder, "lock", text)); /* which is this process's */
    return mb_fail(MB_STATUS_IO, "path", "cannot lock '%s': %s", folder, strerror(cause));
}

/* Locks an open lock file, where nobody else has. The text in it stays. */
static mb_status lock_now(const char *folder, int fd)
{
    lock_text who;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool possible = locked || errno == EWOULDBLOCK, known = read_lock(fd, &who);
    if (!locked && known && (possible || !mb_process_is_dead(who.pid, who.host)))
        return mb_fail(MB_STATUS_IO, "path",
                       "process %ld on %s %s at work on '%s': wait for it, or stop it%s", who.pid,
                       who.name, possible ? "is" : "may be", folder,
                       possible ? "" : "; where it runs no more, remove the file 'lock' there");
    if (!locked && possible)
        return mb_fail(MB_STATUS_IO, "path", "another process is at work on '%s'", folder);
    return MB_STATUS_OK;
}

/* Removes all but the lock. */
static void clear_scratch(const char *folder)
{
    char name[PATH_MAX];
    DIR *list = opendir(folder);
    if (!list)
        return;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        const char *own = entry->d_name;
        if (strcmp(own, ".") != 0 && strcmp(own, "..") != 0 && strcmp(own, "lock") != 0 &&
            mb_step_unlink(inside(folder, own, name)) != 0)
            mb_remove_run(name); /* a folder */
    }
    closedir(list);
}

static mb_status claim(const char *folder, int fd, bool scratch)
{
    struct stat facts, named;
    char buffer[PATH_MAX];
    MB_TRY(lock_now(folder, fd));
    if (fstat(fd, &facts) != 0 || lstat(inside(folder, "lock", buffer), &named) != 0 ||
        facts.st_ino != named.st_ino || facts.st_dev != named.st_dev)
        return mb_fail(MB_STATUS_IO, "path", "another process has just removed '%s'", folder);
    if (is_scratch(fd))
        clear_scratch(folder);
    return write_lock(folder, fd, scratch);
}

static mb_status take_lock(mb_unfinished *run, bool scratch)
{
    char buffer[PATH_MAX];
    run->lock = mb_step_open(inside(run->folder, "lock", buffer), O_RDWR | O_CREAT);
    if (run->lock < 0)
        return mb_fail(MB_STATUS_IO, "path", "cannot lock '%s': %s", run->folder, strerror(errno));
    return claim(run->folder, run->lock, scratch);
}

/* ---- the records of a journal ---- */

static void format_sum(char *to, const char *record, size_t bytes, uint64_t place)
{
    snprintf(to, SUM_BYTES + 1, "%016llx ", (unsigned long long)mb_line_hash(record, bytes, place));
}

/* Takes the checksums out of the text, up to the first line that is wrong. Returns the length of
** these lines as they were; *left is what they are now. */
static size_t check_lines(char *text, size_t bytes, size_t *left)
{
    char sum[SUM_BYTES + 1];
    size_t at = 0, to = 0;
    for (const char *end; at < bytes && (end = memchr(text + at, '\n', bytes - at)) != NULL;) {
        const size_t line = (size_t)(end - text) - at;
        if (line < SUM_BYTES)
            break;
        const char *record = text + at + SUM_BYTES;
        format_sum(sum, record, line - SUM_BYTES, at);
        if (memcmp(sum, text + at, SUM_BYTES) != 0)
            break;
        memmove(text + to, record, line - SUM_BYTES + 1);
        to += line - SUM_BYTES + 1;
        at += line + 1;
    }
    *left = to;
    return at;
}

/* ---- what is there ---- */

/* Has the journal a first record? */
static bool has_beginning(const char *folder)
{
    char buffer[PATH_MAX], text[PATH_MAX];
    size_t left = 0;
    const int fd = open(inside(folder, "journal", buffer), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const int64_t count = fd >= 0 ? mb_read_at(fd, text, sizeof text, 0) : -1;
    if (fd >= 0)
        close(fd);
    return count > 0 && check_lines(text, (size_t)count, &left) > 0;
}

/* An empty file: "lock", which may have a text, "journal" and "journal-N". */
static bool is_blank_entry(const char *folder, const char *name)
{
    char buffer[PATH_MAX];
    struct stat facts;
    const bool lock = strcmp(name, "lock") == 0;
    return (lock || strncmp(name, "journal", 7) == 0) &&
           lstat(inside(folder, name, buffer), &facts) == 0 && S_ISREG(facts.st_mode) &&
           (lock || facts.st_size == 0);
}

/* Is there nothing in it, but a lock and empty journals? */
static bool is_blank(const char *folder)
{
    bool blank = true;
    DIR *list = opendir(folder);
    if (!list)
        return false;
    for (struct dirent *entry = readdir(list); entry && blank; entry = readdir(list))
        blank = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                is_blank_entry(folder, entry->d_name);
    closedir(list);
    return blank;
}

/* Is it of a run that keeps nothing? */
static bool keeps_nothing(const char *folder)
{
    char buffer[PATH_MAX];
    const int fd = is_file(folder, "lock")
                       ? open(inside(folder, "lock", buffer), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                       : -1;
    const bool scratch = fd >= 0 && is_scratch(fd);
    if (fd >= 0)
        close(fd);
    return scratch;
}

static mb_unfinished_state state_of(const char *folder)
{
    struct stat facts;
    /* No failure comes here. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
    if (lstat(folder, &facts) != 0)
        return MB_UNFINISHED_NONE;
    if (!S_ISDIR(facts.st_mode))
        return MB_UNFINISHED_OTHER;
    if (has_beginning(folder))
        return MB_UNFINISHED_KEPT;
    return is_blank(folder) || keeps_nothing(folder) ? MB_UNFINISHED_NONE : MB_UNFINISHED_DAMAGED;
}

mb_unfinished_state mb_unfinished_look(const char *path)
{
    char folder[PATH_MAX];
    return folder_name(path, folder) ? state_of(folder) : MB_UNFINISHED_NONE;
}

/* ---- beginning ---- */

static mb_status make(const char *path, mb_unfinished **out)
{
    *out = NULL;
    mb_unfinished *run = calloc(1, sizeof *run);
    if (!run)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to begin '%s'", path);
    run->lock = run->journal = -1;
    if (!folder_name(path, run->folder)) {
        free(run);
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' is not a valid file name", path);
    }
    *out = run;
    return MB_STATUS_OK;
}

static mb_status open_journal(mb_unfinished *run, bool new_one)
{
    char buffer[PATH_MAX];
    const char *name = inside(run->folder, "journal", buffer);
    run->journal = mb_step_open(name, O_RDWR | O_APPEND | (new_one ? O_CREAT : 0));
    if (run->journal >= 0)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_IO, "path", "cannot %s '%s': %s", new_one ? "create" : "open", name,
                   strerror(errno));
}

/* A lock that is no file is nobody's. */
static bool has_odd_lock(const char *folder)
{
    return is_there(folder, "lock") && !is_file(folder, "lock");
}

/* Why a folder in this state can be neither begun nor resumed. A run that keeps nothing has no
** options for what others have kept. */
static mb_status refuse(const char *folder, mb_unfinished_state state, bool scratch)
{
    if (state == MB_UNFINISHED_OTHER)
        return mb_fail(MB_STATUS_IO, "path",
                       "'%s' is no folder, or a link to one, so that no run can be kept there: "
                       "move it elsewhere",
                       folder);
    if (scratch)
        return mb_fail(MB_STATUS_IO, "path",
                       "'%s' exists: it keeps an interrupted run of another command. Go on with "
                       "that run, or remove the folder",
                       folder);
    if (state == MB_UNFINISHED_DAMAGED)
        return mb_fail(MB_STATUS_IO, "path",
                       "'%s' exists: the run that it keeps cannot go on, because its %s. Remove it "
                       "and start anew with the option discard = true",
                       folder,
                       has_odd_lock(folder)          ? "lock is no file"
                       : is_there(folder, "journal") ? "journal is damaged"
                                                     : "journal is missing");
    return mb_fail(MB_STATUS_IO, "path",
                   "'%s' exists: it keeps an interrupted run. Go on with the option resume = true, "
                   "or remove it and start anew with the option discard = true",
                   folder);
}

/* What is there may be the work of a process that has not ended. */
static mb_status refuse_begun(const char *folder, mb_unfinished_state state, bool scratch)
{
    char buffer[PATH_MAX];
    const int fd = is_file(folder, "lock") && state != MB_UNFINISHED_OTHER
                       ? mb_step_open(inside(folder, "lock", buffer), O_RDWR)
                       : -1;
    if (fd < 0)
        return refuse(folder, state, scratch);
    const mb_status status = lock_now(folder, fd);
    close(fd); /* gives the lock back */
    return status != MB_STATUS_OK ? status : refuse(folder, state, scratch);
}

/* What is in a folder tells its state, so it must be readable. */
static mb_status check_readable(const char *folder)
{
    /* No failure comes here. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
    DIR *list = opendir(folder);
    if (!list && errno != ENOTDIR && errno != ELOOP)
        return mb_fail(MB_STATUS_IO, "path", "cannot read '%s': %s", folder, strerror(errno));
    if (list)
        closedir(list);
    return MB_STATUS_OK;
}

/* Takes the lock of a folder, and looks again at what it keeps. */
static mb_status lock_folder(mb_unfinished *run, bool scratch)
{
    char buffer[PATH_MAX];
    MB_TRY(take_lock(run, scratch));
    const mb_status status = check_readable(run->folder);
    if (status != MB_STATUS_OK) {
        unlink(inside(run->folder, "lock", buffer));
        return status;
    }
    const mb_unfinished_state state = state_of(run->folder);
    return state == MB_UNFINISHED_NONE ? MB_STATUS_OK : refuse(run->folder, state, scratch);
}

/* Where nothing is kept, the folder is taken: its process was killed when it began, or kept
** nothing. */
static mb_status begin(mb_unfinished *run, bool scratch)
{
    char buffer[PATH_MAX];
    if (mb_step_mkdir(run->folder) != 0 && errno != EEXIST)
        return mb_fail(MB_STATUS_IO, "path", "cannot create the folder '%s': %s", run->folder,
                       strerror(errno));
    MB_TRY(check_readable(run->folder));
    const mb_unfinished_state state = state_of(run->folder);
    if (state != MB_UNFINISHED_NONE)
        return refuse_begun(run->folder, state, scratch);
    MB_TRY(lock_folder(run, scratch));
    const mb_status status = scratch ? MB_STATUS_OK : open_journal(run, true);
    if (status != MB_STATUS_OK)
        unlink(inside(run->folder, "lock", buffer));
    return status;
}

mb_status mb_unfinished_begin(const char *path, bool scratch, mb_unfinished **out)
{
    MB_TRY(make(path, out));
    mb_target_scavenge((*out)->folder, NULL);
    const mb_status status = begin(*out, scratch);
    if (status != MB_STATUS_OK) {
        mb_step_rmdir((*out)->folder); /* if nothing is in it */
        mb_unfinished_destroy(*out);
        *out = NULL;
    }
    return status;
}

static mb_status resume(mb_unfinished *run)
{
    const mb_unfinished_state state = state_of(run->folder);
    const bool journal = is_file(run->folder, "journal");
    if (state == MB_UNFINISHED_OTHER || (state == MB_UNFINISHED_DAMAGED && !journal))
        return refuse_begun(run->folder, state, false);
    if (!journal)
        return mb_fail(MB_STATUS_IO, "resume",
                       "there is nothing to resume: '%s' %s; leave the option resume out",
                       run->folder,
                       is_there(run->folder, ".") ? "has no journal" : "does not exist");
    if (has_odd_lock(run->folder))
        return refuse(run->folder, MB_UNFINISHED_DAMAGED, false);
    MB_TRY(take_lock(run, false));
    return open_journal(run, false);
}

static mb_status take(mb_unfinished *run)
{
    char buffer[PATH_MAX];
    if (state_of(run->folder) == MB_UNFINISHED_OTHER)
        return refuse(run->folder, MB_UNFINISHED_OTHER, false);
    if (has_odd_lock(run->folder))
        (void)!remove(inside(run->folder, "lock", buffer));
    MB_TRY(take_lock(run, false));
    return is_file(run->folder, "journal") ? open_journal(run, false) : MB_STATUS_OK;
}

/* What `open` takes of an earlier process. */
static mb_status continued(const char *path, mb_status (*open)(mb_unfinished *),
                           mb_unfinished **out)
{
    MB_TRY(make(path, out));
    const mb_status status = open(*out);
    if (status != MB_STATUS_OK) {
        mb_unfinished_destroy(*out);
        *out = NULL;
    }
    return status;
}

mb_status mb_unfinished_resume(const char *path, mb_unfinished **out)
{
    return continued(path, resume, out);
}

mb_status mb_unfinished_take(const char *path, mb_unfinished **out)
{
    return continued(path, take, out);
}

const char *mb_unfinished_folder(const mb_unfinished *run)
{
    return run->folder;
}

mb_status mb_unfinished_join(const char *folder, const char *name, bool fresh, mb_unfinished **out)
{
    char buffer[PATH_MAX];
    MB_TRY(make(folder, out));
    snprintf((*out)->folder, PATH_MAX, "%s", folder);
    const int flags = O_RDWR | O_APPEND | (fresh ? O_CREAT | O_TRUNC : 0);
    (*out)->journal = mb_step_open(inside(folder, name, buffer), flags);
    if ((*out)->journal >= 0)
        return MB_STATUS_OK;
    const int cause = errno;
    mb_unfinished_destroy(*out);
    *out = NULL;
    return mb_fail(MB_STATUS_IO, "path", "cannot open '%s': %s", inside(folder, name, buffer),
                   strerror(cause));
}

/* ---- the journal ---- */

mb_status mb_unfinished_read(mb_unfinished *run, char **text, size_t *bytes)
{
    struct stat facts;
    *text = NULL;
    if (fstat(run->journal, &facts) != 0 || facts.st_size > (INT64_C(1) << 32))
        return mb_fail(MB_STATUS_IO, NULL, "cannot read the journal in '%s'", run->folder);
    *text = malloc((size_t)facts.st_size + 1);
    if (!*text)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for the journal");
    const int64_t count = mb_read_at(run->journal, *text, (uint64_t)facts.st_size, 0);
    run->bytes = count > 0 ? check_lines(*text, (size_t)count, bytes) : 0;
    if (count >= 0 && ftruncate(run->journal, (off_t)run->bytes) == 0) {
        *bytes = count > 0 ? *bytes : 0;
        return MB_STATUS_OK;
    }
    free(*text);
    *text = NULL;
    return mb_fail(MB_STATUS_IO, NULL, "cannot read the journal in '%s': %s", run->folder,
                   strerror(errno));
}

mb_status mb_unfinished_append(mb_unfinished *run, const char *record, size_t bytes)
{
    char *line = malloc(bytes + SUM_BYTES + 2);
    if (!line)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a record");
    format_sum(line, record, bytes, run->bytes);
    memcpy(line + SUM_BYTES, record, bytes);
    line[SUM_BYTES + bytes] = '\n';
    const int failed = mb_step_append(run->journal, line, bytes + SUM_BYTES + 1);
    const int cause = errno;
    free(line);
    if (failed == 0) {
        run->bytes += bytes + SUM_BYTES + 1;
        return MB_STATUS_OK;
    }
    (void)!ftruncate(run->journal, (off_t)run->bytes); /* half a record */
    return mb_fail(MB_STATUS_IO, NULL, "cannot write the journal in '%s': %s", run->folder,
                   strerror(cause));
}

mb_status mb_unfinished_sync(mb_unfinished *run)
{
    char buffer[PATH_MAX];
    if (mb_step_sync(run->journal) != 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot write the journal in '%s' to the disk: %s",
                       run->folder, strerror(errno));
    mb_step_sync_folder(run->folder);
    mb_step_sync_folder(mb_folder_of(run->folder, buffer));
    return MB_STATUS_OK;
}

/* ---- ending ---- */

/* Moves what is in a folder, but what is not to go, to a new folder. */
static bool move_own(const char *folder, const char *aside, const char *const *others)
{
    char from[PATH_MAX], to[PATH_MAX];
    DIR *list = mb_step_mkdir(aside) == 0 ? opendir(folder) : NULL;
    if (!list)
        return false;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        const char *name = entry->d_name;
        bool own = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
        for (const char *const *other = others; *other; other++)
            own = own && strcmp(name, *other) != 0;
        if (own)
            mb_step_rename(inside(folder, name, from), inside(aside, name, to), false);
    }
    closedir(list);
    return true;
}

mb_status mb_unfinished_remove(mb_unfinished *run, const char *const *others)
{
    char id[9], aside[PATH_MAX];
    mb_random_id(id);
    mb_part_name(run->folder, id, aside, sizeof aside);
    mb_unfinished_end_journal(run);
    const bool moved = others && *others ? move_own(run->folder, aside, others)
                                         : mb_step_rename(run->folder, aside, false) == 0;
    const mb_status status =
        moved ? MB_STATUS_OK
              : mb_fail(MB_STATUS_IO, NULL, "cannot remove '%s': %s", run->folder, strerror(errno));
    mb_unfinished_destroy(run); /* which closes the lock */
    if (moved)
        mb_remove_run(aside);
    return status;
}

void mb_unfinished_end_journal(mb_unfinished *run)
{
    if (run->journal >= 0)
        close(run->journal);
    run->journal = -1;
}

void mb_unfinished_destroy(mb_unfinished *run)
{
    if (!run)
        return;
    mb_unfinished_end_journal(run);
    if (run->lock >= 0)
        close(run->lock);
    free(run);
}
