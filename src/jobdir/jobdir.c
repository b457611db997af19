#include "jobdir/jobdir.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/killpoint.h"
#include "jobdir/mount.h"
#include "jobdir/record.h"
#include "jobdir/spec.h"

#define FILE_BYTES_MAX (4u << 20)
#define TEMPORARY ".new-"
#define GONE TEMPORARY "gone-"
#define SPEC "spec.json"

static const char *const stop_words[] = { "none", "cancel", "preempt", "timeout", "outside" };
static const char *const state_words[] = { "new", "starting", "started, supervised",
                                           "started, supervisor gone", "ended" };

const char *jobdir_stop_word(enum jobdir_stop reason)
{
    return stop_words[reason];
}

const char *jobdir_state_word(enum jobdir_state s)
{
    return state_words[s];
}

char *jobdir_path(const char *jobs, uint64_t job_id, uint32_t attempt)
{
    return text_fmt("%s/%" PRIu64 ".%" PRIu32, jobs, job_id, attempt);
}

bool jobdir_parse_name(const char *name, uint64_t *ret_job_id, uint32_t *ret_attempt)
{
    uint64_t id, attempt;
    const char *dot = strchr(name, '.');
    if (!dot || dot == name || strlen(name) > 31)
        return false;
    auto_free char *first = text_fmt("%.*s", (int)(dot - name), name);
    if (text_parse_u64(first, 1, INT64_MAX, "job", &id, NULL) < 0 ||
        text_parse_u64(dot + 1, 1, UINT32_MAX, "attempt", &attempt, NULL) < 0)
        return false;
    auto_free char *again = text_fmt("%" PRIu64 ".%" PRIu64, id, attempt);
    if (!text_same(again, name)) /* "041.1" is another name, not another spelling */
        return false;
    *ret_job_id = id;
    *ret_attempt = (uint32_t)attempt;
    return true;
}

/*
 * Temporary file, then rename; the descriptor comes back so that syncing can
 * be left to the end, when one journal commit covers all of it.
 */
static int publish(int dir, const char *name, json_t *take_json, int *ret_fd, struct err *e)
{
    auto_json json_t *j = take_json;
    auto_free char *data = json_dumps(j, JSON_COMPACT);
    if (!data)
        return err_set(e, -ENOMEM, "cannot write %s: no memory", name);
    auto_free char *temporary = text_fmt(".%s.%d", name, (int)getpid());
    auto_close int fd =
        openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "cannot create %s", name);
    int r = file_write_all(fd, data, strlen(data), e);
    if (r == 0)
        r = file_write_all(fd, "\n", 1, e);
    if (r == 0 && renameat(dir, temporary, dir, name) < 0)
        r = err_sys(e, "cannot rename to %s", name);
    if (r < 0) {
        (void)unlinkat(dir, temporary, 0); /* the first error is the one to tell */
        return r;
    }
    if (ret_fd)
        *ret_fd = take_fd(fd);
    return 0;
}

static bool has(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* `entry`: the folder's own, in jobs/. */
static int sync_names(int dir, bool entry, struct err *e)
{
    auto_close int jobs = entry ? openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fsync(dir) < 0 || (entry && (jobs < 0 || fsync(jobs) < 0)))
        return err_sys(e, "cannot sync the folder");
    return 0;
}

static int publish_synced(int dir, const char *name, json_t *take_json, bool entry, struct err *e)
{
    auto_close int fd = -1;
    int r = publish(dir, name, take_json, &fd, e);
    if (r < 0)
        return r;
    if (fsync(fd) < 0)
        return err_sys(e, "cannot sync %s", name);
    return mount_brings_names(fd) ? 0 : sync_names(dir, entry, e);
}

static int fill_new(int parent, const char *temporary, const struct jobdir_spec *spec,
                    struct err *e)
{
    if (mkdirat(parent, temporary, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot create the folder");
    auto_close int dir = openat(parent, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "cannot open the new folder");
    return publish(dir, SPEC, jobdir_spec_to_json(spec), NULL, e);
}

static int open_jobs(const char *jobs, int *ret_fd, struct err *e)
{
    *ret_fd = open(jobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(e, "cannot open %s", jobs) : 0;
}

int jobdir_create(const char *jobs, const struct jobdir_spec *spec, struct err *e)
{
    auto_close int parent = -1;
    int r = open_jobs(jobs, &parent, e);
    if (r < 0)
        return r;
    auto_free char *path = jobdir_path(jobs, spec->job_id, spec->attempt);
    const char *name = path + strlen(jobs) + 1;
    auto_free char *temporary = text_fmt(TEMPORARY "%s", name);
    r = fill_new(parent, temporary, spec, e);
    KILLPOINT(FOLDER_FILLED);
    if (r == 0 && renameat2(parent, temporary, parent, name, RENAME_NOREPLACE) < 0)
        r = err_sys(e, "cannot rename the new folder");
    if (r < 0) {
        (void)file_remove_tree(parent, temporary, NULL); /* jobdir_scan reports what stays */
        return err_wrap(e, r, "%s", path);
    }
    return 0;
}

int jobdir_open(const char *jobs, uint64_t job_id, uint32_t attempt, int *ret_dir, struct err *e)
{
    auto_free char *path = jobdir_path(jobs, job_id, attempt);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "cannot open %s", path);
    *ret_dir = dir;
    return 0;
}

/*
 * An open-file lock can be asked for without taking it, so a look never makes
 * a claim fail; and read-only, so that a look is no IN_CLOSE_WRITE for those
 * who wait for the supervisor's end.
 */
static int lock_is_held(int dir, struct err *e)
{
    auto_close int fd = openat(dir, SPEC, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "cannot open lock");
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
        return err_sys(e, "cannot ask for the lock");
    return lock.l_type != F_UNLCK;
}

int jobdir_state(int dir, struct err *e)
{
    /* The lock is asked between two looks at the files: whatever a supervisor
     * did meanwhile, it did in the order lock, started, exit, unlock. */
    if (has(dir, "exit"))
        return JOBDIR_ENDED;
    bool started = has(dir, "started");
    int held = lock_is_held(dir, e);
    if (held < 0)
        return held;
    if (held)
        return started ? JOBDIR_STARTED_ALIVE : JOBDIR_STARTING;
    if (has(dir, "exit"))
        return JOBDIR_ENDED;
    return has(dir, "started") ? JOBDIR_STARTED_DEAD : JOBDIR_NEW;
}

int jobdir_claim(int dir, int *ret_lock, struct err *e)
{
    /* One that a power cut took away is found to be empty, and told as such. */
    auto_close int fd = openat(dir, SPEC, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "cannot open " SPEC);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
        return errno == EAGAIN || errno == EACCES
                   ? err_set(e, -EBUSY, "another supervisor has this attempt")
                   : err_sys(e, "cannot lock");
    if (has(dir, "started") || has(dir, "exit"))
        return err_set(e, -EALREADY, "this attempt has started before; it is never started again");
    *ret_lock = take_fd(fd);
    return 0;
}

static int read_json(int dir, const char *name, json_t **ret, struct err *e)
{
    auto_free char *data = NULL;
    size_t len = 0;
    int r = file_read(dir, name, FILE_BYTES_MAX, &data, &len, e);
    return r < 0 ? r : json_parse(data, len, name, ret, e);
}

int jobdir_read_spec(int dir, struct jobdir_spec *ret, struct err *e)
{
    auto_json json_t *j = NULL;
    int r = read_json(dir, SPEC, &j, e);
    return r < 0 ? r : jobdir_spec_from_json(j, ret, e);
}

int jobdir_read_started(int dir, struct jobdir_started *ret, struct err *e)
{
    auto_json json_t *j = NULL;
    int r = read_json(dir, "started", &j, e);
    return r < 0 ? r : jobdir_started_from_json(j, ret, e);
}

int jobdir_read_exit(int dir, struct jobdir_exit *ret, struct err *e)
{
    auto_json json_t *j = NULL;
    int r = read_json(dir, "exit", &j, e);
    return r < 0 ? r : jobdir_exit_from_json(j, ret, e);
}

/* Half a notice, or a senseless one, is none. */
static void read_notice(json_t *j, struct jobdir_notice *ret)
{
    json_int_t signal = json_integer_value(json_object_get(j, "signal"));
    json_int_t grace = json_integer_value(json_object_get(j, "grace_us"));
    *ret = (struct jobdir_notice){ .signal = 0 };
    if (signal > 0 && signal < NSIG && grace >= 0 && grace <= JOBDIR_GRACE_MAX_US)
        *ret = (struct jobdir_notice){ .signal = (int)signal, .grace_us = grace };
}

enum jobdir_stop jobdir_read_stop(int dir, struct jobdir_notice *ret)
{
    auto_json json_t *j = NULL;
    int r = read_json(dir, "stop", &j, NULL);
    if (ret)
        read_notice(r == 0 ? j : NULL, ret);
    if (r == -ENOENT)
        return JOBDIR_STOP_NONE;
    const char *word = r == 0 ? json_string_value(json_object_get(j, "reason")) : NULL;
    for (int i = JOBDIR_STOP_CANCEL; word && i <= JOBDIR_STOP_TIMEOUT; i++)
        if (strcmp(word, stop_words[i]) == 0)
            return (enum jobdir_stop)i;
    return JOBDIR_STOP_CANCEL;
}

int jobdir_write_started(int dir, const struct jobdir_started *s, bool durable, struct err *e)
{
    json_t *j = jobdir_started_to_json(s);
    return durable ? publish_synced(dir, "started", j, true, e)
                   : publish(dir, "started", j, NULL, e);
}

int jobdir_write_exit(int dir, const struct jobdir_exit *x, bool first, struct err *e)
{
    return publish_synced(dir, "exit", jobdir_exit_to_json(x), first, e);
}

int jobdir_stop(int dir, enum jobdir_stop reason, const struct jobdir_notice *n, struct err *e)
{
    json_t *j = json_object();
    json_put_u64(j, "v", JOBDIR_VERSION);
    json_put_text(j, "reason", stop_words[reason]);
    if (n && n->signal) {
        json_put_u64(j, "signal", (uint64_t)n->signal);
        json_put_i64(j, "grace_us", n->grace_us);
    }
    return publish(dir, "stop", j, NULL, e);
}

int jobdir_put_away(const char *jobs, uint64_t job_id, uint32_t attempt, char **ret_name,
                    struct err *e)
{
    auto_close int parent = -1;
    int r = open_jobs(jobs, &parent, e);
    if (r < 0)
        return r;
    auto_free char *path = jobdir_path(jobs, job_id, attempt);
    const char *name = path + strlen(jobs) + 1;
    auto_free char *gone = text_fmt(GONE "%s", name);
    r = renameat(parent, name, parent, gone);
    if (r < 0 && (errno == ENOTEMPTY || errno == EEXIST)) { /* one that was made anew */
        r = file_remove_tree(parent, gone, e);
        if (r < 0)
            return r;
        r = renameat(parent, name, parent, gone);
    }
    if (r < 0)
        return err_sys(e, "cannot rename %s", path);
    KILLPOINT(FOLDER_RENAMED);
    *ret_name = take_ptr(gone);
    return 0;
}

bool jobdir_parse_put_away(const char *name, uint64_t *ret_job_id, uint32_t *ret_attempt)
{
    return text_starts(name, GONE) &&
           jobdir_parse_name(name + strlen(GONE), ret_job_id, ret_attempt);
}

int jobdir_remove(const char *jobs, uint64_t job_id, uint32_t attempt, struct err *e)
{
    auto_free char *gone = NULL;
    int r = jobdir_put_away(jobs, job_id, attempt, &gone, e);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    assert(gone);
    return jobdir_remove_leftover(jobs, gone, e);
}

int jobdir_remove_leftover(const char *jobs, const char *name, struct err *e)
{
    auto_close int parent = -1;
    if (!text_starts(name, TEMPORARY) || strchr(name, '/'))
        return err_set(e, -EINVAL, "%s/%s is no attempt's folder", jobs, name);
    int r = open_jobs(jobs, &parent, e);
    return r < 0 ? r : file_remove_tree(parent, name, e);
}

int jobdir_scan(const char *jobs, jobdir_each_fn each, jobdir_garbage_fn garbage, void *user,
                struct err *e)
{
    auto_dir DIR *d = opendir(jobs);
    if (!d)
        return err_sys(e, "cannot list %s", jobs);
    for (struct dirent *entry; (entry = readdir(d));) {
        uint64_t id;
        uint32_t attempt;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (!jobdir_parse_name(entry->d_name, &id, &attempt)) {
            if (garbage)
                garbage(user, entry->d_name);
            continue;
        }
        int r = each(user, id, attempt, e);
        if (r < 0)
            return r;
    }
    return 0;
}

uint64_t jobdir_start_ticks(pid_t pid)
{
    auto_free char *path = text_fmt("/proc/%d/stat", (int)pid);
    auto_free char *stat = NULL;
    if (file_read(AT_FDCWD, path, 8192, &stat, NULL, NULL) < 0)
        return 0;
    const char *p = strrchr(stat, ')'); /* a name may hold blanks and brackets */
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0; /* 0 also for what is no number */
}

bool jobdir_process_lives(const struct jobdir_process *p)
{
    uint64_t now = jobdir_start_ticks(p->pid);
    return now != 0 && now == p->start_ticks;
}
