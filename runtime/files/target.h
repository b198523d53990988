/*
** Targets: the one protocol by which a file gets its name. Whatever Moonbeam writes for people to
** keep (HDF5, TIFF, .npy, PNG, folders of slices) is written through a target, so a file that has
** its final name is complete.
**
** A target has one of four states.
** - part:  the file is "<path>.part-<pid>-<host>-<id>", created by this process alone (O_EXCL,
**          O_NOFOLLOW) and locked. <host> names the running kernel, the host and the PID namespace,
** <id> is random: no other process, host or container makes the same name. A part goes when
**          its target is discarded and when the process exits.
** - kept:  the file has a name that the caller has chosen, in the folder of an unfinished run
**          (files/unfinished.h) or in a slices folder there, so that a later process can go on with
**          it. It stays when the target is discarded and when the process exits.
** - named: the file is complete, synced and has its final name.
** - gone:  nothing is left.
**
** A killed process leaves its part. A later target for the same path removes that part, but only
** where its owner is provably dead and it is ours: the same <host>, a PID that does not exist, our
** own user, an ordinary file with one link, and no lock. What was killed while it replaced a file
** whose slices folder goes with it leaves "<part>.swap" (mb_target_dead_swap).
**
** A target may have a slices folder, "<path without extension>-slices-<id>": files beside the main
** file that the main file refers to. The folder has a name of its own in every run, so neither a
** kill nor a second process can mix two results. Until the main file has its name, its part marks
** the folder as unfinished.
**
** The first failure is latched: a target that has failed never gets its name.
**
** Threads: a target belongs to one thread at a time; different targets may belong to different
** threads.
*/
#ifndef MB_FILES_TARGET_H
#define MB_FILES_TARGET_H

#include "core/status.h"

typedef struct mb_target mb_target;

typedef enum mb_target_state {
    MB_TARGET_PART,
    MB_TARGET_KEPT,
    MB_TARGET_NAMED,
    MB_TARGET_GONE
} mb_target_state;

/* Fails unless a file could be created as `path` now: it is a file's name, its folder is there and
** writable, and there is no such file unless `overwrite`. Creates nothing. */
mb_status mb_target_check(const char *path, bool overwrite);

/* A new part for `path`, after mb_target_check. */
mb_status mb_target_create(const char *path, bool overwrite, mb_target **out);
/* A new kept file `now` for `path`, on the same file system. */
mb_status mb_target_keep(const char *path, const char *now, bool overwrite, mb_target **out);
/* The same with the file that an earlier process has left. `folder` is the name of its slices
** folder, without a path, or NULL. */
mb_status mb_target_resume(const char *path, const char *now, const char *folder, bool overwrite,
                           mb_target **out);

int mb_target_fd(const mb_target *target); /* for reading and writing; -1 once named or gone */
/* The name that the file has now: temporary, kept or final. NULL once it is gone. */
const char *mb_target_now(const mb_target *target);

/* Latches the recorded failure; returns `status`. Without a failure, does nothing. */
mb_status mb_target_latch(mb_target *target, mb_status status);
/* The latched failure, put on record again if nothing else is; or MB_STATUS_OK. */
mb_status mb_target_failure(const mb_target *target);

/* Makes the target's slices folder, that of a kept file beside where it is now; *out is its
** path. */
mb_status mb_target_make_folder(mb_target *target, const char **out);

/* Gives the file its name: sync, check (it is still ours, and has `bytes` bytes unless that is -1),
** rename, sync of the folder. Without `sync` the disk is not waited for: for a file among many
** whose owner has the disk take them all before anything refers to them. `held` (may be NULL):
** the file that this one replaces is to stay until mb_target_discard; *held is its name, or NULL
** where there was none or the file system cannot do that. After a failure the target is as it
** was. */
mb_status mb_target_name(mb_target *target, int64_t bytes, bool sync, const char **held);

/* Removes what has no final name and is not kept, slices folder and held file included.
** Idempotent. */
void mb_target_discard(mb_target *target);
/* Discards and frees. NULL is fine. */
void mb_target_destroy(mb_target *target);

/* A file without a name in `folder`, for reading and writing: whatever happens to the process,
** nothing of it stays behind. */
mb_status mb_target_scratch(const char *folder, int *fd);

/* Removes what dead processes of ours have left of `path`. `current` is the name (without folder)
** of the slices folder that the file `path` refers to, or "". NULL: unknown; what belongs to a
** slices folder is then left alone. */
void mb_target_scavenge(const char *path, const char *current);

/* The name of a file that a dead process of ours has exchanged, or was about to exchange, with
** `path` (mb_target_name with `held`), in `name` of PATH_MAX bytes. Whoever calls this removes
** it. */
bool mb_target_dead_swap(const char *path, char *name);

/* Removes a slices folder that nothing refers to any more. It loses its name first. Files in it
** that are no slices stay, and the folder with them. */
void mb_target_remove_folder(const char *folder);

/* Removes the parts of this process that have no slices folder. A signal handler may call it, if
** the process ends then. */
void mb_target_remove_parts(void);

/* For specs. Every change of a name (create, mkdir, rename, unlink, rmdir), every sync and every
** record of a journal is a step. The n-th step from now kills the process (error == 0) or fails
** with that errno; 0 switches off. */
void mb_target_inject(int64_t n, int error);
int64_t mb_target_steps(void); /* since the process began */

#endif
