/* Numbers, sizes and durations as people type them. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *s = mem_new(size + 1);
    memcpy(s, data, size);
    struct err e = ERR_INIT;
    uint64_t n = 0;
    if (text_parse_u64(s, 3, 1000, "n", &n, &e) == 0)
        assert(n >= 3 && n <= 1000);
    else
        assert(e.code < 0 && e.text[0]);
    uint64_t bytes = 0;
    e = (struct err)ERR_INIT;
    assert(text_parse_size(s, "size", &bytes, &e) == 0 || (e.code < 0 && e.text[0]));
    int64_t us = 0;
    e = (struct err)ERR_INIT;
    if (text_parse_duration(s, "time", &us, &e) == 0) {
        assert(us >= 0 && us <= INT64_C(3660) * 86400 * 1000000);
        AUTO(text) struct text shown = TEXT_INIT;
        text_add_duration(&shown, us);
        assert(shown.len > 0);
    } else {
        assert(e.code < 0 && e.text[0]);
    }
    (void)text_is_printable(s); /* any answer will do: it must only come back */
    return 0;
}
