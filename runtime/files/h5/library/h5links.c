/*
** Links of HDF5 files: which files external links, virtual datasets and external storage may lead
** to, and how libhdf5 is told.
**
** libhdf5 opens such files with the rights of the reader, wherever they are. A stranger's file
** could have any file of the reader end up in a result, or have a pipe wait for ever. Only ordinary
** files are opened, and only those in the folder of the file that refers to them, or below, unless
** the reader allows more. "In the folder" is said of real paths: symbolic links do not lead out.
**
** libhdf5 looks for a relative name in several places, and goes on to the next when it cannot
** open a file. mb_h5_resolve looks in the same order, and takes the first that is there: one that
** cannot be opened is an error then, so that libhdf5 does not get to the next.
*/
#define _GNU_SOURCE
#include "files/h5/library/h5library.h"
#include "files/inputs/inputs.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_LINKS 8 /* one behind the other */

/* ---- finding the file ---- */

typedef struct search {
    mb_h5 *file;
    const char *name; /* as stored */
    char *found;      /* PATH_MAX bytes */
    char *problem;
} search;

static bool inside(const char *folder, const char *real)
{
    const size_t length = strlen(folder);
    return strcmp(folder, "/") == 0 || (strncmp(real, folder, length) == 0 && real[length] == '/');
}

static h5_verdict refuse(const search *s, const char *what)
{
    snprintf(s->problem, H5_PROBLEM_BYTES, "it refers to '%s', %s", s->name, what);
    return H5_REFUSED;
}

/* Is this the file? Nothing is opened here. */
static h5_verdict examine(const search *s, const char *candidate)
{
    char real[PATH_MAX];
    struct stat status;
    if (stat(candidate, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR ? H5_ABSENT : refuse(s, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse(s, "which is not an ordinary file");
    if (realpath(candidate, real) == NULL)
        return refuse(s, strerror(errno));
    if (!s->file->allow_external && !inside(s->file->folder, real)) {
        snprintf(s->problem, H5_PROBLEM_BYTES,
                 "it refers to '%.200s', which is outside the file's folder '%.200s': if you trust "
                 "the file, give the option allow_external",
                 real, s->file->folder);
        return H5_REFUSED;
    }
    snprintf(s->found, PATH_MAX, "%s", candidate);
    return H5_FOUND;
}

static h5_verdict examine_in(const search *s, const char *folder, size_t length, const char *name)
{
    char candidate[PATH_MAX];
    const int wrote = snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, folder, name);
    return wrote < (int)sizeof candidate ? examine(s, candidate) : H5_ABSENT;
}

/* The folders of an environment variable, separated by colons; ${ORIGIN} is the folder of the
** parent. */
static h5_verdict examine_prefixes(const search *s, const char *list, const char *origin,
                                   const char *name)
{
    static const char ORIGIN[] = "${ORIGIN}";
    h5_verdict result = H5_ABSENT;
    while (list && *list != '\0' && result == H5_ABSENT) {
        char folder[PATH_MAX];
        const size_t length = strcspn(list, ":");
        if (strncmp(list, ORIGIN, sizeof ORIGIN - 1) == 0 && length >= sizeof ORIGIN - 1)
            snprintf(folder, sizeof folder, "%s%.*s", origin, (int)(length - sizeof ORIGIN + 1),
                     list + sizeof ORIGIN - 1);
        else
            snprintf(folder, sizeof folder, "%.*s", (int)length, list);
        if (length > 0)
            result = examine_in(s, folder, strlen(folder), name);
        list += length + (list[length] == ':');
    }
    return result;
}

h5_verdict mb_h5_resolve(mb_h5 *file, const char *parent, const char *name, const char *prefixes,
                         char *found, char *problem)
{
    const search s = {file, name, found, problem};
    char beside[PATH_MAX], real[PATH_MAX];
    h5_verdict result = H5_ABSENT;
    if (name[0] == '/') {
        result = examine(&s, name);
        name = strrchr(name, '/') + 1;
    }
    snprintf(beside, sizeof beside, "%s", parent);
    const char *folder = dirname(beside);
    if (result == H5_ABSENT)
        result = examine_prefixes(&s, getenv(prefixes), folder, name);
    if (result == H5_ABSENT)
        result = examine_in(&s, folder, strlen(folder), name);
    if (result == H5_ABSENT)
        result = examine(&s, name);
    if (result == H5_ABSENT && realpath(parent, real) != NULL) {
        folder = dirname(real);
        result = examine_in(&s, folder, strlen(folder), name);
    }
    if (result == H5_FOUND && !file->replaceable)
        mb_input_note_name(found);
    if (result == H5_ABSENT) /* which it stays */
        snprintf(problem, H5_PROBLEM_BYTES, "it refers to the file '%s', which is missing", s.name);
    return result;
}

h5_verdict mb_h5_resolve_storage(mb_h5 *file, const char *name, char *found, char *problem)
{
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    const search s = {file, name, found, problem};
    const h5_verdict result =
        name[0] != '/' && prefix && prefix[0] != '\0'
            ? examine_prefixes(&s, prefix, file->folder ? file->folder : ".", name)
            : examine(&s, name);
    if (result == H5_FOUND && !file->replaceable)
        mb_input_note_name(found);
    if (result == H5_ABSENT) /* which it stays */
        snprintf(problem, H5_PROBLEM_BYTES, "its bytes are in the file '%s', which is missing",
                 name);
    return result;
}

/* ---- external links ---- */

/* Is the object that a link leads to in the file that it leads to? `id` is that file. */
static bool leads_to(mb_h5 *file, hid_t id, const char *found, const char *object)
{
    if (object[strspn(object, "/")] == '\0' || H5Oexists_by_name(id, object, file->links) > 0)
        return true;
    if (file->refused[0] == '\0')
        snprintf(file->refused, sizeof file->refused,
                 "it refers to '%.200s' in '%.200s', which has no such object", object, found);
    return false;
}

/* libhdf5 is about to follow an external link. */
static herr_t follow_external(const char *parent, const char *group, const char *name,
                              const char *object, unsigned *flags, hid_t access, void *user)
{
    mb_h5 *file = user;
    char found[PATH_MAX], said[200];
    (void)group, (void)flags;
    H5Pset_file_locking(access, file->writable, true); /* readers are never locked out */
    H5Pset_fclose_degree(access, H5F_CLOSE_WEAK);      /* as libhdf5 opens the file after this */
    if (file->link_depth >= MOST_LINKS) {
        snprintf(file->refused, sizeof file->refused,
                 "more than %d links to other files follow each other: they probably form a circle",
                 MOST_LINKS);
        return -1;
    }
    if (mb_h5_resolve(file, parent, name, "HDF5_EXT_PREFIX", found, file->refused) != H5_FOUND)
        return -1;
    H5_OWNED hid_t id = H5Fopen(found, H5F_ACC_RDONLY, access);
    if (id < 0) {
        snprintf(file->refused, sizeof file->refused,
                 "it refers to '%.200s', which HDF5 cannot open: it says \"%s\"", found,
                 mb_h5_said(said, sizeof said));
        return -1;
    }
    file->link_depth++;
    const bool leads = leads_to(file, id, found, object);
    file->link_depth--;
    return leads ? 0 : -1;
}

hid_t mb_h5_link_access(mb_h5 *file, hid_t kind)
{
    const hid_t list = H5Pcreate(kind);
    if (list >= 0 && file->folder)
        H5Pset_elink_cb(list, follow_external, file);
    return list;
}

mb_status mb_h5_set_folder(mb_h5 *file, const char *name)
{
    char *real = realpath(name, NULL);
    if (!real)
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': %s", name, strerror(errno));
    file->folder = mb_h5_copy_text(dirname(real));
    free(real);
    return file->folder ? MB_STATUS_OK : MB_STATUS_MEMORY;
}

mb_status mb_h5_begin_links(mb_h5 *file)
{
    MB_TRY(mb_h5_set_folder(file, file->path));
    file->links = mb_h5_link_access(file, H5P_LINK_ACCESS);
    return MB_STATUS_OK;
}

void mb_h5_end_links(mb_h5 *file)
{
    if (file->links > 0)
        H5Pclose(file->links);
    file->links = 0;
    free(file->folder);
    file->folder = NULL;
}

hid_t mb_h5_open_source(const char *name, char *said, size_t bytes)
{
    H5_OWNED hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(access, false, true);
    const hid_t id = H5Fopen(name, H5F_ACC_RDONLY, access);
    if (said)
        mb_h5_said(said, bytes);
    return id;
}

hid_t mb_h5_parents(void)
{
    const hid_t list = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(list, 1);
    H5Pset_char_encoding(list, H5T_CSET_UTF8);
    return list;
}
