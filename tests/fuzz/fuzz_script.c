/* Any bytes as a job script. */
#include <assert.h>

#include "base/cleanup.h"
#include "config/script.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    struct err e = ERR_INIT;
    if (script_parse("fuzz", (const char *)data, size, &o, &e) < 0) {
        assert(e.code < 0 && e.text[0] && !o.count);
        return 0;
    }
    assert(o.count <= SCRIPT_WORDS_MAX && (!o.count || !o.argv[o.count]));
    for (size_t i = 0; i < o.count; i++)
        assert(o.argv[i] && o.lines[i] >= 1 && (!i || o.lines[i] >= o.lines[i - 1]));
    return 0;
}
