/* Addresses, and the two small languages of a request. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "model/address.h"
#include "model/request.h"

static void try_address(const char *s)
{
    struct address a;
    struct err e = ERR_INIT;
    if (address_parse(s, &a, &e) < 0) {
        assert(e.text[0]);
        return;
    }
    if (!a.has_slice || a.has_ci_start)
        return;
    AUTO(text) struct text t = TEXT_INIT;
    address_add_place(&t, a.ordinal, a.profile, a.start);
    struct address again;
    assert(address_parse(t.buf, &again, &e) == 0);
    assert(again.ordinal == a.ordinal && again.start == a.start);
    assert(text_same(again.profile, a.profile));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *s = mem_new(size + 1);
    memcpy(s, data, size);
    try_address(s);
    struct err e = ERR_INIT;
    struct request r = { 0 };
    if (request_parse_slice(s, &r, &e) == 0)
        assert(r.kind == REQUEST_SLICES && r.count >= 1 && r.count <= REQUEST_TASKS_MAX);
    uint32_t ppm = 0;
    if (request_parse_fraction(s, "part", &ppm, &e) == 0)
        assert(ppm > 0 && ppm <= PPM);
    return 0;
}
