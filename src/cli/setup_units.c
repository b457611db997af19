/* Unit files, where neither a package nor meson install put them where systemd looks. */
#include "cli/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/file.h"

#define UNIT_BYTES_MAX 65536

static const char *const names[] = { "divvyd.service", "divvy-job@.service", "divvy-layout.service",
                                     "divvy.slice" };
static const char *const dirs[] = { "/etc/systemd/system", "/run/systemd/system",
                                    "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
                                    "/lib/systemd/system" };

extern char **environ;

int setup_run(char *const argv[], struct err *e)
{
    pid_t pid;
    int status;
    int r = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (r)
        return err_set(e, -r, "cannot run %s: %s", argv[0], strerror(r));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, "cannot wait for %s", argv[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, -EIO, "%s %s failed", argv[0], argv[1] ? argv[1] : "");
    return 0;
}

/* Where systemd finds it already; NULL: nowhere. */
static char *unit_known(const struct setup *s, const char *name)
{
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        auto_free char *dir = file_under(s->root, dirs[i]);
        auto_free char *path = text_fmt("%s/%s", dir, name);
        if (access(path, F_OK) == 0)
            return take_ptr(path);
    }
    return NULL;
}

/* Tried from its build folder, a program installs the units of that build. */
static char *unit_source(const char *name)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0 && text_starts((self[n] = '\0', self), DIVVY_BUILD_DIR "/"))
        return text_fmt(DIVVY_BUILD_DIR "/dist/systemd/%s", name);
    return text_fmt(DIVVY_UNITS "/%s", name);
}

static int install_unit(struct setup *s, const char *name, struct err *e)
{
    auto_free char *known = unit_known(s, name);
    if (known) {
        setup_tell(s, SETUP_THERE, known, "%s", "");
        return 0;
    }
    auto_free char *source = unit_source(name);
    auto_free char *dir = file_under(s->root, dirs[0]);
    auto_free char *path = text_fmt("%s/%s", dir, name);
    auto_free char *text = NULL;
    size_t len = 0;
    int r = file_read(AT_FDCWD, source, UNIT_BYTES_MAX, &text, &len, e);
    if (r == 0 && !s->dry)
        r = file_mkdirs(dir, 0755, e);
    if (r == 0 && !s->dry) {
        auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? err_sys(e, "cannot open %s", dir) : file_replace(fd, name, text, len, 0644, e);
    }
    if (r == 0)
        setup_tell(s, SETUP_DONE, path, "%s", "");
    return r;
}

int setup_units(struct setup *s, struct err *e)
{
    bool booted = access("/run/systemd/system", F_OK) == 0;
    size_t before = s->count;
    bool made = false;
    int r = 0;
    if (s->whole && !booted) {
        setup_tell(s, SETUP_SKIP, "units", "systemd does not run this machine");
        return 0;
    }
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++)
        r = install_unit(s, names[i], e);
    for (size_t i = before; i < s->count; i++)
        made = made || s->lines[i].state == SETUP_DONE;
    char *const reload[] = { (char *)"systemctl", (char *)"daemon-reload", NULL };
    if (r == 0 && made && s->whole && !s->dry)
        r = setup_run(reload, e);
    return r;
}
