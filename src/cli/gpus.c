#include <pwd.h>

#include "cli/cards.h"
#include "cli/gpus_draw.h"
#include "model/card_json.h"

static const char doc[] =
    "The cards of this server, their slices at their true places, and who has them.\vAsks divvyd; "
    "where none answers, the driver itself, and then owners are unknown.";

static const struct argp_option options[] = {
    { "long", 'l', NULL, 0, "UUIDs, bus addresses and memory of each slice as well", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg; /* no option here has one */
    if (key == 'l')
        *(bool *)state->input = true;
    return key == 'l' ? 0 : ARGP_ERR_UNKNOWN;
}

static const char *user_name(uid_t uid, void *arg)
{
    (void)arg; /* the system knows */
    const struct passwd *user = getpwuid(uid);
    return user ? user->pw_name : NULL;
}

int verb_gpus(struct session *s, int argc, char **argv)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    struct gpus_look look = { .screen = &s->screen, .user_name = user_name };
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    verb_parse(s, &words, argc, argv, &look.details);
    int status = cards_now(s, &inv);
    if (status != STATUS_OK)
        return status;
    if (s->json) {
        auto_json json_t *j = inventory_to_json(&inv);
        return verb_print_json(j);
    }
    gpus_draw(&inv, &look, &t);
    return verb_print(&t);
}
