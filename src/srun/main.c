/*
 * srun - what scripts that were written for Slurm call to start their tasks.
 *
 * It is found only inside jobs whose script runs once, and starts nothing
 * itself: the job's supervisor does, a process in the task of each slice.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "client/step.h"
#include "srun/label.h"
#include "srun/words.h"

#define STATUS_OURS 125
#define AGAIN_NS 20000000
#define TELL_AFTER 100 /* tries: two seconds */

struct process {
    int sock; /* -1: it has ended */
    struct job_exit end;
    struct label labels[2]; /* of its output and its error, with --label */
};

struct step {
    const struct words *words;
    char *door; /* of the supervisor */
    char *cwd;
    uint64_t job_id;
    uint32_t job_tasks; /* slices, or 1 */
    struct process *all;
    uint32_t count, running;
    int signals, worst;
};

static void say(const char *text)
{
    (void)fprintf(stderr, "srun: %s\n", text); /* nobody reads: nothing to be done */
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    uint64_t n = fallback;
    const char *value = getenv(name);
    if (value && text_parse_u64(value, 1, UINT32_MAX, name, &n, NULL) < 0)
        return fallback;
    return n;
}

/* Where the job is, as its environment tells. */
static int find_job(struct step *s, struct err *e)
{
    const char *attempt = getenv("DIVVY_ATTEMPT");
    const char *root = getenv("DIVVY_ROOT");
    if (!attempt || !root)
        return err_set(e, -ESRCH,
                       "this is no job of Divvy; scripts that divvy submit runs find it inside");
    auto_free char *below = text_fmt("/run/divvy/jobs/%s.sock", attempt);
    s->door = file_under(root, below);
    s->job_id = strtoull(attempt, NULL, 10);
    s->job_tasks = (uint32_t)number_of("DIVVY_SRUN_TASKS", 1);
    s->count = s->words->tasks ? s->words->tasks : (uint32_t)number_of("SLURM_NTASKS", 1);
    if (s->count > REQUEST_TASKS_MAX)
        return err_set(e, -EINVAL, "%u processes are too many, %d work", s->count,
                       REQUEST_TASKS_MAX);
    auto_free char *here = getcwd(NULL, 0);
    if (!here)
        return err_sys(e, "the working directory is gone");
    s->cwd = !s->words->cwd            ? text_dup(here)
             : s->words->cwd[0] == '/' ? text_dup(s->words->cwd)
                                       : text_fmt("%s/%s", here, s->words->cwd);
    s->all = mem_new(s->count * sizeof *s->all);
    for (uint32_t i = 0; i < s->count; i++)
        s->all[i] = (struct process){ .sock = -1, .labels = { LABEL_INIT, LABEL_INIT } };
    return 0;
}

static int open_signals(struct step *s, struct err *e)
{
    static const int relayed[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 };
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof relayed / sizeof *relayed; i++)
        sigaddset(&set, relayed[i]);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, "cannot watch for signals");
    return 0;
}

/* ---- one process ---- */

static char **environment(const struct step *s, uint32_t i)
{
    static const char *const names[] = { "SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NTASKS=",
                                         "SLURM_NPROCS=", "SLURM_STEP_NUM_TASKS=" };
    char **env = NULL;
    for (char **p = environ; *p; p++) {
        bool ours = false;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            ours = ours || text_starts(*p, names[k]);
        if (!ours)
            strv_add(&env, *p);
    }
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        auto_free char *entry = text_fmt("%s%u", names[k], k < 2 ? i : s->count);
        strv_add(&env, entry);
    }
    return env;
}

/* The file that `words` names for process `i`; -1: none is named. */
static int open_file(const struct step *s, const char *words, uint32_t i, int flags, int *ret_fd,
                     struct err *e)
{
    if (!words)
        return 0;
    auto_free char *path = job_output_path(words, s->job_id, i);
    *ret_fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
    return *ret_fd < 0 ? err_sys(e, "cannot open %s", path) : 0;
}

struct files {
    int in, out, error;
};

static void files_done(struct files *f)
{
    const int all[] = { f->in, f->out, f->error };
    for (size_t i = 0; i < 3; i++)
        if (all[i] >= 0)
            (void)close(all[i]); /* the process has its own */
}

static int files_open(const struct step *s, uint32_t i, struct files *f, struct err *e)
{
    /* Several that write one file add to it; each empties it only before any has written. */
    int flags = O_WRONLY | O_CREAT | O_APPEND;
    int anew = i == 0 || job_output_by_task(s->words->output) ? O_TRUNC : 0;
    int anew_error = i == 0 || job_output_by_task(s->words->error) ? O_TRUNC : 0;
    /* One input cannot be read by several. */
    int r = open_file(s, i > 0 && !s->words->input ? "/dev/null" : s->words->input, i, O_RDONLY,
                      &f->in, e);
    if (r == 0)
        r = open_file(s, s->words->output, i, flags | anew, &f->out, e);
    if (r == 0)
        r = open_file(s, s->words->error, i, flags | anew_error, &f->error, e);
    return r;
}

/* Puts a pipe before each of the two; what they were is where it leads. */
static int add_labels(struct step *s, uint32_t i, struct files *f, struct err *e)
{
    int out = f->out >= 0 ? f->out : STDOUT_FILENO;
    int error = f->error >= 0 ? f->error : f->out >= 0 ? f->out : STDERR_FILENO;
    struct label *labels = s->all[i].labels;
    auto_close int into = -1, into_error = -1;
    int r = label_open(&labels[0], i, s->count, out, &into, e);
    if (r == 0)
        r = label_open(&labels[1], i, s->count, error, &into_error, e);
    if (r < 0)
        return r;
    files_done(&(struct files){ .in = -1, .out = f->out, .error = f->error });
    f->out = take_fd(into);
    f->error = take_fd(into_error);
    return 0;
}

static void take_labels(const struct step *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < 2; k++)
            label_take(&s->all[i].labels[k]);
}

/* Waits for as long as it may work later. */
static int start_when_free(const struct step *s, const struct step_ask *ask, int *ret_sock,
                           struct err *e)
{
    for (unsigned tries = 1;; tries++) {
        struct signalfd_siginfo info;
        int r = step_start(s->door, ask, ret_sock, e);
        if (r != -EAGAIN)
            return r;
        if (tries == TELL_AFTER) {
            auto_free char *text = text_fmt("waits: %s", e->text);
            say(text);
        }
        if (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info)
            return err_set(e, -EINTR, "ended by a signal before all of its processes had begun");
        take_labels(s);
        (void)nanosleep(&(struct timespec){ .tv_nsec = AGAIN_NS }, NULL); /* short is fine */
    }
}

static int start_one(struct step *s, uint32_t i, struct err *e)
{
    AUTO(files) struct files f = { .in = -1, .out = -1, .error = -1 };
    int r = files_open(s, i, &f, e);
    if (r == 0 && s->words->label)
        r = add_labels(s, i, &f, e);
    if (r < 0)
        return r;
    int out = f.out >= 0 ? f.out : STDOUT_FILENO;
    const int streams[3] = { f.in >= 0 ? f.in : STDIN_FILENO, out,
                             f.error >= 0 ? f.error
                             : f.out >= 0 ? f.out
                                          : STDERR_FILENO };
    char **env = environment(s, i);
    struct step_ask ask = { .task = i % s->job_tasks,
                            .alone = !s->words->overlap && s->count <= s->job_tasks,
                            .goes_on = i + 1 < s->count,
                            .cwd = s->cwd,
                            .argv = s->words->command,
                            .env = env,
                            .streams = streams };
    r = start_when_free(s, &ask, &s->all[i].sock, e);
    strv_free(env);
    return r;
}

/* ---- all of them ---- */

static void signal_all(const struct step *s, int sig)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->all[i].sock >= 0)
            step_signal(s->all[i].sock, sig);
}

/* What the supervisor sends it sends to every process of the job, ours too. */
static void take_signals(const struct step *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        pid_t from = (pid_t)info.ssi_pid;
        bool told = false;
        for (uint32_t i = 0; i < s->count && !told; i++)
            told = s->all[i].sock >= 0 && from && step_supervisor(s->all[i].sock) == from;
        if (!told)
            signal_all(s, (int)info.ssi_signo);
    }
}

static void tell_end(uint32_t i, const struct job_exit *x)
{
    auto_free char *text = NULL;
    if (x->kind == EXIT_NOT_STARTED)
        text = text_fmt("process %u: %s", i, x->text);
    else if (x->kind == EXIT_SIGNAL)
        text = text_fmt("process %u was ended by signal %d (%s)", i, x->value, strsignal(x->value));
    else if (x->kind != EXIT_CODE)
        text = text_fmt("process %u: %s", i, x->text[0] ? x->text : exit_kind_word(x->kind));
    else if (x->value != 0)
        text = text_fmt("process %u ended with status %d", i, x->value);
    if (text)
        say(text);
}

/* That nobody reads is no failure: then it is not missed. */
static bool lost_some(uint32_t i, const struct process *p)
{
    for (size_t k = 0; k < 2; k++) {
        int r = p->labels[k].failed;
        if (r == 0 || r == -EPIPE)
            continue;
        auto_free char *text =
            text_fmt("what process %" PRIu32 " wrote could not be passed on: %s", i, strerror(-r));
        say(text);
        return true;
    }
    return false;
}

static void take_end(struct step *s, uint32_t i)
{
    struct process *p = &s->all[i];
    struct err e = ERR_INIT;
    int r = step_take(p->sock, &p->end, &e);
    int status = STATUS_OURS;
    if (r == 0)
        return;
    if (r > 0) {
        status = job_exit_status(&p->end);
        tell_end(i, &p->end);
    } else {
        say(e.text);
    }
    (void)close(take_fd_from(&p->sock)); /* nothing more comes */
    label_done(&p->labels[0]);
    label_done(&p->labels[1]);
    if (lost_some(i, p) && !status)
        status = EXIT_FAILURE;
    s->running--;
    if (status > s->worst)
        s->worst = status;
    if (status && s->words->kill_on_bad_exit)
        signal_all(s, SIGTERM);
}

static void fill_fds(const struct process *p, struct pollfd ret[3])
{
    ret[0] = (struct pollfd){ .fd = p->sock, .events = POLLIN };
    for (size_t k = 0; k < 2; k++)
        ret[1 + k] = (struct pollfd){ .fd = p->labels[k].from, .events = POLLIN };
}

static int wait_all(struct step *s, struct err *e)
{
    struct pollfd fds[1 + 3 * REQUEST_TASKS_MAX];
    while (s->running > 0) {
        fds[0] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
        for (uint32_t i = 0; i < s->count; i++)
            fill_fds(&s->all[i], &fds[1 + 3 * i]);
        if (poll(fds, 1 + 3 * s->count, -1) < 0 && errno != EINTR)
            return err_sys(e, "cannot wait");
        if (fds[0].revents)
            take_signals(s);
        take_labels(s);
        for (uint32_t i = 0; i < s->count; i++)
            if (fds[1 + 3 * i].revents && s->all[i].sock >= 0)
                take_end(s, i);
    }
    return 0;
}

static int run(struct step *s, struct err *e)
{
    int r = find_job(s, e);
    if (r == 0)
        r = open_signals(s, e);
    for (uint32_t i = 0; r == 0 && i < s->count; i++) {
        r = start_one(s, i, e);
        s->running += r == 0;
    }
    return r == 0 ? wait_all(s, e) : r; /* those that have begun are hung up when we end */
}

int main(int argc, char **argv)
{
    struct words words;
    struct err e = ERR_INIT;
    struct step s = { .words = &words, .signals = -1 };
    if (words_parse(argc, argv, &words, &e) < 0) {
        say(e.text);
        words_done(&words);
        return STATUS_OURS;
    }
    if (words.version) {
        (void)puts("srun of divvy " DIVVY_VERSION); /* nobody reads: nothing to be done */
        return EXIT_SUCCESS;
    }
    if (words.left_out.len) {
        auto_free char *note =
            text_fmt("left out, since it means nothing here: %s", words.left_out.buf);
        say(note);
    }
    int r = run(&s, &e);
    if (r < 0)
        say(e.text);
    words_done(&words);
    free(s.door);
    free(s.cwd);
    free(s.all);
    return r < 0 ? STATUS_OURS : s.worst;
}
