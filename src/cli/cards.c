#include "cli/cards.h"

#include <errno.h>
#include <string.h>

#include "config/board.h"
#include "driver/driver.h"
#include "model/address.h"

/* Geometry where an old driver does not tell it: the board file of the same name. */
static bool board_by_name(const char *name, uint32_t pci_device_id, struct board *ret, void *arg)
{
    (void)arg; /* none is needed */
    AUTO(field_words) struct field_words keys = { .words = NULL };
    if (board_keys(&keys, NULL) < 0)
        return false;
    for (size_t i = 0; i < keys.count; i++) {
        struct board b;
        if (board_find(keys.words[i], &b, NULL) < 0)
            continue;
        bool same_id = pci_device_id && b.pci_device_id == pci_device_id;
        if (same_id || strcmp(b.name, name) == 0) {
            *ret = b;
            return true;
        }
    }
    return false;
}

int cards_open_driver(struct driver **ret, struct err *e)
{
    struct driver_options options = { .board = board_by_name };
    return driver_open(&options, ret, e);
}

static int ask_driver(struct inventory *ret, struct err *e)
{
    AUTO_PTR(driver_close) struct driver *d = NULL;
    AUTO(snapshot) struct snapshot snapshot = SNAPSHOT_INIT;
    int r = cards_open_driver(&d, e);
    if (r == 0)
        r = driver_snapshot(d, NULL, 0, &snapshot, e);
    if (r == 0)
        inventory_from_snapshot(&snapshot, ret);
    return r;
}

/* A daemon without cards may know why. */
static void tell_trouble(struct client *c)
{
    struct daemon_view v = { .version = NULL };
    if (client_daemon(c, &v, NULL) < 0)
        return;
    if (v.driver_trouble)
        verb_note("divvyd has no driver to ask: %s", v.driver_trouble);
    daemon_view_done(&v);
}

static int now_by(const struct session *s,
                  int (*ask)(struct client *c, struct inventory *ret, struct err *e),
                  struct inventory *ret)
{
    struct client *c = NULL;
    struct err e = ERR_INIT;
    int r = client_open(s->root, &c, &e);
    if (r == 0)
        r = ask(c, ret, &e);
    if (r == 0 && !ret->card_count)
        tell_trouble(c);
    client_close(c);
    if (r == 0)
        return STATUS_OK;
    if (r != -EHOSTDOWN)
        return verb_fail(s, &e);
    struct err from_driver = ERR_INIT;
    if (ask_driver(ret, &from_driver) < 0) {
        verb_note("%s", e.text);
        return verb_fail(s, &from_driver);
    }
    verb_note("no divvyd answers, so this is what the driver itself tells; owners are unknown");
    return STATUS_OK;
}

int cards_now(const struct session *s, struct inventory *ret)
{
    return now_by(s, client_inventory, ret);
}

int cards_look(const struct session *s, struct inventory *ret)
{
    return now_by(s, client_look, ret);
}

bool cards_parse(const struct session *s, const char *word, uint32_t *ret_ordinal)
{
    struct address a;
    uint64_t n = 0;
    if (text_parse_u64(word, 0, UINT32_MAX, "card", &n, NULL) == 0) {
        *ret_ordinal = (uint32_t)n;
        return true;
    }
    if (address_parse(word, &a, NULL) == 0 && !a.has_slice) {
        *ret_ordinal = a.ordinal;
        return true;
    }
    (void)verb_usage(s,
                     "'%.64s' is no card; cards are called gpu0, gpu1 and so on, as 'divvy gpus' "
                     "shows them",
                     word);
    return false;
}

char *cards_sentence(const struct inventory *inv)
{
    struct text t = TEXT_INIT;
    for (size_t i = 0; i < inv->card_count; i++)
        text_addf(&t, "%sgpu%u",
                  !i                         ? ""
                  : i + 1 == inv->card_count ? " and "
                                             : ", ",
                  inv->cards[i].card.ordinal);
    if (!inv->card_count)
        text_add(&t, "none");
    return text_take(&t);
}
