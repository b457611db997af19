#include "apply/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/killpoint.h"
#include "base/text.h"
#include "model/fields.h"

#define JOURNAL_NAME "apply.journal"
#define JOURNAL_MAX (16u << 20)
#define LINE_MAX_MORE 256u /* of a line, beside its step and text */

struct journal {
    int dir;
    int fd;
};

static int append(struct journal *j, json_t *take_line, struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    auto_free char *data = json_dumps(take_line, JSON_COMPACT);
    json_decref(take_line);
    if (!data)
        abort(); /* out of memory: as in base/text.h */
    text_addf(&t, "%s\n", data);
    int code = file_write_all(j->fd, t.buf, t.len, e);
    if (code < 0)
        return err_wrap(e, code, JOURNAL_NAME);
    return fdatasync(j->fd) < 0 ? err_sys(e, "cannot save " JOURNAL_NAME) : 0;
}

/*
 * Takes the room on disk of all lines that may come: of each step there and back what is begun and
 * what came of it. A disk that fills up meanwhile does not leave a card half done then. Where the
 * file system cannot say, it is tried without.
 */
static int reserve(const struct journal *j, size_t steps, size_t plan_bytes, struct err *e)
{
    size_t texts = 2 * (steps + 1) * (ERR_TEXT_MAX + LINE_MAX_MORE);
    off_t room = (off_t)(6 * plan_bytes + 2 * texts);
    if (fallocate(j->fd, FALLOC_FL_KEEP_SIZE, 0, room) == 0 || errno == EOPNOTSUPP ||
        errno == ENOSYS)
        return 0;
    return err_sys(e, "cannot take the room of " JOURNAL_NAME);
}

static struct journal *new_journal(int take_dir, int take_file)
{
    struct journal *j = mem_new(sizeof *j);
    j->dir = take_dir;
    j->fd = take_file;
    return j;
}

static int open_dir(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "cannot open %s", dir) : fd;
}

static int write_plan(struct journal *j, const struct apply *a, struct err *e)
{
    json_t *line = json_object();
    json_put(line, "plan", plan_to_json(&a->plan));
    json_put_u64(line, "resets", a->resets);
    int code = append(j, line, e);
    off_t len = code == 0 ? lseek(j->fd, 0, SEEK_END) : 0;
    if (len < 0)
        return err_sys(e, "cannot look at " JOURNAL_NAME);
    return code == 0 ? reserve(j, a->plan.count, (size_t)len, e) : code;
}

int journal_create(const char *dir, const struct apply *a, struct journal **ret, struct err *e)
{
    auto_close int dirfd = open_dir(dir, e);
    if (dirfd < 0)
        return dirfd;
    auto_close int fd = openat(dirfd, JOURNAL_NAME,
                               O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return err_set(e, -EEXIST,
                       "%s/" JOURNAL_NAME " is there: an earlier change was cut short and has to "
                       "be finished first",
                       dir);
    if (fd < 0)
        return err_sys(e, "cannot make %s/" JOURNAL_NAME, dir);
    struct journal *j = new_journal(take_fd(dirfd), take_fd(fd));
    int code = write_plan(j, a, e);
    if (code == 0)
        code = file_sync_dir(j->dir, e);
    if (code == 0) {
        KILLPOINT(APPLY_PLANNED);
        *ret = j;
        return 0;
    }
    (void)unlinkat(j->dir, JOURNAL_NAME, 0); /* nothing was begun yet */
    journal_close(j);
    return err_wrap(e, code, "nothing was changed: %s", dir);
}

int journal_begin(struct journal *j, const struct step *s, struct err *e)
{
    json_t *line = json_object();
    json_put(line, "begin", step_to_json(s));
    return append(j, line, e);
}

int journal_result(struct journal *j, int code, const struct step *done, const char *text,
                   struct err *e)
{
    json_t *line = json_object();
    json_put_i64(line, "result", code);
    json_put(line, "done", done ? step_to_json(done) : json_null());
    json_put_text(line, "text", text);
    return append(j, line, e);
}

static int play_result(json_t *line, struct apply *a, struct err *e)
{
    struct fields f;
    struct step done;
    fields_open(&f, line, "journal line", e);
    int result = (int)fields_i64(&f, "result", FIELD_REQUIRED, INT32_MIN, 0, 0);
    json_t *step = fields_object(&f, "done", FIELD_OPTIONAL);
    const char *text = fields_text(&f, "text", FIELD_OPTIONAL, ERR_TEXT_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0 && step)
        code = step_from_json(step, &done, e);
    if (code == 0)
        apply_result(a, result, step ? &done : NULL, text);
    return code;
}

static int play_plan(json_t *line, struct apply *a, struct err *e)
{
    struct fields f;
    AUTO(plan) struct plan p = PLAN_INIT;
    if (!json_object_get(line, "plan"))
        return err_set(e, -EINVAL, "it does not begin with a plan");
    fields_open(&f, line, "journal line", e);
    json_t *plan = fields_array(&f, "plan", FIELD_REQUIRED, SIZE_MAX);
    uint64_t resets = fields_u64(&f, "resets", FIELD_OPTIONAL, 0, APPLY_RESET_NEVER, 0);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = plan_from_json(plan, &p, e);
    if (code < 0)
        return code;
    apply_init(a, &p);
    a->resets = (enum apply_resets)resets;
    return 0;
}

/* One line into the machine; the first must be the plan. */
static int play(json_t *line, struct apply *a, bool *begun, struct err *e)
{
    if (!*begun) {
        int code = play_plan(line, a, e);
        *begun = code == 0;
        return code;
    }
    if (!apply_next(a))
        return err_set(e, -EINVAL, "it goes on after the last step");
    if (json_object_get(line, "begin")) {
        apply_begin(a);
        return 0;
    }
    return play_result(line, a, e);
}

/* A line that was cut short by a crash has no newline and was acted on by nobody. */
static int play_all(const char *data, struct apply *a, bool *begun, size_t *ret_good, struct err *e)
{
    const char *at = data;
    const char *end;
    int code = 0;
    for (size_t n = 1; code == 0 && (end = strchr(at, '\n')); n++) {
        auto_json json_t *line = NULL;
        code = json_parse(at, (size_t)(end - at), JOURNAL_NAME, &line, e);
        if (code == 0)
            code = play(line, a, begun, e);
        if (code < 0)
            return err_wrap(e, -EINVAL, JOURNAL_NAME ", line %zu", n);
        at = end + 1;
    }
    *ret_good = (size_t)(at - data);
    return 0;
}

int journal_resume(const char *dir, struct apply *ret_apply, struct journal **ret, struct err *e)
{
    struct apply a = { .state = APPLY_DONE };
    bool begun = false;
    size_t len, good = 0;
    auto_free char *data = NULL;
    auto_close int dirfd = open_dir(dir, e);
    if (dirfd < 0)
        return dirfd;
    int code = file_read(dirfd, JOURNAL_NAME, JOURNAL_MAX, &data, &len, e);
    if (code == 0)
        code = play_all(data, &a, &begun, &good, e);
    if (code == 0 && !begun) {
        (void)unlinkat(dirfd, JOURNAL_NAME, 0); /* died before its first line: nothing was begun */
        code = err_set(e, -ENOENT, "no change was cut short");
    }
    auto_close int fd =
        code < 0 ? -1 : openat(dirfd, JOURNAL_NAME, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (code == 0 && (fd < 0 || (good != len && ftruncate(fd, (off_t)good) < 0)))
        code = err_sys(e, "cannot open %s/" JOURNAL_NAME, dir);
    if (code < 0) {
        apply_done(&a);
        return code;
    }
    *ret_apply = a;
    *ret = new_journal(take_fd(dirfd), take_fd(fd));
    return 0;
}

int journal_finish(struct journal *j, struct err *e)
{
    int code = 0;
    KILLPOINT(APPLY_OVER);
    if (unlinkat(j->dir, JOURNAL_NAME, 0) < 0)
        code = err_sys(e, "cannot remove " JOURNAL_NAME);
    if (code == 0)
        code = file_sync_dir(j->dir, e);
    KILLPOINT(APPLY_CLOSED);
    journal_close(j);
    return code;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    (void)close(j->fd); /* every line was synced */
    (void)close(j->dir);
    free(j);
}
