/*
** PNG files by libpng: grayscale of 8 or 16 bits, RGB of 8 bits. Written as a target
** (files/target.h): a picture that exists is complete. Threads: none of its own; calls are
** independent.
*/
#ifndef MB_IO_PNG_WRITE_H
#define MB_IO_PNG_WRITE_H

#include "core/status.h"

typedef struct mb_picture {
    int64_t width, height;
    int channels;     /* 1 gray, 3 RGB */
    int bits;         /* 8, or 16 (gray only) in the machine's byte order */
    const void *rows; /* dense, top row first */
    const char *text; /* a line for the "Description" field, or NULL */
} mb_picture;

mb_status mb_png_write(const char *path, bool overwrite, const mb_picture *picture);

#endif
