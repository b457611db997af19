#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "driver/state.h"

/* A code that says something of the whole card, however it came. True when the card is as good as gone. */
static bool note(struct card *c, nvmlReturn_t code)
{
    if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_GPU_NOT_FOUND) {
        c->health = CARD_LOST;
        (void)snprintf(c->trouble, sizeof c->trouble,
                       "the driver says that it fell off the bus; a reboot or a reset of the "
                       "machine's power may bring it back");
        return true;
    }
    if (code == NVML_ERROR_RESET_REQUIRED && c->health == CARD_OK) {
        c->health = CARD_RESET_REQUIRED;
        (void)snprintf(c->trouble, sizeof c->trouble,
                       "the driver wants a reset of it first: nvidia-smi --gpu-reset -i %u",
                       c->index);
    }
    return false;
}

static void copy_known(struct card *c, const struct known_card *k)
{
    memcpy(c->uuid, k->uuid, sizeof c->uuid);
    memcpy(c->bus_id, k->bus_id, sizeof c->bus_id);
    const struct board *b = k->boards[1] ? k->boards[1] : k->boards[0];
    if (b)
        c->board = *b;
    else
        memcpy(c->board.name, k->name, sizeof c->board.name);
    c->mig_capable = c->board.activation != MIG_NONE;
}

/* sysfs has no eight-digit domains and no capitals. */
static int32_t numa_node(const struct driver *d, const char *bus_id)
{
    size_t skip = strlen(bus_id) > strlen("0000:00:00.0") ? 4 : 0;
    auto_free char *tail = text_fmt("/sys/bus/pci/devices/%s/numa_node", bus_id + skip);
    auto_free char *path = file_under(d->driver_root, tail);
    for (char *p = path + strlen(path) - strlen(tail); *p; p++)
        *p = (char)tolower((unsigned char)*p);
    auto_free char *data = NULL;
    if (file_read(AT_FDCWD, path, 64, &data, NULL, NULL) < 0)
        return -1;
    return (int32_t)strtol(data, NULL, 10);
}

static nvmlReturn_t identify(struct driver *d, nvmlDevice_t dev, struct card *c,
                             struct known_card **ret)
{
    char uuid[CARD_UUID_SIZE] = "";
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    nvmlPciInfo_t pci = { .domain = 0 };
    nvmlReturn_t r = d->lib.nvmlDeviceGetPciInfo_v3(dev, &pci);
    if (r == NVML_SUCCESS)
        r = d->lib.nvmlDeviceGetUUID(dev, uuid, sizeof uuid);
    if (r == NVML_SUCCESS)
        r = d->lib.nvmlDeviceGetName(dev, name, sizeof name);
    if (r != NVML_SUCCESS)
        return r;
    struct known_card *k = driver_know(d, uuid, c->bus_id);
    if (!k->name[0])
        k->numa_node = numa_node(d, c->bus_id);
    (void)snprintf(k->name, sizeof k->name, "%s", name);
    (void)snprintf(k->bus_id, sizeof k->bus_id, "%s", c->bus_id);
    k->pci_device_id = pci.pciDeviceId;
    k->index = c->index;
    memcpy(c->uuid, k->uuid, sizeof c->uuid);
    *ret = k;
    return NVML_SUCCESS;
}

static void read_memory(const struct library *lib, nvmlDevice_t dev, struct card *c)
{
    nvmlMemory_v2_t v2 = { .version = NVML_TAG(nvmlMemory_v2_t, 2) };
    nvmlMemory_t v1;
    if (lib->nvmlDeviceGetMemoryInfo_v2 &&
        lib->nvmlDeviceGetMemoryInfo_v2(dev, &v2) == NVML_SUCCESS) {
        c->mem_total_bytes = v2.total;
        c->mem_used_bytes = v2.used;
    } else if (lib->nvmlDeviceGetMemoryInfo &&
               lib->nvmlDeviceGetMemoryInfo(dev, &v1) == NVML_SUCCESS) {
        c->mem_total_bytes = v1.total;
        c->mem_used_bytes = v1.used;
    } else {
        return;
    }
    c->known |= KNOW_MEMORY;
}

static void read_temperature(const struct library *lib, nvmlDevice_t dev, struct card *c)
{
    nvmlTemperature_v1_t v = { .version = NVML_TAG(nvmlTemperature_v1_t, 1),
                               .sensorType = NVML_TEMPERATURE_GPU };
    if (lib->nvmlDeviceGetTemperature &&
        lib->nvmlDeviceGetTemperature(dev, NVML_TEMPERATURE_GPU, &c->temperature_c) == NVML_SUCCESS)
        c->known |= KNOW_TEMPERATURE;
    else if (lib->nvmlDeviceGetTemperatureV &&
             lib->nvmlDeviceGetTemperatureV(dev, &v) == NVML_SUCCESS && v.temperature >= 0) {
        c->temperature_c = (uint32_t)v.temperature;
        c->known |= KNOW_TEMPERATURE;
    }
}

static void read_sensors(const struct library *lib, nvmlDevice_t dev, struct card *c)
{
    nvmlUtilization_t load;
    read_memory(lib, dev, c);
    read_temperature(lib, dev, c);
    if (lib->nvmlDeviceGetPowerUsage &&
        lib->nvmlDeviceGetPowerUsage(dev, &c->power_mw) == NVML_SUCCESS)
        c->known |= KNOW_POWER;
    if (lib->nvmlDeviceGetEnforcedPowerLimit &&
        lib->nvmlDeviceGetEnforcedPowerLimit(dev, &c->power_limit_mw) == NVML_SUCCESS)
        c->known |= KNOW_POWER_LIMIT;
    if (!c->mig_now && lib->nvmlDeviceGetUtilizationRates &&
        lib->nvmlDeviceGetUtilizationRates(dev, &load) == NVML_SUCCESS) {
        c->load_percent = load.gpu;
        c->known |= KNOW_LOAD;
    }
}

static nvmlReturn_t read_mode(const struct library *lib, nvmlDevice_t dev, struct card *c)
{
    unsigned int now = 0, pending = 0;
    if (!lib->nvmlDeviceGetMigMode)
        return NVML_SUCCESS;
    nvmlReturn_t r = lib->nvmlDeviceGetMigMode(dev, &now, &pending);
    c->mig_capable = r == NVML_SUCCESS;
    c->mig_now = now == NVML_DEVICE_MIG_ENABLE;
    c->mig_pending = pending == NVML_DEVICE_MIG_ENABLE;
    return r == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : r;
}

static void read_card(struct driver *d, nvmlDevice_t dev, struct known_card *k, struct card *c)
{
    nvmlReturn_t r = read_mode(&d->lib, dev, c);
    if (r != NVML_SUCCESS && note(c, r)) {
        copy_known(c, k);
        return;
    }
    if (!d->lib.nvmlDeviceGetMinorNumber ||
        d->lib.nvmlDeviceGetMinorNumber(dev, &c->minor) != NVML_SUCCESS)
        c->minor = UINT32_MAX;
    c->board = *driver_board(d, dev, k, c->mig_now);
    read_sensors(&d->lib, dev, c);
    driver_read_settings(&d->lib, dev, c);
    driver_learn_links(d, dev, k, c->mig_now);
    c->board.mem_bytes = c->mem_total_bytes;
    c->numa_node = k->numa_node;
    if (k->numa_node >= 0)
        c->known |= KNOW_NUMA;
    if (c->mig_now) {
        r = driver_add_slices(d, dev, k, c);
        c->known |= r == NVML_SUCCESS ? KNOW_SLICES : 0u;
        driver_add_activity(d, dev, k, c, clock_now().boot_us);
        c->board = *k->boards[1]; /* it may have learnt compute instances */
        c->board.mem_bytes = c->mem_total_bytes;
        (void)note(c, r);
    }
    if (c->health != CARD_LOST && driver_add_processes(d, dev, c))
        c->known |= KNOW_PROCESSES;
}

static void skip_card(struct driver *d, struct card *c, const struct driver_skip *skip, size_t n)
{
    c->health = CARD_UNRESPONSIVE;
    (void)snprintf(c->trouble, sizeof c->trouble,
                   "a call to the driver about it did not come back; it is left alone");
    for (size_t i = 0; i < n; i++)
        if (c->bus_id[0] && strcmp(skip[i].bus_id, c->bus_id) == 0)
            memcpy(c->uuid, skip[i].uuid, sizeof c->uuid);
    const struct known_card *k = driver_known_at(d, c->bus_id[0] ? c->bus_id : NULL, c->index);
    if (k)
        copy_known(c, k);
}

/* No handle, or none that answers: what is left to say. */
static void fail_card(struct driver *d, struct card *c, nvmlReturn_t code)
{
    const struct known_card *k = driver_known_at(d, c->bus_id[0] ? c->bus_id : NULL, c->index);
    if (k)
        copy_known(c, k);
    if (note(c, code))
        return;
    if (code == NVML_ERROR_NO_PERMISSION) {
        c->health = CARD_HIDDEN;
        (void)snprintf(c->trouble, sizeof c->trouble, "this user may not open its device node");
        return;
    }
    c->health = code == NVML_ERROR_RESET_REQUIRED ? CARD_RESET_REQUIRED : CARD_UNRESPONSIVE;
    (void)snprintf(c->trouble, sizeof c->trouble, "the driver answers for it: %.100s",
                   library_words(&d->lib, code));
}

static void add_card(struct driver *d, unsigned int index, const struct driver_skip *skip, size_t n,
                     struct snapshot *s)
{
    char at[32];
    nvmlDevice_t dev;
    nvmlPciInfo_t pci = { .domain = 0 };
    struct known_card *k = NULL;
    struct card *c = snapshot_add_card(s);
    c->index = index;
    c->minor = UINT32_MAX;
    if (driver_skips(skip, n, NULL, NULL, index)) {
        skip_card(d, c, skip, n);
        return;
    }
    (void)snprintf(at, sizeof at, "index:%u", index);
    driver_at(d, at);
    nvmlReturn_t r = d->lib.nvmlDeviceGetHandleByIndex_v2(index, &dev);
    if (r == NVML_SUCCESS)
        r = d->lib.nvmlDeviceGetPciInfo_v3(dev, &pci);
    if (r != NVML_SUCCESS) {
        fail_card(d, c, r);
        return;
    }
    (void)snprintf(c->bus_id, sizeof c->bus_id, "%s", pci.busId);
    driver_at(d, c->bus_id);
    const struct known_card *before = driver_known_at(d, c->bus_id, -1);
    if (driver_skips(skip, n, before ? before->uuid : "", c->bus_id, index)) {
        skip_card(d, c, skip, n);
        return;
    }
    r = identify(d, dev, c, &k);
    if (r != NVML_SUCCESS)
        fail_card(d, c, r);
    else if (driver_skips(skip, n, k->uuid, NULL, index))
        skip_card(d, c, skip, n);
    else
        read_card(d, dev, k, c);
}

int driver_snapshot(struct driver *d, const struct driver_skip *skip, size_t skip_count,
                    struct snapshot *ret, struct err *e)
{
    unsigned int count = 0;
    int code = driver_ready(d, e);
    if (code < 0)
        return code;
    nvmlReturn_t r = d->lib.nvmlDeviceGetCount_v2(&count);
    if (r != NVML_SUCCESS)
        return err_set(e, library_errno(r), "the NVIDIA driver does not count its cards: %s",
                       library_words(&d->lib, r));
    struct snapshot s = SNAPSHOT_INIT;
    s.taken = clock_now();
    (void)d->lib.nvmlSystemGetDriverVersion(s.driver_version, sizeof s.driver_version);
    if (d->lib.nvmlSystemGetNVMLVersion)
        (void)d->lib.nvmlSystemGetNVMLVersion(s.nvml_version, sizeof s.nvml_version);
    for (unsigned int i = 0; i < count && i < DRIVER_CARDS_MAX; i++)
        add_card(d, i, skip, skip_count, &s);
    driver_add_peers(d, &s);
    driver_at(d, NULL);
    snapshot_number(&s);
    *ret = s;
    return 0;
}
