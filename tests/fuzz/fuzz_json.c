/* Every JSON form that a user, a child process, the store or a job folder hands in. */
#include <assert.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "model/card_json.h"
#include "model/job_json.h"

/* A request that was accepted says the same after a round trip. */
static void try_request(json_t *j)
{
    struct err e = ERR_INIT;
    struct request r = { 0 };
    if (request_from_json(j, &r, &e) < 0) {
        assert(e.text[0]);
        return;
    }
    AUTO_PTR(json_decref) json_t *written = request_to_json(&r);
    struct request again = { 0 };
    assert(request_from_json(written, &again, &e) == 0);
    assert(request_same(&r, &again) && request_hash(&r) == request_hash(&again));
}

static void try_spec(json_t *j)
{
    struct err e = ERR_INIT;
    struct job_spec s = { 0 };
    if (job_spec_from_json(j, &s, &e) < 0)
        return;
    if (job_spec_check(&s, &e) == 0) {
        AUTO_PTR(json_decref) json_t *written = job_spec_to_json(&s, true);
        struct job_spec again = { 0 };
        assert(job_spec_from_json(written, &again, &e) == 0);
        assert(text_same(again.name, s.name) && strv_count(again.argv) == strv_count(s.argv));
        job_spec_done(&again);
    }
    job_spec_done(&s);
}

static void try_rest(json_t *j)
{
    struct err e = ERR_INIT;
    struct place p = { 0 };
    if (place_from_json(j, &p, &e) == 0)
        place_done(&p);
    struct job_exit x = { 0 };
    if (exit_from_json(j, &x, &e) == 0)
        assert(job_exit_status(&x) >= 0 && job_exit_status(&x) <= 255);
    struct snapshot s = SNAPSHOT_INIT;
    if (snapshot_from_json(j, &s, &e) == 0)
        snapshot_done(&s);
    struct inventory inv = { 0 };
    if (inventory_from_json(j, &inv, &e) == 0)
        inventory_done(&inv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_PTR(json_decref)
    json_t *j = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!j)
        return 0;
    try_request(j);
    try_spec(j);
    try_rest(j);
    return 0;
}
