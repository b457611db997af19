/*
 * store_folder.h - a store in a folder of its own, for the tests of store/.
 */
#ifndef DIVVY_TESTS_STORE_FOLDER_H
#define DIVVY_TESTS_STORE_FOLDER_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "model/job.h"
#include "store/jobs.h"

#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"

static char folder[64];
static struct err err;

static const struct now noon = { .boot_us = 1000 * CLOCK_SECOND,
                                 .wall_us = INT64_C(1790000000) * CLOCK_SECOND };

static inline int make_folder(void **state)
{
    (void)state;
    err.text[0] = '\0';
    strcpy(folder, "/tmp/test-store-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, folder, NULL);
}

static inline struct store *open_store(void)
{
    struct store *s = NULL;
    if (store_open(folder, BOOT_A, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static inline struct now later(int64_t us)
{
    return (struct now){ .boot_us = noon.boot_us + us, .wall_us = noon.wall_us + us };
}

static inline void fill_spec(struct job_spec *spec, const char *name)
{
    *spec = (struct job_spec){ .name = text_dup(name), .account = text_dup("nlp") };
    spec->request = (struct request){ .kind = REQUEST_SLICES, .count = 2, .profile = "2g.20gb" };
    spec->limit_us = CLOCK_HOUR;
    spec->mem_bytes = UINT64_C(3) << 30;
    spec->cpu_milli = 1500;
    strv_add(&spec->argv, "python3");
    strv_add(&spec->argv, "train.py");
    strv_add(&spec->env, "HOME=/home/alice");
    strv_add(&spec->env, "STRANGE=\xff\xfe");
    spec->cwd = text_dup("/home/alice");
}

/* One pending job of uid 1001, in a transaction that is open. */
static inline uint64_t add_job(struct store *s, const char *name)
{
    static const gid_t groups[] = { 27, 4000000000u };
    AUTO(job_spec) struct job_spec spec;
    struct job_submit who = {
        .uid = 1001, .gid = 1001, .user = "alice", .groups = groups, .group_count = 2
    };
    uint64_t id = 0;
    fill_spec(&spec, name);
    if (store_add_job(s, &who, &spec, noon, &id, &err) < 0)
        fail_msg("%s", err.text);
    return id;
}

#define ok(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, err.text);                                                   \
    } while (0)

#endif
