#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "store/db.h"
#include "store/migrate.h"

/*
 * After a crash the WAL is read again, and then a program that only looks (a
 * backup, sqlite3 by hand) is in the way for a moment.
 */
#define OPEN_PATIENCE_MS 5000
#define SMALLEST_DATABASE 512 /* one page of the smallest size */

/* A POSIX lock: the kernel tells who has it, and children do not inherit it. */
static int take_lock(struct store *s, const char *dir, struct err *e)
{
    auto_free char *path = text_fmt("%s/divvy.lock", dir);
    struct flock want = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(e, "cannot open %s", path);
    if (fcntl(fd, F_SETLK, &want) == 0) {
        s->lock_fd = take_fd(fd);
        return 0;
    }
    if (errno != EACCES && errno != EAGAIN)
        return err_sys(e, "cannot lock %s", path);
    if (fcntl(fd, F_GETLK, &want) < 0 || want.l_type == F_UNLCK || want.l_pid <= 0)
        return err_set(e, -EBUSY, "another divvyd works in %s", dir);
    return err_set(e, -EBUSY,
                   "another divvyd (pid %d) works in %s; stop it first, or start this one with "
                   "another --root",
                   (int)want.l_pid, dir);
}

/* Made here and not by SQLite, so that nobody else may ever read it. */
static int make_file(const char *path, struct err *e)
{
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_sys(e, "cannot open %s", path) : 0;
}

static int open_database(struct store *s, struct err *e)
{
    int rc = sqlite3_open_v2(
        s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
    if (rc != SQLITE_OK)
        return db_failed(s->db, s->path, rc, e);
    (void)sqlite3_extended_result_codes(s->db, 1); /* cannot fail on an open handle */
    return 0;
}

/* While it is only looked at, closing it must not write the WAL into it. */
static void checkpoint_on_close(struct store *s, int on)
{
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !on, NULL);
}

static int configure(struct store *s, struct err *e)
{
    static const char settings[] = "PRAGMA journal_mode = WAL;"
                                   "PRAGMA synchronous = FULL;"
                                   "PRAGMA foreign_keys = ON;"
                                   "PRAGMA trusted_schema = OFF;"
                                   "PRAGMA cache_size = -1024;"
                                   "PRAGMA journal_size_limit = 16777216;";
    return db_run(s->db, s->path, settings, e);
}

static int find_boot(struct store *s, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "SELECT id FROM boots WHERE boot_id = ?");
    query_bind_text(&q, s->boot_id);
    int r = query_next(&q, e);
    if (r > 0)
        s->boot = query_int(&q);
    return r;
}

static int insert_boot(struct store *s, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "INSERT INTO boots (boot_id) VALUES (?)");
    query_bind_text(&q, s->boot_id);
    int r = query_write(&q, e);
    s->boot = sqlite3_last_insert_rowid(s->db);
    return r;
}

static int add_boot(struct store *s, struct err *e)
{
    int r = store_begin(s, e);
    if (r < 0)
        return r;
    r = insert_boot(s, e);
    if (r < 0) {
        store_rollback(s);
        return r;
    }
    return store_commit(s, e);
}

/* ---- is it the store that was here? ---- */

/*
 * SQLite takes a file that was cut to nothing for a new database, and every job
 * would be gone without a word. So the file of the lock says that a store was made here.
 */
static const char made[] = "divvy.db was made here\n";

static bool was_made(const struct store *s)
{
    char said[sizeof made] = "";
    return pread(s->lock_fd, said, sizeof said - 1, 0) > 0 && strcmp(said, made) == 0;
}

static int note_made(const struct store *s, struct err *e)
{
    ssize_t len = (ssize_t)strlen(made);
    if (was_made(s))
        return 0;
    if (pwrite(s->lock_fd, made, (size_t)len, 0) != len || fsync(s->lock_fd) < 0)
        return err_sys(e, "cannot write %.*s.lock", (int)strlen(s->path) - 3, s->path);
    return 0;
}

static int check_not_emptied(const struct store *s, struct err *e)
{
    struct stat st;
    if (!was_made(s) || stat(s->path, &st) < 0 || st.st_size >= SMALLEST_DATABASE)
        return 0;
    return err_set(e, -EILSEQ,
                   "%s is damaged (there is nothing left in it); put the newest file of backup/ in "
                   "its place, or remove it to start with an empty store",
                   s->path);
}

static int open_all(struct store *s, const char *dir, struct err *e)
{
    int r = take_lock(s, dir, e);
    if (r == 0)
        r = check_not_emptied(s, e);
    if (r == 0)
        r = make_file(s->path, e);
    if (r == 0)
        r = open_database(s, e);
    if (r < 0)
        return r;
    (void)sqlite3_busy_timeout(s->db, OPEN_PATIENCE_MS); /* cannot fail on an open handle */
    checkpoint_on_close(s, 0);
    r = migrate_check(s->db, s->path, store_version, e);
    if (r < 0)
        return r;
    checkpoint_on_close(s, 1);
    r = configure(s, e);
    if (r == 0)
        r = migrate(s->db, dir, s->path, store_migrations, store_version, e);
    if (r == 0)
        r = find_boot(s, e);
    if (r == 0)
        r = add_boot(s, e);
    if (r >= 0)
        r = note_made(s, e);
    (void)sqlite3_busy_timeout(s->db, 0); /* the loop never waits */
    return r < 0 ? r : 0;
}

int store_open(const char *dir, const char *boot_id, struct store **ret, struct err *e)
{
    int r = file_mkdirs(dir, 0711, e);
    if (r < 0)
        return r;
    struct store *s = mem_new(sizeof *s);
    s->lock_fd = -1;
    s->path = text_fmt("%s/divvy.db", dir);
    memcpy(s->boot_id, boot_id, strnlen(boot_id, BOOT_ID_SIZE - 1));
    r = open_all(s, dir, e);
    if (r < 0) {
        store_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    store_rollback(s);
    void *statement;
    for (size_t i = 0; (statement = map_next(&s->statements, &i));)
        (void)sqlite3_finalize(statement); /* repeats failures that were told */
    map_done(&s->statements);
    (void)sqlite3_close(s->db); /* what was committed is on the disk */
    cleanup_close(&s->lock_fd);
    free(s->path);
    free(s);
}

int store_begin(struct store *s, struct err *e)
{
    assert(s->tx == TX_NONE);
    int r = db_run(s->db, s->path, "BEGIN IMMEDIATE", e);
    if (r == 0)
        s->tx = TX_OPEN;
    return r;
}

int store_commit(struct store *s, struct err *e)
{
    assert(s->tx != TX_NONE);
    if (s->tx == TX_GIVEN_UP) {
        s->tx = TX_NONE;
        return err_set(e, s->why_given_up.code, "%s", s->why_given_up.text);
    }
    int r = db_run(s->db, s->path, "COMMIT", e);
    if (r < 0 && !sqlite3_get_autocommit(s->db))
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* the first failure is told */
    s->tx = TX_NONE;
    return r;
}

void store_rollback(struct store *s)
{
    if (s->tx == TX_OPEN)
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* it is gone in any case */
    s->tx = TX_NONE;
}

bool store_is_open(const struct store *s)
{
    return s->tx != TX_NONE;
}

int store_set_meta(struct store *s, const char *key, const char *value, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)");
    query_bind_text(&q, key);
    query_bind_text(&q, value);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

int store_meta(struct store *s, const char *key, char **ret, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "SELECT value FROM meta WHERE key = ?");
    query_bind_text(&q, key);
    int r = query_next(&q, e);
    if (r >= 0)
        *ret = r > 0 ? text_dup(query_text(&q)) : NULL;
    return r < 0 ? r : 0;
}

static int prune_before(struct store *s, const char *sql, int64_t before_wall_us, uint32_t max,
                        struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, sql);
    query_bind_int(&q, before_wall_us);
    query_bind_int(&q, max);
    return query_write(&q, e);
}

static int prune_jobs(struct store *s, struct now before, uint32_t max, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs j WHERE ended_wall_us < ?1"
               " AND (submit_boot <> ?2 OR submit_boot_us < ?3)"
               " AND (array_id IS NULL OR NOT (EXISTS (SELECT 1 FROM jobs t"
               "  WHERE t.array_id = j.array_id AND t.ended_wall_us IS NULL) OR EXISTS"
               " (SELECT 1 FROM jobs t WHERE t.array_id = j.array_id"
               "  AND t.ended_wall_us >= ?1)))"
               " ORDER BY ended_wall_us LIMIT ?4)");
    query_bind_int(&q, before.wall_us);
    query_bind_int(&q, s->boot);
    query_bind_int(&q, before.boot_us);
    query_bind_int(&q, max);
    return query_write(&q, e);
}

int store_prune(struct store *s, struct now before, uint32_t max, struct err *e)
{
    int64_t before_wall_us = before.wall_us;
    int jobs = prune_jobs(s, before, max, e);
    int r = jobs;
    if (r >= 0)
        r = prune_before(s,
                         "DELETE FROM slices WHERE generation IN (SELECT generation FROM slices"
                         " WHERE gone_wall_us < ? LIMIT ?)",
                         before_wall_us, max, e);
    if (r >= 0)
        r = prune_before(s,
                         "DELETE FROM plans WHERE id IN (SELECT id FROM plans"
                         " WHERE job_id IS NULL AND closed_wall_us < ? LIMIT ?)",
                         before_wall_us, max, e);
    return r < 0 ? r : jobs;
}
