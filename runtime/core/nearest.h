/*
** The nearest known name to a mistyped one.
*/
#ifndef MB_CORE_NEAREST_H
#define MB_CORE_NEAREST_H

/* The nearest name of a NULL-terminated list by edit distance, or NULL when none is near. */
const char *mb_nearest(const char *name, const char *const *names);

#endif
