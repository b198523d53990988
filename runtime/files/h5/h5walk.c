/*
** The structure of an HDF5 file. The list of a walk belongs to the file. Invariant: a group is
** entered once (by its address), so that link cycles and repeated links in a hostile file end; and
** a walk lists at most MAX_ENTRIES objects.
*/
#define _GNU_SOURCE
#include "files/h5/h5whole.h"
#include "core/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES 1000000
#define MAX_DEPTH 64

typedef struct walker {
    mb_h5 *file;
    mb_status status;
    int64_t room;
    h5_visited visited;
    const char *prefix; /* of the group being listed: "" for the root */
    int depth;
} walker;

void mb_h5_free_entries(mb_h5 *file)
{
    for (int64_t i = 0; i < file->entry_count; i++) {
        free(file->entries[i].path);
        free(file->entries[i].link);
    }
    free(file->entries);
    file->entries = NULL;
    file->entry_count = 0;
}

static mb_h5_entry *new_entry(walker *w, const char *name)
{
    mb_h5 *file = w->file;
    if (file->entry_count >= MAX_ENTRIES) {
        w->status = mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                            "'%s' has more than %d objects: give walk the path of a group",
                            file->path, MAX_ENTRIES);
        return NULL;
    }
    char *path = NULL;
    mb_h5_entry *entries = mb_grow(file->entries, file->entry_count, &w->room, sizeof *entries);
    if (entries)
        file->entries = entries;
    if (!entries || asprintf(&path, "%s/%s", w->prefix, name) < 0) {
        w->status = mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to list '%s'", file->path);
        return NULL;
    }
    entries[file->entry_count] = (mb_h5_entry){.path = path};
    return &entries[file->entry_count++];
}

/* The target of a soft or external link as text, or NULL for a hard link. */
static char *link_target(hid_t group, const char *name, const H5L_info_t *link)
{
    if (link->type == H5L_TYPE_HARD || link->u.val_size == 0)
        return NULL;
    char *value = calloc(1, link->u.val_size + 1);
    char *text = NULL;
    const char *file = NULL, *object = NULL;
    if (!value || H5Lget_val(group, name, value, link->u.val_size, H5P_DEFAULT) < 0) {
        free(value);
        return NULL;
    }
    if (link->type == H5L_TYPE_SOFT)
        return value;
    if (link->type == H5L_TYPE_EXTERNAL &&
        H5Lunpack_elink_val(value, link->u.val_size, NULL, &file, &object) >= 0 &&
        asprintf(&text, "%s:%s", file, object) < 0)
        text = NULL;
    free(value);
    return text;
}

static herr_t list_link(hid_t group, const char *name, const H5L_info_t *link, void *user);

static void list_group(walker *w, hid_t group, const char *prefix)
{
    const char *outer = w->prefix;
    if (w->depth >= MAX_DEPTH || !mb_h5_enter(&w->visited, group))
        return;
    w->prefix = prefix;
    w->depth++;
    /* Of a group with a damaged link, H5Literate (1.10.8) frees links that it never read. Looking
    ** up a name, here one that nobody uses, reads them all as well, and fails as it should. */
    if ((H5Lexists(group, "\177", H5P_DEFAULT) < 0 ||
         H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, list_link, w) < 0) &&
        w->status == MB_STATUS_OK)
        w->status = mb_h5_failure(w->file, prefix[0] != '\0' ? prefix : "/", "list");
    w->depth--;
    w->prefix = outer;
}

static herr_t list_link(hid_t group, const char *name, const H5L_info_t *link, void *user)
{
    walker *w = user;
    mb_h5_entry *entry = new_entry(w, name);
    if (!entry)
        return -1;
    char *path = strdup(entry->path); /* entries move when the list grows */
    if (!path) {
        w->status =
            mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to list '%s'", w->file->path);
        return -1;
    }
    entry->link = link_target(group, name, link);
    H5_OWNED hid_t id = H5Oopen(group, name, w->file->links);
    if (id < 0) {
        H5Eclear2(H5E_DEFAULT);
        w->file->refused[0] = '\0';
        entry->info.kind = MB_H5_DANGLING;
        if (link->type == H5L_TYPE_HARD)
            w->status =
                mb_fail(MB_STATUS_IO, NULL, "'%s' in '%s' cannot be opened: the file is damaged",
                        path, w->file->path);
    } else {
        w->status = mb_h5_describe_object(w->file, id, path, &entry->info);
        if (w->status == MB_STATUS_OK && entry->info.kind == MB_H5_GROUP &&
            link->type != H5L_TYPE_EXTERNAL)
            list_group(w, id, path);
    }
    free(path);
    return w->status == MB_STATUS_OK ? 0 : -1;
}

mb_status mb_h5_walk(mb_h5 *file, const char *path, const mb_h5_entry **list, int64_t *count)
{
    MB_H5_GUARD;
    walker w = {.file = file, .prefix = ""};
    char *prefix = NULL;
    *list = NULL;
    *count = 0;
    MB_TRY(mb_h5_ready(file, false));
    mb_h5_free_entries(file);
    MB_TRY(mb_h5_need(file, path));
    H5_OWNED hid_t group = H5Gopen2(file->id, path, file->links);
    if (group < 0)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' in '%s' is not a group", path, file->path);
    prefix = mb_h5_copy_text(path);
    if (!prefix) {
        w.status = MB_STATUS_MEMORY;
    } else {
        size_t length = strlen(prefix);
        while (length > 0 && prefix[length - 1] == '/')
            prefix[--length] = '\0';
        list_group(&w, group, prefix);
    }
    free(prefix);
    free(w.visited.places);
    if (w.status != MB_STATUS_OK) {
        mb_h5_free_entries(file);
        return w.status;
    }
    *list = file->entries;
    *count = file->entry_count;
    return MB_STATUS_OK;
}
