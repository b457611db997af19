#include "cdi/cdi.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "model/address.h"
#include "model/fields.h"

#define CARD_MODE 0666
#define CAP_MODE 0444
#define CONTROL_MINOR 255
#define MODESET_MINOR 254

/* ---- names ---- */

void cdi_name(struct text *t, const struct card *c, const struct slice *s)
{
    AUTO(text) struct text address = TEXT_INIT;
    if (!s) {
        text_addf(t, "gpu%u", c->ordinal);
        return;
    }
    address_add(&address, c, s);
    for (char *p = address.buf; *p; p++)
        if (*p == '/' || *p == '@')
            *p = ':';
        else if (*p == '+')
            *p = '.';
        else if (*p == ' ')
            *p = '_'; /* "profile 21", of a board that nobody knows */
    text_add(t, address.buf);
}

static bool is_part(const char *s, size_t len)
{
    if (!len || !isalpha((unsigned char)s[0]) || !isalnum((unsigned char)s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("_-.", s[i]))
            return false;
    return true;
}

int cdi_check_kind(const char *kind, struct err *e)
{
    const char *slash = strchr(kind, '/');
    /* A class with a dot needs CDI 0.6.0. */
    if (slash && is_part(kind, (size_t)(slash - kind)) && is_part(slash + 1, strlen(slash + 1)) &&
        !strchr(slash + 1, '.'))
        return 0;
    return err_set(e, -EINVAL,
                   "'%.64s' is no kind of device; it is VENDOR/CLASS, as in " CDI_KIND
                   " or nvidia.com/gpu",
                   kind);
}

/* ---- nodes ---- */

static void add_node(json_t *nodes, const struct cdi_facts *f, const char *path, uint32_t major,
                     uint32_t minor, int mode)
{
    json_t *j = json_object();
    json_put_text(j, "path", path);
    if (strcmp(f->driver_root, "/") != 0) {
        auto_free char *host = file_under(f->driver_root, path);
        json_put_text(j, "hostPath", host);
    }
    json_put_text(j, "type", "c");
    json_put_u64(j, "major", major);
    json_put_u64(j, "minor", minor);
    json_put_i64(j, "fileMode", mode);
    json_put_text(j, "permissions", "rw");
    json_add(nodes, j);
}

/* Capability minors: "gpu0/gi3/ci0/access 31", one a line. */
static bool cap_minor(const struct cdi_facts *f, const char *name, uint32_t *ret)
{
    size_t len = strlen(name);
    for (const char *line = f->minors; line && *line;
         line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, name, len) == 0 && line[len] == ' ')
            return sscanf(line + len, "%" SCNu32, ret) == 1;
    return false;
}

static void add_cap(json_t *nodes, const struct cdi_facts *f, uint32_t minor)
{
    auto_free char *path = text_fmt("/dev/nvidia-caps/nvidia-cap%" PRIu32, minor);
    add_node(nodes, f, path, f->caps_major, minor, CAP_MODE);
}

static void add_card_node(json_t *nodes, const struct cdi_facts *f, const struct card *c)
{
    auto_free char *path = text_fmt("/dev/nvidia%" PRIu32, c->minor);
    add_node(nodes, f, path, f->nvidia_major, c->minor, CARD_MODE);
}

/* NULL when its capabilities are not known: half a slice is none. */
static json_t *slice_nodes(const struct cdi_facts *f, const struct card *c, const struct slice *s)
{
    uint32_t gi_minor = 0, ci_minor = 0;
    auto_free char *gi = text_fmt("gpu%u/gi%u/access", c->minor, s->gi);
    auto_free char *ci = text_fmt("gpu%u/gi%u/ci%u/access", c->minor, s->gi, s->ci);
    if (!f->caps_major || !cap_minor(f, gi, &gi_minor) || !cap_minor(f, ci, &ci_minor))
        return NULL;
    json_t *nodes = json_array();
    add_card_node(nodes, f, c);
    add_cap(nodes, f, gi_minor);
    add_cap(nodes, f, ci_minor);
    return nodes;
}

/* ---- devices ---- */

static void add_device(json_t *devices, const char *name, json_t *nodes)
{
    json_t *j = json_object();
    json_t *edits = json_object();
    json_put_text(j, "name", name);
    json_put(edits, "deviceNodes", json_incref(nodes));
    json_put(j, "containerEdits", edits);
    json_add(devices, j);
}

/* By address and by UUID. */
static void add_both(json_t *devices, const struct card *c, const struct slice *s,
                     json_t *take_nodes)
{
    AUTO(text) struct text name = TEXT_INIT;
    auto_json json_t *nodes = take_nodes;
    const char *uuid = s ? s->uuid : c->uuid;
    if (!nodes)
        return;
    cdi_name(&name, c, s);
    add_device(devices, name.buf, nodes);
    /* Drivers before 470 name slices MIG-GPU-…/3/0, which is no name for CDI. */
    if (uuid[0] && !strchr(uuid, '/'))
        add_device(devices, uuid, nodes);
}

static void add_card(json_t *devices, const struct cdi_facts *f, const struct card *c)
{
    if (c->health != CARD_OK || c->minor == UINT32_MAX)
        return;
    if (!c->mig_now) {
        json_t *nodes = json_array();
        add_card_node(nodes, f, c);
        add_both(devices, c, NULL, nodes);
        return;
    }
    for (size_t i = 0; i < c->slice_count; i++) {
        const struct slice *s = &c->slices[i];
        if (s->gi != NOT_AN_INSTANCE && s->ci != NOT_AN_INSTANCE && s->uuid[0])
            add_both(devices, c, s, slice_nodes(f, c, s));
    }
}

/* ---- what every container gets ---- */

static json_t *control_nodes(const struct cdi_facts *f)
{
    json_t *nodes = json_array();
    add_node(nodes, f, "/dev/nvidiactl", f->nvidia_major, CONTROL_MINOR, CARD_MODE);
    if (f->uvm_major) {
        add_node(nodes, f, "/dev/nvidia-uvm", f->uvm_major, 0, CARD_MODE);
        add_node(nodes, f, "/dev/nvidia-uvm-tools", f->uvm_major, 1, CARD_MODE);
    }
    if (f->modeset)
        add_node(nodes, f, "/dev/nvidia-modeset", f->nvidia_major, MODESET_MINOR, CARD_MODE);
    return nodes;
}

static json_t *file_mounts(const struct cdi_facts *f)
{
    json_t *mounts = json_array();
    for (size_t i = 0; i < f->file_count; i++) {
        json_t *j = json_object();
        auto_free char *host = file_under(f->driver_root, f->files[i].real);
        json_put_text(j, "hostPath", host);
        json_put_text(j, "containerPath", f->files[i].path);
        json_put(j, "options", json_pack("[ssss]", "ro", "nosuid", "nodev", "bind"));
        json_add(mounts, j);
    }
    return mounts;
}

static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

/* The linker's cache of the image does not know the libraries; NVIDIA's hook tells it. */
static json_t *cache_hook(const struct cdi_facts *f)
{
    json_t *j = json_object();
    json_t *args = json_pack("[ss]", "nvidia-cdi-hook", "update-ldcache");
    const char *last = "";
    for (size_t i = 0; i < f->file_count; i++) {
        const char *path = f->files[i].path;
        size_t len = folder_len(path);
        bool library = text_starts(path + len, "/lib");
        if (!library || (len == folder_len(last) && strncmp(path, last, len) == 0))
            continue;
        auto_free char *folder = text_fmt("%.*s", (int)len, path);
        json_add(args, json_string("--folder"));
        json_add(args, json_string(folder));
        last = path;
    }
    json_put_text(j, "hookName", "createContainer");
    json_put_text(j, "path", f->hook);
    json_put(j, "args", args);
    return j;
}

static json_t *common_edits(const struct cdi_facts *f)
{
    json_t *j = json_object();
    /* NVIDIA's older hook would add devices of its own choice; this keeps it away. */
    json_put(j, "env", json_pack("[s]", "NVIDIA_VISIBLE_DEVICES=void"));
    json_put(j, "deviceNodes", control_nodes(f));
    if (f->file_count)
        json_put(j, "mounts", file_mounts(f));
    if (f->file_count && f->hook)
        json_put(j, "hooks", json_pack("[o]", cache_hook(f)));
    return j;
}

json_t *cdi_spec(const struct inventory *inv, const struct cdi_facts *f, const char *kind)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < inv->card_count; i++)
        add_card(devices, f, &inv->cards[i].card);
    if (!json_array_size(devices)) {
        json_decref(devices);
        return NULL;
    }
    json_t *j = json_object();
    json_put_text(j, "cdiVersion", CDI_VERSION);
    json_put_text(j, "kind", kind);
    json_put(j, "devices", devices);
    json_put(j, "containerEdits", common_edits(f));
    return j;
}
