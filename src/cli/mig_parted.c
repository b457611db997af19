#include "cli/mig_parted.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cards.h"
#include "config/mig_state.h"
#include "model/fields.h"

#define CHECKPOINT_BYTES_MAX (4u << 20)

/* ---- options ---- */

enum verb_bit { APPLY = 1, ASSERT = 2, EXPORT = 4, GENERATE = 8, CHECKPOINT = 16, RESTORE = 32 };
#define EVERY 63

/* As mig-parted has them: some have another variable with another verb. */
static const struct mig_option {
    const char *name;
    char letter;
    bool flag;
    unsigned verbs;
    size_t place;
    const char *variable;
    const char *help;
} options[] = {
#define OPTION(name, letter, flag, verbs, field, variable, help)                                   \
    {                                                                                              \
        name, letter, flag, verbs, offsetof(struct mig_call, field), "MIG_PARTED_" variable, help  \
    }
    OPTION("debug", 'd', true, EVERY, debug, "DEBUG", "show what hooks say, and more of why"),
    OPTION("config-file", 'f', false, APPLY | ASSERT, config_file, "CONFIG_FILE",
           "the configuration; - is standard input"),
    OPTION("selected-config", 'c', false, APPLY | ASSERT, selected_config, "SELECTED_CONFIG",
           "which label of it"),
    OPTION("hooks-file", 'k', false, APPLY | RESTORE, hooks_file, "HOOKS_FILE",
           "commands to run around a change"),
    OPTION("skip-reset", 's', true, APPLY, skip_reset, "SKIP_RESET",
           "store the mode, and leave the reset to others"),
    OPTION("mode-only", 'm', true, APPLY | ASSERT | RESTORE, mode_only, "MODE_CHANGE_ONLY",
           "only the mode, not the slices"),
    OPTION("valid-config", 'a', true, ASSERT, valid_config, "VALID_CONFIG",
           "only whether file and label are valid"),
    OPTION("output-format", 'o', false, EXPORT | GENERATE, output_format, "OUTPUT_FORMAT",
           "yaml or json"),
    OPTION("config-label", 'l', false, EXPORT, config_label, "CONFIG_LABEL",
           "the label to export under"),
    OPTION("output-file", 'f', false, GENERATE, output_file, "OUTPUT_FILE", "where to write it"),
    OPTION("checkpoint-file", 'f', false, CHECKPOINT | RESTORE, checkpoint_file, "CHECKPOINT_FILE",
           "the checkpoint"),
#undef OPTION
};
#define OPTION_COUNT (sizeof options / sizeof *options)

/* The truths of the original's language. */
static bool parse_truth(const char *word, bool *ret)
{
    static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" };
    static const char *const no[] = { "0", "f", "F", "false", "FALSE", "False" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcmp(word, yes[i]) != 0 && strcmp(word, no[i]) != 0)
            continue;
        *ret = strcmp(word, yes[i]) == 0;
        return true;
    }
    return false;
}

static bool put(struct mig_call *c, const struct mig_option *o, const char *value)
{
    char *place = (char *)c + o->place;
    if (o->flag)
        return parse_truth(value, (bool *)(void *)place);
    *(const char **)(void *)place = value;
    return true;
}

static const struct mig_option *find_option(const char *word, size_t len, unsigned bits)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct mig_option *o = &options[i];
        bool same = len == 1 ? *word == o->letter
                             : strlen(o->name) == len && strncmp(o->name, word, len) == 0;
        if (same && (o->verbs & bits))
            return o;
    }
    return NULL;
}

static int wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int wrong(const char *fmt, ...)
{
    va_list args;
    char text[512];
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args); /* a longer one is cut */
    va_end(args);
    verb_note("mig-parted: %s; 'divvy mig-parted --help' tells what there is", text);
    return STATUS_REFUSED;
}

/* "--name=value", "--name value", "-n value"; one dash will do, as in the original. */
static int take_option(struct mig_call *c, unsigned bits, int argc, char **argv, int *at)
{
    const char *word = argv[*at] + 1 + (argv[*at][1] == '-');
    size_t len = strcspn(word, "=");
    const struct mig_option *o = find_option(word, len, bits);
    const char *value = word[len] ? word + len + 1 : NULL;
    if (!o)
        return wrong("there is no option %.64s for %s", argv[*at], c->verb ? c->verb : "this");
    if (!value && o->flag)
        value = "true";
    if (!value && *at + 1 < argc)
        value = argv[++*at];
    if (!value)
        return wrong("--%s needs a value", o->name);
    return put(c, o, value) ? STATUS_OK
                            : wrong("--%s is true or false, not '%.32s'", o->name, value);
}

static int read_environment(struct mig_call *c, unsigned verb)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct mig_option *o = &options[i];
        const char *value = o->verbs & verb ? getenv(o->variable) : NULL;
        if (value && value[0] && !put(c, o, value))
            return wrong("%s is true or false, not '%.32s'", o->variable, value);
    }
    return STATUS_OK;
}

/* ---- the cards ---- */

/* The driver is asked itself: numbers in these files are PCI order, not a daemon's. */
int mig_read_cards(const struct session *s, struct inventory *ret)
{
    AUTO_PTR(driver_close) struct driver *d = NULL;
    AUTO(snapshot) struct snapshot snapshot = SNAPSHOT_INIT;
    struct err e = ERR_INIT;
    int r = cards_open_driver(&d, &e);
    if (r == 0)
        r = driver_snapshot(d, NULL, 0, &snapshot, &e);
    if (r < 0) {
        (void)verb_fail(s, &e); /* its status is for other verbs */
        return STATUS_REFUSED;
    }
    inventory_from_snapshot(&snapshot, ret);
    layout_know_boards(ret);
    return STATUS_OK;
}

static int print_line(const char *line)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_addf(&t, "%s\n", line);
    return verb_print(&t);
}

/* ---- apply, assert ---- */

/* Reads the file and chooses; the label is known afterwards, also when it was the only one. */
static int read_config(struct session *s, struct mig_call *c, struct layout_work *w)
{
    struct layout_call call = { .word = "apply",
                                .file = c->config_file,
                                .label = c->selected_config };
    if (!c->config_file)
        return wrong("--config-file is missing");
    if (layout_work_read(w, s, &call) != STATUS_OK)
        return STATUS_REFUSED;
    if (w->list.count > 1 && !c->selected_config)
        return wrong("%.200s has %zu labels; choose one with --selected-config", c->config_file,
                     w->list.count);
    if (layout_work_choose(w, s, &call) != STATUS_OK)
        return STATUS_REFUSED;
    c->selected_config = w->layout->label;
    for (size_t i = 0; c->mode_only && i < w->list.count; i++)
        mig_keep_modes(&w->list.layouts[i]);
    return STATUS_OK;
}

static int read_hooks(const struct mig_call *c, struct mig_hooks *ret)
{
    struct err e = ERR_INIT;
    if (!c->hooks_file || mig_hooks_read(c->hooks_file, ret, &e) == 0)
        return STATUS_OK;
    verb_note("%s", e.text);
    return STATUS_REFUSED;
}

static int run_apply(struct session *s, struct mig_call *c)
{
    AUTO(mig_hooks) struct mig_hooks hooks = MIG_HOOKS_INIT;
    AUTO(applying)
    struct applying a = { .session = s,
                          .who = "divvy mig-parted",
                          .settled = true,
                          .resets = c->skip_reset ? APPLY_RESET_NEVER : APPLY_RESET_OR_ASIDE };
    if (read_config(s, c, &a.work) != STATUS_OK || read_hooks(c, &hooks) != STATUS_OK ||
        mig_apply(&a, c, &hooks) != STATUS_OK)
        return STATUS_REFUSED;
    return print_line("MIG configuration applied successfully");
}

static int not_applied(const struct layout_work *w)
{
    verb_note("assertion failure: selected configuration not currently applied");
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct layout_change *ch = &w->changes[i];
        if (w->wishes[i] && ch->verdict != LAYOUT_AS_WANTED)
            verb_note("gpu%u: %s%s%s", w->inv.cards[i].card.ordinal,
                      ch->verdict == LAYOUT_TO_DO ? "it differs" : layout_verdict_word(ch->verdict),
                      ch->why[0] ? ": " : "", ch->why);
    }
    return STATUS_REFUSED;
}

static int run_assert(struct session *s, struct mig_call *c)
{
    AUTO(layout_work) struct layout_work w = { .list = LAYOUT_LIST_INIT };
    if (read_config(s, c, &w) != STATUS_OK)
        return STATUS_REFUSED;
    if (c->valid_config)
        return print_line("Selected MIG configuration is valid");
    if (mig_read_cards(s, &w.inv) != STATUS_OK || layout_work_plan(&w, s) != STATUS_OK)
        return STATUS_REFUSED;
    if (layout_work_worst(&w) != LAYOUT_AS_WANTED)
        return not_applied(&w);
    return print_line(c->mode_only
                          ? "Selected MIG mode settings from configuration currently applied"
                          : "Selected MIG configuration currently applied");
}

/* ---- export, generate-config ---- */

static int format(const struct mig_call *c, const json_t *j, struct text *ret)
{
    const char *word = c->output_format ? c->output_format : "yaml";
    if (strcmp(word, "yaml") == 0) {
        mig_state_add_yaml(ret, j);
        return STATUS_OK;
    }
    if (strcmp(word, "json") != 0)
        return wrong("there is no output format '%.32s'; yaml and json there are", word);
    auto_free char *data = json_dumps(j, JSON_INDENT(2));
    text_addf(ret, "%s\n", data ? data : "");
    return data ? STATUS_OK : STATUS_REFUSED;
}

/* Beside what is there, then in its place: never half of it. */
static int write_file(const char *path, const struct text *t)
{
    struct err e = ERR_INIT;
    auto_free char *dir = text_dup(path);
    char *slash = strrchr(dir, '/');
    const char *name = slash ? path + (slash - dir) + 1 : path;
    if (slash)
        slash[slash == dir] = '\0';
    auto_close int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? err_sys(&e, "cannot open %.200s", slash ? dir : ".")
                   : file_replace(fd, name, t->buf, t->len, 0644, &e);
    if (r < 0)
        verb_note("%s", e.text);
    return r < 0 ? STATUS_REFUSED : STATUS_OK;
}

static int run_export(struct session *s, struct mig_call *c)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    size_t unsaid = 0;
    if (mig_read_cards(s, &inv) != STATUS_OK)
        return STATUS_REFUSED;
    auto_json json_t *j =
        mig_state_export(&inv, c->config_label ? c->config_label : "current", &unsaid);
    if (unsaid)
        verb_note("%zu instance%s left out: this format has no words for GPU instances without a "
                  "compute instance; 'divvy layout export' tells all",
                  unsaid, unsaid == 1 ? " is" : "s are");
    return format(c, j, &t) == STATUS_OK ? verb_print(&t) : STATUS_REFUSED;
}

static int run_generate(struct session *s, struct mig_call *c)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    if (mig_read_cards(s, &inv) != STATUS_OK)
        return STATUS_REFUSED;
    auto_json json_t *j = mig_state_generate(&inv);
    if (format(c, j, &t) != STATUS_OK)
        return STATUS_REFUSED;
    return c->output_file ? write_file(c->output_file, &t) : verb_print(&t);
}

/* ---- checkpoint, restore ---- */

static int run_checkpoint(struct session *s, struct mig_call *c)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    if (!c->checkpoint_file)
        return wrong("--checkpoint-file is missing");
    if (mig_read_cards(s, &inv) != STATUS_OK)
        return STATUS_REFUSED;
    auto_json json_t *j = mig_state_checkpoint(&inv);
    auto_free char *data = json_dumps(j, JSON_COMPACT);
    text_add(&t, data ? data : "");
    if (!data || write_file(c->checkpoint_file, &t) != STATUS_OK)
        return STATUS_REFUSED;
    return print_line("MIG configuration checkpointed successfully");
}

static int read_checkpoint(struct session *s, const struct mig_call *c, struct layout_work *w)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct err e = ERR_INIT;
    auto_free char *data = NULL;
    auto_json json_t *j = NULL;
    size_t len = 0;
    if (mig_read_cards(s, &inv) != STATUS_OK)
        return STATUS_REFUSED;
    int r = file_read(AT_FDCWD, c->checkpoint_file, CHECKPOINT_BYTES_MAX, &data, &len, &e);
    if (r == 0)
        r = json_parse(data, len, c->checkpoint_file, &j, &e);
    struct layout *l = layout_list_add(&w->list);
    if (r == 0)
        r = mig_state_from_checkpoint(c->checkpoint_file, j, &inv, l, &e);
    if (r < 0) {
        verb_note("%s", e.text);
        return STATUS_REFUSED;
    }
    if (c->mode_only)
        mig_keep_modes(l);
    w->layout = l;
    return STATUS_OK;
}

static int run_restore(struct session *s, struct mig_call *c)
{
    AUTO(mig_hooks) struct mig_hooks hooks = MIG_HOOKS_INIT;
    AUTO(applying)
    struct applying a = {
        .session = s, .who = "divvy mig-parted", .settled = true, .resets = APPLY_RESET_OR_ASIDE
    };
    if (!c->checkpoint_file)
        return wrong("--checkpoint-file is missing");
    if (read_checkpoint(s, c, &a.work) != STATUS_OK || read_hooks(c, &hooks) != STATUS_OK ||
        mig_apply(&a, c, &hooks) != STATUS_OK)
        return STATUS_REFUSED;
    return print_line("MIG configuration restored successfully");
}

/* ---- the verb ---- */

static const struct word {
    const char *name;
    unsigned bit;
    int (*run)(struct session *s, struct mig_call *c);
    const char *help;
} words[] = {
    { "apply", APPLY, run_apply, "make the cards as a configuration has them" },
    { "assert", ASSERT, run_assert, "are they so?" },
    { "export", EXPORT, run_export, "what they are, as a configuration" },
    { "generate-config", GENERATE, run_generate, "all that these cards could be" },
    { "checkpoint", CHECKPOINT, run_checkpoint, "what they are, exactly, into a file" },
    { "restore", RESTORE, run_restore, "exactly so again" },
};
#define WORD_COUNT (sizeof words / sizeof *words)

static int help(void)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, "Usage: divvy mig-parted [--debug] WORD [OPTION...]\n"
                 "The words, files, hooks and variables of nvidia-mig-parted. Cards that are as "
                 "wanted are\nnot touched; what cannot be is refused before anything is.\n\n");
    for (size_t i = 0; i < WORD_COUNT; i++) {
        text_addf(&t, "  %-16s %s\n", words[i].name, words[i].help);
        for (size_t k = 1; k < OPTION_COUNT; k++)
            if (options[k].verbs & words[i].bit)
                text_addf(&t, "    -%c, --%-18s %s\n%29s%s\n", options[k].letter, options[k].name,
                          options[k].help, "", options[k].variable);
    }
    text_add(&t, "\nExit status: 0, or 1 for everything else.\n");
    return verb_print(&t);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0 ||
           strcmp(word, "h") == 0;
}

static const struct word *find_word(const char *name)
{
    for (size_t i = 0; i < WORD_COUNT; i++)
        if (strcmp(words[i].name, name) == 0)
            return &words[i];
    return NULL;
}

static int run_word(struct session *s, struct mig_call *c, const struct word *w, int argc,
                    char **argv)
{
    bool debug = c->debug;
    int status = read_environment(c, w->bit);
    c->debug = c->debug || debug;
    for (int i = 0; status == STATUS_OK && i < argc; i++) {
        if (asks_for_help(argv[i]))
            return help();
        if (argv[i][0] != '-' || !argv[i][1])
            return wrong("%s takes no argument '%.64s'", w->name, argv[i]);
        status = take_option(c, w->bit, argc, argv, &i);
    }
    return status == STATUS_OK ? w->run(s, c) : status;
}

/* Those before the word are for all words. */
static int take_global(struct session *s, struct mig_call *c, int argc, char **argv, int *at)
{
    const char *word = argv[*at] + 1 + (argv[*at][1] == '-');
    if (strcmp(word, "root") == 0 && *at + 1 < argc) {
        free(s->root);
        s->root = text_dup(argv[++*at]);
        return STATUS_OK;
    }
    if (find_option(word, strcspn(word, "="), EVERY) != &options[0])
        return wrong("there is no option %.64s before the word", argv[*at]);
    return take_option(c, EVERY, argc, argv, at);
}

int verb_mig_parted(struct session *s, int argc, char **argv)
{
    struct mig_call c = { .verb = NULL };
    for (int i = 1; i < argc; i++) {
        if (asks_for_help(argv[i]))
            return help();
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-v") == 0)
            return print_line("divvy mig-parted " DIVVY_VERSION);
        if (argv[i][0] == '-') {
            if (take_global(s, &c, argc, argv, &i) != STATUS_OK)
                return STATUS_REFUSED;
            continue;
        }
        const struct word *w = find_word(argv[i]);
        if (!w)
            return wrong("there is no '%.32s'", argv[i]);
        c.verb = w->name;
        return run_word(s, &c, w, argc - i - 1, argv + i + 1);
    }
    (void)help(); /* no word at all is a failure in any case */
    return STATUS_REFUSED;
}
