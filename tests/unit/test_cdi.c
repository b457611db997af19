#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cdi/cdi.h"
#include "model/fields.h"

/* ---- a machine: gpu0 is cut in two, gpu1 is whole ---- */

static void name_card(struct card *c, uint32_t ordinal, const char *uuid)
{
    c->ordinal = ordinal;
    c->minor = ordinal;
    (void)snprintf(c->uuid, sizeof c->uuid, "%s", uuid);
}

static void add_profile(struct board *b, uint32_t id, const char *name)
{
    struct profile *p = &b->profiles[b->profile_count++];
    p->id = id;
    (void)snprintf(p->name, sizeof p->name, "%s", name);
}

static void cut(struct card *c, uint32_t profile, uint32_t gi, uint32_t start, const char *uuid)
{
    struct slice *s = card_add_slice(c);
    *s = (struct slice){ .gi = gi, .profile_id = profile, .start = start, .full = true };
    (void)snprintf(s->uuid, sizeof s->uuid, "%s", uuid);
}

static void make_inventory(struct inventory *ret)
{
    AUTO(snapshot) struct snapshot s = SNAPSHOT_INIT;
    struct card *c = snapshot_add_card(&s);
    name_card(c, 0, "GPU-11111111-2222-3333-4444-555555555555");
    c->mig_now = true;
    add_profile(&c->board, 14, "2g.20gb");
    add_profile(&c->board, 20, "1g.10gb+me");
    cut(c, 14, 3, 4, "MIG-aaaaaaaa-0000-5000-8000-000000000003");
    cut(c, 20, 9, 0, "MIG-bbbbbbbb-0000-5000-8000-000000000009");
    name_card(snapshot_add_card(&s), 1, "GPU-99999999-2222-3333-4444-555555555555");
    inventory_from_snapshot(&s, ret);
}

static void make_facts(struct cdi_facts *f)
{
    *f = (struct cdi_facts){ .driver_root = text_dup("/"),
                             .nvidia_major = 195,
                             .uvm_major = 510,
                             .caps_major = 511,
                             .modeset = true,
                             .minors = text_dup("config 1\nmonitor 2\n"
                                                "gpu0/gi3/access 30\ngpu0/gi3/ci0/access 31\n"
                                                "gpu0/gi9/access 84\ngpu0/gi9/ci0/access 85\n") };
}

static void add_file(struct cdi_facts *f, const char *path, const char *real)
{
    ARRAY_ROOM(f->files, f->file_alloc, f->file_count + 1);
    f->files[f->file_count++] = (struct cdi_file){ .path = text_dup(path), .real = text_dup(real) };
}

/* ---- the rules of CDI 0.5.0, as its loaders check them ---- */

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* Unknown fields make a specification unreadable: Go's loaders are strict. */
static void only_fields(json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    assert_true(json_is_object(object));
    json_object_foreach(object, key, value) assert_true(is_one_of(key, known));
}

static const char *text_of(json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    assert_non_null(s);
    assert_true(s[0]);
    return s;
}

static void is_device_name(const char *s)
{
    size_t len = strlen(s);
    assert_true(len > 0 && isalnum((unsigned char)s[0]) && isalnum((unsigned char)s[len - 1]));
    for (size_t i = 0; i < len; i++)
        assert_true(isalnum((unsigned char)s[i]) || strchr("_-.:", s[i]));
}

static void is_node(json_t *node)
{
    static const char *const known[] = { "path",     "hostPath",    "type", "major", "minor",
                                         "fileMode", "permissions", "uid",  "gid",   NULL };
    static const char *const types[] = { "b", "c", "u", "p", NULL };
    only_fields(node, known);
    assert_true(text_of(node, "path")[0] == '/');
    assert_true(is_one_of(text_of(node, "type"), types));
    assert_true(json_integer_value(json_object_get(node, "major")) > 0);
    assert_true(json_is_integer(json_object_get(node, "minor")));
    assert_true(json_integer_value(json_object_get(node, "fileMode")) > 0);
    const char *permissions = text_of(node, "permissions");
    assert_int_equal(strspn(permissions, "rwm"), strlen(permissions));
}

static void is_mount(json_t *mount)
{
    /* "type" would need 0.4.0, which we are above; nothing here has one. */
    static const char *const known[] = { "hostPath", "containerPath", "options", NULL };
    only_fields(mount, known);
    assert_true(text_of(mount, "hostPath")[0] == '/');
    assert_true(text_of(mount, "containerPath")[0] == '/');
    assert_true(json_is_array(json_object_get(mount, "options")));
}

static void is_hook(json_t *hook)
{
    static const char *const known[] = { "hookName", "path", "args", "env", "timeout", NULL };
    static const char *const names[] = {
        "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop",
        NULL
    };
    only_fields(hook, known);
    assert_true(is_one_of(text_of(hook, "hookName"), names));
    assert_true(text_of(hook, "path")[0] == '/');
}

static void are_edits(json_t *edits)
{
    static const char *const known[] = { "env", "deviceNodes", "mounts", "hooks", NULL };
    size_t i;
    json_t *item;
    only_fields(edits, known);
    assert_true(json_object_size(edits) > 0);
    json_array_foreach(json_object_get(edits, "env"), i, item)
        assert_non_null(strchr(json_string_value(item), '='));
    json_array_foreach(json_object_get(edits, "deviceNodes"), i, item) is_node(item);
    json_array_foreach(json_object_get(edits, "mounts"), i, item) is_mount(item);
    json_array_foreach(json_object_get(edits, "hooks"), i, item) is_hook(item);
}

static void is_spec(json_t *spec)
{
    static const char *const known[] = { "cdiVersion", "kind", "devices", "containerEdits", NULL };
    static const char *const of_device[] = { "name", "containerEdits", NULL };
    json_t *devices = json_object_get(spec, "devices");
    only_fields(spec, known);
    assert_string_equal(text_of(spec, "cdiVersion"), "0.5.0");
    assert_int_equal(cdi_check_kind(text_of(spec, "kind"), NULL), 0);
    assert_true(json_array_size(devices) > 0);
    for (size_t i = 0; i < json_array_size(devices); i++) {
        json_t *device = json_array_get(devices, i);
        only_fields(device, of_device);
        is_device_name(text_of(device, "name"));
        are_edits(json_object_get(device, "containerEdits"));
        for (size_t k = 0; k < i; k++) /* a name that is there twice makes the file unreadable */
            assert_string_not_equal(text_of(device, "name"),
                                    text_of(json_array_get(devices, k), "name"));
    }
    are_edits(json_object_get(spec, "containerEdits"));
}

/* ---- reading one ---- */

/* "195:0 511:30 511:31", "-" for a device that is not there. */
static const char *nodes_of(json_t *edits)
{
    static char line[256];
    size_t i;
    json_t *node;
    line[0] = '\0';
    json_array_foreach(json_object_get(edits, "deviceNodes"), i, node)
    {
        size_t at = strlen(line);
        (void)snprintf(line + at, sizeof line - at, "%s%s=%d:%d", at ? " " : "",
                       text_of(node, "path") + strlen("/dev/"),
                       (int)json_integer_value(json_object_get(node, "major")),
                       (int)json_integer_value(json_object_get(node, "minor")));
    }
    return line;
}

static const char *device_nodes(json_t *spec, const char *name)
{
    size_t i;
    json_t *device;
    json_array_foreach(json_object_get(spec, "devices"), i,
                       device) if (strcmp(text_of(device, "name"), name) ==
                                   0) return nodes_of(json_object_get(device, "containerEdits"));
    return "-";
}

/* ---- tests ---- */

struct world {
    struct inventory inv;
    struct cdi_facts facts;
};

static int set_up(void **state)
{
    struct world *w = mem_new(sizeof *w);
    make_inventory(&w->inv);
    make_facts(&w->facts);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    inventory_done(&w->inv);
    cdi_facts_done(&w->facts);
    free(w);
    return 0;
}

static void a_slice_is_its_parent_and_two_capabilities(void **state)
{
    struct world *w = *state;
    auto_json json_t *spec = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    is_spec(spec);
    assert_string_equal(device_nodes(spec, "gpu0:2g.20gb:4"),
                        "nvidia0=195:0 nvidia-caps/nvidia-cap30=511:30 "
                        "nvidia-caps/nvidia-cap31=511:31");
    assert_string_equal(device_nodes(spec, "MIG-aaaaaaaa-0000-5000-8000-000000000003"),
                        "nvidia0=195:0 nvidia-caps/nvidia-cap30=511:30 "
                        "nvidia-caps/nvidia-cap31=511:31");
    assert_string_equal(device_nodes(spec, "gpu0:1g.10gb.me:0"),
                        "nvidia0=195:0 nvidia-caps/nvidia-cap84=511:84 "
                        "nvidia-caps/nvidia-cap85=511:85");
}

static void a_card_that_is_cut_is_not_there_as_a_whole(void **state)
{
    struct world *w = *state;
    auto_json json_t *spec = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    assert_string_equal(device_nodes(spec, "gpu0"), "-");
    assert_string_equal(device_nodes(spec, w->inv.cards[0].card.uuid), "-");
    assert_string_equal(device_nodes(spec, "gpu1"), "nvidia1=195:1");
    assert_string_equal(device_nodes(spec, w->inv.cards[1].card.uuid), "nvidia1=195:1");
}

static void every_container_gets_the_control_nodes(void **state)
{
    struct world *w = *state;
    auto_json json_t *spec = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    json_t *edits = json_object_get(spec, "containerEdits");
    assert_string_equal(nodes_of(edits), "nvidiactl=195:255 nvidia-uvm=510:0 "
                                         "nvidia-uvm-tools=510:1 nvidia-modeset=195:254");
    assert_string_equal(json_string_value(json_array_get(json_object_get(edits, "env"), 0)),
                        "NVIDIA_VISIBLE_DEVICES=void");
    w->facts.uvm_major = 0;
    w->facts.modeset = false;
    auto_json json_t *bare = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    assert_string_equal(nodes_of(json_object_get(bare, "containerEdits")), "nvidiactl=195:255");
}

static void half_a_slice_is_left_out(void **state)
{
    struct world *w = *state;
    free(w->facts.minors);
    w->facts.minors = text_dup("gpu0/gi3/access 30\ngpu0/gi3/ci0/access 31\n"
                               "gpu0/gi9/access 84\ngpu0/gi9/ci1/access 86\n");
    auto_json json_t *spec = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    assert_string_equal(device_nodes(spec, "gpu0:1g.10gb.me:0"), "-");
    assert_string_not_equal(device_nodes(spec, "gpu0:2g.20gb:4"), "-");
    w->inv.cards[0].card.slices[0].ci = NOT_AN_INSTANCE; /* about to be cut, or to go */
    auto_json json_t *less = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    assert_string_equal(device_nodes(less, "MIG-aaaaaaaa-0000-5000-8000-000000000003"), "-");
}

static void a_card_in_trouble_is_left_out(void **state)
{
    struct world *w = *state;
    w->inv.cards[0].card.health = CARD_LOST;
    w->inv.cards[1].card.minor = UINT32_MAX;
    assert_null(cdi_spec(&w->inv, &w->facts, CDI_KIND));
}

static void a_root_elsewhere_shows_in_host_paths_alone(void **state)
{
    struct world *w = *state;
    free(w->facts.driver_root);
    w->facts.driver_root = text_dup("/run/nvidia/driver");
    auto_json json_t *spec = cdi_spec(&w->inv, &w->facts, "nvidia.com/gpu");
    json_t *edits = json_object_get(spec, "containerEdits");
    json_t *node = json_array_get(json_object_get(edits, "deviceNodes"), 0);
    is_spec(spec);
    assert_string_equal(text_of(node, "path"), "/dev/nvidiactl");
    assert_string_equal(text_of(node, "hostPath"), "/run/nvidia/driver/dev/nvidiactl");
}

static void libraries_are_mounted_and_the_toolkit_makes_the_cache(void **state)
{
    struct world *w = *state;
    add_file(&w->facts, "/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi");
    add_file(&w->facts, "/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.570.1");
    add_file(&w->facts, "/usr/lib64/libcuda.so.570.1", "/usr/lib64/libcuda.so.570.1");
    auto_json json_t *plain = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    json_t *edits = json_object_get(plain, "containerEdits");
    is_spec(plain);
    assert_int_equal(json_array_size(json_object_get(edits, "mounts")), 3);
    assert_null(json_object_get(edits, "hooks"));
    w->facts.hook = text_dup("/usr/bin/nvidia-cdi-hook");
    auto_json json_t *hooked = cdi_spec(&w->inv, &w->facts, CDI_KIND);
    json_t *hooks = json_object_get(json_object_get(hooked, "containerEdits"), "hooks");
    is_spec(hooked);
    auto_free char *args = json_dumps(json_object_get(json_array_get(hooks, 0), "args"), 0);
    assert_string_equal(args,
                        "[\"nvidia-cdi-hook\", \"update-ldcache\", \"--folder\", \"/usr/lib64\"]");
}

static void kinds_are_checked(void **state)
{
    (void)state; /* none is needed */
    static const char *const bad[] = { "gpu",   "/gpu",        "divvy/",     "9/gpu", "a b/gpu",
                                       "a/b/c", "divvy/gpu.x", "divvy-/gpu", "" };
    struct err e = ERR_INIT;
    assert_int_equal(cdi_check_kind("nvidia.com/gpu", &e), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(cdi_check_kind(bad[i], &e), -EINVAL);
}

/* ---- facts, from a folder ---- */

static void put(int root, const char *path, const char *content)
{
    auto_close int fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
}

static void facts_are_read_below_the_drivers_root(void **state)
{
    (void)state; /* none is needed */
    char folder[] = "/tmp/divvy-cdi-XXXXXX";
    static const char *const folders[] = { "proc", "proc/driver", "proc/driver/nvidia-caps", "usr",
                                           "usr/lib" };
    assert_non_null(mkdtemp(folder));
    auto_close int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdirat(root, folders[i], 0755), 0);
    struct err e = ERR_INIT;
    struct cdi_facts f = CDI_FACTS_INIT;
    put(root, "proc/devices", "Character devices:\n  1 mem\n\nBlock devices:\n195 nvidia\n");
    assert_int_equal(cdi_facts_read(folder, "570.1", &f, &e), -ENODEV);
    assert_int_equal(unlinkat(root, "proc/devices", 0), 0);
    put(root, "proc/devices", "Character devices:\n195 nvidia\n510 nvidia-uvm\n511 nvidia-caps\n");
    put(root, "usr/lib/libcuda.so.570.1", "");
    put(root, "usr/lib/libcuda.so.560.9", "");
    put(root, "usr/lib/libc.so.6", "");
    assert_int_equal(symlinkat("libcuda.so.570.1", root, "usr/lib/libcuda.so.1"), 0);
    assert_int_equal(symlinkat("/etc/passwd", root, "usr/lib/libout.so.570.1"), 0);
    assert_int_equal(cdi_facts_read(folder, "570.1", &f, &e), 0);
    assert_int_equal(f.nvidia_major, 195);
    assert_int_equal(f.uvm_major, 510);
    assert_int_equal(f.caps_major, 511);
    assert_null(f.minors);
    assert_int_equal(f.file_count, 2);
    assert_string_equal(f.files[0].path, "/usr/lib/libcuda.so.1");
    assert_string_equal(f.files[0].real, "/usr/lib/libcuda.so.570.1");
    assert_string_equal(f.files[1].path, "/usr/lib/libcuda.so.570.1");
    cdi_facts_done(&f);
    assert_int_equal(file_remove_tree(AT_FDCWD, folder, &e), 0);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_slice_is_its_parent_and_two_capabilities),
        WITH_WORLD(a_card_that_is_cut_is_not_there_as_a_whole),
        WITH_WORLD(every_container_gets_the_control_nodes),
        WITH_WORLD(half_a_slice_is_left_out),
        WITH_WORLD(a_card_in_trouble_is_left_out),
        WITH_WORLD(a_root_elsewhere_shows_in_host_paths_alone),
        WITH_WORLD(libraries_are_mounted_and_the_toolkit_makes_the_cache),
        cmocka_unit_test(kinds_are_checked),
        cmocka_unit_test(facts_are_read_below_the_drivers_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
