#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "srun/label.h"

struct scene {
    struct label label;
    int into;
    FILE *out;
};

static void begin(struct scene *s, uint32_t number, uint32_t count)
{
    s->out = tmpfile();
    assert_non_null(s->out);
    assert_int_equal(label_open(&s->label, number, count, fileno(s->out), &s->into, NULL), 0);
}

static void writes(struct scene *s, const char *words)
{
    assert_int_equal(write(s->into, words, strlen(words)), strlen(words));
    label_take(&s->label);
}

static void shows(struct scene *s, const char *words)
{
    char buf[256] = "";
    ssize_t n = pread(fileno(s->out), buf, sizeof buf - 1, 0);
    assert_true(n >= 0);
    assert_string_equal(buf, words);
}

static void end(struct scene *s)
{
    (void)close(s->into);
    label_done(&s->label);
}

static void a_line_goes_on_when_it_is_whole(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, 3, 12);
    writes(&s, "one\ntw");
    shows(&s, " 3: one\n");
    writes(&s, "o\n\n");
    shows(&s, " 3: one\n 3: two\n 3: \n");
    end(&s);
    shows(&s, " 3: one\n 3: two\n 3: \n");
    (void)fclose(s.out);
}

static void the_last_line_gets_its_end(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, 0, 1);
    writes(&s, "no end");
    shows(&s, "");
    end(&s);
    shows(&s, "0: no end\n");
    (void)fclose(s.out);
}

static uint64_t left_in_pipe(const struct scene *s)
{
    int n = 0;
    assert_int_equal(ioctl(s->label.from, FIONREAD, &n), 0);
    return (uint64_t)n;
}

/* One who writes without end must not keep srun from the others, nor from signals. */
static void a_look_takes_so_much_and_no_more(void **state)
{
    (void)state;
    struct scene s;
    static char lines[3 * LABEL_TAKE_MAX];
    begin(&s, 0, 1);
    assert_true(fcntl(s.into, F_SETPIPE_SZ, sizeof lines) >= (int)sizeof lines);
    memset(lines, '\n', sizeof lines);
    assert_int_equal(write(s.into, lines, sizeof lines), sizeof lines);
    label_take(&s.label);
    assert_int_equal(left_in_pipe(&s), 2 * LABEL_TAKE_MAX);
    end(&s); /* and this takes the rest */
    assert_int_equal(lseek(fileno(s.out), 0, SEEK_END), (off_t)(4 * sizeof lines));
    (void)fclose(s.out);
}

static void who_has_it_open_still_keeps_nobody(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, 1, 10);
    writes(&s, "x\n");
    label_done(&s.label); /* `into` is open: a child of the process */
    shows(&s, "1: x\n");
    (void)close(s.into);
    (void)fclose(s.out);
}

static void a_line_that_is_too_long_is_cut(void **state)
{
    (void)state;
    struct scene s;
    auto_free char *long_line = mem_new(LABEL_LINE_MAX / 2 + 1);
    memset(long_line, 'a', LABEL_LINE_MAX / 2);
    begin(&s, 0, 2);
    writes(&s, long_line);
    writes(&s, long_line);
    assert_int_equal(lseek(fileno(s.out), 0, SEEK_END), LABEL_LINE_MAX + 4);
    end(&s);
    assert_int_equal(lseek(fileno(s.out), 0, SEEK_END), LABEL_LINE_MAX + 4);
    (void)fclose(s.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_goes_on_when_it_is_whole),
        cmocka_unit_test(the_last_line_gets_its_end),
        cmocka_unit_test(a_look_takes_so_much_and_no_more),
        cmocka_unit_test(who_has_it_open_still_keeps_nobody),
        cmocka_unit_test(a_line_that_is_too_long_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
