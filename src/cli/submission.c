#include "cli/submission.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/sbatch.h"
#include "config/script.h"

#define SCRIPT_MAX (256u * 1024u) /* it travels as one JSON string in a body of 1 MiB at most */

error_t submission_parse(struct submission *s, int key, char *arg, struct argp_state *state)
{
    if (job_option_set(&s->options, key, arg))
        return 0;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    /* The first word that is no option ends the options: the rest is the command's own. */
    int at = state->next - 1;
    s->command = state->argv + at;
    s->quoted = state->quoted && at >= state->quoted;
    state->next = state->argc;
    return 0;
}

static int read_script(const char *path, char **ret_text, size_t *ret_len, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0 && errno == ENOENT)
        return err_set(e, -EINVAL,
                       "there is no script %.200s here; a command goes behind --, as in: divvy "
                       "submit -- %.200s",
                       path, path);
    int r = file_read(AT_FDCWD, path, SCRIPT_MAX, ret_text, ret_len, e);
    if (r == -EFBIG)
        return err_set(
            e, -EINVAL,
            "%.200s is no script of at most 256 KiB; submit it as a command: divvy submit "
            "-- ./%.200s",
            path, path);
    if (r < 0)
        return err_set(e, -EINVAL, "cannot read the script %.200s: %s", path, strerror(-r));
    if (memchr(*ret_text, '\0', *ret_len)) {
        free(take_ptr(*ret_text));
        return err_set(e, -EINVAL,
                       "%.200s is a program and no script; submit it as a command: divvy submit -- "
                       "%s%.200s",
                       path, strchr(path, '/') ? "" : "./", path);
    }
    return 0;
}

/* Options of the #DIVVY lines go below those of the command line. */
static int take_script_options(const char *path, const char *text, size_t len,
                               struct script_options *words, struct job_options *ret, struct err *e)
{
    int r = script_parse(path, text, len, words, e);
    if (r < 0)
        return r;
    if (!words->interpreter)
        return err_set(
            e, -EINVAL,
            "%.200s does not begin with #! and an interpreter, as in #!/bin/sh; a command "
            "goes behind --",
            path);
    if (words->late_line)
        verb_note("%s:%u: this #DIVVY line stands behind the first command and does not count",
                  path, words->late_line);
    return job_option_words(path, words->argv, words->lines, words->count, ret, e);
}

/* Those of #SBATCH lines go below #DIVVY lines. */
static int take_sbatch_options(const char *path, const char *text, size_t len,
                               struct script_options *ours, struct job_options *ret, struct err *e)
{
    AUTO(script_options) struct script_options found = SCRIPT_OPTIONS_INIT;
    auto_free char *note = NULL;
    int r = script_parse_sbatch(path, text, len, &found, e);
    if (r == 0)
        r = sbatch_words(path, &found, ours, &note, e);
    if (r == 0 && note)
        verb_note("%s", note);
    if (r == 0 && found.late_line)
        verb_note("%s:%u: this #SBATCH line stands behind the first command and does not count",
                  path, found.late_line);
    return r < 0 ? r : job_option_words(path, ours->argv, ours->lines, ours->count, ret, e);
}

static int check_directory(const char *cwd, struct err *e)
{
    struct stat st;
    if (stat(cwd, &st) < 0)
        return err_set(e, -EINVAL, "--chdir: cannot use %.200s: %s", cwd, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_set(e, -EINVAL, "--chdir: %.200s is no directory", cwd);
    return 0;
}

static bool has_user(const char *words)
{
    return words && strstr(words, "%u");
}

/* May one of its files have %u in its name? A script may say it in an option of its own. */
static bool names_caller(const struct submission *s, const char *script)
{
    return has_user(s->options.values[OPT_OUTPUT].words) ||
           has_user(s->options.values[OPT_ERROR].words) || has_user(script);
}

/*
 * Seen now, rather than hours later when the job begins. What an earlier job is
 * to make, a name that depends on the job, and what only root may not look into
 * (a home on NFS) are left to that moment.
 */
static int check_output(const struct job_spec *s, const char *output, struct err *e)
{
    struct stat st;
    const char *slash = output ? strrchr(output, '/') : NULL;
    if (!slash || slash == output || s->dependency || memchr(output, '%', (size_t)(slash - output)))
        return 0;
    auto_free char *named = text_fmt("%.*s", (int)(slash - output), output);
    auto_free char *path = named[0] == '/' ? text_dup(named) : text_fmt("%s/%s", s->cwd, named);
    if (stat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(e, -EINVAL,
                       "the output %.200s cannot be written: there is no folder %.200s; make it "
                       "first: mkdir -p %.200s",
                       output, path, path);
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(e, -EINVAL, "the output %.200s cannot be written: %.200s is no folder",
                       output, path);
    return 0;
}

static int check_paths(const struct submission *s, const struct job_spec *spec, struct err *e)
{
    int r = s->options.values[OPT_CHDIR].words ? check_directory(spec->cwd, e) : 0;
    if (r == 0)
        r = check_output(spec, spec->output, e);
    return r < 0 ? r : check_output(spec, spec->error, e);
}

static int make_spec(const struct session *session, const struct submission *s, const char *script,
                     bool attached, struct job_spec *ret, struct err *e)
{
    auto_free char *cwd = getcwd(NULL, 0);
    auto_free char *left_out = NULL;
    if (!cwd)
        return err_set(e, -EINVAL, "the working directory is gone: %s; change to another one",
                       strerror(errno));
    struct submit_place where = { .cwd = cwd,
                                  .environ_ = environ,
                                  .command = s->command,
                                  .script = script,
                                  .attached = attached,
                                  .user = names_caller(s, script) ? session->caller_name() : NULL,
                                  .now_wall_us = clock_now().wall_us,
                                  .account_hint = getenv("DIVVY_ACCOUNT") };
    int r = job_options_spec(&s->options, &where, ret, &left_out, e);
    if (r < 0)
        return r;
    if (left_out && !s->quiet)
        verb_note("left out of the job's environment, because they are no UTF-8: %s", left_out);
    r = check_paths(s, ret, e);
    if (r < 0)
        job_spec_done(ret);
    return r;
}

int submission_make(const struct session *session, const struct submission *s, struct job_spec *ret,
                    struct err *e)
{
    return make_spec(session, s, NULL, false, ret, e);
}

int submission_spec(const struct session *session, struct submission *s, bool may_be_script,
                    struct job_spec *ret)
{
    AUTO(script_options) struct script_options words = SCRIPT_OPTIONS_INIT;
    auto_free char *script = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;
    AUTO(job_options) struct job_options below = JOB_OPTIONS_INIT;
    AUTO(script_options) struct script_options slurm = SCRIPT_OPTIONS_INIT;
    AUTO(job_options) struct job_options lowest = JOB_OPTIONS_INIT;
    int r = 0;
    if (!s->command)
        return verb_usage(session, "which command? divvy %s -- ./train.sh%s", session->verb,
                          may_be_script ? ", or a script: divvy submit train.sh" : "");
    if (!session->caller_name && names_caller(s, NULL))
        return session->hand_over(session);
    if (may_be_script && !s->quoted) {
        r = read_script(s->command[0], &script, &len, &e);
        if (r == 0 && !session->caller_name && names_caller(s, script))
            return session->hand_over(session); /* before anything was said */
        if (r == 0)
            r = take_script_options(s->command[0], script, len, &words, &below, &e);
        if (r == 0)
            r = take_sbatch_options(s->command[0], script, len, &slurm, &lowest, &e);
        job_options_merge(&s->options, &below);
        job_options_merge(&s->options, &lowest);
    }
    if (r == 0)
        r = make_spec(session, s, script, !may_be_script, ret, &e);
    job_options_done(&s->options); /* the job has copies */
    return r < 0 ? verb_usage(session, "%s", e.text) : STATUS_OK;
}

int submission_send(const struct session *session, struct client *c, const struct job_spec *spec,
                    uint64_t *ret_id, char **ret_note)
{
    struct err e = ERR_INIT;
    if (client_submit(c, spec, ret_id, ret_note, &e) < 0)
        return verb_fail(session, &e);
    if (*ret_note)
        verb_note("%s", *ret_note);
    return STATUS_OK;
}

void submission_tell_end(const struct job_view *v)
{
    AUTO(text) struct text limit = TEXT_INIT;
    switch (v->state) {
    case JOB_COMPLETED:
        return;
    case JOB_TIMEOUT:
        text_add_limit(&limit, v->limit_us);
        verb_note("#%" PRIu64 " reached its time limit of %s; --time asks for more", v->id,
                  limit.buf);
        return;
    case JOB_OOM:
        verb_note("#%" PRIu64 " used more memory than its limit and was ended%s%s", v->id,
                  v->reason ? ": " : "", v->reason ? v->reason : "");
        return;
    default:
        if (v->reason && text_starts(v->reason, job_state_word(v->state))) /* "cancelled by bob" */
            verb_note("#%" PRIu64 " was %s", v->id, v->reason);
        else if (v->reason)
            verb_note("#%" PRIu64 " %s: %s", v->id, job_state_word(v->state), v->reason);
        else if (v->exit.text[0])
            verb_note("#%" PRIu64 " %s: %s", v->id, job_state_word(v->state), v->exit.text);
        else if (v->state != JOB_FAILED)
            verb_note("#%" PRIu64 " %s", v->id, job_state_word(v->state));
    }
}
