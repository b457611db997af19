#include "driver/driver.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "driver/state.h"

static const char *setting(const char *given, const char *variable)
{
    const char *value = given ? given : getenv(variable);
    return value && value[0] ? value : NULL;
}

static char **copy_words(char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    char **copy = mem_new((n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = text_dup(words[i]);
    return copy;
}

static char **split_words(const char *line)
{
    auto_free char *copy = text_dup(line);
    char **words = NULL;
    char *rest = NULL;
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        strv_add(&words, w);
    return words;
}

static char **reset_words(const struct driver_options *o)
{
    const char *line = getenv("DIVVY_RESET_COMMAND");
    static const char *const standard[] = { "nvidia-smi", "--gpu-reset", "-i", "{uuid}", NULL };
    char **words = NULL;
    if (o && o->reset_argv && o->reset_argv[0])
        return copy_words(o->reset_argv);
    if (line)
        words = split_words(line);
    return words ? words : copy_words((char *const *)standard);
}

int driver_open(const struct driver_options *options, struct driver **ret, struct err *e)
{
    const struct driver_options none = { .nvml = NULL };
    const struct driver_options *o = options ? options : &none;
    AUTO_PTR(driver_close) struct driver *d = mem_new(sizeof *d);
    const char *root = setting(o->driver_root, "DIVVY_DRIVER_ROOT");
    d->nvml = text_dup(setting(o->nvml, "DIVVY_NVML"));
    d->driver_root = text_dup(root ? root : "/");
    d->reset_argv = reset_words(o);
    d->no_activity = o->no_activity;
    d->board = o->board;
    d->board_arg = o->board_arg;
    d->at = o->at;
    d->at_arg = o->at_arg;
    int code = driver_ready(d, e);
    if (code == 0)
        *ret = take_ptr(d);
    return code;
}

static void forget_boards(struct driver *d)
{
    for (size_t i = 0; i < d->known_count; i++) {
        free(d->known[i].boards[0]);
        free(d->known[i].boards[1]);
    }
    d->known_count = 0;
    d->path_count = 0;
}

int driver_ready(struct driver *d, struct err *e)
{
    char version[sizeof d->version] = "";
    int code = d->lib.so ? 0 : library_open(&d->lib, d->nvml, d->driver_root, e);
    if (code < 0)
        return code;
    /* Another driver since it was let go may tell other names and memory sizes. */
    (void)d->lib.nvmlSystemGetDriverVersion(version, sizeof version);
    if (strcmp(version, d->version) != 0)
        forget_boards(d);
    memcpy(d->version, version, sizeof d->version);
    return 0;
}

void driver_release(struct driver *d)
{
    if (d->events && d->lib.nvmlEventSetFree)
        (void)d->lib.nvmlEventSetFree(d->events); /* goes with the library anyway */
    d->events = NULL;
    d->events_none = false;
    driver_drop_activity(d);
    library_close(&d->lib);
}

void driver_close(struct driver *d)
{
    if (!d)
        return;
    driver_release(d);
    forget_boards(d);
    free(d->known);
    free(d->paths);
    free(d->nvml);
    free(d->driver_root);
    strv_free(d->reset_argv);
    free(d);
}

void driver_at(struct driver *d, const char *card)
{
    if (d->at)
        d->at(card, d->at_arg);
}

struct known_card *driver_known_at(struct driver *d, const char *bus_id, int64_t index)
{
    for (size_t i = 0; i < d->known_count; i++) {
        struct known_card *k = &d->known[i];
        if (bus_id ? strcmp(k->bus_id, bus_id) == 0 : k->index == index)
            return k;
    }
    return NULL;
}

struct known_card *driver_know(struct driver *d, const char *uuid, const char *bus_id)
{
    for (size_t i = 0; i < d->known_count; i++)
        if (strcmp(d->known[i].uuid, uuid) == 0)
            return &d->known[i];
    ARRAY_ROOM(d->known, d->known_alloc, d->known_count + 1);
    struct known_card *k = &d->known[d->known_count++];
    *k = (struct known_card){ .numa_node = -1 };
    (void)snprintf(k->uuid, sizeof k->uuid, "%s", uuid);
    (void)snprintf(k->bus_id, sizeof k->bus_id, "%s", bus_id);
    return k;
}

bool driver_skips(const struct driver_skip *skip, size_t n, const char *uuid, const char *bus_id,
                  int64_t index)
{
    for (size_t i = 0; i < n; i++) {
        if (uuid && uuid[0] && strcmp(skip[i].uuid, uuid) == 0)
            return true;
        if (bus_id && bus_id[0] && strcmp(skip[i].bus_id, bus_id) == 0)
            return true;
        bool by_index = !skip[i].uuid[0] && !skip[i].bus_id[0];
        if (!uuid && by_index && skip[i].index == index)
            return true;
    }
    return false;
}
