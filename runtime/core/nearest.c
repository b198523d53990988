#include "core/nearest.h"
#include <string.h>

#define NAME_MAX_LENGTH 63

/* Edit distance with transpositions of neighbors; names longer than NAME_MAX_LENGTH are far from
** everything. */
static int edit_distance(const char *a, const char *b)
{
    int before[NAME_MAX_LENGTH + 1], last[NAME_MAX_LENGTH + 1], row[NAME_MAX_LENGTH + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > NAME_MAX_LENGTH || b_length > NAME_MAX_LENGTH)
        return NAME_MAX_LENGTH;
    int n = (int)a_length, m = (int)b_length;
    for (int j = 0; j <= m; j++)
        last[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        memcpy(before, last, sizeof last);
        memcpy(last, row, sizeof row);
    }
    return last[m];
}

const char *mb_nearest(const char *name, const char *const *names)
{
    const char *nearest = NULL;
    size_t length = strlen(name);
    int limit = length < 4 ? 1 : length < 8 ? 2 : 3;
    for (int i = 0; names[i]; i++) {
        int distance = edit_distance(name, names[i]);
        if (length >= 3 && strncmp(name, names[i], length) == 0 && distance > 1)
            distance = 1; /* an abbreviation */
        if (distance <= limit) {
            nearest = names[i];
            limit = distance - 1;
        }
    }
    return nearest;
}
