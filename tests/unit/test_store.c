#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/db.h"
#include "store_folder.h"

static void what_was_committed_is_there_again(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    ok(store_set_meta(s, "colour", "green", &err));
    ok(store_commit(s, &err));
    store_close(s);
    s = open_store();
    auto_free char *value = NULL;
    ok(store_meta(s, "colour", &value, &err));
    assert_string_equal(value, "green");
    store_close(s);
}

static void what_was_not_committed_is_not_there(void **state)
{
    (void)state;
    struct store *s = open_store();
    char *value = NULL;
    ok(store_begin(s, &err));
    ok(store_set_meta(s, "colour", "green", &err));
    assert_true(store_is_open(s));
    store_rollback(s);
    assert_false(store_is_open(s));
    ok(store_meta(s, "colour", &value, &err));
    assert_null(value);
    store_close(s);
}

static void nobody_else_may_read_the_file(void **state)
{
    (void)state;
    struct stat st;
    struct store *s = open_store();
    static const char *const names[] = { "divvy.db", "divvy.db-wal", "divvy.lock" };
    for (size_t i = 0; i < 3; i++) {
        auto_free char *path = text_fmt("%s/%s", folder, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0077, 0);
    }
    store_close(s);
}

/* The lock is the process's, so the second one must be another process. */
static void a_second_one_is_refused_with_the_pid_of_the_first(void **state)
{
    (void)state;
    struct store *s = open_store();
    auto_free char *pid = text_fmt("pid %d", (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        struct store *second = NULL;
        int r = store_open(folder, BOOT_A, &second, &err);
        _exit(r == -EBUSY && strstr(err.text, pid) && strstr(err.text, folder) ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    store_close(s);
}

static void a_closed_store_can_be_opened_by_another(void **state)
{
    (void)state;
    store_close(open_store());
    pid_t child = fork();
    if (child == 0) {
        struct store *second = NULL;
        _exit(store_open(folder, BOOT_A, &second, &err) == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void write_file(const char *name, const char *data, size_t len)
{
    auto_free char *path = text_fmt("%s/%s", folder, name);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, data, len, &err), 0);
}

static char *read_store_file(size_t *ret_len)
{
    char *data = NULL;
    auto_free char *path = text_fmt("%s/divvy.db", folder);
    assert_int_equal(file_read(AT_FDCWD, path, 1 << 24, &data, ret_len, &err), 0);
    return data;
}

static void a_file_that_is_no_database_is_refused_and_left_alone(void **state)
{
    (void)state;
    static const char letter[] = "Dear diary, this is not a database at all, and long enough.";
    struct store *s = NULL;
    write_file("divvy.db", letter, sizeof letter);
    assert_int_equal(store_open(folder, BOOT_A, &s, &err), -EILSEQ);
    assert_non_null(strstr(err.text, "damaged"));
    assert_non_null(strstr(err.text, "backup/"));
    size_t len;
    auto_free char *after = read_store_file(&len);
    assert_int_equal(len, sizeof letter);
    assert_memory_equal(after, letter, len);
}

/* Garbage in the middle of a big table, as a bad disk leaves it. */
static void a_store_that_was_cut_to_nothing_is_refused(void **state)
{
    (void)state;
    struct store *s;
    auto_free char *path = text_fmt("%s/divvy.db", folder);
    for (off_t size = 0; size < 512; size += 511) {
        ok(store_open(folder, BOOT_A, &s, &err));
        store_close(s);
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(store_open(folder, BOOT_A, &s, &err), -EILSEQ);
        assert_non_null(strstr(err.text, "backup/"));
        assert_int_equal(unlink(path), 0); /* as it says: an empty store */
    }
}

static void a_damaged_store_is_refused_and_left_alone(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    for (int i = 0; i < 200; i++)
        add_job(s, "train");
    ok(store_commit(s, &err));
    store_close(s);
    size_t len, len_after;
    auto_free char *data = read_store_file(&len);
    assert_true(len > 20 * 4096);
    for (size_t page = 8; page < 20; page++)
        memset(data + page * 4096, 0x5a, 4096);
    write_file("divvy.db", data, len);
    assert_int_equal(store_open(folder, BOOT_A, &s, &err), -EILSEQ);
    assert_non_null(strstr(err.text, "damaged"));
    auto_free char *after = read_store_file(&len_after);
    assert_int_equal(len, len_after);
    assert_memory_equal(after, data, len);
}

static void another_programs_database_is_refused(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    struct store *s = NULL;
    auto_free char *path = text_fmt("%s/divvy.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE songs (name)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(store_open(folder, BOOT_A, &s, &err), -EPROTO);
    assert_non_null(strstr(err.text, "another program's"));
}

static void limit_pages(struct store *s, int more)
{
    int64_t pages = 0, got = 0;
    ok(db_number(s->db, s->path, "PRAGMA page_count", &pages, &err));
    auto_free char *sql = text_fmt("PRAGMA max_page_count = %d", (int)pages + more);
    ok(db_number(s->db, s->path, sql, &got, &err));
}

static void a_full_disk_undoes_the_turn_and_the_store_goes_on(void **state)
{
    (void)state;
    struct store *s = open_store();
    char *value = NULL;
    auto_free char *big = mem_new(1 << 20);
    memset(big, 'x', (1 << 20) - 1);
    limit_pages(s, 8);
    ok(store_begin(s, &err));
    ok(store_set_meta(s, "small", "first", &err));
    assert_int_equal(store_set_meta(s, "big", big, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "no room left"));
    assert_int_equal(store_set_meta(s, "small", "second", &err), -ENOSPC);
    assert_true(store_is_open(s));
    assert_int_equal(store_commit(s, &err), -ENOSPC);
    assert_false(store_is_open(s));
    ok(store_meta(s, "small", &value, &err));
    assert_null(value);

    limit_pages(s, 10000);
    ok(store_begin(s, &err));
    ok(store_set_meta(s, "big", big, &err));
    ok(store_commit(s, &err));
    store_close(s);
}

static void a_turn_given_up_can_be_rolled_back_too(void **state)
{
    (void)state;
    struct store *s = open_store();
    auto_free char *big = mem_new(1 << 20);
    memset(big, 'x', (1 << 20) - 1);
    limit_pages(s, 8);
    ok(store_begin(s, &err));
    assert_int_equal(store_set_meta(s, "big", big, &err), -ENOSPC);
    store_rollback(s);
    ok(store_begin(s, &err));
    ok(store_set_meta(s, "small", "yes", &err));
    ok(store_commit(s, &err));
    store_close(s);
}

/* A file system of one MiB that only this process sees. */
static bool mount_small(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, "size=1m") == 0;
}

static void fill_up(const char *path)
{
    static const char block[512];
    auto_close int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof block) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
}

static void a_full_file_system_undoes_the_turn_and_the_store_goes_on(void **state)
{
    (void)state;
    if (!mount_small()) {
        print_message("# mounting a small file system takes root\n");
        skip();
    }
    auto_free char *ballast = text_fmt("%s/ballast", folder);
    auto_free char *value = NULL;
    auto_free char *big = mem_new(100000);
    memset(big, 'x', 99999);
    struct store *s = open_store();
    fill_up(ballast);
    ok(store_begin(s, &err));
    (void)store_set_meta(s, "big", big, &err); /* here or in the commit, as the pages go */
    assert_int_equal(store_commit(s, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "no room left"));
    ok(store_meta(s, "big", &value, &err));
    assert_null(value);

    assert_int_equal(unlink(ballast), 0);
    ok(store_begin(s, &err));
    ok(store_set_meta(s, "big", big, &err));
    ok(store_commit(s, &err));
    store_close(s);
    s = open_store();
    ok(store_meta(s, "big", &value, &err));
    assert_string_equal(value, big);
    store_close(s);
    assert_int_equal(umount(folder), 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_store_that_was_cut_to_nothing_is_refused),
        STORY(what_was_committed_is_there_again),
        STORY(what_was_not_committed_is_not_there),
        STORY(nobody_else_may_read_the_file),
        STORY(a_second_one_is_refused_with_the_pid_of_the_first),
        STORY(a_closed_store_can_be_opened_by_another),
        STORY(a_file_that_is_no_database_is_refused_and_left_alone),
        STORY(a_damaged_store_is_refused_and_left_alone),
        STORY(another_programs_database_is_refused),
        STORY(a_full_disk_undoes_the_turn_and_the_store_goes_on),
        STORY(a_full_file_system_undoes_the_turn_and_the_store_goes_on),
        STORY(a_turn_given_up_can_be_rolled_back_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
