/* What was read from JSON and written again is read as the same, whatever it is. */
#include <assert.h>

#include "fuzz.h"
#include "base/text.h"
#include "model/board_json.h"
#include "model/card_json.h"
#include "model/job_json.h"

/*
 * first is what a reader made of the input; second, what it makes of first.
 * Both references are taken.
 */
static void assert_settled(json_t *take_first, json_t *take_second)
{
    assert(json_equal(take_first, take_second));
    char *s = json_dumps(take_first, JSON_COMPACT);
    assert(s);
    free(s);
    json_decref(take_first);
    json_decref(take_second);
}

/* T read by T_from_json, written by T_to_json, ended by T_done. */
#define TRY(name, type, done)                                                                      \
    static void try_##name(json_t *j)                                                              \
    {                                                                                              \
        struct err e = ERR_INIT;                                                                   \
        struct type *a = mem_new(sizeof *a);                                                       \
        struct type *b = mem_new(sizeof *b);                                                       \
        if (name##_from_json(j, a, &e) == 0) {                                                     \
            json_t *first = name##_to_json(a);                                                     \
            assert(name##_from_json(first, b, &e) == 0);                                           \
            assert_settled(first, name##_to_json(b));                                              \
            done(a);                                                                               \
            done(b);                                                                               \
        } else {                                                                                   \
            assert(e.code < 0 && e.text[0] && text_is_printable(e.text));                          \
        }                                                                                          \
        free(a);                                                                                   \
        free(b);                                                                                   \
    }                                                                                              \
    struct name##_needs_a_semicolon

static void nothing_to_end(const void *p)
{
    (void)p;
}

TRY(board, board, nothing_to_end);
TRY(card, card, card_done);
TRY(snapshot, snapshot, snapshot_done);
TRY(inventory, inventory, inventory_done);
TRY(request, request, nothing_to_end);
TRY(place, place, place_done);
TRY(exit, job_exit, nothing_to_end);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    json_t *j = NULL;
    if (json_parse((const char *)data, size, "input", &j, &e) < 0) {
        assert(e.text[0] && text_is_printable(e.text));
        return 0;
    }
    try_board(j);
    try_card(j);
    try_snapshot(j);
    try_inventory(j);
    try_request(j);
    try_place(j);
    try_exit(j);
    json_decref(j);
    return 0;
}
