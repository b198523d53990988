/*
** The files and folders that this process reads (inputs.h).
*/
#define _GNU_SOURCE
#include "files/inputs/inputs.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
** A file or folder. The number of a file that was removed is given to a new one, which only its
** time of birth tells apart; a file system that keeps none gives 0 for all.
*/
typedef struct identity {
    uint64_t device, inode;
    int64_t born, nanoseconds;
    bool ordinary, folder;
} identity;

typedef struct place {
    identity file;
    char *path; /* absolute, or NULL: the place is free */
    bool made;
} place;

/* A table with open addressing; a power of 2, at most half full. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place *places;
static size_t room, count;
static char **declared;
static size_t declared_count;

/* Of what `path` leads to, or of the open file where `path` is empty. Is there one? */
static bool identify(int fd, const char *path, identity *out)
{
    struct statx facts;
    const int open_file = path[0] ? 0 : AT_EMPTY_PATH;
    if (statx(fd, path, open_file, STATX_TYPE | STATX_INO | STATX_BTIME, &facts) != 0)
        return false;
    const bool born = facts.stx_mask & STATX_BTIME;
    *out = (identity){
        .device = (uint64_t)facts.stx_dev_major << 32 | facts.stx_dev_minor,
        .inode = facts.stx_ino,
        .born = born ? facts.stx_btime.tv_sec : 0,
        .nanoseconds = born ? facts.stx_btime.tv_nsec : 0,
        .ordinary = S_ISREG(facts.stx_mode),
        .folder = S_ISDIR(facts.stx_mode),
    };
    return true;
}

static bool same(const identity *a, const identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->born == b->born &&
           a->nanoseconds == b->nanoseconds;
}

/* The place of a file by its numbers: its own, that of a file that had them before, or free. */
static place *slot(place *in, size_t size, const identity *file)
{
    size_t at = (size_t)((file->inode * 0x9e3779b97f4a7c15 ^ file->device) >> 7);
    for (;; at++) {
        place *p = &in[at & (size - 1)];
        if (!p->path || (p->file.device == file->device && p->file.inode == file->inode))
            return p;
    }
}

static bool make_room(void)
{
    if (2 * (count + 1) <= room)
        return true;
    const size_t size = room ? 2 * room : 64;
    place *wider = calloc(size, sizeof *wider);
    if (!wider)
        return false;
    for (size_t i = 0; i < room; i++)
        if (places[i].path)
            *slot(wider, size, &places[i].file) = places[i];
    free(places);
    places = wider;
    room = size;
    return true;
}

static void note(const char *path, const identity *file, bool made)
{
    if (!file->ordinary && !file->folder)
        return;
    pthread_mutex_lock(&lock);
    if (make_room()) {
        place *p = slot(places, room, file);
        const bool known = p->path && same(&p->file, file);
        char *name = known ? NULL : made ? strdup("") : realpath(path, NULL);
        if (name) {
            count += !p->path;
            free(p->path);
            *p = (place){*file, name, made};
        } else if (known && made) {
            p->made = true;
        }
    }
    pthread_mutex_unlock(&lock);
}

void mb_input_note(const char *path, int fd)
{
    identity file;
    if (identify(fd, "", &file))
        note(path, &file, false);
}

void mb_input_note_name(const char *path)
{
    identity file;
    if (identify(AT_FDCWD, path, &file))
        note(path, &file, false);
}

void mb_input_made(int fd)
{
    identity file;
    if (identify(fd, "", &file))
        note("", &file, true);
}

void mb_input_made_name(const char *path)
{
    identity file;
    if (identify(AT_FDCWD, path, &file))
        note("", &file, true);
}

void mb_input_declare(const char *path)
{
    pthread_mutex_lock(&lock);
    bool known = false;
    for (size_t i = 0; i < declared_count && !known; i++)
        known = strcmp(declared[i], path) == 0;
    char *copy = known ? NULL : strdup(path);
    char **longer = copy ? realloc(declared, (declared_count + 1) * sizeof *declared) : NULL;
    if (longer) {
        declared = longer;
        declared[declared_count++] = copy;
    } else {
        free(copy);
    }
    pthread_mutex_unlock(&lock);
}

/* Does the path of the place still lead to what was read? */
static bool still_there(const place *p)
{
    identity now;
    return !p->made && identify(AT_FDCWD, p->path, &now) && same(&now, &p->file);
}

/* Is the path `inner` that of something in the folder `outer`? Both are absolute. */
static bool lies_in(const char *inner, const char *outer)
{
    const size_t length = strlen(outer);
    return strncmp(inner, outer, length) == 0 && inner[length] == '/';
}

/* The path of an input that would be lost with what is written as `path`, or NULL. */
static const char *lost_with(const char *path)
{
    identity file;
    if (count == 0)
        return NULL;
    const bool exists = identify(AT_FDCWD, path, &file);
    if (exists) {
        const place *p = slot(places, room, &file);
        const bool known = p->path && same(&p->file, &file);
        if (known && p->made)
            return NULL;
        if (known && still_there(p))
            return p->path;
    }
    char *real = realpath(path, NULL);
    if (!real) { /* the folder that it would be in */
        const char *base = strrchr(path, '/');
        char *folder = base ? strndup(path, (size_t)(base - path) + 1) : strdup(".");
        char *inner = folder ? realpath(folder, NULL) : NULL;
        free(folder);
        if (inner && (real = realloc(inner, strlen(inner) + 3)) != NULL)
            strcat(real, "/.");
        else
            free(inner);
    }
    const char *found = NULL;
    const bool folder = exists && file.folder;
    for (size_t i = 0; i < room && real && !found; i++) {
        const place *p = &places[i];
        if (p->path && !p->made &&
            ((p->file.folder && lies_in(real, p->path)) || (folder && lies_in(p->path, real))) &&
            still_there(p))
            found = p->path;
    }
    free(real);
    return found;
}

static mb_status check(const char *path)
{
    const char *input = lost_with(path);
    return input ? mb_fail(MB_STATUS_IO, "path",
                           "cannot create '%s': it is read, as '%s', and inputs are never "
                           "overwritten; choose another name",
                           path, input)
                 : MB_STATUS_OK;
}

mb_status mb_input_check(const char *path)
{
    pthread_mutex_lock(&lock);
    mb_status status = check(path);
    for (size_t i = 0; i < declared_count && status == MB_STATUS_OK; i++)
        status = check(declared[i]);
    pthread_mutex_unlock(&lock);
    return status;
}
