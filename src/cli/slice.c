/* `divvy slice`: one slice made or destroyed, everything else as it is. */
#include <string.h>

#include "cli/layout.h"

static const char doc[] =
    "Make or destroy one slice; nothing else on the card changes.\v"
    "  create CARD PROFILE[@START]   at that place, or where it leaves most room\n"
    "  destroy ADDRESS               as 'divvy gpus' shows it\n\n"
    "  divvy slice create gpu0 2g.20gb\n"
    "  divvy slice create gpu0 1c.3g.40gb@4.0\n"
    "  divvy slice destroy gpu0/2g.20gb@4\n\n"
    "For operators. Exit status as of divvy layout apply.";

static const struct argp_option options[] = {
    { "wait", 'w', NULL, 0, "wait until it is free", 1 },
    { "yes", 'y', NULL, 0, "create: turn MIG on without asking", 1 },
    { 0 },
};

struct slice_call {
    struct layout_call layout;
    const char *words[3];
    size_t count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct slice_call *c = state->input;
    switch (key) {
    case 'w':
        c->layout.wait = true;
        return 0;
    case 'y':
        c->layout.yes = true;
        return 0;
    case ARGP_KEY_ARG:
        if (c->count == sizeof c->words / sizeof *c->words)
            verb_refuse("one slice at a time, not '%s' as well", arg);
        c->words[c->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int verb_slice(struct session *s, int argc, char **argv)
{
    struct slice_call c = { .count = 0 };
    struct verb_words words = { .options = options,
                                .parser = parse,
                                .args = "create CARD PROFILE[@START]\ndestroy ADDRESS",
                                .doc = doc };
    verb_parse(s, &words, argc, argv, &c);
    c.layout.word = "slice";
    if (c.count == 3 && strcmp(c.words[0], "create") == 0) {
        bool number = strspn(c.words[1], "0123456789") == strlen(c.words[1]);
        auto_free char *address = text_fmt("%s%s/%s", number ? "gpu" : "", c.words[1], c.words[2]);
        c.layout.make = address;
        return layout_apply(s, &c.layout);
    }
    if (c.count == 2 && strcmp(c.words[0], "destroy") == 0) {
        c.layout.unmake = c.words[1];
        return layout_apply(s, &c.layout);
    }
    return verb_usage(s, "say what: divvy slice create gpu0 2g.20gb, or divvy slice destroy "
                         "gpu0/2g.20gb@4");
}
