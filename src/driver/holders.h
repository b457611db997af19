/*
 * holders.h - who is in the way of a change of a card.
 *
 * A mode change or a reset needs every client of the card to be gone, also one
 * that computes nothing and that the driver does not list: a monitor that has
 * /dev/nvidia0 open is enough. So two things are looked at: what the driver
 * lists (struct card), and which processes have a device node of the card open:
 * /dev/nvidiaN and the capability nodes of its instances, below the driver's
 * root, told by what they are and not by their path, so that a container's
 * process is found too. Known services are named with the command that stops
 * them; nothing here stops anything.
 *
 *     AUTO(holders) struct holders h = HOLDERS_INIT;
 *     holders_find(NULL, card, NOT_AN_INSTANCE, &h);
 *     for (size_t i = 0; i < h.count; i++)
 *         holder_add_text(&t, &h.list[i], user_name);
 *
 * The caller itself and divvyd with its children are left out: Divvy lets go of
 * a card by itself before it changes it. What the caller may not look into is
 * counted in `hidden`.
 */
#ifndef DIVVY_DRIVER_HOLDERS_H
#define DIVVY_DRIVER_HOLDERS_H

#include <jansson.h>

#include "base/text.h"
#include "model/card.h"

/* A program that is known to keep cards open, and what ends it. */
struct holder_service {
    const char *comm; /* as /proc/PID/comm has it: 15 characters at most */
    const char *name; /* for a person */
    const char *stop; /* a command */
};

struct holder {
    pid_t pid;
    uid_t uid;                            /* (uid_t)-1: gone or not readable */
    char name[64];                        /* comm; "" when not readable */
    char job[32];                         /* "41.1" when it carries an attempt's mark; "" */
    bool listed;                          /* by the driver */
    char node[40];                        /* "nvidia0" that it has open; "" */
    const struct holder_service *service; /* NULL: none that is known */
};

struct holders {
    struct holder *list; /* by pid */
    size_t count, alloc;
    size_t hidden; /* processes that this caller may not look into */
    bool drm;      /* the module nvidia_drm drives the display (modeset), and holds every card */
};

#define HOLDERS_INIT                                                                               \
    {                                                                                              \
        .list = NULL                                                                               \
    }

void holders_done(struct holders *h);

/*
 * Everybody on the card, or, where `gi` is not NOT_AN_INSTANCE, on that GPU
 * instance alone. `driver_root` NULL is DIVVY_DRIVER_ROOT, else "/". What cannot
 * be read is left out. Walks /proc: milliseconds on a large server.
 */
void holders_find(const char *driver_root, const struct card *c, uint32_t gi, struct holders *ret);

/*
 * Does anybody keep a mode change from being done that stays until he is ended?
 * nvidia-persistenced and nvidia_drm may let go when the driver asks them, so
 * they count only once the driver has refused.
 */
bool holders_block(const struct holders *h);

/* A user's name; NULL: not known. */
typedef const char *(*holder_user_fn)(uid_t uid, void *arg);

/* "pid 812 nv-hostengine (root) has /dev/nvidia0 open: DCGM; systemctl stop nvidia-dcgm ends it" */
void holder_add_text(struct text *t, const struct holder *h, holder_user_fn user, void *arg);

/* What else there is to say: hidden processes, nvidia_drm. Nothing when there is nothing. */
void holders_add_notes(struct text *t, const struct holders *h);

/* All of it in one line, for an error's text; nothing when nobody is there. */
void holders_add_sentence(struct text *t, const struct holders *h, holder_user_fn user, void *arg);

/* New reference: {"processes": [...], "hidden": 0, "nvidia_drm": false}. */
json_t *holders_json(const struct holders *h, holder_user_fn user, void *arg);

#endif
