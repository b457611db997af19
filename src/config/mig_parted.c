#include "config/mig_parted.h"

#include <errno.h>
#include <string.h>

#include "config/field.h"

struct entry {
    struct layout_wish *wish;
    const struct yaml_node *devices; /* mig-devices */
    bool enabled;
};

/* "0x20B010DE" or in decimal; a subsystem behind ":" is nothing that a card tells here. */
static int read_filter(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    const char *word;
    int r = yaml_node_text(n, &word, e);
    if (r < 0 || !word[0])
        return r; /* an empty one matches all */
    char *end;
    errno = 0;
    unsigned long long id = strtoull(word, &end, 0);
    if (!errno && end != word && *end == ':')
        return yaml_node_fail(n, e,
                              "'%.64s' names a subsystem, which this version cannot compare; write "
                              "the device alone, %.*s, or name the cards by number",
                              word, (int)(end - word), word);
    if (errno || end == word || *end || id > UINT32_MAX || word[0] == '-')
        return yaml_node_fail(n, e,
                              "'%.64s' is no device filter; write the PCI device and vendor as one "
                              "number: 0x20B010DE",
                              word);
    layout_add_device(w, (uint32_t)id);
    return 0;
}

static int read_filters(const struct yaml_node *n, const struct field *f, void *place,
                        struct err *e)
{
    struct entry *entry = place;
    int r = 0;
    (void)f; /* the whole entry is filled */
    if (n->kind == YAML_IS_SCALAR)
        return read_filter(n, entry->wish, e);
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = read_filter(c, entry->wish, e);
    return r;
}

static void add_claim(struct layout_wish *w, const struct yaml_node *n, enum claim_kind kind,
                      uint64_t ordinal)
{
    struct layout_claim *claim = layout_add_claim(w);
    auto_free char *word = text_fmt("%llu", (unsigned long long)ordinal);
    claim->kind = kind;
    claim->ordinal = (uint32_t)ordinal;
    claim->line = n->line;
    claim->column = n->column;
    memcpy(claim->word, kind == CLAIM_ALL ? "all" : word,
           kind == CLAIM_ALL ? sizeof "all" : strlen(word) + 1);
}

static int read_devices(const struct yaml_node *n, const struct field *f, void *place,
                        struct err *e)
{
    struct entry *entry = place;
    uint64_t ordinal;
    int r = 0;
    (void)f; /* the whole entry is filled */
    if (n->kind == YAML_IS_SCALAR && strcmp(n->text, "all") == 0) {
        add_claim(entry->wish, n, CLAIM_ALL, 0);
        return 0;
    }
    if (n->kind != YAML_IS_LIST)
        return yaml_node_fail(n, e, "devices must be the word all or a list of numbers: [0, 1]");
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next) {
        r = c->quoted ? yaml_node_fail(c, e, "a device is a number without quotes")
                      : yaml_node_u64(c, 0, 99999, &ordinal, e);
        if (r == 0)
            add_claim(entry->wish, c, CLAIM_ORDINAL, ordinal);
    }
    return r;
}

static int read_enabled(const struct yaml_node *n, const struct field *f, void *place,
                        struct err *e)
{
    (void)f; /* the whole entry is filled */
    return yaml_node_bool(n, &((struct entry *)place)->enabled, e);
}

static int keep_profiles(const struct yaml_node *n, const struct field *f, void *place,
                         struct err *e)
{
    (void)f; /* read when mig-enabled is known */
    if (n->kind != YAML_IS_MAP)
        return yaml_node_fail(n, e, "mig-devices must be a map of profiles and counts");
    ((struct entry *)place)->devices = n;
    return 0;
}

static const struct field entry_fields[] = {
    { "device-filter", read_filters, 0 },
    { "devices", read_devices, 0, .required = true },
    { "mig-enabled", read_enabled, 0, .required = true },
    { "mig-devices", keep_profiles, 0 },
    { NULL },
};

static int read_profile(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    struct layout_piece p;
    uint64_t count;
    int r = layout_read_piece(n, n->key ? n->key : "", &p, e);
    if (r == 0 && p.start != LAYOUT_ANYWHERE)
        r = yaml_node_fail_key(n, e, "mig-parted files have no places; write %.32s", p.profile);
    if (r == 0)
        r = yaml_node_u64(n, 0, LAYOUT_COUNT_MAX, &count, e);
    if (r == 0 && !count)
        r = yaml_node_fail(n, e, "%s: 0 asks for nothing; leave it out", n->key);
    if (r == 0 && w->piece_count == LAYOUT_PIECES_MAX)
        r = yaml_node_fail_key(n, e, "more profiles than any card has");
    if (r < 0)
        return r;
    p.count = (uint32_t)count;
    *layout_add_piece(w) = p;
    return 0;
}

static int read_profiles(const struct yaml_node *at, struct entry *entry, struct err *e)
{
    struct layout_wish *w = entry->wish;
    int r = 0;
    w->has_mode = true;
    w->mode = entry->enabled ? MODE_SLICES : MODE_WHOLE;
    w->has_slices = entry->enabled;
    if (entry->enabled && !entry->devices)
        return yaml_node_fail(at, e, "mig-devices is missing; {} is MIG without any slices");
    if (!entry->enabled && entry->devices && entry->devices->first)
        return yaml_node_fail_key(entry->devices, e,
                                  "mig-enabled is false here, so there can be no slices");
    const struct yaml_node *c = entry->devices ? entry->devices->first : NULL;
    for (; r == 0 && c; c = c->next)
        r = read_profile(c, w, e);
    return r;
}

static int read_entry(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    struct entry entry = { .wish = w };
    w->line = n->line;
    w->column = n->column;
    int r = field_read_map(n, entry_fields, &entry, e);
    return r < 0 ? r : read_profiles(n, &entry, e);
}

static int read_label(const struct yaml_node *n, struct layout_list *list, struct err *e)
{
    struct layout *l = layout_list_add(list);
    int r = 0;
    l->file = text_dup(n->file);
    l->label = text_dup(n->key);
    l->last_wins = true;
    if (!text_is_printable(n->key))
        return yaml_node_fail_key(n, e, "control characters have no place in a label");
    if (n->kind != YAML_IS_LIST || !n->count)
        return yaml_node_fail_key(n, e, "%.64s must be a list of at least one entry", n->key);
    if (n->count > LAYOUT_WISHES_MAX)
        return yaml_node_fail_key(n, e, "more than %u entries in one label", LAYOUT_WISHES_MAX);
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = read_entry(c, layout_add_wish(l), e);
    return r;
}

static int read_labels(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    int r = 0;
    (void)f; /* the whole list is filled */
    if (n->kind != YAML_IS_MAP || !n->count)
        return yaml_node_fail(n, e, "mig-configs must be a map of at least one label");
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = read_label(c, place, e);
    return r;
}

int mig_parted_read_version(const struct yaml_node *n, const struct field *f, void *place,
                            struct err *e)
{
    const char *word;
    (void)f, (void)place; /* there is one version */
    int r = yaml_node_text(n, &word, e);
    if (r == 0 && strcmp(word, "v1") != 0)
        return yaml_node_fail(n, e, "version '%.16s' is not known; v1 is", word);
    return r;
}

static const struct field file_fields[] = {
    { "version", mig_parted_read_version, 0, .required = true },
    { "mig-configs", read_labels, 0, .required = true },
    { NULL },
};

int mig_parted_from_tree(const struct yaml_tree *t, struct layout_list *ret, struct err *e)
{
    AUTO(layout_list) struct layout_list list = LAYOUT_LIST_INIT;
    int r = field_read_map(t->root, file_fields, &list, e);
    for (size_t i = 0; r == 0 && i < list.count; i++) {
        *layout_list_add(ret) = list.layouts[i];
        list.layouts[i] = (struct layout)LAYOUT_INIT;
    }
    return r;
}
