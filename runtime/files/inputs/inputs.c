/*
** The files and folders that this process reads (inputs.h).
*/
#define _GNU_SOURCE
#include "files/inputs/inputs.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
    dev_t device;
    ino_t inode;
    char *path; /* absolute, or NULL: the place is free */
    bool folder, made;
} place;

/* A table with open addressing; a power of 2, at most half full. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place *places;
static size_t room, count;
static char **declared;
static size_t declared_count;

static place *slot(place *in, size_t size, dev_t device, ino_t inode)
{
    size_t at = (size_t)(((uint64_t)inode * 0x9e3779b97f4a7c15 ^ (uint64_t)device) >> 7);
    for (;; at++) {
        place *p = &in[at & (size - 1)];
        if (!p->path || (p->device == device && p->inode == inode))
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
            *slot(wider, size, places[i].device, places[i].inode) = places[i];
    free(places);
    places = wider;
    room = size;
    return true;
}

static void note(const char *path, const struct stat *facts, bool made)
{
    if (!S_ISREG(facts->st_mode) && !S_ISDIR(facts->st_mode))
        return;
    pthread_mutex_lock(&lock);
    if (make_room()) {
        place *p = slot(places, room, facts->st_dev, facts->st_ino);
        char *name = p->path ? NULL : made ? strdup("") : realpath(path, NULL);
        if (name) {
            *p = (place){facts->st_dev, facts->st_ino, name, S_ISDIR(facts->st_mode), made};
            count++;
        } else if (p->path && made) {
            p->made = true;
        }
    }
    pthread_mutex_unlock(&lock);
}

void mb_input_note(const char *path, const struct stat *facts)
{
    note(path, facts, false);
}

void mb_input_note_name(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) == 0)
        note(path, &facts, false);
}

void mb_input_made(const struct stat *facts)
{
    note("", facts, true);
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
    struct stat now;
    return !p->made && stat(p->path, &now) == 0 && now.st_dev == p->device &&
           now.st_ino == p->inode;
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
    struct stat facts;
    if (count == 0)
        return NULL;
    const bool exists = stat(path, &facts) == 0;
    if (exists) {
        const place *p = slot(places, room, facts.st_dev, facts.st_ino);
        if (p->path && p->made)
            return NULL;
        if (p->path && still_there(p))
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
    const bool folder = exists && S_ISDIR(facts.st_mode);
    for (size_t i = 0; i < room && real && !found; i++) {
        const place *p = &places[i];
        if (p->path && !p->made &&
            ((p->folder && lies_in(real, p->path)) || (folder && lies_in(p->path, real))) &&
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
