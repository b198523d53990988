/*
** The folder of an unfinished run, "<path>.unfinished": what a later process needs to go on with
** the file `path`.
**
** It has a lock, a journal, the result's file, and whatever the run must find again. Nothing
** removes it but mb_unfinished_remove: no exit handler, no scavenging. It is removed by a rename to
** the name of a part (files/target.h), so that it is there as a whole or not at all; a later run
** for the same path removes what a kill has left of that part.
**
** The lock is a file with the PID and the host. Where the file system has locks, the lock of a dead
** process does not hold. Where it has none, the lock of a process that is provably dead is taken
** over.
**
** The journal is a text, one record a line, each with a checksum that knows its place in the file.
** Records are appended by one write each and are not synced, but for mb_unfinished_sync. A power
** cut may leave a journal with damaged bytes: it ends before the first line with a wrong checksum.
**
** A run that keeps nothing (a result that is a folder) has a lock that says so, and no journal: what
** a kill leaves of it is removed by the next one. What no run has made is never removed.
**
** Threads: an mb_unfinished belongs to one thread at a time.
*/
#ifndef MB_FILES_UNFINISHED_H
#define MB_FILES_UNFINISHED_H

#include "core/status.h"
#include <stddef.h>

typedef struct mb_unfinished mb_unfinished;

typedef enum mb_unfinished_state {
    MB_UNFINISHED_NONE,    /* nothing, or nothing that is kept: a run can begin */
    MB_UNFINISHED_KEPT,    /* a run; its journal has a beginning */
    MB_UNFINISHED_DAMAGED, /* files, but no journal with a beginning */
    MB_UNFINISHED_OTHER    /* no folder, or a link to one */
} mb_unfinished_state;

mb_unfinished_state mb_unfinished_look(const char *path);
/* A new folder with an empty journal, or, with `scratch`, of a run that keeps nothing. Fails in any
** other state than NONE. */
mb_status mb_unfinished_begin(const char *path, bool scratch, mb_unfinished **out);
/* The folder that an earlier process has left, and its journal. Fails where there is none, and
** where a process is at work on it. */
mb_status mb_unfinished_resume(const char *path, mb_unfinished **out);
/* The same, to remove it: the journal may be damaged or missing. */
mb_status mb_unfinished_take(const char *path, mb_unfinished **out);
const char *mb_unfinished_folder(const mb_unfinished *run);

/* The records, one a line, without checksums; *text belongs to the caller (free). What follows the
** last valid record goes. */
mb_status mb_unfinished_read(mb_unfinished *run, char **text, size_t *bytes);
/* Appends a record, which has no newline. */
mb_status mb_unfinished_append(mb_unfinished *run, const char *record, size_t bytes);
/* The journal and the names in the folder survive a power cut from here on. */
mb_status mb_unfinished_sync(mb_unfinished *run);

/* A journal of its own, the file `name` in the folder of a run that another process has begun: empty
** if `fresh`, else with what is in it. It has no lock. */
mb_status mb_unfinished_join(const char *folder, const char *name, bool fresh, mb_unfinished **out);

/* Removes the folder with all that is in it, and ends. `others`: names that stay there, and the
** folder with them; NULL ends the list. Links are removed, not followed. */
mb_status mb_unfinished_remove(mb_unfinished *run, const char *const *others);
/* Ends; the folder stays. NULL is fine. */
/* Closes the journal, before a run is looked through and removed: a process that may open no more
** files can do so then. */
void mb_unfinished_end_journal(mb_unfinished *run);
void mb_unfinished_destroy(mb_unfinished *run);

#endif
