/*
 * clock.h - the time, as a value that is handed in.
 *
 * Everything that decides takes a `struct now` and reads no clock itself.
 * Limits and charges run on boot_us (CLOCK_BOOTTIME: goes on in suspend, is
 * not moved by setting the date) together with the boot id; wall_us is only
 * for display and for times that people name.
 */
#ifndef DIVVY_BASE_CLOCK_H
#define DIVVY_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_SECOND ((int64_t)1000000)
#define CLOCK_MINUTE (60 * CLOCK_SECOND)
#define CLOCK_HOUR (60 * CLOCK_MINUTE)
#define CLOCK_DAY (24 * CLOCK_HOUR)

#define BOOT_ID_SIZE 37

struct now {
    int64_t boot_us; /* CLOCK_BOOTTIME, microseconds since this boot */
    int64_t wall_us; /* CLOCK_REALTIME, microseconds since 1970 UTC */
};

struct now clock_now(void);

/* This boot's id, 36 characters; "" when the kernel does not tell. Cached. */
const char *clock_boot_id(void);

#endif
