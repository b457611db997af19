/*
 * What GPU instances did between two looks (GPM, Hopper and later).
 *
 * Of each instance one sample is kept. The next look that is far enough from it
 * gives the activity in between, and its sample takes the other's place. An id
 * is used again at once after a re-cut, so a sample counts only for the very
 * same instance: that is told by the UUIDs of what is in it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "driver/state.h"

#define WINDOW_MIN_US CLOCK_SECOND /* the header wants 100 ms; shorter is noise */
#define WINDOW_MAX_US (10 * CLOCK_MINUTE)

struct activity {
    char card[CARD_UUID_SIZE], slice[CARD_UUID_SIZE];
    uint32_t gi;
    nvmlGpmSample_t sample; /* owned; NULL: none was to be had */
    int64_t taken_boot_us;
    bool known, seen;
    uint32_t percent;
    int64_t since_boot_us; /* of `percent` */
};

/* A library that lacks one of them has none of it. */
static bool has_all(const struct library *lib)
{
    return lib->nvmlGpmQueryDeviceSupport && lib->nvmlGpmSampleAlloc && lib->nvmlGpmSampleFree &&
           lib->nvmlGpmMigSampleGet && lib->nvmlGpmMetricsGet;
}

static bool supports(const struct library *lib, nvmlDevice_t dev, struct known_card *k)
{
    nvmlGpmSupport_t s = { .version = NVML_GPM_SUPPORT_VERSION };
    if (k->gpm == GPM_NOT_ASKED)
        k->gpm = has_all(lib) && lib->nvmlGpmQueryDeviceSupport(dev, &s) == NVML_SUCCESS &&
                         s.isSupportedDevice
                     ? GPM_THERE
                     : GPM_NONE;
    return k->gpm == GPM_THERE;
}

static void drop_sample(const struct driver *d, nvmlGpmSample_t *s)
{
    if (*s)
        (void)d->lib.nvmlGpmSampleFree(*s); /* it is ours, and not used again */
    *s = NULL;
}

static void drop(struct driver *d, size_t i)
{
    drop_sample(d, &d->activities[i].sample);
    d->activities[i] = d->activities[--d->activity_count];
}

void driver_drop_activity(struct driver *d)
{
    while (d->activity_count)
        drop(d, d->activity_count - 1);
    free(d->activities);
    d->activities = NULL;
    d->activity_alloc = 0;
    for (size_t i = 0; i < d->known_count; i++)
        d->known[i].gpm = GPM_NOT_ASKED; /* another library may have it */
}

static struct activity *find(struct driver *d, const struct card *c, const struct slice *s)
{
    for (size_t i = 0; i < d->activity_count; i++) {
        struct activity *a = &d->activities[i];
        if (a->gi == s->gi && strcmp(a->card, c->uuid) == 0 && strcmp(a->slice, s->uuid) == 0)
            return a;
    }
    ARRAY_ROOM(d->activities, d->activity_alloc, d->activity_count + 1);
    struct activity *a = &d->activities[d->activity_count++];
    *a = (struct activity){ .gi = s->gi };
    memcpy(a->card, c->uuid, sizeof a->card);
    memcpy(a->slice, s->uuid, sizeof a->slice);
    return a;
}

/* A metric may fail alone, and what comes may be no number. */
static bool between(const struct library *lib, nvmlGpmSample_t first, nvmlGpmSample_t second,
                    uint32_t *ret_percent)
{
    auto_free nvmlGpmMetricsGet_t *get = mem_new(sizeof *get);
    get->version = NVML_GPM_METRICS_GET_VERSION;
    get->numMetrics = 1;
    get->sample1 = first;
    get->sample2 = second;
    get->metrics[0].metricId = NVML_GPM_METRIC_GRAPHICS_UTIL;
    if (lib->nvmlGpmMetricsGet(get) != NVML_SUCCESS || get->metrics[0].nvmlReturn != NVML_SUCCESS)
        return false;
    double value = get->metrics[0].value;
    if (!isfinite(value) || value < 0)
        return false;
    *ret_percent = value > 100 ? 100 : (uint32_t)(value + 0.5);
    return true;
}

static nvmlGpmSample_t take_sample(const struct driver *d, nvmlDevice_t dev, uint32_t gi,
                                   struct known_card *k)
{
    nvmlGpmSample_t s = NULL;
    if (d->lib.nvmlGpmSampleAlloc(&s) != NVML_SUCCESS)
        return NULL;
    nvmlReturn_t r = d->lib.nvmlGpmMigSampleGet(dev, gi, s);
    if (r == NVML_ERROR_NOT_SUPPORTED)
        k->gpm = GPM_NONE; /* whatever it said of the card */
    if (r != NVML_SUCCESS)
        drop_sample(d, &s);
    return s;
}

static void look(struct driver *d, nvmlDevice_t dev, struct known_card *k, struct activity *a,
                 int64_t now_us)
{
    int64_t window_us = now_us - a->taken_boot_us;
    if (a->sample && window_us < WINDOW_MIN_US)
        return; /* what is known of it still holds */
    nvmlGpmSample_t s = take_sample(d, dev, a->gi, k);
    a->known =
        s && a->sample && window_us <= WINDOW_MAX_US && between(&d->lib, a->sample, s, &a->percent);
    a->since_boot_us = a->taken_boot_us;
    drop_sample(d, &a->sample);
    a->sample = s;
    a->taken_boot_us = now_us;
}

/* Of instances that are gone. */
static void forget_unseen(struct driver *d, const struct card *c)
{
    for (size_t i = d->activity_count; i > 0; i--)
        if (!d->activities[i - 1].seen && strcmp(d->activities[i - 1].card, c->uuid) == 0)
            drop(d, i - 1);
}

void driver_add_activity(struct driver *d, nvmlDevice_t dev, struct known_card *k, struct card *c,
                         int64_t now_boot_us)
{
    if (d->no_activity)
        return;
    for (size_t i = 0; i < d->activity_count; i++)
        d->activities[i].seen = false;
    for (size_t i = 0; i < c->slice_count && supports(&d->lib, dev, k); i++) {
        struct slice *s = &c->slices[i];
        if (!s->full || !s->uuid[0])
            continue; /* of several in one instance nobody can tell whose it was */
        struct activity *a = find(d, c, s);
        a->seen = true;
        look(d, dev, k, a, now_boot_us);
        s->load_known = a->known;
        s->load_percent = a->known ? a->percent : 0;
        s->load_since_boot_us = a->known ? a->since_boot_us : 0;
    }
    forget_unseen(d, c);
}
