#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "model/job.h"

static const enum job_state ended[] = { JOB_COMPLETED, JOB_FAILED,    JOB_CANCELLED, JOB_TIMEOUT,
                                        JOB_OOM,       JOB_PREEMPTED, JOB_LOST };
#define ENDED (sizeof ended / sizeof *ended)

/*
 * Every change that may happen, written down from the life of a job and not
 * from the code: a job waits, its slices are cut, its supervisor starts it, it
 * runs, it is cleared away, it has ended. JOB_STATES stands for the verdict.
 */
static const struct change {
    enum job_state from;
    enum job_event ev;
    enum job_state to;
} changes[] = {
    /* the way of a job that goes well */
    { JOB_PENDING, JOB_EV_PLACE, JOB_PREPARING },
    { JOB_PREPARING, JOB_EV_READY, JOB_STARTING },
    { JOB_STARTING, JOB_EV_STARTED, JOB_RUNNING },
    { JOB_RUNNING, JOB_EV_EXITED, JOB_ENDING },
    { JOB_ENDING, JOB_EV_CLEARED, JOB_STATES },
    /* back into the queue */
    { JOB_PREPARING, JOB_EV_UNREADY, JOB_PENDING },
    { JOB_ENDING, JOB_EV_REQUEUE, JOB_PENDING },
    /* it never had a process */
    { JOB_PENDING, JOB_EV_DROP, JOB_STATES },
    { JOB_PREPARING, JOB_EV_DROP, JOB_STATES },
    /* told to end, ended before it was seen to start, or its supervisor is gone */
    { JOB_STARTING, JOB_EV_STOP, JOB_ENDING },
    { JOB_RUNNING, JOB_EV_STOP, JOB_ENDING },
    { JOB_STARTING, JOB_EV_EXITED, JOB_ENDING },
    { JOB_STARTING, JOB_EV_VANISHED, JOB_ENDING },
    { JOB_RUNNING, JOB_EV_VANISHED, JOB_ENDING },
};

static const struct change *find_change(enum job_state from, enum job_event ev)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (changes[i].from == from && changes[i].ev == ev)
            return &changes[i];
    return NULL;
}

/* One state, one event, one verdict against the list. */
static void assert_step(enum job_state from, enum job_event ev, enum job_state verdict)
{
    struct err e = ERR_INIT;
    enum job_state to = JOB_STATES;
    const struct change *c = find_change(from, ev);
    int r = job_next_state(from, ev, verdict, &to, &e);
    if (!c) {
        assert_int_equal(r, -EINVAL);
        assert_int_equal(to, JOB_STATES);
        assert_string_not_equal(e.text, "");
        return;
    }
    bool by_verdict = c->to == JOB_STATES;
    if (by_verdict && !job_state_ended(verdict)) {
        assert_int_equal(r, -EINVAL);
        assert_int_equal(to, JOB_STATES);
        return;
    }
    assert_int_equal(r, 0);
    assert_int_equal(to, by_verdict ? verdict : c->to);
}

static void every_state_knows_every_event(void **state)
{
    (void)state;
    for (int from = 0; from < JOB_STATES; from++)
        for (int ev = 0; ev < JOB_EVENTS; ev++)
            for (int verdict = 0; verdict < JOB_STATES; verdict++)
                assert_step((enum job_state)from, (enum job_event)ev, (enum job_state)verdict);
}

static void what_has_ended_stays_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENDED; i++) {
        assert_true(job_state_ended(ended[i]));
        for (int ev = 0; ev < JOB_EVENTS; ev++) {
            enum job_state to;
            assert_int_equal(job_next_state(ended[i], (enum job_event)ev, JOB_COMPLETED, &to, NULL),
                             -EINVAL);
        }
    }
    assert_false(job_state_ended(JOB_PENDING));
    assert_false(job_state_ended(JOB_ENDING));
    assert_false(job_state_ended(JOB_STATES));
}

static void a_change_that_cannot_be_is_said_in_words(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    enum job_state to;
    assert_int_equal(job_next_state(JOB_RUNNING, JOB_EV_PLACE, JOB_LOST, &to, &e), -EINVAL);
    assert_string_equal(e.text, "a job that is running cannot be placed");
}

/* The columns of the table in the order in which it names them. */
struct columns {
    enum job_event ev[JOB_EVENTS];
    size_t count;
};

static enum job_event event_called(const char *word)
{
    static const char *const words[JOB_EVENTS] = { "place",   "ready",  "unready",  "started",
                                                   "stop",    "exited", "vanished", "cleared",
                                                   "requeue", "drop" };
    for (int i = 0; i < JOB_EVENTS; i++)
        if (strcmp(words[i], word) == 0)
            return (enum job_event)i;
    fail_msg("ARCHITECTURE.md has an event '%s'", word);
    return JOB_EVENTS;
}

static void assert_cell(enum job_state from, enum job_event ev, const char *word)
{
    enum job_state to = JOB_STATES;
    int r = job_next_state(from, ev, JOB_OOM, &to, NULL);
    enum job_state said = JOB_OOM;
    if (strcmp(word, "-") == 0) {
        assert_int_equal(r, -EINVAL);
        return;
    }
    if (strcmp(word, "verdict") != 0)
        assert_int_equal(job_state_parse(word, &said), 0);
    assert_int_equal(r, 0);
    assert_int_equal(to, said);
}

/* A line of the table. Returns 1 for a state, 0 for the head. */
static int read_row(char *line, struct columns *columns)
{
    char *rest = line;
    enum job_state from = JOB_STATES;
    char *word = strtok_r(line, " ", &rest);
    bool head = columns->count == 0;
    if (head)
        columns->ev[columns->count++] = event_called(word);
    else
        assert_int_equal(job_state_parse(word, &from), 0);
    size_t n = 0;
    while ((word = strtok_r(NULL, " ", &rest))) {
        assert_true(n < JOB_EVENTS);
        if (head)
            columns->ev[columns->count++] = event_called(word);
        else
            assert_cell(from, columns->ev[n++], word);
    }
    assert_int_equal(head ? columns->count : n, JOB_EVENTS);
    return !head;
}

static void the_page_shows_the_table_that_the_code_has(void **state)
{
    (void)state;
    const char *source = getenv("DIVVY_SOURCE");
    auto_free char *path = text_fmt("%s/ARCHITECTURE.md", source ? source : ".");
    auto_free char *page = NULL;
    int r = file_read(AT_FDCWD, path, 1 << 20, &page, NULL, NULL);
    char *table = r == 0 ? strstr(page, "```state\n") : NULL;
    if (!table) {
        print_message("# %s has no block headed by state (DIVVY_SOURCE names the tree)\n", path);
        skip();
        return;
    }
    table += strlen("```state\n");
    char *end = strstr(table, "```");
    assert_non_null(end);
    *end = '\0';
    struct columns columns = { .count = 0 };
    int rows = 0;
    char *rest = NULL;
    for (char *line = strtok_r(table, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        rows += read_row(line, &columns);
    assert_int_equal(rows, JOB_COMPLETED); /* every state that has not ended */
}

static void every_word_is_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < JOB_STATES; i++) {
        enum job_state s = JOB_STATES;
        assert_int_equal(job_state_parse(job_state_word((enum job_state)i), &s), 0);
        assert_int_equal(s, i);
    }
    for (int i = EXIT_NONE; i <= EXIT_INTERRUPTED; i++) {
        enum exit_kind k = EXIT_NONE;
        assert_int_equal(exit_kind_parse(exit_kind_word((enum exit_kind)i), &k), 0);
        assert_int_equal(k, i);
    }
    for (int i = 0; i < JOB_EVENTS; i++)
        assert_string_not_equal(job_event_word((enum job_event)i), "");
    enum job_state s = JOB_OOM;
    enum exit_kind k = EXIT_OOM;
    assert_int_equal(job_state_parse("RUNNING", &s), -EINVAL);
    assert_int_equal(job_state_parse("", &s), -EINVAL);
    assert_int_equal(exit_kind_parse("exit", &k), -EINVAL);
    assert_int_equal(s, JOB_OOM);
    assert_int_equal(k, EXIT_OOM);
}

static void a_job_ends_as_its_exit_says(void **state)
{
    (void)state;
    static const struct {
        enum exit_kind kind;
        int value;
        enum job_state verdict;
        int status;
    } table[] = {
        { EXIT_CODE, 0, JOB_COMPLETED, 0 },       { EXIT_CODE, 1, JOB_FAILED, 1 },
        { EXIT_CODE, 255, JOB_FAILED, 255 },      { EXIT_SIGNAL, 9, JOB_FAILED, 137 },
        { EXIT_SIGNAL, 15, JOB_FAILED, 143 },     { EXIT_OOM, 9, JOB_OOM, 137 },
        { EXIT_TIMEOUT, 15, JOB_TIMEOUT, 124 },   { EXIT_CANCELLED, 15, JOB_CANCELLED, 130 },
        { EXIT_NOT_STARTED, 0, JOB_FAILED, 126 }, { EXIT_NOT_STARTED, 127, JOB_FAILED, 127 },
        { EXIT_NONE, 0, JOB_LOST, 125 },          { EXIT_LOST, 0, JOB_LOST, 125 },
        { EXIT_INTERRUPTED, 0, JOB_LOST, 125 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct job_exit x = { .kind = table[i].kind, .value = table[i].value };
        assert_int_equal(job_exit_verdict(&x), table[i].verdict);
        assert_int_equal(job_exit_status(&x), table[i].status);
    }
}

static void a_place_is_shown_by_its_addresses(void **state)
{
    (void)state;
    struct place p = { .items = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    struct placed *item = place_add(&p);
    assert_int_equal(item->gi, NOT_AN_INSTANCE);
    assert_int_equal(item->ci, NOT_AN_INSTANCE);
    memcpy(item->profile, "2g.20gb", sizeof "2g.20gb");
    item->start = 4;
    item = place_add(&p);
    item->ordinal = 1;
    item->whole = true;
    place_add_text(&t, &p);
    assert_string_equal(t.buf, "gpu0/2g.20gb@4, gpu1");
    struct place copy;
    place_copy(&p, &copy);
    place_done(&p);
    place_add_text(&t, &p); /* nothing */
    text_clear(&t);
    place_add_text(&t, &copy);
    assert_string_equal(t.buf, "gpu0/2g.20gb@4, gpu1");
    place_done(&copy);
}

static void a_list_of_strings_grows_and_is_copied(void **state)
{
    (void)state;
    char **v = NULL;
    assert_int_equal(strv_count(v), 0);
    strv_add(&v, "python3");
    strv_add(&v, "train.py");
    char **copy = strv_copy(v);
    assert_int_equal(strv_count(copy), 2);
    assert_string_equal(copy[1], "train.py");
    assert_ptr_not_equal(copy[1], v[1]);
    strv_free(v);
    strv_free(copy);
    strv_free(NULL);
}

static void assert_output(const char *output, const char *path, bool by_task)
{
    auto_free char *s = job_output_path(output, 41, 3);
    assert_string_equal(s, path);
    assert_int_equal(job_output_by_task(output), by_task);
}

static void an_output_file_is_named_by_job_and_task(void **state)
{
    (void)state;
    assert_output("out.txt", "out.txt", false);
    assert_output("out-%j.txt", "out-41.txt", false);
    assert_output("%j/%t", "41/3", true);
    assert_output("100%%t", "100%t", false);
    assert_output("%%%t%", "%3%", true);
    assert_output("%x", "%x", false);
    assert_null(job_output_path(NULL, 41, 3));
    assert_false(job_output_by_task(NULL));
}

static void spec_init(struct job_spec *s)
{
    *s = (struct job_spec){ .name = text_dup("train"), .account = text_dup("nlp") };
    s->cwd = text_dup("/home/alice");
    strv_add(&s->argv, "python3");
    strv_add(&s->argv, "train.py");
    strv_add(&s->env, "HOME=/home/alice");
    s->request = (struct request){ .kind = REQUEST_CARDS, .count = 1 };
}

static void assert_refused(struct job_spec *s, int code, const char *sentence)
{
    struct err e = ERR_INIT;
    assert_int_equal(job_spec_check(s, &e), code);
    assert_string_equal(e.text, sentence);
    job_spec_done(s);
}

static void swap(char **s, const char *other)
{
    free(*s);
    *s = text_dup(other);
}

/* n times 'x' behind `head`; borrowed until the next call. */
static const char *filled(const char *head, size_t n)
{
    static char buf[200000];
    size_t len = strlen(head);
    assert_true(len + n < sizeof buf);
    memcpy(buf, head, len);
    memset(buf + len, 'x', n);
    buf[len + n] = '\0';
    return buf;
}

static void a_sane_job_is_let_through(void **state)
{
    (void)state;
    struct job_spec s;
    struct err e = ERR_INIT;
    spec_init(&s);
    swap(&s.name, filled("", JOB_NAME_MAX));
    swap(&s.account, filled("", JOB_ACCOUNT_MAX));
    strv_add(&s.argv, "");                          /* an argument may be empty */
    strv_add(&s.env, "LESS_TERMCAP_mb=\x1b[1;31m"); /* and a variable hold controls */
    strv_add(&s.argv, filled("", JOB_COMMAND_MAX - strlen("python3 train.py") - 3));
    if (job_spec_check(&s, &e) < 0)
        fail_msg("%s", e.text);
    job_spec_done(&s);
}

static void jobs_without_a_name_or_command_are_refused(void **state)
{
    (void)state;
    struct job_spec s;
    spec_init(&s);
    swap(&s.name, NULL);
    assert_refused(&s, -EINVAL, "the job's name is missing");
    spec_init(&s);
    swap(&s.account, "");
    assert_refused(&s, -EINVAL, "the account's name is missing");
    spec_init(&s);
    strv_free(s.argv);
    s.argv = NULL;
    assert_refused(&s, -EINVAL,
                   "there is no command; put it after --, as in: divvy submit -- ./train.sh");
    spec_init(&s);
    swap(&s.argv[0], "");
    assert_refused(&s, -EINVAL,
                   "there is no command; put it after --, as in: divvy submit -- ./train.sh");
    spec_init(&s);
    swap(&s.cwd, "work");
    assert_refused(&s, -EINVAL, "the working directory must be an absolute path");
    spec_init(&s);
    s.limit_us = -1;
    assert_refused(&s, -EINVAL, "the time limit is negative");
}

static void jobs_that_are_too_big_are_refused(void **state)
{
    (void)state;
    struct job_spec s;
    spec_init(&s);
    swap(&s.name, filled("", 10240));
    assert_refused(&s, -E2BIG, "the job's name has 10240 bytes, at most 128 work");
    spec_init(&s);
    strv_add(&s.argv, filled("", JOB_COMMAND_MAX));
    assert_refused(&s, -E2BIG, "the command is too long, 4096 arguments and 131072 bytes work");
    spec_init(&s);
    strv_free(s.argv);
    s.argv = mem_new((JOB_ARGS_MAX + 2) * sizeof *s.argv);
    for (size_t i = 0; i <= JOB_ARGS_MAX; i++)
        s.argv[i] = text_dup("x");
    assert_refused(&s, -E2BIG, "the command is too long, 4096 arguments and 131072 bytes work");
    spec_init(&s);
    strv_add(&s.env, filled("A=", JOB_ENV_MAX - 2));
    assert_refused(&s, -E2BIG,
                   "the environment has 131090 bytes, at most 131072 work; --env none leaves it "
                   "out");
}

static void jobs_that_json_cannot_hold_are_refused(void **state)
{
    (void)state;
    struct job_spec s;
    spec_init(&s);
    swap(&s.name, "a\nb");
    assert_refused(&s, -EINVAL, "the job's name has characters that are no printable UTF-8");
    spec_init(&s);
    swap(&s.argv[1], "f\xfcr.py");
    assert_refused(&s, -EINVAL, "the command has an argument that is no UTF-8: f?r.py");
    spec_init(&s);
    strv_add(&s.env, "NAME=M\xfcller");
    assert_refused(&s, -EINVAL,
                   "the environment has a variable that is no UTF-8: NAME=M?ller; unset it, or "
                   "--env none leaves all out");
    spec_init(&s);
    swap(&s.cwd, "/home/m\xfcller");
    assert_refused(&s, -EINVAL, "the working directory's name is no UTF-8: /home/m?ller");
    spec_init(&s);
    swap(&s.output, "m\xfcller.out");
    assert_refused(&s, -EINVAL, "the output file's name is no UTF-8: m?ller.out");
    spec_init(&s);
    swap(&s.script, "#!/bin/sh\necho m\xfcller\n");
    assert_refused(&s, -EINVAL, "the script is no UTF-8");
}

static void what_a_job_asks_for_is_checked_too(void **state)
{
    (void)state;
    struct job_spec s;
    spec_init(&s);
    s.request.count = 129;
    assert_refused(&s, -ERANGE, "a job may ask for 1 to 128 cards or slices, not 129");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_knows_every_event),
        cmocka_unit_test(what_has_ended_stays_so),
        cmocka_unit_test(a_change_that_cannot_be_is_said_in_words),
        cmocka_unit_test(the_page_shows_the_table_that_the_code_has),
        cmocka_unit_test(every_word_is_read_back),
        cmocka_unit_test(a_job_ends_as_its_exit_says),
        cmocka_unit_test(a_place_is_shown_by_its_addresses),
        cmocka_unit_test(a_list_of_strings_grows_and_is_copied),
        cmocka_unit_test(an_output_file_is_named_by_job_and_task),
        cmocka_unit_test(a_sane_job_is_let_through),
        cmocka_unit_test(jobs_without_a_name_or_command_are_refused),
        cmocka_unit_test(jobs_that_are_too_big_are_refused),
        cmocka_unit_test(jobs_that_json_cannot_hold_are_refused),
        cmocka_unit_test(what_a_job_asks_for_is_checked_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
