/* `divvy layout save` and `restore`: what the cards are, and that again. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/cards.h"
#include "cli/layout.h"
#include "model/address.h"

#define BOOT_NAME "boot" /* what dist/systemd/divvy-layout.service restores */
#define NAME_SIGNS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* A word is a name below Divvy's own folder; what has a '/' or a '.' is a file. */
static int find_path(const struct session *s, const char *word, char **ret)
{
    if (strpbrk(word, "/.") || strcmp(word, "-") == 0) {
        *ret = text_dup(word);
        return STATUS_OK;
    }
    if (!word[0] || strspn(word, NAME_SIGNS) != strlen(word) || strlen(word) > 64)
        return verb_usage(s, "'%.64s' is neither a file nor a name; write ./lab.yaml, or lab",
                          word);
    auto_free char *root = client_root(s->root);
    auto_free char *folder = file_under(root, "/var/lib/divvy/layouts");
    *ret = text_fmt("%s/%s.yaml", folder, word);
    return STATUS_OK;
}

static int write_file(const char *path, const struct text *t, struct err *e)
{
    const char *slash = strrchr(path, '/');
    auto_free char *folder =
        slash ? text_fmt("%.*s", (int)(slash - path + 1), path) : text_dup(".");
    if (strstr(path, "/var/lib/divvy/layouts/") && file_mkdirs(folder, 0755, e) < 0)
        return e->code;
    auto_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "cannot open %s", folder);
    return file_replace(dir, slash ? slash + 1 : path, t->buf, t->len, 0644, e);
}

int layout_save(struct session *s, const struct layout_call *call)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    AUTO(text) struct text told = TEXT_INIT;
    auto_free char *path = NULL;
    struct err e = ERR_INIT;
    int status = find_path(s, call->file ? call->file : BOOT_NAME, &path);
    if (status == STATUS_OK)
        status = cards_look(s, &inv);
    if (status != STATUS_OK)
        return status;
    assert(path);
    text_add(&t, "# divvy layout save; divvy layout restore brings it back\n");
    layout_add_export(&t, &inv, true);
    if (strcmp(path, "-") == 0)
        return verb_print(&t);
    if (write_file(path, &t, &e) < 0)
        return verb_fail(s, &e);
    if (s->json) {
        auto_json json_t *j = json_object();
        json_put_text(j, "file", path);
        json_put(j, "layout", layout_export_json(&inv));
        return verb_print_json(j);
    }
    text_addf(&told, "Saved to %s\n", path);
    return verb_print(&told);
}

int layout_restore(struct session *s, const struct layout_call *call)
{
    auto_free char *path = NULL;
    struct layout_call again = *call;
    int status = find_path(s, call->file ? call->file : BOOT_NAME, &path);
    if (status != STATUS_OK)
        return status;
    again.file = path;
    again.move_idle = true; /* the places are what is asked for */
    return layout_apply(s, &again);
}

/* ---- what came back as something else ---- */

static const struct slice *slice_at(const struct card *c, const struct layout_piece *p)
{
    for (size_t i = 0; i < c->slice_count; i++) {
        const struct slice *s = &c->slices[i];
        bool same =
            p->ci_start == LAYOUT_ANYWHERE ? s->full : !s->full && s->ci_start == p->ci_start;
        if (s->start == p->start && same)
            return s;
    }
    return NULL;
}

typedef void (*identity_fn)(const char *address, const char *was, const char *is, void *arg);

static void each_identity(const struct layout_work *w, identity_fn fn, void *arg)
{
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct card *c = &w->inv.cards[i].card;
        for (size_t k = 0; w->wishes[i] && k < w->wishes[i]->piece_count; k++) {
            const struct layout_piece *p = &w->wishes[i]->pieces[k];
            const struct slice *slice = p->uuid[0] ? slice_at(c, p) : NULL;
            AUTO(text) struct text t = TEXT_INIT;
            if (!slice || strcmp(slice->uuid, p->uuid) == 0)
                continue;
            address_add(&t, c, slice);
            fn(t.buf, p->uuid, slice->uuid, arg);
        }
    }
}

static void add_sentence(const char *address, const char *was, const char *is, void *arg)
{
    text_addf(arg, "%s is %s now; it was %s\n", address, is, was);
}

void layout_add_identities(const struct layout_work *w, struct text *ret)
{
    each_identity(w, add_sentence, ret);
}

static void add_object(const char *address, const char *was, const char *is, void *arg)
{
    json_t *j = json_object();
    json_put_text(j, "address", address);
    json_put_text(j, "old", was);
    json_put_text(j, "new", is);
    (void)json_array_append_new(arg, j); /* out of memory: a short list */
}

json_t *layout_identities_json(const struct layout_work *w)
{
    json_t *list = json_array();
    each_identity(w, add_object, list);
    return list;
}
