/*
** The random ids of the targets that this process has (target_ids.c).
*/
#ifndef MB_FILES_TARGET_IDS_H
#define MB_FILES_TARGET_IDS_H

#include <stdbool.h>

typedef struct mb_own_id {
    char text[9];
    struct mb_own_id *next, **link; /* the list; !link: not on it */
} mb_own_id;

void mb_own_id_add(mb_own_id *own);
void mb_own_id_remove(mb_own_id *own); /* does nothing when it is not on the list */
bool mb_own_id_exists(const char *text);

#endif
