/* The files of a job folder, and what a driver child sends: another program, maybe of another
 * release, wrote them. */
#include <assert.h>

#include "base/text.h"
#include "driver/wire.h"
#include "fuzz.h"
#include "jobdir/record.h"
#include "jobdir/spec.h"

static void assert_same(json_t *take_a, json_t *take_b)
{
    assert(json_equal(take_a, take_b));
    json_decref(take_a);
    json_decref(take_b);
}

/* What was read and written is read as the same. */
#define TRY(name)                                                                                  \
    static void try_##name(json_t *j)                                                              \
    {                                                                                              \
        struct err e = ERR_INIT;                                                                   \
        struct jobdir_##name *a = mem_new(sizeof *a);                                              \
        struct jobdir_##name *b = mem_new(sizeof *b);                                              \
        if (jobdir_##name##_from_json(j, a, &e) == 0) {                                            \
            json_t *first = jobdir_##name##_to_json(a);                                            \
            assert(jobdir_##name##_from_json(first, b, &e) == 0);                                  \
            assert_same(first, jobdir_##name##_to_json(b));                                        \
            jobdir_##name##_done(a);                                                               \
            jobdir_##name##_done(b);                                                               \
        } else {                                                                                   \
            assert(e.code < 0 && e.text[0]);                                                       \
        }                                                                                          \
        free(a);                                                                                   \
        free(b);                                                                                   \
    }                                                                                              \
    struct try_##name##_needs_a_semicolon

TRY(spec);
TRY(started);
TRY(exit);

static void try_wire(json_t *j)
{
    struct err e = ERR_INIT;
    struct driver_skip *skips = NULL;
    size_t count = 0;
    if (skips_from_json(j, &skips, &count, &e) == 0)
        free(skips);
    struct driver_event event;
    if (event_from_json(j, &event, &e) < 0)
        assert(e.code < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *j = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!j)
        return 0;
    try_spec(j);
    try_started(j);
    try_exit(j);
    try_wire(j);
    json_decref(j);
    return 0;
}
