#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/state.h"

#define WANTED (nvmlEventTypeXidCriticalError | nvmlEventMigConfigChange)

static bool subscribe_card(struct driver *d, unsigned int index, const struct driver_skip *skip,
                           size_t n)
{
    nvmlDevice_t dev;
    nvmlPciInfo_t pci = { .domain = 0 };
    unsigned long long supported = 0;
    char at[32];
    if (driver_skips(skip, n, NULL, NULL, index))
        return false;
    (void)snprintf(at, sizeof at, "index:%u", index);
    driver_at(d, at);
    if (d->lib.nvmlDeviceGetHandleByIndex_v2(index, &dev) != NVML_SUCCESS ||
        d->lib.nvmlDeviceGetPciInfo_v3(dev, &pci) != NVML_SUCCESS)
        return false;
    const struct known_card *k = driver_known_at(d, pci.busId, -1);
    if (driver_skips(skip, n, k ? k->uuid : "", pci.busId, index))
        return false;
    driver_at(d, pci.busId);
    if (d->lib.nvmlDeviceGetSupportedEventTypes(dev, &supported) != NVML_SUCCESS ||
        !(supported & WANTED))
        return false;
    return d->lib.nvmlDeviceRegisterEvents(dev, supported & WANTED, d->events) == NVML_SUCCESS;
}

static void subscribe(struct driver *d, const struct driver_skip *skip, size_t n)
{
    unsigned int count = 0;
    unsigned int subscribed = 0;
    const struct library *lib = &d->lib;
    bool has_all = lib->nvmlEventSetCreate && lib->nvmlDeviceRegisterEvents &&
                   lib->nvmlDeviceGetSupportedEventTypes && lib->nvmlEventSetFree &&
                   (lib->nvmlEventSetWait_v2 || lib->nvmlEventSetWait);
    if (has_all && lib->nvmlEventSetCreate(&d->events) == NVML_SUCCESS &&
        lib->nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS)
        for (unsigned int i = 0; i < count && i < DRIVER_CARDS_MAX; i++)
            subscribed += subscribe_card(d, i, skip, n);
    driver_at(d, NULL);
    d->events_none = subscribed == 0;
}

static void fill_event(struct driver *d, const nvmlEventData_t *data, bool has_instances,
                       struct driver_event *ret)
{
    nvmlPciInfo_t pci = { .domain = 0 };
    *ret = (struct driver_event){ .gi = NOT_AN_INSTANCE, .ci = NOT_AN_INSTANCE };
    if (data->eventType == nvmlEventTypeXidCriticalError)
        ret->xid = data->eventData;
    if (has_instances) {
        ret->gi = data->gpuInstanceId;
        ret->ci = data->computeInstanceId;
    }
    /* A card that just fell off the bus may not say who it is. */
    if (d->lib.nvmlDeviceGetPciInfo_v3(data->device, &pci) == NVML_SUCCESS)
        (void)snprintf(ret->bus_id, sizeof ret->bus_id, "%s", pci.busId);
    const struct known_card *k = driver_known_at(d, ret->bus_id, -1);
    if (k)
        memcpy(ret->uuid, k->uuid, sizeof ret->uuid);
    else if (d->lib.nvmlDeviceGetUUID(data->device, ret->uuid, sizeof ret->uuid) != NVML_SUCCESS)
        ret->uuid[0] = '\0';
}

int driver_wait_event(struct driver *d, const struct driver_skip *skip, size_t skip_count,
                      int timeout_ms, struct driver_event *ret, struct err *e)
{
    nvmlEventData_t data = { .eventType = 0 };
    int code = driver_ready(d, e);
    if (code < 0)
        return code;
    if (!d->events && !d->events_none)
        subscribe(d, skip, skip_count);
    if (d->events_none)
        return err_set(e, -ENOTSUP, "no card here tells of events");
    bool v2 = d->lib.nvmlEventSetWait_v2 != NULL;
    unsigned int wait = timeout_ms > 0 ? (unsigned int)timeout_ms : 0;
    nvmlReturn_t r = v2 ? d->lib.nvmlEventSetWait_v2(d->events, &data, wait)
                        : d->lib.nvmlEventSetWait(d->events, &data, wait);
    if (r == NVML_ERROR_TIMEOUT)
        return 0;
    if (r == NVML_SUCCESS) {
        fill_event(d, &data, v2, ret);
        return 1;
    }
    /* As when a card falls off the bus: the next call subscribes to those that are left. */
    (void)d->lib.nvmlEventSetFree(d->events);
    d->events = NULL;
    return err_set(e, library_errno(r), "waiting for events of the driver: %s",
                   library_words(&d->lib, r));
}
