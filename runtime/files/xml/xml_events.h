/*
** XML by libexpat, as a list of events in memory that is bounded by the size of the text: the text
** of strangers is never trusted. Entities that the text defines itself are refused, depth and size
** are limited. Threads: none of its own; calls are independent.
*/
#ifndef MB_FILES_XML_EVENTS_H
#define MB_FILES_XML_EVENTS_H

#include "core/status.h"
#include <stddef.h>

#define MB_XML_BYTES ((size_t)256 << 20) /* the largest text */
#define MB_XML_DEPTH 64                  /* of elements in one another */

/* Events one after another, texts in UTF-8 and ended by a zero:
**   '<' name      an element begins
**   '=' name text an attribute of the element that began last
**   '"' text      characters; those in a row may come in several events
**   '>'           the element ends */
typedef struct mb_xml_events {
    char *data;
    size_t bytes, room, most; /* written, allocated, at most */
    int depth;
} mb_xml_events;

/* Reads a text. What is wrong with it is MB_STATUS_IO, with line and column. The events are
** released by mb_xml_release, also after a failure. */
mb_status mb_xml_read(const char *text, size_t bytes, mb_xml_events *events);
void mb_xml_release(mb_xml_events *events);

#endif
