/*
** What the files of the target protocol share; nobody else includes this.
*/
#ifndef MB_FILES_TARGET_INTERNAL_H
#define MB_FILES_TARGET_INTERNAL_H

#include "files/target.h"
#include "files/target_ids.h"

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/* What a temporary name adds to a name, at most: ".part-<pid>-<host>-<id>". */
#define PART_EXTRA 48

/* ---- steps (target_steps.c): system calls that specs can stop; they return -1 with errno ---- */

int mb_step_open(const char *name, int flags);
int mb_step_mkdir(const char *name);
int mb_step_unlink(const char *name);
int mb_step_rmdir(const char *name);
int mb_step_rename(const char *from, const char *to, bool replace);
/* `to` must not exist, else EEXIST; EINVAL or ENOSYS on some file systems. */
int mb_step_rename_new(const char *from, const char *to);
int mb_step_exchange(const char *one, const char *other); /* both exist; not on every file system */
int mb_step_sync(int fd);
/* The whole text by one write at the end of the file. */
int mb_step_append(int fd, const void *text, size_t bytes);
void mb_step_sync_folder(const char *folder); /* as far as the file system can */

/* ---- names of parts (target_parts.c) ---- */

/* The folder of a file name, in `buffer` of PATH_MAX bytes. */
const char *mb_folder_of(const char *path, char *buffer);
/* The last component of a file name. */
const char *mb_base_of(const char *path);
/* 8 hexadecimal digits that name the running kernel, the host and the PID namespace. */
const char *mb_host_text(void);
/* Is the process dead? False where that cannot be known. */
bool mb_process_is_dead(long pid, const char *of_host);
/* 8 random hexadecimal digits. */
void mb_random_id(char id[9]);
/* "<path>.part-<pid>-<host>-<id>" of this process. */
void mb_part_name(const char *path, const char *id, char *buffer, size_t bytes);
/* "<path without extension>-slices-<id>" */
void mb_slices_name(const char *path, const char *id, char *buffer, size_t bytes);
/* Removes the folder of a run (files/unfinished.h) with the files in it and in its folders. */
void mb_remove_run(const char *folder);
/* Removes the slices in a folder, and the folder if nothing else is in it. */
void mb_remove_slices(const char *folder);

#endif
