#include <string.h>

#include "base/text.h"
#include "driver/state.h"

#define LINKS_MAX 36u /* of a card; libraries refuse the first that is too many */
#define REMOTE_IS_SWITCH 2u

static void count_link(struct known_card *k, const char *bus_id)
{
    for (uint32_t i = 0; i < k->link_count; i++)
        if (strcmp(k->links[i].bus_id, bus_id) == 0) {
            k->links[i].links++;
            return;
        }
    if (k->link_count == CARD_PEERS_MAX)
        return;
    struct link_end *l = &k->links[k->link_count++];
    (void)snprintf(l->bus_id, sizeof l->bus_id, "%s", bus_id);
    l->links = 1;
}

static void ask_link(const struct library *lib, nvmlDevice_t dev, unsigned int link,
                     struct known_card *k)
{
    nvmlPciInfo_t remote = { .domain = 0 };
    unsigned int type = 0;
    if (lib->nvmlDeviceGetNvLinkRemoteDeviceType &&
        lib->nvmlDeviceGetNvLinkRemoteDeviceType(dev, link, &type) == NVML_SUCCESS &&
        type == REMOTE_IS_SWITCH)
        k->switch_links++;
    else if (lib->nvmlDeviceGetNvLinkRemotePciInfo_v2(dev, link, &remote) == NVML_SUCCESS)
        count_link(k, remote.busId);
}

void driver_learn_links(struct driver *d, nvmlDevice_t dev, struct known_card *k, bool mig_on)
{
    const struct library *lib = &d->lib;
    /* What was seen with MIG off holds for the card; MIG only turns the links off. */
    if (k->links_asked[0] || k->links_asked[mig_on])
        return;
    k->links_asked[mig_on] = true;
    if (!lib->nvmlDeviceGetNvLinkState || !lib->nvmlDeviceGetNvLinkRemotePciInfo_v2)
        return;
    k->link_count = 0;
    k->switch_links = 0;
    for (unsigned int link = 0; link < LINKS_MAX; link++) {
        unsigned int active = 0;
        if (lib->nvmlDeviceGetNvLinkState(dev, link, &active) != NVML_SUCCESS)
            return;
        if (active)
            ask_link(lib, dev, link, k);
    }
}

static uint32_t links_between(const struct known_card *a, const struct known_card *b)
{
    uint32_t shared = a->switch_links < b->switch_links ? a->switch_links : b->switch_links;
    for (uint32_t i = 0; i < a->link_count; i++)
        if (strcmp(a->links[i].bus_id, b->bus_id) == 0)
            return a->links[i].links + shared;
    return shared;
}

static uint32_t ask_path(struct driver *d, const struct card *a, const struct card *b)
{
    nvmlDevice_t one, two;
    unsigned int level = CARD_PATH_FARTHEST;
    const struct library *lib = &d->lib;
    driver_at(d, a->bus_id);
    if (!lib->nvmlDeviceGetTopologyCommonAncestor ||
        lib->nvmlDeviceGetHandleByUUID(a->uuid, &one) != NVML_SUCCESS ||
        lib->nvmlDeviceGetHandleByUUID(b->uuid, &two) != NVML_SUCCESS ||
        lib->nvmlDeviceGetTopologyCommonAncestor(one, two, &level) != NVML_SUCCESS)
        return CARD_PATH_FARTHEST;
    return level < CARD_PATH_FARTHEST ? level : CARD_PATH_FARTHEST;
}

static uint32_t path_between(struct driver *d, const struct card *a, const struct card *b)
{
    for (size_t i = 0; i < d->path_count; i++)
        if (strcmp(d->paths[i].a, a->bus_id) == 0 && strcmp(d->paths[i].b, b->bus_id) == 0)
            return d->paths[i].path;
    ARRAY_ROOM(d->paths, d->path_alloc, d->path_count + 1);
    struct pair_path *p = &d->paths[d->path_count++];
    memcpy(p->a, a->bus_id, sizeof p->a);
    memcpy(p->b, b->bus_id, sizeof p->b);
    p->path = ask_path(d, a, b);
    return p->path;
}

static void add_peer(struct card *c, const struct card *other, uint32_t nvlinks, uint32_t path)
{
    if (c->peer_count == CARD_PEERS_MAX)
        return;
    struct card_peer *p = &c->peers[c->peer_count++];
    memcpy(p->bus_id, other->bus_id, sizeof p->bus_id);
    p->nvlinks = nvlinks;
    p->path = path;
}

void driver_add_peers(struct driver *d, struct snapshot *s)
{
    for (size_t i = 0; i < s->card_count; i++) {
        for (size_t k = i + 1; k < s->card_count; k++) {
            struct card *a = &s->cards[i];
            struct card *b = &s->cards[k];
            if (a->health != CARD_OK || b->health != CARD_OK)
                continue;
            const struct known_card *ka = driver_known_at(d, a->bus_id, -1);
            const struct known_card *kb = driver_known_at(d, b->bus_id, -1);
            if (!ka || !kb)
                continue;
            uint32_t path = path_between(d, a, b);
            add_peer(a, b, links_between(ka, kb), path);
            add_peer(b, a, links_between(kb, ka), path);
        }
    }
}
