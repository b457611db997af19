#include "store/migrate.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "store/db.h"

/*
 * Times are µs. "boot" refers to the boot that a boot time belongs to. Job,
 * plan and generation numbers are never used again (AUTOINCREMENT). Words of
 * the model, not its enum numbers, are stored.
 */
static const char version_1[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"

    "CREATE TABLE boots ("
    " id INTEGER PRIMARY KEY,"
    " boot_id TEXT NOT NULL UNIQUE) STRICT;"

    "CREATE TABLE cards ("
    " uuid TEXT PRIMARY KEY,"
    " ordinal INTEGER NOT NULL UNIQUE,"
    " bus_id TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " pool TEXT NOT NULL,"
    " mode TEXT NOT NULL,"
    " quarantine TEXT NOT NULL DEFAULT '',"
    " layout TEXT NOT NULL DEFAULT '',"
    " no_turn_boot TEXT NOT NULL DEFAULT '',"
    " compute_mode INTEGER NOT NULL DEFAULT 0,"
    " app_sm_mhz INTEGER NOT NULL DEFAULT 0,"
    " app_mem_mhz INTEGER NOT NULL DEFAULT 0,"
    " settings_known INTEGER NOT NULL DEFAULT 0," /* bits of enum card_known */
    " first_seen_wall_us INTEGER NOT NULL,"
    " last_seen_wall_us INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

    "CREATE TABLE slices ("
    " generation INTEGER PRIMARY KEY AUTOINCREMENT,"
    " card_uuid TEXT NOT NULL REFERENCES cards (uuid),"
    " gi INTEGER NOT NULL,"
    " ci INTEGER NOT NULL," /* -1: none */
    " profile_id INTEGER NOT NULL,"
    " profile TEXT NOT NULL,"
    " start INTEGER NOT NULL,"
    " units INTEGER NOT NULL,"
    " ci_profile_id INTEGER NOT NULL,"
    " ci_start INTEGER NOT NULL,"
    " ci_slices INTEGER NOT NULL,"
    " uuid TEXT NOT NULL,"
    " adopted INTEGER NOT NULL,"
    " job_id INTEGER NOT NULL," /* 0: none; the job may be forgotten */
    " made_wall_us INTEGER NOT NULL,"
    " gone_wall_us INTEGER) STRICT;" /* NULL: it is there */
    "CREATE UNIQUE INDEX slices_alive ON slices (card_uuid, gi, ci) WHERE gone_wall_us IS NULL;"
    "CREATE INDEX slices_gone ON slices (gone_wall_us) WHERE gone_wall_us IS NOT NULL;"

    "CREATE TABLE environments ("
    " id INTEGER PRIMARY KEY,"
    " hash INTEGER NOT NULL,"         /* only to find it; the content decides */
    " content BLOB NOT NULL) STRICT;" /* NAME=value, each ended by a zero byte */
    "CREATE INDEX environments_hash ON environments (hash);"

    "CREATE TABLE jobs ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " uid INTEGER NOT NULL,"
    " gid INTEGER NOT NULL,"
    " user TEXT NOT NULL,"
    " account TEXT NOT NULL,"
    " qos TEXT NOT NULL DEFAULT '',"
    " name TEXT NOT NULL,"
    " request TEXT NOT NULL,"
    " limit_us INTEGER NOT NULL,"
    " mem_bytes INTEGER NOT NULL DEFAULT 0," /* as asked for, for each task; 0: not */
    " cpu_milli INTEGER NOT NULL DEFAULT 0,"
    " state TEXT NOT NULL,"
    " verdict TEXT,"
    " reason TEXT NOT NULL DEFAULT '',"
    " submit_wall_us INTEGER NOT NULL,"
    " submit_boot_us INTEGER NOT NULL,"
    " submit_boot INTEGER NOT NULL REFERENCES boots (id),"
    " begin_wall_us INTEGER NOT NULL DEFAULT 0,"
    " deadline_wall_us INTEGER NOT NULL DEFAULT 0,"
    " hold TEXT NOT NULL DEFAULT '',"
    " tells INTEGER NOT NULL DEFAULT 0,"            /* bits of enum job_tells */
    " attached INTEGER NOT NULL DEFAULT 0,"         /* 1: a `divvy run` */
    " expected_wall_us INTEGER NOT NULL DEFAULT 0," /* its start as it was announced; 0: not */
    " requeue INTEGER NOT NULL DEFAULT 0,"          /* 1: it is ending to be started again */
    " array_id INTEGER,"                            /* of its first task; NULL: no array */
    " array_index INTEGER,"
    " ended_wall_us INTEGER,"                      /* NULL: it lives */
    " attempt INTEGER NOT NULL DEFAULT 0) STRICT;" /* the latest; 0: none */
    "CREATE INDEX jobs_live ON jobs (id) WHERE ended_wall_us IS NULL;"
    "CREATE INDEX jobs_ended ON jobs (ended_wall_us) WHERE ended_wall_us IS NOT NULL;"
    "CREATE INDEX jobs_uid ON jobs (uid, id);"
    "CREATE INDEX jobs_array ON jobs (array_id, array_index) WHERE array_id IS NOT NULL;"
    "CREATE INDEX jobs_array_end ON jobs (array_id, ended_wall_us) WHERE array_id IS NOT NULL;"

    "CREATE TABLE promises (" /* how far announced starts were off: see model/promise.h */
    " size INTEGER PRIMARY KEY,"
    " jobs INTEGER NOT NULL,"
    " late INTEGER NOT NULL,"
    " off_us REAL NOT NULL) STRICT;"

    "CREATE TABLE waits ("
    " job_id INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,"
    " array TEXT NOT NULL,"  /* its indices; '': no array */
    " depend TEXT NOT NULL," /* what is not met yet; '' */
    " keep_invalid INTEGER NOT NULL) STRICT;"

    "CREATE TABLE specs (" /* of an array, at its first task */
    " job_id INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,"
    " spec TEXT NOT NULL,"   /* JSON without the environment */
    " groups TEXT NOT NULL," /* supplementary ones: \"4 27 100\" */
    " environment INTEGER REFERENCES environments (id)) STRICT;" /* NULL: none was given */
    "CREATE INDEX specs_environment ON specs (environment);"
    "CREATE TRIGGER specs_gone AFTER DELETE ON specs"
    " WHEN NOT EXISTS (SELECT 1 FROM specs WHERE environment = old.environment)"
    " BEGIN DELETE FROM environments WHERE id = old.environment; END;"

    "CREATE TABLE attempts ("
    " job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,"
    " attempt INTEGER NOT NULL,"
    " place TEXT NOT NULL,"
    " boot INTEGER NOT NULL REFERENCES boots (id),"
    " placed_boot_us INTEGER NOT NULL,"
    " placed_wall_us INTEGER NOT NULL,"
    " started_boot_us INTEGER NOT NULL DEFAULT 0,"
    " started_wall_us INTEGER NOT NULL DEFAULT 0,"
    " ended_boot_us INTEGER NOT NULL DEFAULT 0," /* 0 also when it ended in another boot */
    " ended_wall_us INTEGER NOT NULL DEFAULT 0,"
    " gpu_mem_peak_bytes INTEGER NOT NULL DEFAULT 0," /* seen so far; in the exit when it ended */
    " gpu_load_sum INTEGER NOT NULL DEFAULT 0,"
    " gpu_load_count INTEGER NOT NULL DEFAULT 0,"
    " outcome TEXT,"
    " exit TEXT,"
    " charge_ppm_us INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY (job_id, attempt)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE preempted (" /* attempts that were stopped for another job */
    " job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,"
    " attempt INTEGER NOT NULL,"
    " by_job INTEGER NOT NULL,"
    " by_user TEXT NOT NULL,"
    " wall_us INTEGER NOT NULL,"
    " PRIMARY KEY (job_id, attempt)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE plans ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " job_id INTEGER REFERENCES jobs (id) ON DELETE CASCADE," /* NULL: somebody's layout */
    " attempt INTEGER NOT NULL,"
    " who TEXT NOT NULL,"
    " made_wall_us INTEGER NOT NULL,"
    " closed_wall_us INTEGER) STRICT;"
    "CREATE INDEX plans_open ON plans (id) WHERE closed_wall_us IS NULL;"
    "CREATE INDEX plans_job ON plans (job_id);"

    "CREATE TABLE journal ("
    " plan_id INTEGER NOT NULL REFERENCES plans (id) ON DELETE CASCADE,"
    " seq INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " step TEXT NOT NULL,"
    " note TEXT NOT NULL DEFAULT '',"
    " PRIMARY KEY (plan_id, seq)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE usage ("
    " account TEXT NOT NULL,"
    " uid INTEGER NOT NULL,"
    " used_card_us REAL NOT NULL,"
    " boot INTEGER NOT NULL REFERENCES boots (id),"
    " stamp_boot_us INTEGER NOT NULL,"
    " stamp_wall_us INTEGER NOT NULL,"
    " PRIMARY KEY (account, uid)) STRICT, WITHOUT ROWID;"

    /* Sums are card·µs; what they mean stands in model/ledger.h. */
    "CREATE TABLE history ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " job_id INTEGER NOT NULL," /* the job may be forgotten */
    " attempt INTEGER NOT NULL,"
    " uid INTEGER NOT NULL,"
    " user TEXT NOT NULL,"
    " account TEXT NOT NULL,"
    " qos TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " request TEXT NOT NULL,"
    " place TEXT NOT NULL,"
    " limit_us INTEGER NOT NULL,"
    " attached INTEGER NOT NULL,"
    " mem_bytes INTEGER NOT NULL,"
    " cpu_milli INTEGER NOT NULL,"
    " submit_wall_us INTEGER NOT NULL,"
    " started_wall_us INTEGER NOT NULL,"
    " ended_wall_us INTEGER NOT NULL,"
    " outcome TEXT NOT NULL,"
    " preempted_by INTEGER NOT NULL," /* the job that it made room for; 0: it did not */
    " parts INTEGER NOT NULL,"
    " asked REAL NOT NULL,"
    " held REAL NOT NULL,"
    " compute REAL NOT NULL,"
    " mem REAL NOT NULL,"
    " seen REAL NOT NULL,"
    " idle REAL NOT NULL,"
    " measured REAL NOT NULL,"
    " busy REAL NOT NULL) STRICT;"
    "CREATE INDEX history_ended ON history (ended_wall_us);"

    "CREATE TABLE ledger ("
    " day INTEGER NOT NULL," /* 20261130, local */
    " user TEXT NOT NULL,"
    " account TEXT NOT NULL,"
    " profile TEXT NOT NULL," /* or "whole" */
    " card TEXT NOT NULL,"    /* "gpu0" */
    " parts INTEGER NOT NULL,"
    " asked REAL NOT NULL,"
    " held REAL NOT NULL,"
    " compute REAL NOT NULL,"
    " mem REAL NOT NULL,"
    " seen REAL NOT NULL,"
    " idle REAL NOT NULL,"
    " measured REAL NOT NULL,"
    " busy REAL NOT NULL,"
    " PRIMARY KEY (day, user, account, profile, card)) STRICT;";

const char *const store_migrations[] = { version_1 };
const int store_version = sizeof store_migrations / sizeof *store_migrations;

static int check_owner(sqlite3 *db, const char *path, int64_t version, struct err *e)
{
    int64_t tables = 0, application = 0;
    int r = db_number(db, path, "SELECT count(*) FROM sqlite_schema", &tables, e);
    if (r == 0)
        r = db_number(db, path, "PRAGMA application_id", &application, e);
    if (r < 0 || application == STORE_APPLICATION_ID || (tables == 0 && version == 0))
        return r;
    return err_set(e, -EPROTO,
                   "%s is another program's database; move it away, or name another folder", path);
}

/* "ok", or what is wrong. */
static int check_content(sqlite3 *db, const char *path, struct err *e)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    int code = 0;
    if (rc != SQLITE_ROW)
        code = db_failed(db, path, rc, e);
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
        code = err_set(e, -EILSEQ,
                       "%s is damaged (%.200s); move it away and put the newest file of backup/ in "
                       "its place, or start with an empty store",
                       path, (const char *)sqlite3_column_text(statement, 0));
    (void)sqlite3_finalize(statement); /* repeats the failure that was seen */
    return code;
}

int migrate_check(sqlite3 *db, const char *path, int count, struct err *e)
{
    int64_t version = 0;
    int r = db_number(db, path, "PRAGMA user_version", &version, e);
    if (r == 0)
        r = check_owner(db, path, version, e);
    if (r == 0 && version > count)
        r = err_set(e, -EPROTO,
                    "%s was written by a newer Divvy (store version %" PRId64
                    ", this one knows %d); install that one again, or put a file of backup/ in "
                    "its place",
                    path, version, count);
    return r < 0 ? r : check_content(db, path, e);
}

static int backup_order(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_backup(const struct dirent *d)
{
    return text_starts(d->d_name, "divvy.db.");
}

/* Names end in the time they were made, so the oldest come first. */
static void drop_old_backups(const char *folder)
{
    struct dirent **found = NULL;
    int n = scandir(folder, &found, is_backup, backup_order);
    for (int i = 0; i < n; i++) {
        auto_free char *path = text_fmt("%s/%s", folder, found[i]->d_name);
        if (i < n - STORE_BACKUPS_KEPT)
            (void)unlink(path); /* one backup too many harms nobody */
        free(found[i]);
    }
    free(found);
}

static int sync_path(const char *path, struct err *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_sys(e, "cannot write %s to the disk", path);
    return 0;
}

static int back_up(sqlite3 *db, const char *dir, const char *path, int64_t version, struct err *e)
{
    auto_free char *folder = text_fmt("%s/backup", dir);
    int r = file_mkdirs(folder, 0700, e);
    if (r < 0)
        return r;
    auto_free char *target =
        text_fmt("%s/divvy.db.%" PRId64 ".v%" PRId64, folder, clock_now().wall_us, version);
    auto_free char *sql = text_fmt("VACUUM INTO '%s'", target);
    mode_t mask = umask(0077);
    r = strchr(target, '\'') ? err_set(e, -EINVAL, "the folder %s has a quote in its name", dir)
                             : db_run(db, path, sql, e);
    (void)umask(mask); /* cannot fail */
    if (r == 0)
        r = sync_path(target, e);
    if (r == 0)
        r = sync_path(folder, e);
    if (r < 0) {
        (void)unlink(target); /* half a backup is none */
        return err_wrap(e, r, "no backup before the change to the new store version");
    }
    drop_old_backups(folder);
    return 0;
}

static int migrate_one(sqlite3 *db, const char *path, const char *sql, int version, struct err *e)
{
    auto_free char *number = text_fmt("PRAGMA user_version = %d; PRAGMA application_id = %d;",
                                      version, STORE_APPLICATION_ID);
    int r = db_run(db, path, "BEGIN IMMEDIATE", e);
    if (r == 0)
        r = db_run(db, path, sql, e);
    if (r == 0)
        r = db_run(db, path, number, e);
    if (r == 0)
        r = db_run(db, path, "COMMIT", e);
    if (r < 0) {
        if (!sqlite3_get_autocommit(db))
            (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* the first failure is told */
        return err_wrap(e, r, "cannot bring the store to version %d", version);
    }
    return 0;
}

int migrate(sqlite3 *db, const char *dir, const char *path, const char *const *migrations,
            int count, struct err *e)
{
    int64_t version = 0;
    int r = db_number(db, path, "PRAGMA user_version", &version, e);
    if (r == 0 && version > 0 && version < count)
        r = back_up(db, dir, path, version, e);
    for (int i = (int)version; r == 0 && i < count; i++)
        r = migrate_one(db, path, migrations[i], i + 1, e);
    return r;
}
