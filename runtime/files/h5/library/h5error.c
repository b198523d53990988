/*
** HDF5's error stack as one helpful line, and failures that are latched.
*/
#define _GNU_SOURCE
#include "files/h5/library/h5library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAMAGED "the file is damaged: copy it again, or use another copy"

/* What HDF5 says, and what helps. The first match wins. */
static const struct {
    const char *said, *remedy;
} REMEDIES[] = {
    {"unable to lock file",
     "another program has it open for writing, or its file system cannot lock: close the other "
     "program, or set HDF5_USE_FILE_LOCKING=FALSE in the environment"},
    {"truncated file",
     "the file is truncated: copy it again, or wait until its writer has closed it"},
    {"signature not found", "this is not an HDF5 file, or its beginning is damaged"},
    {"No space left", "the disk is full: free some space or write elsewhere"},
    {"Disk quota", "the quota of this folder is used up: free some space or write elsewhere"},
    {"Permission denied", "ask the owner for access"},
    {"consistency flags",
     "its writer is still running or has died: wait, or repair a copy with h5clear -s"},
    {"already open", "close the other handle of this file first"},
    {"object doesn't exist", "file:walk() lists the objects"},
    {"component not found", "file:walk() lists the objects"},
    {"name already exists", "choose another path; HDF5 does not replace objects"},
    {"not registered",
     "a filter plug-in is missing: install it, or name its folder in HDF5_PLUGIN_PATH"},
    {"filter returned failure", DAMAGED},
    {"checksum", DAMAGED},
    {"bad ", DAMAGED},
    {"corrupt", DAMAGED},
    {"not aligned", DAMAGED},
    {"addr overflow", DAMAGED},
    {"allocation failed", DAMAGED},
    {"past end of", DAMAGED},
    {"invalid name length", DAMAGED},
};

static bool lacked_memory;

bool mb_h5_lacked_memory(void)
{
    return lacked_memory;
}

static herr_t take_innermost(unsigned n, const H5E_error2_t *record, void *user)
{
    char *buffer = user;
    if (buffer[0] == '\0' && record->desc)
        snprintf(buffer, 300, "%s", record->desc);
    if (n == 0 && (record->maj_num == H5E_RESOURCE || record->min_num == H5E_NOSPACE ||
                   record->min_num == H5E_CANTALLOC))
        lacked_memory = true;
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
        if (!plugins || plugins[0] == '\0')
            H5PLset_loading_state(0);
        /* libhdf5 opens the sources of virtual datasets by the default list, and reads fill values
        ** where one is open with another kind of locking: as readers open files (h5file.c). */
        H5Pset_file_locking(H5P_FILE_ACCESS_DEFAULT, false, true);
        mb_h5_register_filters();
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
        return mb_fail(MB_STATUS_IO, NULL, "cannot %s '%s' of '%s': %s", doing, path ? path : "/",
                       file->path, file->refused);
    mb_h5_said(said, sizeof said);
    for (size_t i = 0; i < sizeof REMEDIES / sizeof REMEDIES[0] && !remedy; i++)
        if (strstr(said, REMEDIES[i].said) != NULL)
            remedy = REMEDIES[i].remedy;
    /* The system's own words, where it has any: the rest are counts and addresses. */
    char *words = strstr(said, "error message = '");
    if (words) {
        words += strlen("error message = '");
        words[strcspn(words, "'")] = '\0';
        memmove(said, words, strlen(words) + 1);
    }
    const bool named = path && path[0] != '\0';
    return mb_fail(MB_STATUS_IO, NULL, "cannot %s%s%s%s of '%s': HDF5 says \"%s\"%s%s", doing,
                   named ? " '" : "", named ? path : "", named ? "'" : "", file->path,
                   said[0] != '\0' ? said : "nothing", remedy ? "; " : "", remedy ? remedy : "");
}

mb_status mb_h5_refused(mb_h5 *file, const char *path, const char *doing)
{
    H5Eclear2(H5E_DEFAULT);
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_WRITEERROR,
             "file write failed, error message = '%s'", strerror(file->disk.error));
    return mb_h5_failure(file, path, doing);
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

char *mb_h5_copy_text(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a name");
    return copy;
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
