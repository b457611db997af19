#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec ts = { 0, 0 };
    (void)clock_gettime(id, &ts); /* cannot fail for these two clocks */
    return (int64_t)ts.tv_sec * CLOCK_SECOND + ts.tv_nsec / 1000;
}

struct now clock_now(void)
{
    return (struct now){
        .boot_us = read_clock(CLOCK_BOOTTIME),
        .wall_us = read_clock(CLOCK_REALTIME),
    };
}

const char *clock_boot_id(void)
{
    static char id[BOOT_ID_SIZE];
    if (id[0])
        return id;
    auto_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    char line[BOOT_ID_SIZE];
    if (fd >= 0 && read(fd, line, 36) == 36) {
        line[36] = '\0';
        memcpy(id, line, sizeof id);
    }
    return id;
}
