/*
 * libwall_clock.so: a wall clock that a test can set, for programs that are
 * started with it in LD_PRELOAD. The file that WALL_CLOCK names holds one
 * int64_t: seconds by which CLOCK_REALTIME is off. Other clocks are left alone,
 * as settimeofday(2) leaves them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("WALL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd >= 0 ? mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (page != MAP_FAILED)
        offset = page;
    if (fd >= 0)
        (void)close(fd); /* the mapping stays */
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (!real_gettime) /* before the constructor */
        *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int r = real_gettime(id, ts);
    if (r == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ts->tv_sec += *offset;
    return r;
}

time_t time(time_t *ret)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
    if (ret)
        *ret = ts.tv_sec;
    return ts.tv_sec;
}
