#include "files/xml/xml_events.h"
#include <expat.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    mb_xml_events *events;
    XML_Parser parser;
    const char *refused; /* why, or NULL */
} reading;

static void refuse(reading *r, const char *why)
{
    if (!r->refused)
        r->refused = why;
    XML_StopParser(r->parser, XML_FALSE);
}

/* Room for so many more bytes; NULL, and an end of the reading, where there is none. */
static char *more(reading *r, size_t count)
{
    mb_xml_events *events = r->events;
    if (r->refused)
        return NULL;
    if (count > events->most - events->bytes) {
        refuse(r, "it stands for far more than it holds");
        return NULL;
    }
    if (count > events->room - events->bytes) {
        size_t room = events->room ? 2 * events->room : 4096;
        if (room < events->bytes + count)
            room = events->bytes + count;
        char *data = realloc(events->data, room);
        if (!data) {
            refuse(r, "the memory does not suffice");
            return NULL;
        }
        events->data = data;
        events->room = room;
    }
    char *at = events->data + events->bytes;
    events->bytes += count;
    return at;
}

/* An event with a text. */
static void put(reading *r, char kind, const char *text, size_t bytes)
{
    char *at = more(r, bytes + 2);
    if (!at)
        return;
    at[0] = kind;
    memcpy(at + 1, text, bytes);
    at[bytes + 1] = '\0';
}

static void XMLCALL on_start(void *data, const XML_Char *name, const XML_Char **attributes)
{
    reading *r = data;
    if (++r->events->depth > MB_XML_DEPTH) {
        refuse(r, "its elements are nested too deeply");
        return;
    }
    put(r, '<', name, strlen(name));
    for (size_t i = 0; attributes[i]; i += 2) {
        put(r, '=', attributes[i], strlen(attributes[i]));
        const size_t bytes = strlen(attributes[i + 1]) + 1;
        char *at = more(r, bytes);
        if (at)
            memcpy(at, attributes[i + 1], bytes);
    }
}

static void XMLCALL on_end(void *data, const XML_Char *name)
{
    reading *r = data;
    (void)name;
    r->events->depth--;
    char *at = more(r, 1);
    if (at)
        *at = '>';
}

static void XMLCALL on_text(void *data, const XML_Char *text, int bytes)
{
    put(data, '"', text, (size_t)bytes);
}

static void XMLCALL on_entity(void *data, const XML_Char *name, int is_parameter,
                              const XML_Char *value, int bytes, const XML_Char *base,
                              const XML_Char *system, const XML_Char *public,
                              const XML_Char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)bytes, (void)base;
    (void)system, (void)public, (void)notation;
    refuse(data, "it defines an entity");
}

static void XMLCALL on_skipped(void *data, const XML_Char *name, int is_parameter)
{
    (void)name, (void)is_parameter;
    refuse(data, "it refers to an entity that it does not define");
}

static mb_status outcome(const reading *r, enum XML_Status status)
{
    if (status == XML_STATUS_OK && !r->refused)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_IO, NULL, "line %lu, column %lu: %s",
                   (unsigned long)XML_GetCurrentLineNumber(r->parser),
                   (unsigned long)XML_GetCurrentColumnNumber(r->parser) + 1,
                   r->refused ? r->refused : XML_ErrorString(XML_GetErrorCode(r->parser)));
}

mb_status mb_xml_read(const char *text, size_t bytes, mb_xml_events *events)
{
    /* An attribute or element takes at most four times its bytes, Latin letters included. */
    *events = (mb_xml_events){.most = 4 * bytes + 4096};
    if (bytes > MB_XML_BYTES)
        return mb_fail(MB_STATUS_IO, NULL, "it has %zu bytes; at most %zu are read", bytes,
                       MB_XML_BYTES);
    reading r = {.events = events, .parser = XML_ParserCreate(NULL)};
    if (!r.parser)
        return mb_fail(MB_STATUS_MEMORY, NULL, "the memory does not suffice for reading XML");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetEntityDeclHandler(r.parser, on_entity);
    XML_SetSkippedEntityHandler(r.parser, on_skipped);
    const mb_status status = outcome(&r, XML_Parse(r.parser, text, (int)bytes, XML_TRUE));
    XML_ParserFree(r.parser);
    return status;
}

void mb_xml_release(mb_xml_events *events)
{
    free(events->data);
    *events = (mb_xml_events){0};
}
