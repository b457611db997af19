/* What anybody may send to the daemon: bodies, and what stands behind the "?". */
#include <assert.h>
#include <string.h>

#include "api/body.h"
#include "base/cleanup.h"
#include "fuzz.h"

static void try_submit(const char *data, size_t size)
{
    struct err e = ERR_INIT;
    struct job_spec spec = { .name = NULL };
    if (api_read_submit(data, size, &spec, &e) < 0) {
        assert(e.code < 0 && e.text[0] && !spec.name);
        return;
    }
    assert(spec.name && spec.cwd[0] == '/' && spec.argv[0][0]);
    auto_json json_t *j = job_spec_to_json(&spec, true);
    auto_free char *text = json_dumps(j, JSON_COMPACT);
    assert(text); /* what was read can be written */
    job_spec_done(&spec);
}

static void try_many(const char *data, size_t size)
{
    struct err e = ERR_INIT;
    struct job_spec *specs = NULL;
    size_t count = 0;
    if (api_read_submit_many(data, size, &specs, &count, &e) < 0) {
        assert(e.code < 0 && e.text[0] && !specs);
        return;
    }
    assert(count >= 1 && count <= JOB_MANY_MAX);
    for (size_t i = 0; i < count; i++) {
        assert(specs[i].name && specs[i].cwd[0] == '/' && specs[i].argv[0][0]);
        job_spec_done(&specs[i]);
    }
    free(specs);
}

static void try_card(const char *data, size_t size)
{
    int pool = -1;
    int mode = -1;
    if (api_read_set_card(data, size, &pool, &mode, NULL) == 0)
        assert((pool >= 0 || mode >= 0) && pool <= POOL_KUBERNETES && mode <= MODE_AUTO);
    (void)api_read_nothing(data, size, NULL); /* any answer will do: it must only come back */
}

/* "key=value&key=value" */
static void try_parameters(const char *data, size_t size)
{
    auto_free char *copy = mem_new(size + 1);
    memcpy(copy, data, size);
    struct api_parameter p[API_PARAMETERS_MAX];
    size_t n = 0;
    char *save = NULL;
    for (char *w = strtok_r(copy, "&", &save); w && n < API_PARAMETERS_MAX;
         w = strtok_r(NULL, "&", &save)) {
        char *eq = strchr(w, '=');
        if (eq)
            *eq = '\0';
        p[n++] = (struct api_parameter){ w, eq ? eq + 1 : NULL };
    }
    struct job_filter f;
    if (api_read_filter(p, n, &f, NULL) == 0)
        assert(f.limit >= 1 && f.limit <= JOB_LIST_MAX && f.states < 1u << JOB_STATES);
    enum api_until until;
    int64_t us = -1;
    if (api_read_wait(p, n, &until, &us, NULL) == 0)
        assert(us >= 0 && us <= API_WAIT_MAX_US);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_submit((const char *)data, size);
    try_many((const char *)data, size);
    try_card((const char *)data, size);
    try_parameters((const char *)data, size);
    return 0;
}
