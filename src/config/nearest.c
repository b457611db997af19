#include "config/nearest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 63

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static int lower(char c)
{
    return tolower((unsigned char)c);
}

/* Optimal string alignment distance; both at most NAME_MAX_BYTES long. */
static unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_MAX_BYTES + 1];
    size_t la = strlen(a);
    size_t lb = strlen(b);
    for (unsigned j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        unsigned *now = rows[i % 3];
        const unsigned *up = rows[(i + 2) % 3];
        const unsigned *upup = rows[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned change = lower(a[i - 1]) != lower(b[j - 1]);
            now[j] = least(up[j - 1] + change, least(up[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = least(now[j], upup[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

const char *nearest_name(const char *given, const char *const *names, size_t count)
{
    size_t len = strlen(given);
    if (!len || len > NAME_MAX_BYTES)
        return NULL;
    const char *best = NULL;
    /* A third of the letters may be wrong, and one more in words that leave something to go by. */
    unsigned best_distance = len <= 3 ? 1 : (unsigned)(len / 3 + 1);
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) > NAME_MAX_BYTES)
            continue;
        unsigned d = distance(given, names[i]);
        if (len >= 3 && strncasecmp(given, names[i], len) == 0)
            d = least(d, 1);
        if (d < best_distance || (d == best_distance && !best)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
