/*
 * cdi.h - cards and slices as a CDI specification: what a container runtime
 * (podman, docker, containerd, CRI-O) has to put into a container for each.
 *
 * The Container Device Interface gives devices the name VENDOR/CLASS=NAME.
 * Ours are of the kind divvy/gpu, so that they never collide with those that
 * NVIDIA's own toolkit writes for nvidia.com/gpu; each is there twice, by its
 * address and by its UUID. CDI allows neither '/' nor '@' nor '+' in a name:
 * gpu0/2g.20gb@4 is called gpu0:2g.20gb:4, and 1g.10gb+me 1g.10gb.me.
 *
 * Invariants. Version 0.5.0, the least that has what is used here, so that old
 * runtimes read it. A card with MIG on is never there as a whole, a slice never
 * without both its capability nodes; what cannot be described whole is left
 * out. Numbers of nodes are written down, so that nothing depends on the /dev
 * of whoever reads it. A specification gives no right: it names nodes, and who
 * may open them is decided elsewhere (docs/containers.md).
 *
 *     AUTO(cdi_facts) struct cdi_facts f = CDI_FACTS_INIT;
 *     cdi_facts_read("/", inv.driver_version, &f, e);
 *     json_t *j = cdi_spec(&inv, &f, CDI_KIND);      // NULL: nothing to describe
 *
 * cdi_spec and cdi_name are pure; cdi_facts_read reads files.
 */
#ifndef DIVVY_CDI_CDI_H
#define DIVVY_CDI_CDI_H

#include <jansson.h>

#include "model/inventory.h"

#define CDI_VERSION "0.5.0"
#define CDI_KIND "divvy/gpu"

/* A file of the driver that containers need; both paths below the driver's root. */
struct cdi_file {
    char *path; /* under which name: "/usr/lib/x86_64-linux-gnu/libcuda.so.1" */
    char *real; /* what that is, with all links followed */
};

/* What the driver's installation says, beside the cards. */
struct cdi_facts {
    char *driver_root;
    uint32_t nvidia_major, uvm_major, caps_major; /* of /proc/devices; 0: not there */
    bool modeset;                                 /* /dev/nvidia-modeset is there */
    char *minors; /* /proc/driver/nvidia-caps/mig-minors; NULL: not there */
    char *hook;   /* NVIDIA's nvidia-cdi-hook, or NULL */
    struct cdi_file *files;
    size_t file_count, file_alloc;
};

#define CDI_FACTS_INIT                                                                             \
    {                                                                                              \
        .driver_root = NULL                                                                        \
    }
void cdi_facts_done(struct cdi_facts *f);

/*
 * Reads them below `driver_root`. Files are those of that very driver version
 * ("" finds none). -ENODEV: no NVIDIA driver is loaded there. `ret` is filled
 * only on success.
 */
int cdi_facts_read(const char *driver_root, const char *driver_version, struct cdi_facts *ret,
                   struct err *e);

/*
 * "gpu0", or "gpu0:2g.20gb:4" for a slice of it (`s` not NULL).
 */
void cdi_name(struct text *t, const struct card *c, const struct slice *s);

/*
 * The specification of all healthy cards with MIG off and all slices of those
 * with MIG on. NULL when that is none: CDI has no empty specification. Caller
 * decrefs.
 */
json_t *cdi_spec(const struct inventory *inv, const struct cdi_facts *f, const char *kind);

/* VENDOR/CLASS: letters, digits, '_', '-' and '.', from a letter to a letter or digit. -EINVAL. */
int cdi_check_kind(const char *kind, struct err *e);

#endif
