/*
** Paths in HDF5 files: finding what they lead to, and making groups and links.
*/
#include "files/h5/library/h5library.h"

#include <stdlib.h>
#include <string.h>

/* ---- looking things up ---- */

/* Does the link that ends at `path` lead anywhere? */
static mb_status follow(mb_h5 *file, const char *path, bool *found)
{
    const htri_t leads = H5Oexists_by_name(file->id, path, file->links);
    *found = leads > 0;
    if (leads > 0)
        return MB_STATUS_OK;
    H5L_info_t link;
    const bool external =
        H5Lget_info(file->id, path, &link, file->links) >= 0 && link.type == H5L_TYPE_EXTERNAL;
    /* A soft link to nothing is nothing; a link into another file says that there is something. */
    return leads < 0 || external || file->refused[0] != '\0'
               ? mb_h5_failure(file, path, "follow the link")
               : MB_STATUS_OK;
}

/* Is the object at `path` a group, below which something can be? */
static bool is_group(mb_h5 *file, const char *path)
{
    H5_OWNED hid_t id = H5Oopen(file->id, path, file->links);
    return id < 0 || H5Iget_type(id) == H5I_GROUP;
}

/* The length of the components that begin `path` and are groups, because the path that was found
** last begins with them as well and has more behind them; all of `path` if it is that path. */
static size_t known_part(const mb_h5 *file, const char *path)
{
    size_t known = 0;
    for (size_t i = 0; file->found && path[i] == file->found[i]; i++) {
        if (path[i] == '/' && file->found[i + strspn(file->found + i, "/")] != '\0')
            known = i;
        if (path[i] == '\0')
            return i;
    }
    return known;
}

/* Finds the components of `path`, which is a copy of our own, one after the other: H5Lexists
** fails when a parent is missing. */
static mb_status find_components(mb_h5 *file, char *path, bool *found)
{
    char *first = path + known_part(file, path);
    for (char *at = first + strspn(first, "/"); *at != '\0' && *found;) {
        char *end = at + strcspn(at, "/");
        char *next = end + strspn(end, "/");
        const char kept = *end;
        mb_status status = MB_STATUS_OK;
        *end = '\0';
        const htri_t there = H5Lexists(file->id, path, file->links);
        *found = there > 0;
        if (there < 0)
            status = mb_h5_failure(file, path, "look up");
        else if (there > 0)
            status = follow(file, path, found);
        if (status == MB_STATUS_OK && *found && *next != '\0')
            *found = is_group(file, path);
        *end = kept;
        MB_TRY(status);
        at = next;
    }
    return MB_STATUS_OK;
}

mb_status mb_h5_find(mb_h5 *file, const char *path, bool *found)
{
    MB_H5_GUARD;
    *found = false;
    MB_TRY(mb_h5_ready(file, false));
    if (path[0] == '\0')
        return mb_fail(MB_STATUS_ARGUMENT, "path", "the path in '%s' is empty: the root is '/'",
                       file->path);
    char *copy = mb_h5_copy_text(path);
    if (!copy)
        return MB_STATUS_MEMORY;
    *found = true;
    const mb_status status = find_components(file, copy, found);
    H5Eclear2(H5E_DEFAULT);
    char *spare = copy;
    if (status == MB_STATUS_OK && *found) {
        spare = file->found;
        file->found = copy;
    }
    free(spare);
    return status;
}

static mb_status missing(mb_h5 *file, const char *path)
{
    return mb_fail(MB_STATUS_IO, "path", "there is no '%s' in '%s'; file:walk() lists the objects",
                   path, file->path);
}

mb_status mb_h5_need(mb_h5 *file, const char *path)
{
    bool found = false;
    MB_TRY(mb_h5_find(file, path, &found));
    return found ? MB_STATUS_OK : missing(file, path);
}

mb_status mb_h5_need_new(mb_h5 *file, const char *path)
{
    bool found = false;
    MB_TRY(mb_h5_latch(file, mb_h5_find(file, path, &found)));
    return found ? mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' already exists in '%s'", path,
                           file->path)
                 : MB_STATUS_OK;
}

mb_status mb_h5_describe(mb_h5 *file, const char *path, mb_h5_info *info)
{
    MB_H5_GUARD;
    MB_TRY(mb_h5_ready(file, false));
    MB_TRY(mb_h5_need(file, path));
    H5_OWNED hid_t id = H5Oopen(file->id, path, file->links);
    if (id < 0)
        return mb_h5_failure(file, path, "open");
    return mb_h5_describe_object(file, id, path, info);
}

/* ---- making groups and links ---- */

mb_status mb_h5_group(mb_h5 *file, const char *path)
{
    MB_H5_GUARD;
    mb_h5_info info;
    bool found = false;
    MB_TRY(mb_h5_ready(file, true));
    MB_TRY(mb_h5_latch(file, mb_h5_find(file, path, &found)));
    if (found) {
        MB_TRY(mb_h5_describe(file, path, &info));
        if (info.kind != MB_H5_GROUP)
            return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' in '%s' exists and is not a group",
                           path, file->path);
        return MB_STATUS_OK;
    }
    H5_OWNED hid_t parents = mb_h5_parents();
    H5_OWNED hid_t group = H5Gcreate2(file->id, path, parents, H5P_DEFAULT, H5P_DEFAULT);
    return group >= 0 ? MB_STATUS_OK : mb_h5_latch(file, mb_h5_failure(file, path, "create group"));
}

mb_status mb_h5_link(mb_h5 *file, const char *target, const char *path, bool soft)
{
    MB_H5_GUARD;
    MB_TRY(mb_h5_ready(file, true));
    if (!soft)
        MB_TRY(mb_h5_need(file, target));
    MB_TRY(mb_h5_need_new(file, path));
    H5_OWNED hid_t parents = mb_h5_parents();
    const herr_t result =
        soft ? H5Lcreate_soft(target, file->id, path, parents, H5P_DEFAULT)
             : H5Lcreate_hard(file->id, target, file->id, path, parents, H5P_DEFAULT);
    return result >= 0 ? MB_STATUS_OK : mb_h5_latch(file, mb_h5_failure(file, path, "create link"));
}
