#include "supervise/descend.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

struct relation {
    pid_t pid, parent;
    bool below;
};

struct family {
    struct relation *all;
    size_t count, alloc;
};

static void add(struct family *f, int proc, const char *name)
{
    auto_free char *path = text_fmt("%s/stat", name);
    auto_free char *stat = NULL;
    if (file_read(proc, path, 8192, &stat, NULL, NULL) < 0)
        return;                         /* gone meanwhile */
    const char *p = strrchr(stat, ')'); /* then " S 1234": the state, the parent */
    if (!p || strlen(p) < 5)
        return;
    ARRAY_ROOM(f->all, f->alloc, f->count + 1);
    f->all[f->count++] = (struct relation){ .pid = (pid_t)strtol(name, NULL, 10),
                                            .parent = (pid_t)strtol(p + 4, NULL, 10) };
}

static bool is_below(const struct family *f, pid_t parent, pid_t top)
{
    if (parent == top)
        return true;
    for (size_t i = 0; i < f->count; i++)
        if (f->all[i].pid == parent)
            return f->all[i].below;
    return false;
}

/* Pids are in no order of birth, so the walk is repeated until it finds no more. */
static void mark(struct family *f, pid_t top)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < f->count; i++)
            if (!f->all[i].below && is_below(f, f->all[i].parent, top))
                more = f->all[i].below = true;
    }
}

int descend_signal(pid_t top, int sig, struct err *e)
{
    auto_dir DIR *proc = opendir("/proc");
    if (!proc)
        return err_sys(e, "cannot list /proc");
    struct family f = { .all = NULL };
    for (struct dirent *entry; (entry = readdir(proc));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            add(&f, dirfd(proc), entry->d_name);
    mark(&f, top);
    int count = 0;
    for (size_t i = 0; i < f.count; i++) {
        if (!f.all[i].below)
            continue;
        if (sig)
            (void)kill(f.all[i].pid, sig); /* it may be gone meanwhile: then all is well */
        count++;
    }
    free(f.all);
    return count;
}
