/*
 * Every board through the driver's door: one maximal layout after the other is planned, carried
 * out and read back, and what fails half-way is as it was. DIVVY_TEST_BIN is the build's src/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/layouts.h"
#include "../unit/maximal.h"
#include "apply/apply.h"
#include "base/cleanup.h"
#include "base/file.h"

#ifdef __SANITIZE_ADDRESS__
#define TAKE_NTH 9u /* of a large board's maximal layouts: all of them take minutes then */
#else
#define TAKE_NTH 1u
#endif
#define FAIL_NTH 4u /* of those */

static char *bin; /* folder of divvy-sim */

static void sim(const char *words)
{
    auto_free char *line = text_fmt("%s/divvy-sim %s >/dev/null", bin, words);
    int status = system(line);
    if (status != 0)
        fail_msg("divvy-sim %s: status %d", words, status);
}

struct walk {
    struct driver *driver;
    size_t done, failed;
};

static struct snapshot look(const struct walk *w)
{
    struct snapshot s = SNAPSHOT_INIT;
    struct err e = ERR_INIT;
    if (driver_snapshot(w->driver, NULL, 0, &s, &e) < 0)
        fail_msg("%s", e.text);
    return s;
}

static void assert_same(const struct card *a, const struct card *b)
{
    assert_int_equal(a->slice_count, b->slice_count);
    for (size_t i = 0; i < a->slice_count; i++) {
        assert_int_equal(a->slices[i].profile_id, b->slices[i].profile_id);
        assert_int_equal(a->slices[i].start, b->slices[i].start);
        assert_int_equal(a->slices[i].gi, b->slices[i].gi);
        assert_int_equal(a->slices[i].ci, b->slices[i].ci);
        assert_string_equal(a->slices[i].uuid, b->slices[i].uuid);
    }
}

/* The third creation, and the compute instance of the second: all is as it was before. */
static void fail_first(struct walk *w, const struct plan *p, const struct snapshot *before)
{
    size_t creations = 0;
    for (size_t i = 0; i < p->count; i++)
        creations += p->steps[i].kind == STEP_GI_CREATE || p->steps[i].kind == STEP_CI_CREATE;
    for (size_t nth = 3; nth <= 4 && nth <= creations; nth++) {
        AUTO(apply) struct apply a;
        struct err e = ERR_INIT;
        auto_free char *fault = text_fmt("fault gpu0 create-fails:%zu", nth);
        apply_init(&a, p);
        sim(fault);
        assert_int_equal(apply_run(&a, w->driver, NULL, &e), -ENOSPC);
        assert_int_equal(a.state, APPLY_ROLLED_BACK);
        AUTO(snapshot) struct snapshot after = look(w);
        assert_same(&before->cards[0], &after.cards[0]);
        w->failed++;
    }
}

static void become(const struct maximal *m, void *arg)
{
    struct walk *w = arg;
    if (m->found % (m->board->units > 4 ? TAKE_NTH : 1))
        return;
    auto_free char *list = maximal_text(m, ", ");
    auto_free char *expected = maximal_text(m, " ");
    auto_free char *wish = text_fmt("slices: [%s]", list);
    AUTO(snapshot) struct snapshot before = look(w);
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    AUTO(apply) struct apply a;
    struct err e = ERR_INIT;
    inventory_from_snapshot(&before, &inv);
    layouts_plan(&inv.cards[0], wish, &ch);
    if (ch.verdict > LAYOUT_TO_DO)
        fail_msg("%s: %s", wish, ch.why);
    if (w->done++ % FAIL_NTH == 1)
        fail_first(w, &ch.steps, &before);
    apply_init(&a, &ch.steps);
    if (apply_run(&a, w->driver, NULL, &e) < 0)
        fail_msg("%s: %s", wish, e.text);
    AUTO(snapshot) struct snapshot after = look(w);
    auto_free char *is = layouts_text(&after.cards[0]);
    assert_string_equal(is, expected);
}

static bool walk_board(const char *key)
{
    AUTO_PTR(driver_close) struct driver *d = NULL;
    struct walk w = { .done = 0 };
    struct err e = ERR_INIT;
    auto_free char *up = text_fmt("up %s", key);
    sim(up);
    if (driver_open(NULL, &d, &e) < 0)
        fail_msg("%s: %s", key, e.text);
    w.driver = d;
    AUTO(snapshot) struct snapshot s = look(&w);
    bool cut = s.cards[0].mig_capable;
    if (cut) {
        size_t found = maximal_each(&s.cards[0].board, become, &w);
        printf("# %s: %zu of %zu maximal layouts, %zu failures undone\n", key, w.done, found,
               w.failed);
        assert_true(w.done > 0 && w.failed > 0);
    }
    sim("down");
    return cut;
}

static void maximal_layouts_of_every_board_become_each_other(void **state)
{
    (void)state;
    AUTO(field_words) struct field_words keys = { .words = NULL };
    size_t cut = 0;
    assert_int_equal(board_keys(&keys, NULL), 0);
    for (size_t i = 0; i < keys.count; i++)
        cut += walk_board(keys.words[i]);
    assert_true(cut >= 10);
}

int main(void)
{
    char dir[] = "/tmp/divvy-boards-XXXXXX";
    const char *folder = getenv("DIVVY_TEST_BIN");
    if (!folder || !mkdtemp(dir)) {
        puts("1..0 # SKIP the simulated driver is not built (DIVVY_TEST_BIN)");
        return 0;
    }
    bin = text_dup(folder);
    auto_free char *machine = text_fmt("%s/sim", dir);
    auto_free char *lib = text_fmt("%s/sim/lib/libnvidia-ml.so.1", bin);
    auto_free char *root = text_fmt("%s/root", machine);
    setenv("DIVVY_SIM", machine, 1);
    setenv("DIVVY_NVML", lib, 1);
    setenv("DIVVY_DRIVER_ROOT", root, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maximal_layouts_of_every_board_become_each_other),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)file_remove_tree(AT_FDCWD, dir, NULL); /* under /tmp */
    free(bin);
    return failed;
}
