/*
** Names of folders that are results (folder_target.h).
*/
#define _GNU_SOURCE
#include "files/folder_target.h"
#include "files/target_internal.h"
#include "files/inputs/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

bool mb_folder_target_is(const char *path)
{
    static const char EXTENSION[] = ".zarr";
    const size_t length = strlen(path), own = sizeof EXTENSION - 1;
    return length > own && strcasecmp(path + length - own, EXTENSION) == 0;
}

/* Has the folder what only Zarr groups and arrays have? */
static bool is_zarr(const char *path)
{
    static const char *const NAMES[] = {"zarr.json", ".zgroup", ".zarray", ".zattrs"};
    char name[PATH_MAX];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if ((size_t)snprintf(name, sizeof name, "%s/%s", path, NAMES[i]) < sizeof name &&
            access(name, F_OK) == 0)
            return true;
    return false;
}

static mb_status check_parent(const char *path)
{
    char buffer[PATH_MAX];
    const char *folder = mb_folder_of(path, buffer);
    if (access(folder, W_OK | X_OK) == 0)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': folder '%s': %s", path, folder,
                   strerror(errno));
}

mb_status mb_folder_target_check(const char *path, bool overwrite)
{
    struct stat facts;
    const char *base = mb_base_of(path);
    if (base[0] == '\0' || strlen(path) >= PATH_MAX - 3 * PART_EXTRA ||
        strlen(base) > NAME_MAX - 2 * PART_EXTRA)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' is not a valid name", path);
    MB_TRY(mb_input_check(path));
    if (lstat(path, &facts) != 0)
        return check_parent(path);
    if (!overwrite)
        return mb_fail(
            MB_STATUS_IO, "overwrite",
            "'%s' already exists: choose another name, or give the option overwrite = true", path);
    if (!S_ISDIR(facts.st_mode) || !is_zarr(path))
        return mb_fail(MB_STATUS_IO, "path",
                       "'%s' is not a Zarr group, so it is not replaced: choose another name",
                       path);
    return check_parent(path);
}

static mb_status refused(const char *path)
{
    return mb_fail(MB_STATUS_IO, "overwrite", "cannot rename the finished folder to '%s': %s", path,
                   strerror(errno));
}

mb_status mb_folder_target_name(const char *now, const char *path, bool overwrite)
{
    char swap[PATH_MAX], aside[PATH_MAX], buffer[PATH_MAX];
    struct stat facts;
    MB_TRY(mb_folder_target_check(path, overwrite));
    const bool replaces = lstat(path, &facts) == 0;
    if ((size_t)snprintf(swap, sizeof swap, "%s.swap", now) >= sizeof swap ||
        (size_t)snprintf(aside, sizeof aside, "%s.old", now) >= sizeof aside)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' is too long a name", now);
    if (!replaces) {
        if (mb_step_rename(now, path, false) != 0)
            return refused(path);
    } else {
        /* What a kill leaves under the name `now` was not published. */
        if (mb_step_rename(now, swap, false) != 0)
            return refused(path);
        /* Not every file system exchanges names. */
        if (mb_step_exchange(swap, path) != 0 &&
            (mb_step_rename(path, aside, false) != 0 || mb_step_rename(swap, path, false) != 0)) {
            const int cause = errno;
            if (lstat(path, &facts) != 0)
                (void)mb_step_rename(aside, path, false);
            (void)mb_step_rename(swap, now, false);
            errno = cause;
            return refused(path);
        }
    }
    mb_step_sync_folder(mb_folder_of(path, buffer));
    mb_input_made_name(path);
    return MB_STATUS_OK;
}
