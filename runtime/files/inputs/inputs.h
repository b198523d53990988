/*
** The files and folders that this process reads. None of them is ever overwritten: every target
** asks here before it is created and before it gets its name, by device, inode and time of birth, so
** that links, sources of virtual datasets and members of a series count like names on the command line.
**
** What this process has written itself is no input. A file that was removed or replaced since it
** was read is none either.
**
** Threads: any.
*/
#ifndef MB_FILES_INPUTS_H
#define MB_FILES_INPUTS_H

#include "core/status.h"

/* Notes an open file, or a folder with all that lies in it, that is read. Without memory it is not
** noted. */
void mb_input_note(const char *path, int fd);
/* The same of what a name leads to, if it leads to anything. */
void mb_input_note_name(const char *path);

/* The open file, or what a name leads to, was written by this process. */
void mb_input_made(int fd);
void mb_input_made_name(const char *path);

/* Declares that `path` will be written later: mb_input_check asks for it, too. */
void mb_input_declare(const char *path);

/* Fails where `path`, or a path that was declared, is an input, lies in a folder that is one, or is
** a folder with an input in it. */
mb_status mb_input_check(const char *path);

#endif
