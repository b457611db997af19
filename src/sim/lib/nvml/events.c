/* Event sets: XIDs and changes of MIG configuration, waited for without polling the driver. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sim/lib/nvml/core.h"

#define LOOK_AGAIN_MS 500U /* a writer killed before it woke anybody is noticed by then */

struct nvmlEventSet_st {
    struct nvmlEventSet_st *next;
    uint64_t types[SIM_CARDS_MAX]; /* asked for, by card */
    uint64_t since[SIM_CARDS_MAX]; /* only events after this one count */
    uint64_t last;                 /* last one looked at */
};

/* Sets are known by address: a caller's rubbish is refused, not followed. */
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvmlEventSet_st *sets;

static bool is_known(const struct nvmlEventSet_st *set)
{
    for (const struct nvmlEventSet_st *s = sets; s; s = s->next)
        if (s == set)
            return true;
    return false;
}

static uint64_t supported(const struct sim_board *b)
{
    return nvmlEventTypeXidCriticalError |
           (b->mig_enable != SIM_MIG_NONE ? nvmlEventMigConfigChange : 0);
}

NVML(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t device, unsigned long long *types)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!types)
        return NVML_ERROR_INVALID_ARGUMENT;
    *types = v.is_mig ? 0 : supported(v.board);
    return NVML_SUCCESS;
}

NVML(nvmlEventSetCreate, nvmlEventSet_t *ret_set)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (!ret_set)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct nvmlEventSet_st *set = mem_new(sizeof *set);
    set->last = machine_last_event(m);
    (void)pthread_mutex_lock(&sets_lock);
    set->next = sets;
    sets = set;
    (void)pthread_mutex_unlock(&sets_lock);
    *ret_set = set;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (types & ~supported(v.board))
        return NVML_ERROR_NOT_SUPPORTED;
    uint64_t newest = machine_last_event(v.machine);
    (void)pthread_mutex_lock(&sets_lock);
    if (!is_known(set))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    else if (types != 0) {
        if (set->types[v.ordinal] == 0)
            set->since[v.ordinal] = newest;
        set->types[v.ordinal] |= types;
    }
    (void)pthread_mutex_unlock(&sets_lock);
    return rc;
}

NVML(nvmlEventSetFree, nvmlEventSet_t set)
{
    nvmlReturn_t rc = NVML_ERROR_INVALID_ARGUMENT;
    if (!core_machine())
        return NVML_ERROR_UNINITIALIZED;
    (void)pthread_mutex_lock(&sets_lock);
    for (struct nvmlEventSet_st **at = &sets; *at; at = &(*at)->next)
        if (*at == set) {
            *at = set->next;
            free(set);
            rc = NVML_SUCCESS;
            break;
        }
    (void)pthread_mutex_unlock(&sets_lock);
    return rc;
}

/* Takes the set's next event, if there is one. With the lock held. */
static bool take_next(struct nvmlEventSet_st *set, const struct sim_state *st,
                      struct sim_event *ret)
{
    /* Older ones were overwritten while nobody waited. */
    if (st->last_event > SIM_EVENTS_MAX && set->last < st->last_event - SIM_EVENTS_MAX)
        set->last = st->last_event - SIM_EVENTS_MAX;
    while (set->last < st->last_event) {
        const struct sim_event *e = &st->events[++set->last % SIM_EVENTS_MAX];
        if (e->card < SIM_CARDS_MAX && (set->types[e->card] & e->type) &&
            e->seq > set->since[e->card]) {
            *ret = *e;
            return true;
        }
    }
    return false;
}

static nvmlReturn_t look(const struct machine *m, nvmlEventSet_t set, struct sim_event *ret)
{
    auto_free struct sim_state *st = mem_new(sizeof *st);
    machine_read(m, st);
    nvmlReturn_t rc = NVML_ERROR_TIMEOUT;
    (void)pthread_mutex_lock(&sets_lock);
    if (!is_known(set))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    else if (take_next(set, st, ret))
        rc = NVML_SUCCESS;
    (void)pthread_mutex_unlock(&sets_lock);
    return rc;
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, unsigned int timeout_ms, struct sim_event *ret)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    int64_t end = now_ms() + timeout_ms;
    for (;;) {
        uint64_t version = machine_version(m);
        nvmlReturn_t rc = look(m, set, ret);
        if (rc != NVML_ERROR_TIMEOUT)
            return rc;
        if (machine_is_gone(m))
            return NVML_ERROR_DRIVER_NOT_LOADED;
        int64_t left = end - now_ms();
        if (left <= 0)
            return NVML_ERROR_TIMEOUT;
        machine_wait(m, version, left < LOOK_AGAIN_MS ? (uint32_t)left : LOOK_AGAIN_MS);
    }
}

NVML(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct sim_event e;
    if (!data)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    nvmlReturn_t rc = wait_for(set, timeout_ms, &e);
    if (rc == NVML_SUCCESS)
        *data = (nvmlEventData_t){ .device = handle_card(e.card),
                                   .eventType = e.type,
                                   .eventData = e.data,
                                   .gpuInstanceId = e.gi,
                                   .computeInstanceId = e.ci };
    return rc;
}

/* Version 1 had no instance ids: the last eight bytes are not the caller's. */
struct event_v1 {
    nvmlDevice_t device;
    unsigned long long type, data;
};

NVML(nvmlEventSetWait, nvmlEventSet_t set, struct event_v1 *data, unsigned int timeout_ms)
{
    struct sim_event e;
    if (!data)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    nvmlReturn_t rc = wait_for(set, timeout_ms, &e);
    if (rc == NVML_SUCCESS)
        *data = (struct event_v1){ handle_card(e.card), e.type, e.data };
    return rc;
}

/* ---- binding and unbinding of cards: they never are, so a wait runs out ---- */

struct nvmlSystemEventSet_st {
    char unused;
};
static struct nvmlSystemEventSet_st system_set;

NVML(nvmlSystemEventSetCreate, nvmlSystemEventSetCreateRequest_v1_t *request)
{
    if (!core_machine())
        return NVML_ERROR_UNINITIALIZED;
    if (!request)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (request->version != NVML_TAG(nvmlSystemEventSetCreateRequest_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    request->set = &system_set;
    return NVML_SUCCESS;
}

NVML(nvmlSystemRegisterEvents, nvmlSystemRegisterEventRequest_v1_t *request)
{
    if (!core_machine())
        return NVML_ERROR_UNINITIALIZED;
    if (!request)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (request->version != NVML_TAG(nvmlSystemRegisterEventRequest_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return request->set == &system_set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

NVML(nvmlSystemEventSetWait, nvmlSystemEventSetWaitRequest_v1_t *request)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (!request)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (request->version != NVML_TAG(nvmlSystemEventSetWaitRequest_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (request->set != &system_set)
        return NVML_ERROR_INVALID_ARGUMENT;
    int64_t end = now_ms() + request->timeoutms;
    for (int64_t left = end - now_ms(); left > 0; left = end - now_ms())
        machine_wait(m, machine_version(m), left < LOOK_AGAIN_MS ? (uint32_t)left : LOOK_AGAIN_MS);
    request->numEvent = 0;
    return NVML_ERROR_TIMEOUT;
}

NVML(nvmlSystemEventSetFree, nvmlSystemEventSetFreeRequest_v1_t *request)
{
    if (!core_machine())
        return NVML_ERROR_UNINITIALIZED;
    if (!request)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (request->version != NVML_TAG(nvmlSystemEventSetFreeRequest_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return request->set == &system_set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
