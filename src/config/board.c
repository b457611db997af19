#include "config/board.h"

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "config/board_known.h"
#include "config/nearest.h"

#define NVIDIA_VENDOR 0x10deu
#define CI_REV1_INDEX 7u

static const struct field_choice activations[] = { { "gpu_reset", MIG_BY_RESET },
                                                   { "immediate", MIG_IMMEDIATE },
                                                   { NULL } };

/* NVML_DEVICE_ARCH_* */
static const struct field_choice archs[] = { { "volta", 5 }, { "turing", 6 }, { "ampere", 7 },
                                             { "ada", 8 },   { "hopper", 9 }, { "blackwell", 10 },
                                             { NULL } };

/* NVML_BRAND_* */
static const struct field_choice brands[] = {
    { "tesla", 2 }, { "geforce", 5 }, { "nvidia_rtx", 13 }, { "nvidia", 14 }, { NULL }
};

/* NVML_COMPUTE_INSTANCE_PROFILE_*, by compute slices; -1: there is none of that size. */
static const int ci_index_by_slices[] = { -1, 0, 1, 2, 3, -1, 6, 4, 5 };
#define CI_SLICES_MAX 8u

static int read_numbers(const struct yaml_node *n, const char *what, uint32_t max, uint8_t *ret,
                        uint32_t room, uint32_t *ret_count, struct err *e)
{
    if (n->kind != YAML_IS_LIST || n->count == 0 || n->count > room)
        return yaml_node_fail(n, e, "%s must be a list of 1 to %u numbers", what, room);
    uint32_t count = 0;
    for (const struct yaml_node *c = n->first; c; c = c->next) {
        uint64_t x;
        int r = yaml_node_u64(c, 0, max, &x, e);
        if (r < 0)
            return r;
        ret[count++] = (uint8_t)x;
    }
    *ret_count = count;
    return 0;
}

static int read_starts(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct profile *p = place;
    int r = read_numbers(n, "starts", BOARD_UNITS_MAX - 1, p->starts, BOARD_UNITS_MAX,
                         &p->start_count, e);
    if (r < 0)
        return r;
    for (uint32_t i = 1; i < p->start_count; i++)
        if (p->starts[i] <= p->starts[i - 1])
            return yaml_node_fail(n, e, "starts must ascend");
    return 0;
}

static int read_order(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct profile *p = place;
    return read_numbers(n, "order", BOARD_UNITS_MAX - 1, p->order, BOARD_UNITS_MAX, &p->order_count,
                        e);
}

static int read_profile_engines(const struct yaml_node *n, const struct field *f, void *place,
                                struct err *e)
{
    (void)f;
    struct profile *p = place;
    uint8_t x[5];
    uint32_t count = 0;
    int r = read_numbers(n, "engines", 64, x, 5, &count, e);
    if (r < 0)
        return r;
    if (count != 5)
        return yaml_node_fail(n, e,
                              "engines are five numbers: copy, decoders, encoders, jpegs, ofas");
    p->copy_engines = x[0];
    p->decoders = x[1];
    p->encoders = x[2];
    p->jpegs = x[3];
    p->ofas = x[4];
    return 0;
}

/* One kind of compute instance: [slices, sms, max] or [slices, sms, max, rev1]. */
static int read_ci(const struct yaml_node *n, struct ci_profile *ret, struct err *e)
{
    if (n->kind != YAML_IS_LIST || n->count < 3 || n->count > 4)
        return yaml_node_fail(n, e, "write a compute instance as [slices, sms, max]");
    uint64_t slices, sms, max;
    int r = yaml_node_u64(n->first, 1, CI_SLICES_MAX, &slices, e);
    if (r >= 0)
        r = yaml_node_u64(n->first->next, 0, 10000, &sms, e);
    if (r >= 0)
        r = yaml_node_u64(n->first->next->next, 1, 16, &max, e);
    if (r < 0)
        return r;
    int index = ci_index_by_slices[slices];
    if (n->count == 4) {
        if (slices != 1 || !n->last->text || strcmp(n->last->text, "rev1") != 0)
            return yaml_node_fail(n->last, e, "only 'rev1', on one slice, may stand here");
        index = (int)CI_REV1_INDEX;
    }
    if (index < 0)
        return yaml_node_fail(n->first, e, "no compute instance has %u slices", (unsigned)slices);
    *ret = (struct ci_profile){ .id = (uint32_t)index, /* equal on every board seen */
                                .index = (uint32_t)index,
                                .slices = (uint32_t)slices,
                                .sms = (uint32_t)sms,
                                .max = (uint32_t)max };
    return 0;
}

static int read_compute(const struct yaml_node *n, const struct field *f, void *place,
                        struct err *e)
{
    (void)f;
    struct profile *p = place;
    if (n->kind != YAML_IS_LIST || n->count == 0 || n->count > PROFILE_CI_MAX)
        return yaml_node_fail(n, e, "compute must be a list of 1 to %d [slices, sms, max]",
                              PROFILE_CI_MAX);
    for (const struct yaml_node *c = n->first; c; c = c->next) {
        int r = read_ci(c, &p->cis[p->ci_count++], e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Which fields are not sure is for readers of the file; the program keeps that some are. */
static int read_unconfirmed(const struct yaml_node *n, const struct field *f, void *place,
                            struct err *e)
{
    struct field_words words = { .words = NULL };
    int r = field_list_words(n, f, &words, e);
    if (r >= 0)
        *(bool *)place = words.count > 0;
    field_words_done(&words);
    return r;
}

static int read_cc(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct board *b = place;
    const char *text;
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    size_t digits = strlen(text);
    if (strspn(text, "0123456789.") != digits || digits > 4 || end == text || *end != '.' ||
        strlen(end) != 2 || end[1] == '.')
        return yaml_node_fail(n, e, "compute_capability: '%.16s' is not like 8.0", text);
    b->cc_major = (uint32_t)major;
    b->cc_minor = (uint32_t)(end[1] - '0');
    return 0;
}

static const struct field profile_fields[] = {
    { "name", field_chars, offsetof(struct profile, name), .size = PROFILE_NAME_SIZE,
      .required = true },
    { "id", field_u32, offsetof(struct profile, id), .max = 1023, .required = true },
    { "index", field_u32, offsetof(struct profile, index), .max = 63, .required = true },
    { "slices", field_u32, offsetof(struct profile, slices), .min = 1, .max = CI_SLICES_MAX,
      .required = true },
    { "units", field_u32, offsetof(struct profile, units), .min = 1, .max = BOARD_UNITS_MAX,
      .required = true },
    { "memory_mib", field_mib, offsetof(struct profile, mem_bytes), .min = 1, .required = true },
    { "sms", field_u32, offsetof(struct profile, sms), .max = 10000, .required = true },
    { "engines", read_profile_engines, 0, .required = true },
    { "max", field_u32, offsetof(struct profile, max), .min = 1, .max = BOARD_UNITS_MAX,
      .required = true },
    { "starts", read_starts, 0, .required = true },
    { "order", read_order, 0 },
    { "compute", read_compute, 0, .required = true },
    { "unconfirmed", read_unconfirmed, offsetof(struct profile, unconfirmed) },
    { NULL },
};

/* The card may run past its last compute slice's unit, but no instance past the card's end. */
static int check_profile(const struct yaml_node *n, const struct board *b, struct profile *p,
                         struct err *e)
{
    for (uint32_t i = 0; i < p->start_count; i++)
        if (p->starts[i] + p->units > b->units)
            return yaml_node_fail(n, e, "%s at unit %u would run past the card's %u units", p->name,
                                  p->starts[i], b->units);
    for (uint32_t i = 0; i < p->order_count; i++)
        if (!profile_starts_at(p, p->order[i]))
            return yaml_node_fail(n, e, "%s: order names unit %u, which is not in starts", p->name,
                                  p->order[i]);
    if (p->slices > b->slices)
        return yaml_node_fail(n, e, "%s has more compute slices than the card's %u", p->name,
                              b->slices);
    for (uint32_t i = 0; i < p->ci_count; i++)
        if (p->cis[i].slices > p->slices)
            return yaml_node_fail(n, e, "%s: a compute instance of %u slices does not fit", p->name,
                                  p->cis[i].slices);
    if (!profile_full_ci(p))
        return yaml_node_fail(n, e, "%s: compute lacks the instance with all %u slices", p->name,
                              p->slices);
    return 0;
}

static int name_cis(const struct yaml_node *n, struct profile *p, struct err *e)
{
    for (uint32_t i = 0; i < p->ci_count; i++) {
        struct ci_profile *ci = &p->cis[i];
        AUTO(text) struct text name = TEXT_INIT;
        if (ci->slices < p->slices)
            text_addf(&name, "%uc.", ci->slices);
        text_add(&name, p->name);
        if (ci->index == CI_REV1_INDEX)
            text_add(&name, " (REV1)");
        if (name.len >= sizeof ci->name)
            return yaml_node_fail(n, e, "name: '%s' is too long", p->name);
        memcpy(ci->name, name.buf, name.len + 1);
    }
    return 0;
}

static int read_profile(const struct yaml_node *n, struct board *b, struct err *e)
{
    struct profile p = { .id = 0 };
    int r = field_read_map(n, profile_fields, &p, e);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *other = &b->profiles[i];
        if (other->id == p.id || other->index == p.index || strcmp(other->name, p.name) == 0)
            return yaml_node_fail(n, e, "%s has the name, id or index of %s", p.name, other->name);
    }
    r = check_profile(n, b, &p, e);
    if (r >= 0)
        r = name_cis(n, &p, e);
    if (r < 0)
        return r;
    b->profiles[b->profile_count++] = p;
    return 0;
}

/* Last in the table of mig: the profiles are checked against units and slices. */
static int read_profiles(const struct yaml_node *mig, struct board *b, struct err *e)
{
    const struct yaml_node *list = yaml_node_get(mig, "profiles");
    if (list->kind != YAML_IS_LIST || list->count == 0 || list->count > BOARD_PROFILES_MAX)
        return yaml_node_fail(list, e, "profiles must be a list of 1 to %d maps",
                              BOARD_PROFILES_MAX);
    for (const struct yaml_node *c = list->first; c; c = c->next) {
        int r = read_profile(c, b, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int later(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)n;
    (void)f;
    (void)place;
    (void)e;
    return 0;
}

static const struct field mig_fields[] = {
    { "activation", field_choice_word, offsetof(struct board, activation), .choices = activations,
      .required = true },
    { "units", field_u32, offsetof(struct board, units), .min = 1, .max = BOARD_UNITS_MAX,
      .required = true },
    { "slices", field_u32, offsetof(struct board, slices), .min = 1, .max = CI_SLICES_MAX,
      .required = true },
    { "profiles", later, 0, .required = true },
    { NULL },
};

static int read_mig(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    int r = field_read_map(n, mig_fields, place, e);
    return r < 0 ? r : read_profiles(n, place, e);
}

static int read_pci(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    uint64_t device;
    int r = yaml_node_u64(n, 1, 0xffff, &device, e);
    if (r < 0)
        return r;
    *(uint32_t *)place = (uint32_t)device << 16 | NVIDIA_VENDOR;
    return 0;
}

static int read_also(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    struct board *b = place;
    if (n->kind != YAML_IS_LIST || n->count > BOARD_ALSO_MAX)
        return yaml_node_fail(n, e, "also must be a list of at most %d PCI device ids",
                              BOARD_ALSO_MAX);
    for (const struct yaml_node *c = n->first; c; c = c->next) {
        int r = read_pci(c, f, &b->also_pci[b->also_count++], e);
        if (r < 0)
            return r;
    }
    return 0;
}

static const struct field power_fields[] = {
    { "idle", field_milliwatt, offsetof(struct board, power_idle_mw), .required = true },
    { "limit", field_milliwatt, offsetof(struct board, power_limit_mw), .min = 1,
      .required = true },
    { NULL },
};

static const struct field engine_fields[] = {
    { "copy", field_u32, offsetof(struct board, copy_engines), .max = 64 },
    { "decoders", field_u32, offsetof(struct board, decoders), .max = 64 },
    { "encoders", field_u32, offsetof(struct board, encoders), .max = 64 },
    { "jpegs", field_u32, offsetof(struct board, jpegs), .max = 64 },
    { "ofas", field_u32, offsetof(struct board, ofas), .max = 64 },
    { NULL },
};

static const struct field clock_fields[] = {
    { "idle", field_u32, offsetof(struct board, clock_idle_mhz), .max = 20000 },
    { "max", field_u32, offsetof(struct board, clock_max_mhz), .max = 20000 },
    { "memory", field_u32, offsetof(struct board, clock_memory_mhz), .max = 50000 },
    { NULL },
};

static const struct field temperature_fields[] = {
    { "slowdown", field_u32, offsetof(struct board, temp_slowdown_c), .max = 150 },
    { "shutdown", field_u32, offsetof(struct board, temp_shutdown_c), .max = 150 },
    { NULL },
};

static const struct field pcie_fields[] = {
    { "gen", field_u32, offsetof(struct board, pcie_gen), .min = 1, .max = 8 },
    { "width", field_u32, offsetof(struct board, pcie_width), .min = 1, .max = 32 },
    { NULL },
};

static const struct field board_fields[] = {
    { "board", field_chars, offsetof(struct board, key), .size = BOARD_KEY_SIZE, .required = true },
    { "name", field_chars, offsetof(struct board, name), .size = BOARD_NAME_SIZE,
      .required = true },
    { "pci_device", read_pci, offsetof(struct board, pci_device_id), .required = true },
    { "also", read_also, 0 },
    { "arch", field_choice_word, offsetof(struct board, arch), .choices = archs, .required = true },
    { "compute_capability", read_cc, 0, .required = true },
    { "memory_mib", field_mib, offsetof(struct board, mem_bytes), .min = 1, .required = true },
    { "sms", field_u32, offsetof(struct board, sms), .min = 1, .max = 10000, .required = true },
    { "power_w", field_map, 0, .sub = power_fields, .required = true },
    { "engines", field_map, 0, .sub = engine_fields, .required = true },
    { "brand", field_choice_word, offsetof(struct board, brand), .choices = brands },
    { "reserved_mib", field_mib, offsetof(struct board, reserved_bytes) },
    { "cores_per_sm", field_u32, offsetof(struct board, cores_per_sm), .max = 1024 },
    { "clock_mhz", field_map, 0, .sub = clock_fields },
    { "temperature_c", field_map, 0, .sub = temperature_fields },
    { "pcie", field_map, 0, .sub = pcie_fields },
    { "ecc", field_bool, offsetof(struct board, ecc) },
    { "fan", field_bool, offsetof(struct board, fan) },
    { "min_driver", field_chars, offsetof(struct board, min_driver), .size = 24 },
    { "mig", read_mig, 0 },
    { "unconfirmed", read_unconfirmed, offsetof(struct board, unconfirmed) },
    { NULL },
};

static int read_root(const struct yaml_tree *t, struct board *ret, struct err *e)
{
    struct board *b = mem_new(sizeof *b); /* some 20 KiB: not for the stack of every caller */
    int r = field_read_map(t->root, board_fields, b, e);
    if (r >= 0)
        *ret = *b;
    free(b);
    return r;
}

int board_parse(const char *file, const char *text, size_t len, struct board *ret, struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    if (board_known(text, len, ret))
        return 0;
    int r = yaml_tree_parse(file, text, len, &t, e);
    return r < 0 ? r : read_root(t, ret, e);
}

int board_read(const char *path, struct board *ret, struct err *e)
{
    auto_free char *text = NULL;
    size_t len = 0;
    int r = file_read(AT_FDCWD, path, YAML_BYTES_MAX, &text, &len, e);
    return r < 0 ? r : board_parse(path, text, len, ret, e);
}

/* Asked once: it cannot change, and reading all boards would ask for each. */
static bool in_build_tree(void)
{
    static enum { NOT_ASKED = 0, INSIDE, OUTSIDE } where;
    char self[4096];
    if (where == NOT_ASKED) {
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        bool inside = n > 0 && text_starts((self[n] = '\0', self), DIVVY_BUILD_DIR "/");
        where = inside ? INSIDE : OUTSIDE;
    }
    return where == INSIDE;
}

/* The source tree counts only for a program that stands in its build tree. */
static char *search_path(void)
{
    const char *env = getenv("DIVVY_BOARDS");
    if (env && *env)
        return text_dup(env);
    return text_dup(in_build_tree() ? DIVVY_SOURCE_BOARDS ":" DIVVY_INSTALLED_BOARDS
                                    : DIVVY_INSTALLED_BOARDS);
}

typedef int dir_fn(const char *dir, void *arg, struct err *e);

/* Calls f for each directory of the search path until it says something other than 0. */
static int each_dir(dir_fn *f, void *arg, struct err *e)
{
    auto_free char *path = search_path();
    char *rest = path;
    int r = 0;
    while (r == 0 && rest) {
        const char *dir = strsep(&rest, ":");
        if (*dir)
            r = f(dir, arg, e);
    }
    return r;
}

static int add_keys(const char *dir, void *arg, struct err *e)
{
    (void)e;
    struct field_words *keys = arg;
    auto_dir DIR *d = opendir(dir);
    if (!d)
        return 0; /* one of several places; board_keys complains when all are empty */
    struct dirent *entry;
    while ((entry = readdir(d))) {
        size_t len = strlen(entry->d_name);
        if (len <= 5 || strcmp(entry->d_name + len - 5, ".yaml") != 0 || entry->d_name[0] == '.')
            continue;
        ARRAY_ROOM(keys->words, keys->alloc, keys->count + 1);
        keys->words[keys->count++] = text_fmt("%.*s", (int)(len - 5), entry->d_name);
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void drop_doubles(struct field_words *keys)
{
    size_t kept = 0;
    for (size_t i = 0; i < keys->count; i++) {
        if (kept && strcmp(keys->words[kept - 1], keys->words[i]) == 0)
            free(keys->words[i]);
        else
            keys->words[kept++] = keys->words[i];
    }
    keys->count = kept;
}

int board_keys(struct field_words *ret, struct err *e)
{
    struct field_words keys = { .words = NULL };
    int r = each_dir(add_keys, &keys, e);
    if (r >= 0 && keys.words) {
        qsort(keys.words, keys.count, sizeof *keys.words, by_name);
        drop_doubles(&keys);
        *ret = keys;
        return 0;
    }
    field_words_done(&keys);
    auto_free char *path = search_path();
    return r < 0 ? r
                 : err_set(e, -ENOENT,
                           "no board files in %s; DIVVY_BOARDS can name their directory", path);
}

struct wanted {
    const char *key;
    struct board *ret;
};

static int find_in(const char *dir, void *arg, struct err *e)
{
    const struct wanted *w = arg;
    auto_free char *path = text_fmt("%s/%s.yaml", dir, w->key);
    if (access(path, F_OK) < 0)
        return 0;
    int r = board_read(path, w->ret, e);
    if (r < 0)
        return r;
    if (strcmp(w->ret->key, w->key) != 0)
        return err_set(e, -EINVAL, "%s: the board inside is called %s; file and board must agree",
                       path, w->ret->key);
    return 1;
}

static int fail_unknown(const char *key, struct err *e)
{
    struct field_words keys;
    int r = board_keys(&keys, e);
    if (r < 0)
        return r;
    const char *near = nearest_name(key, (const char *const *)keys.words, keys.count);
    AUTO(text) struct text all = TEXT_INIT;
    for (size_t i = 0; i < keys.count; i++)
        text_addf(&all, "%s%s", i ? ", " : "", keys.words[i]);
    if (near)
        r = err_set(e, -ENOENT, "there is no board '%.64s'; did you mean %s? Known are %s", key,
                    near, all.buf);
    else
        r = err_set(e, -ENOENT, "there is no board '%.64s'; known are %s", key, all.buf);
    field_words_done(&keys);
    return r;
}

int board_find(const char *key, struct board *ret, struct err *e)
{
    struct wanted w = { .key = key, .ret = ret };
    if (!*key || strchr(key, '/') || key[0] == '.')
        return fail_unknown(key, e);
    int r = each_dir(find_in, &w, e);
    if (r < 0)
        return r;
    return r == 0 ? fail_unknown(key, e) : 0;
}

static bool same_device(const struct board *b, const char *name, uint32_t pci_device_id)
{
    if (pci_device_id && b->pci_device_id == pci_device_id)
        return true;
    for (uint32_t i = 0; i < b->also_count; i++)
        if (pci_device_id && b->also_pci[i] == pci_device_id)
            return true;
    const char *plain = text_starts(name, "NVIDIA ") ? name + strlen("NVIDIA ") : name;
    return strcmp(board_short_name(b), plain) == 0;
}

int board_find_device(const char *name, uint32_t pci_device_id, struct board *ret, struct err *e)
{
    struct field_words keys;
    auto_free struct board *b = mem_new(sizeof *b);
    int r = board_keys(&keys, e);
    if (r < 0)
        return r;
    r = err_set(e, -ENOENT, "no board file describes %.96s", name);
    for (size_t i = 0; r == -ENOENT && i < keys.count; i++)
        if (board_find(keys.words[i], b, NULL) == 0 && same_device(b, name, pci_device_id))
            r = 0;
    field_words_done(&keys);
    if (r == 0)
        *ret = *b;
    return r;
}

/* Compute instances are told of GPU instances that are there; the file knows them of all. */
static void know_parts(struct board *own, const struct board *b)
{
    for (uint32_t i = 0; i < own->profile_count; i++) {
        struct profile *p = &own->profiles[i];
        const struct profile *known = board_profile_by_id(b, p->id);
        if (!known || known->slices != p->slices || known->ci_count <= p->ci_count)
            continue;
        p->ci_count = known->ci_count;
        memcpy(p->cis, known->cis, sizeof p->cis);
    }
}

void board_know(struct board *own, const struct board *file)
{
    memcpy(own->key, file->key, sizeof own->key);
    know_parts(own, file);
    if (!own->pci_device_id)
        own->pci_device_id = file->pci_device_id;
}
