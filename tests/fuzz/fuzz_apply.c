/* A stored change, and the journal of one: what is accepted can be carried to an end. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/journal.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "fuzz.h"
#include "model/fields.h"

/* Every third step fails; whatever the plan, that ends. */
static void carry_to_the_end(struct apply *a)
{
    size_t most = 4 * (a->plan.count + a->back.count) + 4;
    for (size_t n = 0; apply_next(a); n++) {
        assert(n < most);
        struct step done = *apply_next(a);
        apply_begin(a);
        apply_result(a, n % 3 == 2 ? -EBUSY : 0, &done, NULL);
    }
    assert(a->state == APPLY_DONE || a->state == APPLY_ROLLED_BACK || a->state == APPLY_STUCK);
    assert(a->state == APPLY_DONE || a->state == APPLY_ROLLED_BACK || a->stuck[0]);
}

static void try_json(const uint8_t *data, size_t size)
{
    auto_json json_t *j = NULL;
    struct apply a;
    struct err e = ERR_INIT;
    if (json_parse((const char *)data, size, "change", &j, NULL) < 0)
        return;
    if (apply_from_json(j, &a, &e) < 0) {
        assert(e.text[0]);
        return;
    }
    carry_to_the_end(&a);
    apply_done(&a);
}

static void try_journal(const uint8_t *data, size_t size)
{
    char dir[] = "/tmp/divvy-fuzz-XXXXXX";
    struct apply a;
    struct journal *journal = NULL;
    struct err e = ERR_INIT;
    assert(mkdtemp(dir));
    auto_free char *path = text_fmt("%s/apply.journal", dir);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert(fd >= 0 && file_write_all(fd, data, size, NULL) == 0);
    int code = journal_resume(dir, &a, &journal, &e);
    if (code == 0) {
        carry_to_the_end(&a);
        apply_done(&a);
        assert(journal_finish(journal, NULL) == 0);
    } else {
        assert(e.text[0]);
        assert(code != -ENOENT || access(path, F_OK) < 0);
        (void)unlink(path); /* gone already where there was nothing to resume */
    }
    assert(rmdir(dir) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_json(data, size);
    try_journal(data, size);
    return 0;
}
