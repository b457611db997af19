#include "sim/command.h"

#include <argp.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "config/nearest.h"

struct verb {
    const char *name;
    int (*run)(const struct call *c, struct err *e);
    const struct argp_option *options;
    const char *args;
    const char *doc;
};

enum option_key {
    OPT_DIR = 'd',
    OPT_JSON = 'j',
    OPT_DRIVER = 0x100,
    OPT_SEED,
    OPT_OWNER,
    OPT_FORCE,
    OPT_KILL,
};

#define DIR_OPTION                                                                                 \
    {                                                                                              \
        "dir", OPT_DIR, "DIR", 0, "the machine's folder (default: $DIVVY_SIM, see divvy-sim(1))",  \
            0                                                                                      \
    }
#define JSON_OPTION                                                                                \
    {                                                                                              \
        "json", OPT_JSON, NULL, 0, "print JSON", 0                                                 \
    }

/* --help is argp's. */
#define HELP_LETTER                                                                                \
    {                                                                                              \
        NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0                                                    \
    }

static const struct argp_option plain_options[] = { DIR_OPTION, HELP_LETTER, { 0 } };
static const struct argp_option json_options[] = { DIR_OPTION, JSON_OPTION, HELP_LETTER, { 0 } };
static const struct argp_option boards_options[] = { JSON_OPTION, HELP_LETTER, { 0 } };
static const struct argp_option up_options[] = {
    DIR_OPTION,
    { "driver", OPT_DRIVER, "VERSION", 0,
      "the driver's version, like 535.309.01 (default: 550.163.01, or what the boards need)", 0 },
    { "seed", OPT_SEED, "N", 0, "another seed gives the cards other UUIDs and serials", 0 },
    { "owner", OPT_OWNER, "USER", 0, "who may change the machine (default: you)", 0 },
    HELP_LETTER,
    { 0 }
};
static const struct argp_option down_options[] = { DIR_OPTION,
                                                   { "force", OPT_FORCE, NULL, 0,
                                                     "kill the processes that use its cards", 0 },
                                                   HELP_LETTER,
                                                   { 0 } };
static const struct argp_option reboot_options[] = {
    DIR_OPTION,
    { "kill", OPT_KILL, NULL, 0, "kill the processes that use its cards, too", 0 },
    HELP_LETTER,
    { 0 }
};

static const struct verb verbs[] = {
    { "up", command_up, up_options, "BOARD[:N]...",
      "Make a machine with these cards, in PCI order.\v"
      "divvy-sim boards lists the boards. Exits with 1 when one is up there already." },
    { "down", command_down, down_options, "", "Take the machine down and remove its files." },
    { "status", command_status, json_options, "",
      "Show cards, slices, processes and faults of the machine." },
    { "boards", command_boards, boards_options, "", "List the boards that can be simulated." },
    { "env", command_env, plain_options, "",
      "Print the shell commands that point NVML and CUDA programs at the machine.\v"
      "Use it as: eval \"$(divvy-sim env)\"" },
    { "fault", command_fault, plain_options, "CARD FAULT...",
      "Break a card, or mend it.\v"
      "FAULT is one of\n"
      "  lost             it fell off the bus\n"
      "  in-use           an unnamed client holds it\n"
      "  reset-required   mode changes wait for a reset\n"
      "  create-fails:N   the Nth next creation of an instance fails\n"
      "  destroy-lies     destroying says it worked, and did not\n"
      "  slow:MS          every call takes so much longer\n"
      "  hang             calls block until the fault is taken away\n"
      "  passthrough      a virtual machine's: a reset does nothing, a reboot does\n"
      "  nvlink           linked to the others that have this: reset only together\n"
      "  leak:MIB         memory of it and its slices is in use by no process\n"
      "  xid:N            an XID event; 79 loses the card, too\n"
      "  none             mend all of it" },
    { "reboot", command_reboot, reboot_options, "",
      "Reboot the machine.\v"
      "Instances, faults and processes are gone; Ampere cards keep their MIG mode, later ones come "
      "back with MIG off." },
    { "install", command_install, plain_options, "VERSION [OLD=NEW | uuids]...",
      "Install another driver, as a package does: its libraries are there at once.\v"
      "The kernel module stays the old one until divvy-sim reload or reboot; till then NVML and "
      "CUDA programs that start are told of a mismatch. OLD=NEW: the new driver calls a profile "
      "otherwise, as 7g.80gb=7g.79gb. uuids: it gives slices other UUIDs." },
    { "reload", command_reload, reboot_options, "",
      "Load the driver anew, as modprobe -r nvidia and modprobe nvidia do.\v"
      "Instances are gone; Ampere cards keep their MIG mode, later ones come back with MIG off. "
      "Refused while a process uses a card." },
    { "reset", command_reset, plain_options, "CARD...",
      "Reset cards, as nvidia-smi --gpu-reset does.\v"
      "A pending MIG mode becomes current, instances are gone. Refused while the card is in use." },
};
#define VERB_COUNT (sizeof verbs / sizeof *verbs)

static error_t take_option(int key, char *arg, struct argp_state *state)
{
    struct call *c = state->input;
    struct err e = ERR_INIT;
    switch (key) {
    case OPT_DIR:
        c->dir = arg;
        return 0;
    case OPT_JSON:
        c->json = true;
        return 0;
    case OPT_DRIVER:
        c->driver = arg;
        return 0;
    case OPT_SEED:
        if (text_parse_u64(arg, 0, UINT64_MAX, "--seed", &c->seed, &e) < 0)
            argp_error(state, "%s", e.text);
        return 0;
    case OPT_OWNER:
        c->owner = arg;
        return 0;
    case OPT_FORCE:
        c->force = true;
        return 0;
    case OPT_KILL:
        c->kill = true;
        return 0;
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP); /* ends the program */
        return 0;
    case ARGP_KEY_ARG:
        if (c->count == COMMAND_WORDS_MAX)
            argp_error(state, "more than %d words", COMMAND_WORDS_MAX);
        c->words[c->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_help(FILE *to)
{
    fprintf(to, "Usage: divvy-sim VERB [OPTION...]\n"
                "A machine with simulated NVIDIA GPUs, for programs that use NVML or CUDA.\n\n");
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(to, "  %-8s %.*s\n", verbs[i].name, (int)strcspn(verbs[i].doc, "\v"), verbs[i].doc);
    fprintf(to, "\ndivvy-sim VERB --help tells more. First steps:\n"
                "  divvy-sim up a100-80gb:2 rtx4090\n"
                "  eval \"$(divvy-sim env)\"\n"
                "  divvy-probe\n"
                "Exit: 0 done, 1 refused or failed, 2 wrong usage.\n");
}

static const struct verb *find_verb(const char *name)
{
    const char *names[VERB_COUNT];
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
        names[i] = verbs[i].name;
    }
    const char *near = nearest_name(name, names, VERB_COUNT);
    fprintf(stderr, "divvy-sim: there is no verb '%.64s'%s%s%s\n", name,
            near ? "; did you mean " : "; divvy-sim --help lists them", near ? near : "",
            near ? "?" : "");
    return NULL;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct call c = { .seed = 0 };
    struct err e = ERR_INIT;
    const struct argp argp = { v->options, take_option, v->args, v->doc, NULL, NULL, NULL };
    auto_free char *name = text_fmt("divvy-sim %s", v->name);
    argv[0] = name;
    if (argp_parse(&argp, argc, argv, 0, NULL, &c) != 0)
        return 2;
    if (!*v->args && c.count) {
        fprintf(stderr, "divvy-sim: %s takes no words; '%.64s' is one too many\n", v->name,
                c.words[0]);
        return 2;
    }
    if (v->run(&c, &e) < 0) {
        fprintf(stderr, "divvy-sim: %s\n", e.text);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    argp_err_exit_status = 2;
    umask(022); /* other users must be able to look at the machine */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("divvy-sim %s\n", DIVVY_VERSION);
        return 0;
    }
    const struct verb *v = find_verb(argv[1]);
    int rc = v ? run(v, argc - 1, argv + 1) : 2;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "divvy-sim: cannot write to standard output\n");
        return 1;
    }
    return rc;
}
