/* Board files: what is accepted must also survive its JSON form. */
#include <assert.h>

#include "base/cleanup.h"
#include "config/board.h"
#include "fuzz.h"
#include "model/board_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct board b = { 0 };
    if (board_parse("board.yaml", (const char *)data, size, &b, &e) < 0) {
        assert(e.text[0]);
        return 0;
    }
    AUTO_PTR(json_decref) json_t *json = board_to_json(&b);
    struct board again = { 0 };
    assert(board_from_json(json, &again, &e) == 0);
    assert(again.profile_count == b.profile_count);
    return 0;
}
