/*
** What an HDF5 file refers to in other files: external links and external storage. (Virtual
** datasets: h5sources.c.)
**
** libhdf5 opens such files with the rights of the reader, wherever they are; a stranger's file
** could so have any file of the reader end up in a result, or have a pipe wait for ever. Only
** ordinary files are opened, and only those in the folder of the file that refers to them, or
** below, unless the reader allows more; external storage, which makes bytes of any file, only if
** the reader allows it. "In the folder" is said of real paths: symbolic links do not lead out.
**
** libhdf5 looks for a relative name in several places, and goes on to the next when it cannot
** open a file. mb_h5_resolve looks in the same order, and takes the first that is there: one that
** cannot be opened is an error then, so that libhdf5 does not get to the next.
*/
#define _GNU_SOURCE
#include "files/h5/h5internal.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_STORAGE_FILES 100000
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
    while (list != NULL && *list != '\0' && result == H5_ABSENT) {
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
    if (result == H5_ABSENT) /* which it stays */
        snprintf(problem, H5_PROBLEM_BYTES, "it refers to another file, and '%s' is missing",
                 s.name);
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
                 "it refers to '%.200s' in '%.200s', where there is no such object", object, found);
    return false;
}

/* libhdf5 is about to follow an external link. */
static herr_t follow_external(const char *parent, const char *group, const char *name,
                              const char *object, unsigned *flags, hid_t access, void *user)
{
    mb_h5 *file = user;
    char found[PATH_MAX], said[200];
    (void)group;
    (void)flags;
    H5Pset_file_locking(access, file->writable, true); /* readers are never locked out */
    if (file->link_depth >= MOST_LINKS) {
        snprintf(file->refused, sizeof file->refused,
                 "more than %d links into other files follow each other: they go in a circle",
                 MOST_LINKS);
        return -1;
    }
    if (mb_h5_resolve(file, parent, name, "HDF5_EXT_PREFIX", found, file->refused) != H5_FOUND)
        return -1;
    const hid_t id = H5Fopen(found, H5F_ACC_RDONLY, access);
    if (id < 0) {
        snprintf(file->refused, sizeof file->refused,
                 "it refers to '%.200s', which HDF5 cannot open: it says \"%s\"", found,
                 mb_h5_said(said, sizeof said));
        return -1;
    }
    file->link_depth++;
    const bool leads = leads_to(file, id, found, object);
    file->link_depth--;
    H5Fclose(id);
    return leads ? 0 : -1;
}

hid_t mb_h5_link_access(mb_h5 *file, hid_t kind)
{
    const hid_t list = H5Pcreate(kind);
    if (list >= 0 && file->folder != NULL)
        H5Pset_elink_cb(list, follow_external, file);
    return list;
}

mb_status mb_h5_set_folder(mb_h5 *file, const char *name)
{
    char *real = realpath(name, NULL);
    if (real == NULL)
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': %s", name, strerror(errno));
    file->folder = mb_h5_copy_text(dirname(real));
    free(real);
    return file->folder != NULL ? MB_STATUS_OK : MB_STATUS_MEMORY;
}

mb_status mb_h5_begin_outside(mb_h5 *file)
{
    MB_TRY(mb_h5_set_folder(file, file->path));
    file->links = mb_h5_link_access(file, H5P_LINK_ACCESS);
    return MB_STATUS_OK;
}

void mb_h5_end_outside(mb_h5 *file)
{
    if (file->links > 0)
        H5Pclose(file->links);
    file->links = 0;
    free(file->folder);
    file->folder = NULL;
}

/* ---- external storage ---- */

/* One file of it: there, allowed, and long enough. */
static bool check_storage_file(mb_h5 *file, hid_t properties, unsigned index,
                               const mb_h5_info *info, h5_gaps *gaps)
{
    char name[PATH_MAX] = "", found[PATH_MAX];
    off_t offset = 0;
    hsize_t bytes = 0;
    struct stat status;
    if (H5Pget_external(properties, index, sizeof name - 1, name, &offset, &bytes) < 0) {
        snprintf(gaps->problem, sizeof gaps->problem, "the files with its bytes cannot be listed");
        return false;
    }
    /* Any file can be taken for raw bytes, so being in the folder, which may be the reader's
    ** home, is no excuse. */
    if (!file->allow_external) {
        snprintf(
            gaps->problem, H5_PROBLEM_BYTES,
            "its bytes are in another file, '%.300s' (external storage): if you trust the file, "
            "give the option allow_external",
            name);
        gaps->forbidden = true;
        return false;
    }
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    const search s = {file, name, found, gaps->problem};
    h5_verdict result =
        name[0] != '/' && prefix != NULL && prefix[0] != '\0'
            ? examine_prefixes(&s, prefix, file->folder != NULL ? file->folder : ".", name)
            : examine(&s, name);
    if (result == H5_ABSENT) /* which it stays */
        snprintf(gaps->problem, H5_PROBLEM_BYTES,
                 "its bytes are in another file, and '%s' is missing", name);
    gaps->forbidden = gaps->forbidden || result == H5_REFUSED;
    if (result != H5_FOUND)
        return false;
    if (bytes != H5F_UNLIMITED && stat(found, &status) == 0 &&
        (offset < 0 || bytes > INT64_MAX || (int64_t)bytes > status.st_size - offset)) {
        refuse(&s, "which is shorter than it should be");
        return false;
    }
    return mb_h5_add_source(gaps, found, 0, info->rank > 0 ? info->dims[0] - 1 : 0) == MB_STATUS_OK;
}

bool mb_h5_check_storage(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps)
{
    const hid_t properties = H5Dget_create_plist(id);
    const int count = H5Pget_external_count(properties);
    bool good = count <= MOST_STORAGE_FILES;
    if (!good)
        snprintf(gaps->problem, sizeof gaps->problem, "its bytes are in %d other files", count);
    for (int i = 0; i < count && good; i++)
        good = check_storage_file(file, properties, (unsigned)i, info, gaps);
    H5Pclose(properties);
    return good;
}
