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

/* Is there a journal with a record? */
static bool has_records(const char *folder)
{
    char buffer[PATH_MAX];
    struct stat facts;
    return lstat(inside(folder, "journal", buffer), &facts) == 0 && facts.st_size > 0;
}

bool mb_unfinished_exists(const char *path)
{
    char folder[PATH_MAX];
    return folder_name(path, folder) && has_records(folder);
}

/* ---- the lock ---- */

/* "4711 0a1b2c3d node7": PID, kernel and host, name of the host. */
typedef struct lock_text {
    long pid;
    char host[9], name[65];
} lock_text;

static bool read_lock(int fd, lock_text *who)
{
    char text[160];
    const int64_t count = mb_read_at(fd, text, sizeof text - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    return sscanf(text, "%ld %8s %64s", &who->pid, who->host, who->name) == 3;
}

static mb_status write_lock(const char *folder, int fd)
{
    char name[65] = "", text[PATH_MAX];
    gethostname(name, sizeof name - 1);
    const int count = snprintf(text, sizeof text, "%ld %s %s\n", (long)getpid(), mb_host_text(),
                               name[0] != '\0' ? name : "?");
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

static mb_status claim(const char *folder, int fd)
{
    struct stat facts, named;
    char buffer[PATH_MAX];
    MB_TRY(lock_now(folder, fd));
    if (fstat(fd, &facts) != 0 || lstat(inside(folder, "lock", buffer), &named) != 0 ||
        facts.st_ino != named.st_ino || facts.st_dev != named.st_dev)
        return mb_fail(MB_STATUS_IO, "path", "another process has just removed '%s'", folder);
    return write_lock(folder, fd);
}

static mb_status take_lock(mb_unfinished *run)
{
    char buffer[PATH_MAX];
    run->lock = mb_step_open(inside(run->folder, "lock", buffer), O_RDWR | O_CREAT);
    if (run->lock < 0)
        return mb_fail(MB_STATUS_IO, "path", "cannot lock '%s': %s", run->folder, strerror(errno));
    return claim(run->folder, run->lock);
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

static mb_status refuse(const char *folder)
{
    return mb_fail(MB_STATUS_IO, "path",
                   "'%s' exists: it keeps an interrupted run. Go on with the option resume = true, "
                   "or remove it and start anew with the option discard = true",
                   folder);
}

/* What is there may be the work of a process that has not ended. */
static mb_status refuse_begun(const char *folder)
{
    char buffer[PATH_MAX];
    const int fd = mb_step_open(inside(folder, "lock", buffer), O_RDWR);
    if (fd < 0)
        return refuse(folder);
    const mb_status status = lock_now(folder, fd);
    close(fd); /* gives the lock back */
    return status != MB_STATUS_OK ? status : refuse(folder);
}

/* A folder without a record has nothing that is worth keeping: its process was killed when it
** began, or kept no journal. */
static mb_status begin(mb_unfinished *run)
{
    char buffer[PATH_MAX];
    if (mb_step_mkdir(run->folder) != 0 && errno != EEXIST)
        return mb_fail(MB_STATUS_IO, "path", "cannot create the folder '%s': %s", run->folder,
                       strerror(errno));
    if (has_records(run->folder))
        return refuse_begun(run->folder);
    MB_TRY(take_lock(run));
    if (has_records(run->folder))
        return refuse(run->folder);
    const mb_status status = open_journal(run, true);
    if (status != MB_STATUS_OK)
        unlink(inside(run->folder, "lock", buffer));
    return status;
}

mb_status mb_unfinished_begin(const char *path, mb_unfinished **out)
{
    MB_TRY(make(path, out));
    mb_target_scavenge((*out)->folder, NULL);
    const mb_status status = begin(*out);
    if (status != MB_STATUS_OK) {
        mb_step_rmdir((*out)->folder); /* if nothing is in it */
        mb_unfinished_destroy(*out);
        *out = NULL;
    }
    return status;
}

mb_status mb_unfinished_resume(const char *path, mb_unfinished **out)
{
    mb_status status = MB_STATUS_OK;
    MB_TRY(make(path, out));
    if (!is_there((*out)->folder, "journal"))
        status = mb_fail(MB_STATUS_IO, "resume",
                         "there is nothing to resume: '%s' %s; leave the option resume out",
                         (*out)->folder,
                         is_there((*out)->folder, ".") ? "has no journal" : "does not exist");
    if (status == MB_STATUS_OK)
        status = take_lock(*out);
    if (status == MB_STATUS_OK)
        status = open_journal(*out, false);
    if (status != MB_STATUS_OK) {
        mb_unfinished_destroy(*out);
        *out = NULL;
    }
    return status;
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

mb_status mb_unfinished_remove(mb_unfinished *run)
{
    char id[9], aside[PATH_MAX];
    mb_random_id(id);
    mb_part_name(run->folder, id, aside, sizeof aside);
    const bool moved = mb_step_rename(run->folder, aside, false) == 0;
    const mb_status status =
        moved ? MB_STATUS_OK
              : mb_fail(MB_STATUS_IO, NULL, "cannot remove '%s': %s", run->folder, strerror(errno));
    if (moved)
        mb_remove_run(aside);
    mb_unfinished_destroy(run);
    return status;
}

void mb_unfinished_destroy(mb_unfinished *run)
{
    if (!run)
        return;
    if (run->journal >= 0)
        close(run->journal);
    if (run->lock >= 0)
        close(run->lock);
    free(run);
}
