/*
** Text that comes from files and names, made fit for a terminal.
*/
#ifndef MB_CORE_TEXT_H
#define MB_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The most bytes that one byte becomes. */
#define MB_TEXT_GROWTH 4

/* Writes the text to `out`, which has room for MB_TEXT_GROWTH * length bytes and may not be
** `text`; returns how many it wrote. What a terminal would obey is spelled out instead: control
** characters (ESC becomes \x1b, a line end \n), those of the range U+0080 to U+009F, those that
** turn the direction of writing, and bytes that are no UTF-8. With `lines`, line ends and tabs
** stay. */
size_t mb_text_printable(const char *text, size_t length, bool lines, char *out);

#endif
