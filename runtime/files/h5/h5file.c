/*
** HDF5 files: opening, closing, and turning HDF5's error stack into one helpful line. Owns struct
** mb_h5. A closed file keeps its mb_h5 until mb_h5_destroy, so that handles of datasets stay safe.
** Created files and their verification are in h5result.c; how they get their name: files/target.h.
*/
#define _GNU_SOURCE
#include "files/h5/h5internal.h"
#include "files/h5/h5probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the lock ---- */

static pthread_mutex_t library_lock;
static __thread int inside;        /* how often this thread holds it */
static char latest_path[PATH_MAX]; /* of the file that it was used for last */

static void make_lock(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&library_lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

int mb_h5_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_lock);
    const int result = pthread_mutex_lock(&library_lock);
    inside++;
    return result;
}

void mb_h5_unlock(int *guard)
{
    (void)guard;
    inside--;
    pthread_mutex_unlock(&library_lock);
}

static void uses(const char *path)
{
    snprintf(latest_path, sizeof latest_path, "%s", path);
}

const char *mb_h5_inside(void)
{
    return inside > 0 ? latest_path : NULL;
}

/* ---- errors ---- */

#define DAMAGED "the file is damaged: copy it again, or take another copy"

/* What HDF5 says, and what helps. The first match wins. */
static const struct {
    const char *said, *remedy;
} REMEDIES[] = {
    {"unable to lock file",
     "another program has it open for writing, or its file system cannot lock: close the other "
     "program, or set HDF5_USE_FILE_LOCKING=FALSE in the environment"},
    {"truncated file",
     "the file is cut off: copy it again, or wait until its writer has closed it"},
    {"signature not found", "this is not an HDF5 file, or its beginning is damaged"},
    {"No space left", "the disk is full: free some space or write elsewhere"},
    {"Disk quota", "the quota of this folder is used up: free some space or write elsewhere"},
    {"Permission denied", "ask the owner for access"},
    {"already open", "close the other handle of this file first"},
    {"consistency flags",
     "its writer is still running or has died: wait, or repair a copy with h5clear -s"},
    {"object doesn't exist", "list what there is with file:walk()"},
    {"component not found", "list what there is with file:walk()"},
    {"name already exists", "choose another path; HDF5 does not replace objects"},
    {"not registered",
     "a filter plug-in is missing: install it, or name its folder in HDF5_PLUGIN_PATH"},
    {"checksum", DAMAGED},
    {"bad ", DAMAGED},
    {"corrupt", DAMAGED},
    {"not aligned", DAMAGED},
    {"addr overflow", DAMAGED},
    {"allocation failed", DAMAGED},
    {"past end of", DAMAGED},
    {"invalid name length", DAMAGED},
};

static herr_t take_innermost(unsigned n, const H5E_error2_t *record, void *user)
{
    char *buffer = user;
    (void)n;
    if (buffer[0] == '\0' && record->desc != NULL)
        snprintf(buffer, 300, "%s", record->desc);
    return 0;
}

char *mb_h5_said(char *buffer, size_t bytes)
{
    char text[300] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, text);
    for (char *c = text; *c != '\0'; c++) /* one line: some of its texts hold a date with its end */
        if (*c == '\n')
            *c = ' ';
    snprintf(buffer, bytes, "%s", text);
    return buffer;
}

void mb_h5_quiet(void)
{
    static bool started = false;
    if (!started) {
        /* After a failed write, HDF5's exit handler would try to flush again, and may crash. Files
        ** are closed by us. */
        H5dont_atexit();
        /* A file names its filters, and libhdf5 would load every library in its plug-in folder to
        ** look for one. Users who want that name the folder. */
        const char *plugins = getenv("HDF5_PLUGIN_PATH");
        if (plugins == NULL || plugins[0] == '\0')
            H5PLset_loading_state(0);
        started = true;
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Eclear2(H5E_DEFAULT);
}

mb_status mb_h5_failure(mb_h5 *file, const char *path, const char *doing)
{
    char said[300];
    const char *remedy = NULL;
    if (file->refused[0] != '\0')
        return mb_fail(MB_STATUS_IO, NULL, "cannot %s '%s' of '%s': %s", doing,
                       path != NULL ? path : "/", file->path, file->refused);
    mb_h5_said(said, sizeof said);
    for (size_t i = 0; i < sizeof REMEDIES / sizeof REMEDIES[0] && remedy == NULL; i++)
        if (strstr(said, REMEDIES[i].said) != NULL)
            remedy = REMEDIES[i].remedy;
    /* The system's own words, where it has any: the rest are counts and addresses. */
    char *words = strstr(said, "error message = '");
    if (words != NULL) {
        words += strlen("error message = '");
        words[strcspn(words, "'")] = '\0';
        memmove(said, words, strlen(words) + 1);
    }
    const bool named = path != NULL && path[0] != '\0';
    return mb_fail(MB_STATUS_IO, NULL, "cannot %s%s%s%s of '%s': HDF5 says \"%s\"%s%s", doing,
                   named ? " '" : "", named ? path : "", named ? "'" : "", file->path,
                   said[0] != '\0' ? said : "nothing", remedy != NULL ? "; " : "",
                   remedy != NULL ? remedy : "");
}

mb_status mb_h5_latch(mb_h5 *file, mb_status status)
{
    /* Misuse leaves the file as it was; everything else may have left half of something in it. */
    const bool harmless = status == MB_STATUS_OK || status == MB_STATUS_ARGUMENT ||
                          status == MB_STATUS_SHAPE || status == MB_STATUS_DTYPE ||
                          status == MB_STATUS_UNSUPPORTED;
    if (!harmless && file->created && file->latched.code == MB_STATUS_OK)
        file->latched = *mb_error_last();
    return status;
}

mb_status mb_h5_ready(mb_h5 *file, bool writing)
{
    mb_h5_quiet();
    if (file == NULL)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "the HDF5 file of this dataset has been closed");
    uses(file->path);
    file->refused[0] = '\0';
    file->link_depth = 0;
    if (file->latched.code != MB_STATUS_OK) {
        mb_error_put(&file->latched);
        return file->latched.code;
    }
    if (file->id < 0)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "'%s' has been closed", file->path);
    if (writing && !file->writable)
        return mb_fail(MB_STATUS_ARGUMENT, "mode",
                       "'%s' is open for reading only: open it with mode = \"r+\"", file->path);
    if (file->disk.error != 0)
        return mb_h5_latch(file, mb_h5_refused(file, NULL, "write the contents"));
    return MB_STATUS_OK;
}

/* ---- small helpers ---- */

char *mb_h5_copy_text(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL)
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a name");
    return copy;
}

char *mb_h5_now(char *buffer, size_t bytes)
{
    const time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(buffer, bytes, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
    return buffer;
}

const char *mb_h5_version(void)
{
    MB_H5_GUARD;
    static char text[32];
    unsigned major = 0, minor = 0, release = 0;
    mb_h5_quiet();
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    return text;
}

bool mb_h5_is_open(const mb_h5 *file)
{
    return file->id >= 0;
}

bool mb_h5_is_writable(const mb_h5 *file)
{
    return file->writable;
}

const char *mb_h5_path(const mb_h5 *file)
{
    return file->path;
}

const char *mb_h5_part_path(const mb_h5 *file)
{
    return file->target != NULL ? mb_target_now(file->target) : NULL;
}

/* ---- opening ---- */

static const struct {
    const char *bytes;
    size_t count;
    const char *what;
} SIGNATURES[] = {
    {"II*\0", 4, "a TIFF image"},
    {"MM\0*", 4, "a TIFF image"},
    {"II+\0", 4, "a BigTIFF image"},
    {"\x89PNG", 4, "a PNG image"},
    {"CDF", 3, "a classic netCDF"},
    {"\x0e\x03\x13\x01", 4, "an HDF4"},
    {"\x1f\x8b", 2, "a gzipped"},
    {"PK", 2, "a zip"},
    {"\x93NUMPY", 6, "a NumPy"},
    {"<", 1, "a text"},
    {"version https://git-lfs", 23, "a git-lfs pointer"},
};

/* Says what is wrong before HDF5 sees the file: its own messages for these cases help nobody. */
static mb_status check_signature(const char *path)
{
    static const unsigned char HDF5_SIGNATURE[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char head[64] = {0};
    struct stat status;
    mb_status result = MB_STATUS_OK;

    if (stat(path, &status) != 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': %s%s", path, strerror(errno),
                       errno == ENOENT ? "; check the name and the current folder" : "");
    if (S_ISDIR(status.st_mode))
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': it is a folder, not an HDF5 file",
                       path);
    if (!S_ISREG(status.st_mode))
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': it is not an ordinary file", path);
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe by now would wait */
    if (fd < 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': %s", path, strerror(errno));
    const ssize_t count = pread(fd, head, sizeof head, 0);
    if (count <= 0) {
        result =
            count == 0
                ? mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': the file is empty (0 bytes)", path)
                : mb_fail(MB_STATUS_IO, NULL, "cannot read '%s': %s", path, strerror(errno));
        goto done;
    }
    if (memcmp(head, HDF5_SIGNATURE, 8) == 0)
        goto done;
    /* A user block may come first: the signature is then at 512, 1024, 2048, ... */
    for (off_t at = 512; at < status.st_size; at *= 2) {
        unsigned char block[8];
        if (pread(fd, block, 8, at) == 8 && memcmp(block, HDF5_SIGNATURE, 8) == 0)
            goto done;
    }
    for (size_t i = 0; i < sizeof SIGNATURES / sizeof SIGNATURES[0]; i++)
        if (memcmp(head, SIGNATURES[i].bytes, SIGNATURES[i].count) == 0) {
            result = mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': it is %s file, not HDF5", path,
                             SIGNATURES[i].what);
            goto done;
        }
    result = mb_fail(MB_STATUS_IO, NULL,
                     "cannot open '%s': it is not an HDF5 file (no signature found in %lld bytes)",
                     path, (long long)status.st_size);
done:
    close(fd);
    return result;
}

/* Has libhdf5 open the file, and takes its size then: what is shorter later has been cut off. */
static mb_status open_contents(mb_h5 *file)
{
    struct stat about;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    /* Readers are never locked out; writers lock, where the file system can. */
    H5Pset_file_locking(access, file->writable, true);
    if (file->writable)
        mb_h5_use_driver(access, &file->disk);
    file->id = H5Fopen(file->path, file->writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
    const mb_status status =
        file->id < 0 ? mb_h5_failure(file, NULL, "open the contents") : MB_STATUS_OK;
    H5Pclose(access);
    if (status == MB_STATUS_OK && fstat(mb_h5_descriptor(file), &about) == 0)
        file->bytes = about.st_size;
    return status;
}

mb_status mb_h5_open_unprobed(const char *path, const mb_h5_access *how, mb_h5 **out)
{
    MB_H5_GUARD;
    *out = NULL;
    mb_h5_quiet();
    uses(path);
    MB_TRY(check_signature(path));
    mb_h5 *file = calloc(1, sizeof *file);
    if (file == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to open '%s'", path);
    file->id = -1;
    file->fd = -1;
    if (how != NULL) {
        file->writable = how->writable;
        file->allow_external = how->allow_external;
        file->allow_missing = how->allow_missing;
    }
    file->path = mb_h5_copy_text(path);
    mb_status status = file->path != NULL ? mb_h5_begin_outside(file) : MB_STATUS_MEMORY;
    if (status == MB_STATUS_OK)
        status = open_contents(file);
    if (status != MB_STATUS_OK) {
        mb_h5_destroy(file);
        return status;
    }
    *out = file;
    return MB_STATUS_OK;
}

mb_status mb_h5_open(const char *path, const mb_h5_access *how, mb_h5 **out)
{
    *out = NULL;
    MB_TRY(check_signature(path));
    MB_TRY(mb_h5_probe(path, how));
    return mb_h5_open_unprobed(path, how, out);
}

/* ---- closing ---- */

void mb_h5_close_datasets(mb_h5 *file)
{
    while (file->datasets != NULL) {
        mb_h5_dataset *dataset = file->datasets;
        file->datasets = dataset->next;
        if (dataset->id >= 0)
            H5Dclose(dataset->id);
        dataset->id = -1;
        mb_h5_leave_file(dataset);
        dataset->previous = dataset->next = NULL;
        mb_h5_dataset_let_go(dataset);
    }
}

mb_status mb_h5_close(mb_h5 *file)
{
    MB_H5_GUARD;
    mb_status status = MB_STATUS_OK;
    if (file->id >= 0) {
        mb_h5_quiet();
        if (file->created) {
            file->disk.abandoned = true;
            if (file->target != NULL)
                mb_target_discard(file->target); /* first: libhdf5 may crash */
        }
        mb_h5_close_datasets(file);
        if (!file->created && file->writable && H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0)
            status = mb_h5_failure(file, NULL, "write the last changes");
        if (H5Fclose(file->id) < 0 && !file->created && status == MB_STATUS_OK)
            status = mb_h5_failure(file, NULL, "finish the contents");
        if (file->disk.error != 0 && !file->created && status == MB_STATUS_OK)
            status = mb_h5_refused(file, NULL, "write the last changes");
        file->id = -1;
    }
    mb_h5_end_outside(file);
    if (file->target != NULL)
        mb_target_discard(file->target); /* a file with its name stays */
    else if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    return status;
}

void mb_h5_destroy(mb_h5 *file)
{
    MB_H5_GUARD;
    MB_KEEP_ERROR;
    if (file == NULL)
        return;
    (void)mb_h5_close(file);
    mb_h5_free_entries(file);
    mb_h5_free_value(file);
    mb_h5_forget_made(file);
    mb_h5_forget_gaps(file);
    mb_target_destroy(file->target);
    free(file->path);
    free(file);
}
