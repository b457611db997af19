#include "jobdir/mount.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/file.h"

#define MOUNTINFO_MAX (16u << 20)

bool mount_is_ext4(const char *mountinfo, dev_t device)
{
    for (const char *line = mountinfo; *line;) {
        const char *end = strchrnul(line, '\n');
        const char *type = strstr(line, " - "); /* after a number of fields that varies */
        unsigned major_, minor_;
        if (isdigit((unsigned char)*line) && sscanf(line, "%*u %*u %u:%u", &major_, &minor_) == 2 &&
            makedev(major_, minor_) == device)
            return type && type < end && strncmp(type, " - ext4 ", 8) == 0;
        line = *end ? end + 1 : end;
    }
    return false;
}

/* The mounts are asked only where the number leaves it open. */
bool mount_brings_names(int fd)
{
    struct statfs fs;
    struct stat st;
    auto_free char *mounts = NULL;
    if (fstatfs(fd, &fs) < 0)
        return false;
    if (fs.f_type != EXT4_SUPER_MAGIC)
        return fs.f_type == XFS_SUPER_MAGIC;
    return fstat(fd, &st) == 0 &&
           file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mounts, NULL, NULL) == 0 &&
           mount_is_ext4(mounts, st.st_dev);
}
