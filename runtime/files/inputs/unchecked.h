/*
** Files with compressed data whose checksum is cut off: the data are complete, and nothing tells
** whether they are right. They are read, and it is said once.
**
** Threads: any.
*/
#ifndef MB_FILES_UNCHECKED_H
#define MB_FILES_UNCHECKED_H

#include <stdbool.h>

/* Notes a file that has such data. */
void mb_unchecked_note(const char *path);

/* The first file that was noted since the last call, NULL: none; `others`: whether others were. The
** text is valid until the next call. */
const char *mb_unchecked_take(bool *others);

#endif
