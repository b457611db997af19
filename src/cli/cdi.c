#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cdi/cdi.h"
#include "cli/cards.h"

#define KEY_KIND 0x1101
#define KEY_DRIVER_ROOT 0x1102

struct cdi_call {
    const char *output, *kind, *driver_root;
};

static const char doc[] =
    "Cards and slices as a specification of the Container Device Interface (CDI " CDI_VERSION
    "), for podman, docker, containerd and CRI-O.\vEach is there by its address, written as CDI "
    "allows it, and by its UUID; a card with MIG on only by its slices. It names device nodes and "
    "files of the driver, and gives nobody a right to open them. With 'cdi: on' in divvy.yaml "
    "divvyd keeps one up to date by itself.\n\n"
    "  divvy cdi --output /etc/cdi/divvy.json\n"
    "  podman run --device " CDI_KIND "=gpu0:2g.20gb:4 IMAGE nvidia-smi -L";

static const struct argp_option options[] = {
    { "output", 'o', "FILE", 0, "write it there, whole or not at all (default: standard output)",
      1 },
    { "kind", KEY_KIND, "VENDOR/CLASS", 0,
      "of another kind than " CDI_KIND "; nvidia.com/gpu collides with what NVIDIA's toolkit "
      "writes",
      1 },
    { "driver-root", KEY_DRIVER_ROOT, "DIR", 0,
      "where /dev and /proc of the driver stand (default: DIVVY_DRIVER_ROOT, else /)", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct cdi_call *c = state->input;
    switch (key) {
    case 'o':
        c->output = arg;
        return 0;
    case KEY_KIND:
        c->kind = arg;
        return 0;
    case KEY_DRIVER_ROOT:
        c->driver_root = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int write_file(const char *path, const struct text *t, struct err *e)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    auto_free char *folder = slash ? text_fmt("%.*s/", (int)(slash - path), path) : text_dup(".");
    if (!name[0])
        return err_set(e, -EINVAL, "--output: %.200s names a folder; name the file", path);
    auto_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "cannot open the folder of %.200s", path);
    return file_replace(dir, name, t->buf, t->len, 0644, e);
}

static void tell_missing(const struct cdi_facts *f)
{
    if (!f->uvm_major)
        verb_note("the module nvidia-uvm is not loaded, so its nodes are left out, and CUDA does "
                  "not work without them; modprobe nvidia-uvm");
    if (!f->file_count)
        verb_note("no libraries of the driver were found, so none are mounted");
}

static int print_spec(const struct session *s, const struct cdi_call *call, json_t *j)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    auto_free char *words = json_dumps(j, JSON_INDENT(2));
    text_addf(&t, "%s\n", words ? words : "null");
    if (!call->output)
        return verb_print(&t);
    return write_file(call->output, &t, &e) < 0 ? verb_fail(s, &e) : STATUS_OK;
}

int verb_cdi(struct session *s, int argc, char **argv)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(cdi_facts) struct cdi_facts facts = CDI_FACTS_INIT;
    struct cdi_call call = { .kind = CDI_KIND, .driver_root = getenv("DIVVY_DRIVER_ROOT") };
    struct err e = ERR_INIT;
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    if (cdi_check_kind(call.kind, &e) < 0)
        return verb_usage(s, "--kind: %s", e.text);
    if (!call.driver_root || !call.driver_root[0])
        call.driver_root = "/";
    int status = cards_now(s, &inv);
    if (status != STATUS_OK)
        return status;
    if (cdi_facts_read(call.driver_root, inv.driver_version, &facts, &e) < 0)
        return verb_fail(s, &e);
    auto_json json_t *j = cdi_spec(&inv, &facts, call.kind);
    if (!j) {
        verb_note("there is nothing to describe: no card here is whole and healthy, and no slice "
                  "is cut; 'divvy gpus' shows them");
        return STATUS_REFUSED;
    }
    tell_missing(&facts);
    return print_spec(s, &call, j);
}
