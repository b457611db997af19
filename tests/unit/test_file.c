#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "dice.h"

#define CONTENT_SIZE 65536
#define CANNOT 77 /* a child's exit: what the test needs is not there */

static char folder[] = "/tmp/divvy-test-file.XXXXXX";
static int dir = -1;

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    (void)close(dir); /* nothing was written through it */
    return file_remove_tree(AT_FDCWD, folder, &e);
}

static void a_file_is_replaced_as_a_whole(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(file_replace(dir, "exit", "one", 3, 0640, &e), 0);
    assert_int_equal(file_replace(dir, "exit", "four", 4, 0600, &e), 0);
    auto_free char *data = NULL;
    size_t len = 0;
    assert_int_equal(file_read(dir, "exit", 100, &data, &len, &e), 0);
    assert_int_equal(len, 4);
    assert_string_equal(data, "four");
    struct stat st;
    assert_int_equal(fstatat(dir, "exit", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_link_is_replaced_not_followed(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(file_replace(dir, "victim", "safe", 4, 0600, &e), 0);
    assert_int_equal(symlinkat("victim", dir, "link"), 0);
    assert_int_equal(file_replace(dir, "link", "new", 3, 0600, &e), 0);
    auto_free char *data = NULL;
    size_t len = 0;
    assert_int_equal(file_read(dir, "victim", 100, &data, &len, &e), 0);
    assert_string_equal(data, "safe");
}

static void reading_has_a_limit(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    char *data = NULL;
    size_t len = 0;
    assert_int_equal(file_replace(dir, "big", "0123456789", 10, 0600, &e), 0);
    assert_int_equal(file_read(dir, "big", 9, &data, &len, &e), -EFBIG);
    assert_null(data);
    assert_int_equal(file_read(dir, "big", 10, &data, &len, &e), 0);
    free(data);
    data = NULL;
    assert_int_equal(file_read(dir, "none", 9, &data, &len, &e), -ENOENT);
    assert_null(data);
}

static void a_tree_goes_away_but_not_what_its_links_name(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    auto_free char *deep = text_fmt("%s/a/b/c", folder);
    assert_int_equal(file_mkdirs(deep, 0700, &e), 0);
    assert_int_equal(file_mkdirs(deep, 0700, &e), 0); /* it may be there */
    assert_int_equal(file_replace(dir, "kept", "k", 1, 0600, &e), 0);
    auto_free char *link = text_fmt("%s/a/b/outside", folder);
    assert_int_equal(symlink(folder, link), 0);
    assert_int_equal(file_remove_tree(dir, "a", &e), 0);
    assert_int_equal(faccessat(dir, "a", F_OK, 0), -1);
    assert_int_equal(faccessat(dir, "kept", F_OK, 0), 0);
    assert_int_equal(file_remove_tree(dir, "a", &e), 0); /* what is not there is no error */
}

static void a_root_goes_in_front(void **state)
{
    (void)state;
    auto_free char *plain = file_under("/", "/etc/divvy");
    auto_free char *none = file_under("", "/etc/divvy");
    auto_free char *own = file_under("/home/a", "/etc/divvy");
    assert_string_equal(plain, "/etc/divvy");
    assert_string_equal(none, "/etc/divvy");
    assert_string_equal(own, "/home/a/etc/divvy");
    auto_free char *slashes = file_under("/home/a//", "etc");
    auto_free char *only_slashes = file_under("//", "/etc");
    assert_string_equal(slashes, "/home/a/etc");
    assert_string_equal(only_slashes, "/etc");
}

static void put(const char *name, const char *content)
{
    struct err e = ERR_INIT;
    if (file_replace(dir, name, content, strlen(content), 0600, &e) < 0)
        fail_msg("%s", e.text);
}

static void assert_content(const char *name, const char *content)
{
    struct err e = ERR_INIT;
    auto_free char *data = NULL;
    if (file_read(dir, name, 1 << 20, &data, NULL, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(data, content);
}

static size_t entries(const char *path)
{
    size_t n = 0;
    auto_dir DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    return n;
}

static void a_failure_says_why_and_leaves_nothing(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(mkdirat(dir, "taken", 0700), 0);
    size_t before = entries(folder);
    assert_int_equal(file_replace(dir, "taken", "x", 1, 0600, &e), -EISDIR);
    assert_true(text_starts(e.text, "cannot replace taken: "));
    assert_non_null(strstr(e.text, ": Is a directory"));
    assert_int_equal(entries(folder), before);
}

/* Process ids come again, most of all in containers, and with them temporary names. */
static void what_a_killed_writer_left_is_not_in_the_way(void **state)
{
    (void)state;
    put("left", "old");
    for (unsigned i = 0; i < 60; i++) {
        auto_free char *name = text_fmt(".left.%d.%u", (int)getpid(), i);
        auto_close int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
    }
    put("left", "new");
    assert_content("left", "new");
}

/* The child: whole files of one letter, and a byte in the pipe after each. */
static __attribute__((noreturn)) void write_for_ever(int ready)
{
    char *content = mem_new(CONTENT_SIZE);
    for (char letter = 'a';; letter = letter == 'z' ? 'a' : (char)(letter + 1)) {
        memset(content, letter, CONTENT_SIZE);
        if (file_replace(dir, "state", content, CONTENT_SIZE, 0600, NULL) < 0 ||
            write(ready, "x", 1) != 1)
            _exit(1);
    }
}

static void assert_whole(void)
{
    struct err e = ERR_INIT;
    auto_free char *data = NULL;
    size_t len = 0;
    if (file_read(dir, "state", 1 << 20, &data, &len, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(len, CONTENT_SIZE);
    assert_in_range(data[0], 'a', 'z');
    assert_memory_equal(data, data + 1, CONTENT_SIZE - 1); /* all the same letter */
}

static void a_killed_writer_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    struct dice d = dice_new(7);
    for (int round = 0; round < 25; round++) {
        int ready[2];
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            write_for_ever(ready[1]);
        (void)close(ready[1]); /* so that a child that ends is seen as the end of the pipe */
        char byte;
        for (uint64_t n = 1 + dice_below(&d, 4); n > 0; n--)
            assert_int_equal(read(ready[0], &byte, 1), 1);
        for (volatile uint64_t spin = dice_below(&d, 300000); spin > 0;)
            spin = spin - 1;
        int status = 0;
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        (void)close(ready[0]); /* only read from */
        assert_whole();
    }
}

/* In a child with mounts of its own: a disk of 64 KiB. Returns the child's exit. */
static int on_a_small_disk(void)
{
    struct err e = ERR_INIT;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=64k") < 0)
        return CANNOT;
    auto_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_free char *big = mem_new(1 << 20);
    if (file_replace(fd, "state", "old", 3, 0600, &e) < 0)
        return 1;
    if (file_replace(fd, "state", big, 1 << 20, 0600, &e) != -ENOSPC)
        return 2;
    if (!text_starts(e.text, "cannot replace state: ") || !strstr(e.text, "No space left"))
        return 3;
    auto_free char *data = NULL;
    if (file_read(fd, "state", 100, &data, NULL, &e) < 0 || strcmp(data, "old") != 0)
        return 4;
    return entries(folder) == 1 ? 0 : 5;
}

static void a_full_disk_keeps_the_old_and_leaves_nothing(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(on_a_small_disk());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT) {
        print_message("# mounting a small tmpfs needs root and mount namespaces\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static mode_t mode_of(const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static void only_the_last_directory_gets_the_mode(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    mode_t before = umask(022);
    auto_free char *path = text_fmt("%s/p/q", folder);
    auto_free char *slashes = text_fmt("%s/secret//", folder);
    assert_int_equal(file_mkdirs(path, 0700, &e), 0);
    assert_int_equal(mode_of("p"), 0755);
    assert_int_equal(mode_of("p/q"), 0700);
    assert_int_equal(file_mkdirs(path, 0755, &e), 0);
    assert_int_equal(mode_of("p/q"), 0700);
    assert_int_equal(file_mkdirs(slashes, 0700, &e), 0);
    assert_int_equal(mode_of("secret"), 0700);
    (void)umask(before); /* cannot fail */
}

static void directories_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    put("file", "");
    auto_free char *itself = text_fmt("%s/file", folder);
    auto_free char *below = text_fmt("%s/file/x", folder);
    assert_int_equal(file_mkdirs(itself, 0700, &e), -ENOTDIR);
    assert_non_null(strstr(e.text, "/file is there and is no directory"));
    assert_int_equal(file_mkdirs(below, 0700, &e), -ENOTDIR);
    assert_int_equal(file_mkdirs("", 0700, &e), -ENOENT);
    assert_int_equal(file_mkdirs("/", 0700, &e), 0);
}

/* Names so long that the folder is listed in several reads. */
static void a_big_folder_goes_away(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(mkdirat(dir, "big_folder", 0700), 0);
    for (unsigned i = 0; i < 400; i++) {
        auto_free char *name = text_fmt("big_folder/%0200u", i);
        auto_close int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
    }
    assert_int_equal(file_remove_tree(dir, "big_folder", &e), 0);
    assert_int_equal(faccessat(dir, "big_folder", F_OK, 0), -1);
}

static void a_link_itself_goes_away_and_not_its_folder(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(mkdirat(dir, "precious", 0755), 0);
    put("inside", "stays");
    assert_int_equal(renameat(dir, "inside", dir, "precious/inside"), 0);
    assert_int_equal(symlinkat("precious", dir, "to_precious"), 0);
    assert_int_equal(symlinkat("nowhere", dir, "dangling"), 0);
    assert_int_equal(file_remove_tree(dir, "to_precious", &e), 0);
    assert_int_equal(file_remove_tree(dir, "dangling", &e), 0);
    assert_int_equal(faccessat(dir, "to_precious", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_content("precious/inside", "stays");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_as_a_whole),
        cmocka_unit_test(a_link_is_replaced_not_followed),
        cmocka_unit_test(reading_has_a_limit),
        cmocka_unit_test(a_tree_goes_away_but_not_what_its_links_name),
        cmocka_unit_test(a_root_goes_in_front),
        cmocka_unit_test(a_failure_says_why_and_leaves_nothing),
        cmocka_unit_test(what_a_killed_writer_left_is_not_in_the_way),
        cmocka_unit_test(a_killed_writer_leaves_the_old_or_the_new),
        cmocka_unit_test(a_full_disk_keeps_the_old_and_leaves_nothing),
        cmocka_unit_test(only_the_last_directory_gets_the_mode),
        cmocka_unit_test(directories_that_cannot_be_are_refused),
        cmocka_unit_test(a_big_folder_goes_away),
        cmocka_unit_test(a_link_itself_goes_away_and_not_its_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
