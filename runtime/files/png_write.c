/*
** PNG writing. libpng reports errors by longjmp: everything that its error exit needs is in
** `writer`, which outlives the jump, and nothing that changes after setjmp is a local variable.
*/
#define _GNU_SOURCE
#include "files/png_write.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct writer {
    const char *path;
    FILE *file;
    png_structp png;
    png_infop info;
    char problem[200]; /* what libpng said */
} writer;

static void on_error(png_structp png, png_const_charp message)
{
    writer *w = png_get_error_ptr(png);
    snprintf(w->problem, sizeof w->problem, "%s", message);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static bool little_endian(void)
{
    const uint16_t probe = 1;
    unsigned char first;
    memcpy(&first, &probe, 1);
    return first == 1;
}

/* Everything between setjmp and the jump. False when libpng gave up. */
static bool encode(writer *w, const mb_picture *picture)
{
    const size_t row_bytes =
        (size_t)picture->width * (size_t)picture->channels * (picture->bits == 16 ? 2 : 1);
    if (setjmp(png_jmpbuf(w->png)) != 0)
        return false;
    png_init_io(w->png, w->file);
    png_set_compression_level(w->png, 6);
    png_set_IHDR(w->png, w->info, (png_uint_32)picture->width, (png_uint_32)picture->height,
                 picture->bits, picture->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (picture->text) {
        png_text text = {.compression = PNG_TEXT_COMPRESSION_NONE,
                         .key = (char *)"Description",
                         .text = (char *)picture->text};
        png_set_text(w->png, w->info, &text, 1);
    }
    png_write_info(w->png, w->info);
    if (picture->bits == 16 && little_endian())
        png_set_swap(w->png);
    for (int64_t y = 0; y < picture->height; y++)
        png_write_row(w->png, (png_const_bytep)picture->rows + (size_t)y * row_bytes);
    png_write_end(w->png, w->info);
    return true;
}

static mb_status check_picture(const mb_picture *picture)
{
    if (picture->channels != 1 && picture->channels != 3)
        return mb_fail(MB_STATUS_SHAPE, NULL, "a picture has 1 or 3 channels, not %d",
                       picture->channels);
    if (picture->bits != 8 && (picture->bits != 16 || picture->channels != 1))
        return mb_fail(MB_STATUS_ARGUMENT, "bits",
                       "a PNG picture has 8 bits, or 16 bits if it is gray");
    if (picture->width < 1 || picture->height < 1 || picture->width > 1000000 ||
        picture->height > 1000000)
        return mb_fail(MB_STATUS_SHAPE, NULL,
                       "a PNG file has 1 to 1000000 pixels a side, not %lld x %lld",
                       (long long)picture->width, (long long)picture->height);
    return MB_STATUS_OK;
}

/* The picture into the open file; its size in *bytes. */
static mb_status write_all(writer *w, const mb_picture *picture, int64_t *bytes)
{
    mb_status status = MB_STATUS_OK;
    w->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, w, on_error, on_warning);
    w->info = w->png ? png_create_info_struct(w->png) : NULL;
    errno = 0;
    if (!w->info)
        status = mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to write '%s'", w->path);
    else if (!encode(w, picture))
        status = mb_fail(MB_STATUS_IO, NULL, "cannot write '%s': %s%s%s", w->path, w->problem,
                         errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
    if (w->png)
        png_destroy_write_struct(&w->png, &w->info);
    if (status == MB_STATUS_OK && (fflush(w->file) != 0 || (*bytes = ftell(w->file)) < 0))
        status = mb_fail(MB_STATUS_IO, NULL, "cannot write '%s': %s", w->path, strerror(errno));
    return status;
}

mb_status mb_png_write(const char *path, bool overwrite, const mb_picture *picture)
{
    mb_status status = MB_STATUS_OK;
    mb_target *target;
    int64_t bytes = -1;
    writer w = {.path = path};

    MB_TRY(check_picture(picture));
    MB_TRY(mb_target_create(path, overwrite, &target));
    const int fd = fcntl(mb_target_fd(target), F_DUPFD_CLOEXEC, 0);
    w.file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (w.file)
        status = write_all(&w, picture, &bytes);
    else
        status = mb_fail(MB_STATUS_IO, NULL, "cannot write '%s': %s", path, strerror(errno));
    if (!w.file && fd >= 0)
        close(fd);
    if (w.file && fclose(w.file) != 0 && status == MB_STATUS_OK)
        status = mb_fail(MB_STATUS_IO, NULL, "cannot write '%s': %s", path, strerror(errno));
    if (status == MB_STATUS_OK)
        status = mb_target_name(target, bytes, true, NULL);
    mb_target_destroy(target);
    return status;
}
