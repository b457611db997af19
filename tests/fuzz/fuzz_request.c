/* What somebody may ask for, against boards that real cards have. */
#include <assert.h>
#include <string.h>

#include "../unit/geometry.h"
#include "fuzz.h"
#include "model/request.h"

/* Each way is a profile of the board or the whole card; the whole card is the last. */
static void hold_fits(const struct request *r, const struct board *b)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    size_t n = request_fits(r, b, fits);
    assert(n <= b->profile_count + 1);
    for (size_t i = 0; i < n; i++) {
        const struct profile *p = fits[i].profile;
        assert(p || i == n - 1);
        assert(fits[i].dominant_ppm > 0 && fits[i].dominant_ppm <= PPM);
        assert(i == 0 || fits[i - 1].dominant_ppm <= fits[i].dominant_ppm);
        uint64_t has = p ? p->mem_bytes : b->mem_bytes;
        if (r->kind == REQUEST_NEED && (r->exact || !fits[i].rounded))
            assert(has >= r->mem_bytes);
        assert(!fits[i].rounded || (r->kind == REQUEST_NEED && has < r->mem_bytes));
    }
}

static void hold_request(const struct request *r)
{
    struct err e = ERR_INIT;
    if (request_check(r, &e) < 0) {
        assert(e.code < 0 && text_is_printable(e.text) && e.text[0]);
        return;
    }
    struct board *(*const boards[])(void) = { board_a100_80gb, board_a30, board_rtx_pro_6000 };
    for (size_t i = 0; i < 3; i++) {
        auto_free struct board *b = boards[i]();
        hold_fits(r, b);
    }
    AUTO(text) struct text shown = TEXT_INIT;
    request_add(&shown, r);
    assert(shown.len > 0 && text_is_printable(shown.buf));
    assert(request_tasks(r) >= 1 && request_tasks(r) <= REQUEST_TASKS_MAX);
}

/* Bytes that are a request: kind, count, flags, memory, compute, and a name. */
static void try_bytes(const uint8_t *data, size_t size)
{
    struct request r = { .kind = REQUEST_NOTHING };
    if (size < 15)
        return;
    r.kind = (enum request_kind)(data[0] % 4);
    r.count = data[1];
    r.or_7g = data[2] & 1;
    r.spread = data[2] & 2;
    r.exact = data[2] & 4;
    memcpy(&r.mem_bytes, data + 3, sizeof r.mem_bytes);
    memcpy(&r.compute_ppm, data + 11, sizeof r.compute_ppm);
    size_t len = size - 15 < sizeof r.profile - 1 ? size - 15 : sizeof r.profile - 1;
    memcpy(r.profile, data + 15, len);
    hold_request(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *s = mem_new(size + 1);
    memcpy(s, data, size);
    struct err e = ERR_INIT;
    struct request r = { .kind = REQUEST_NOTHING };
    if (request_parse_slice(s, &r, &e) == 0)
        hold_request(&r);
    uint32_t ppm = 0;
    if (request_parse_fraction(s, "--gpu-compute", &ppm, &e) == 0) {
        r = (struct request){ .kind = REQUEST_NEED, .count = 1, .compute_ppm = ppm };
        hold_request(&r);
    }
    try_bytes(data, size);
    return 0;
}
