#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>

#include "store/db.h"
#include "store/migrate.h"
#include "store_folder.h"

/* A history of a store of our own, one version longer each time. */
static const char *const history[] = {
    "CREATE TABLE songs (name TEXT) STRICT; INSERT INTO songs VALUES ('one');",
    "ALTER TABLE songs ADD COLUMN year INTEGER; UPDATE songs SET year = 1965;",
    "CREATE TABLE singers (name TEXT) STRICT; INSERT INTO no_such_table VALUES (1);",
};

static sqlite3 *open_db(void)
{
    sqlite3 *db = NULL;
    auto_free char *path = text_fmt("%s/divvy.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static int64_t number(sqlite3 *db, const char *sql)
{
    int64_t n = -1;
    ok(db_number(db, "store", sql, &n, &err));
    return n;
}

static size_t backups(glob_t *g)
{
    auto_free char *pattern = text_fmt("%s/backup/*", folder);
    memset(g, 0, sizeof *g);
    return glob(pattern, 0, NULL, g) == 0 ? g->gl_pathc : 0;
}

static size_t count_backups(void)
{
    glob_t g;
    size_t n = backups(&g);
    globfree(&g);
    return n;
}

static void an_empty_store_gets_every_version_and_no_backup(void **state)
{
    (void)state;
    sqlite3 *db = open_db();
    ok(migrate(db, folder, "store", history, 2, &err));
    assert_int_equal(number(db, "PRAGMA user_version"), 2);
    assert_int_equal(number(db, "SELECT year FROM songs"), 1965);
    assert_int_equal(count_backups(), 0);
    ok(migrate(db, folder, "store", history, 2, &err));
    assert_int_equal(count_backups(), 0);
    sqlite3_close(db);
}

static void an_older_store_is_backed_up_and_brought_forward(void **state)
{
    (void)state;
    glob_t g;
    sqlite3 *db = open_db(), *old = NULL;
    ok(migrate(db, folder, "store", history, 1, &err));
    ok(migrate(db, folder, "store", history, 2, &err));
    assert_int_equal(number(db, "PRAGMA user_version"), 2);
    assert_int_equal(backups(&g), 1);
    assert_int_equal(sqlite3_open(g.gl_pathv[0], &old), SQLITE_OK);
    assert_int_equal(number(old, "PRAGMA user_version"), 1);
    assert_int_equal(number(old, "PRAGMA application_id"), STORE_APPLICATION_ID);
    assert_int_equal(number(old, "SELECT count(*) FROM songs"), 1);
    globfree(&g);
    sqlite3_close(old);
    sqlite3_close(db);
}

static void a_migration_that_fails_changes_nothing(void **state)
{
    (void)state;
    sqlite3 *db = open_db();
    ok(migrate(db, folder, "store", history, 2, &err));
    assert_true(migrate(db, folder, "store", history, 3, &err) < 0);
    assert_non_null(strstr(err.text, "version 3"));
    assert_int_equal(number(db, "PRAGMA user_version"), 2);
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'singers'"), 0);
    assert_int_equal(count_backups(), 1);
    sqlite3_close(db);
}

static void the_last_three_backups_are_kept(void **state)
{
    (void)state;
    glob_t g;
    sqlite3 *db = open_db();
    ok(migrate(db, folder, "store", history, 1, &err));
    for (int i = 0; i < 5; i++) {
        ok(migrate(db, folder, "store", history, 2, &err));
        ok(db_run(db, "store", "PRAGMA user_version = 1; ALTER TABLE songs DROP COLUMN year;",
                  &err));
        ok(db_run(db, "store", "INSERT INTO songs VALUES ('more')", &err));
    }
    assert_int_equal(backups(&g), STORE_BACKUPS_KEPT);
    sqlite3 *oldest = NULL;
    assert_int_equal(sqlite3_open(g.gl_pathv[0], &oldest), SQLITE_OK);
    assert_int_equal(number(oldest, "SELECT count(*) FROM songs"), 3);
    globfree(&g);
    sqlite3_close(oldest);
    sqlite3_close(db);
}

static void a_store_from_the_future_is_refused(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(db_run(s->db, s->path, "PRAGMA user_version = 99", &err));
    store_close(s);
    s = NULL;
    assert_int_equal(store_open(folder, BOOT_A, &s, &err), -EPROTO);
    assert_null(s);
    assert_non_null(strstr(err.text, "newer Divvy"));
    assert_non_null(strstr(err.text, "store version 99"));
    assert_non_null(strstr(err.text, "backup/"));
    sqlite3 *db = open_db();
    assert_int_equal(number(db, "PRAGMA user_version"), 99);
    sqlite3_close(db);
}

static void a_store_of_today_has_the_version_of_its_migrations(void **state)
{
    (void)state;
    struct store *s = open_store();
    assert_int_equal(number(s->db, "PRAGMA user_version"), store_version);
    assert_int_equal(number(s->db, "PRAGMA synchronous"), 2);
    assert_int_equal(number(s->db, "PRAGMA foreign_keys"), 1);
    store_close(s);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(an_empty_store_gets_every_version_and_no_backup),
        STORY(an_older_store_is_backed_up_and_brought_forward),
        STORY(a_migration_that_fails_changes_nothing),
        STORY(the_last_three_backups_are_kept),
        STORY(a_store_from_the_future_is_refused),
        STORY(a_store_of_today_has_the_version_of_its_migrations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
