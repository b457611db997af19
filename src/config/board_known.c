#include "config/board_known.h"

#include <string.h>

bool board_known(const char *text, size_t len, struct board *ret)
{
    const struct board_known *k = board_table;
    while (k->text && (k->len != len || memcmp(k->text, text, len) != 0))
        k++;
    if (!k->text)
        return false;
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < k->run_count; i++)
        memcpy((char *)ret + k->runs[i].at, k->runs[i].bytes, k->runs[i].len);
    return true;
}
