#include "cgroup/stray.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define ENVIRON_BYTES_MAX (4u << 20)

static bool has_entry(const char *environ_bytes, size_t len, const char *entry)
{
    for (size_t at = 0; at < len; at += strlen(environ_bytes + at) + 1)
        if (strcmp(environ_bytes + at, entry) == 0)
            return true;
    return false;
}

static bool is_marked(int proc, const char *pid, const char *attempt, const char *root)
{
    auto_free char *path = text_fmt("%s/environ", pid);
    auto_free char *bytes = NULL;
    size_t len = 0;
    if (file_read(proc, path, ENVIRON_BYTES_MAX, &bytes, &len, NULL) < 0)
        return false; /* gone, or not ours to look at */
    return has_entry(bytes, len, attempt) && has_entry(bytes, len, root);
}

int stray_signal(const char *root, const char *attempt, int sig, struct err *e)
{
    auto_dir DIR *proc = opendir("/proc");
    if (!proc)
        return err_sys(e, "cannot list /proc");
    auto_free char *attempt_entry = text_fmt("DIVVY_ATTEMPT=%s", attempt);
    auto_free char *root_entry = text_fmt("DIVVY_ROOT=%s", root);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        uint64_t pid;
        if (text_parse_u64(entry->d_name, 1, INT32_MAX, "pid", &pid, NULL) < 0 ||
            (pid_t)pid == getpid() ||
            !is_marked(dirfd(proc), entry->d_name, attempt_entry, root_entry))
            continue;
        if (sig)
            (void)kill((pid_t)pid, sig); /* it may be gone meanwhile: then all is well */
        count++;
    }
    return count;
}
