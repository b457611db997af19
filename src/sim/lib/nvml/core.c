#include "sim/lib/nvml/core.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/root.h"

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int init_count;
static struct machine *machine;
static char library_version[40]; /* this library stays what it was when it was mapped */

static nvmlReturn_t open_machine(void)
{
    if (machine)
        return NVML_SUCCESS;
    if (machine_open(NULL, &machine, NULL) < 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    machine_library_version(machine, library_version);
    return NVML_SUCCESS;
}

nvmlReturn_t core_init(void)
{
    (void)pthread_mutex_lock(&init_lock); /* a plain mutex: cannot fail */
    if (init_count == 0 && machine && machine_is_gone(machine)) {
        machine_close(machine);
        machine = NULL;
    }
    /* Stays open after the last shutdown: other threads may still be inside a call. */
    nvmlReturn_t rc = open_machine();
    if (rc == NVML_SUCCESS && !machine_library_fits(machine, library_version))
        rc = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    init_count += rc == NVML_SUCCESS;
    (void)pthread_mutex_unlock(&init_lock);
    return rc;
}

nvmlReturn_t core_shutdown(void)
{
    nvmlReturn_t rc = NVML_SUCCESS;
    (void)pthread_mutex_lock(&init_lock);
    if (init_count == 0)
        rc = NVML_ERROR_UNINITIALIZED;
    else
        init_count--;
    (void)pthread_mutex_unlock(&init_lock);
    return rc;
}

/* Unloaded: whoever opens the library again and again must not find its mappings still there. */
__attribute__((destructor)) static void core_unload(void)
{
    if (init_count > 0)
        return; /* the program ends inside: its threads may still be */
    machine_close(machine);
    machine = NULL;
}

struct machine *core_machine(void)
{
    (void)pthread_mutex_lock(&init_lock);
    struct machine *m = init_count > 0 ? machine : NULL;
    (void)pthread_mutex_unlock(&init_lock);
    return m;
}

void core_profile_name(const char *name, char *ret, size_t size)
{
    char told[64];
    struct machine *m = core_machine();
    if (m)
        machine_profile_name(m, name, told);
    (void)snprintf(ret, size, "MIG %s", m ? told : name); /* fits */
}

/* ---- handles ---- */

#define HANDLE_MARK 0x5DULL

enum handle_kind { KIND_CARD = 1, KIND_MIG, KIND_GI, KIND_CI };

struct meaning {
    enum handle_kind kind;
    uint32_t card;
    uint32_t gi;
    uint32_t ci;
    uint32_t incarnation;
};

static void *pack(enum handle_kind kind, uint32_t card, uint32_t gi, uint32_t ci,
                  uint32_t incarnation)
{
    uint64_t bits = HANDLE_MARK << 56 | (uint64_t)kind << 52 | (uint64_t)(card & 0xFF) << 44 |
                    (uint64_t)(gi & 0xFF) << 36 | (uint64_t)(ci & 0xF) << 32 | incarnation;
    return (void *)(uintptr_t)bits;
}

static bool unpack(const void *value, struct meaning *ret)
{
    uint64_t bits = (uint64_t)(uintptr_t)value;
    *ret = (struct meaning){ .kind = (enum handle_kind)(bits >> 52 & 0xF),
                             .card = (uint32_t)(bits >> 44 & 0xFF),
                             .gi = (uint32_t)(bits >> 36 & 0xFF),
                             .ci = (uint32_t)(bits >> 32 & 0xF),
                             .incarnation = (uint32_t)bits };
    return bits >> 56 == HANDLE_MARK && ret->kind >= KIND_CARD && ret->kind <= KIND_CI;
}

nvmlDevice_t handle_card(uint32_t ordinal)
{
    return pack(KIND_CARD, ordinal, 0, 0, 0);
}

nvmlDevice_t handle_mig(const struct view *v, uint32_t gi, uint32_t ci)
{
    return pack(KIND_MIG, v->ordinal, gi, ci, v->card.gi[gi].ci[ci].incarnation);
}

nvmlGpuInstance_t handle_gi(const struct view *v, uint32_t gi)
{
    return pack(KIND_GI, v->ordinal, gi, 0, v->card.gi[gi].incarnation);
}

nvmlComputeInstance_t handle_ci(const struct view *v, uint32_t gi, uint32_t ci)
{
    return pack(KIND_CI, v->ordinal, gi, ci, v->card.gi[gi].ci[ci].incarnation);
}

bool handle_is_device(const void *value)
{
    struct meaning h;
    return unpack(value, &h) && (h.kind == KIND_CARD || h.kind == KIND_MIG);
}

/* ---- views ---- */

static bool is_current(const struct meaning *h, const struct sim_card *c)
{
    if (h->kind == KIND_CARD)
        return true;
    if (h->gi >= SIM_GI_MAX || !c->gi[h->gi].used)
        return false;
    const struct sim_gi *g = &c->gi[h->gi];
    if (h->kind == KIND_GI)
        return g->incarnation == h->incarnation;
    return h->ci < SIM_CI_MAX && g->ci[h->ci].used && g->ci[h->ci].incarnation == h->incarnation;
}

static nvmlReturn_t look(const struct meaning *h, struct view *ret)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (h->card >= machine_card_count(m))
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret =
        (struct view){ .machine = m,
                       .ordinal = h->card,
                       .is_mig = h->kind == KIND_MIG,
                       .gi = h->kind == KIND_CARD ? SIM_NO_INSTANCE : h->gi,
                       .ci = h->kind == KIND_CARD || h->kind == KIND_GI ? SIM_NO_INSTANCE : h->ci };
    machine_gate(m, h->card, &ret->card);
    ret->board = &machine_boards(m)[ret->card.board];
    if (machine_is_gone(m))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (ret->card.faults & SIM_FAULT_LOST)
        return NVML_ERROR_GPU_IS_LOST;
    return is_current(h, &ret->card) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t not_ours(void)
{
    return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t view_any(nvmlDevice_t device, struct view *ret)
{
    struct meaning h;
    if (!unpack(device, &h) || (h.kind != KIND_CARD && h.kind != KIND_MIG))
        return not_ours();
    return look(&h, ret);
}

nvmlReturn_t view_card(nvmlDevice_t device, struct view *ret)
{
    nvmlReturn_t rc = view_any(device, ret);
    return rc == NVML_SUCCESS && ret->is_mig ? NVML_ERROR_NOT_SUPPORTED : rc;
}

nvmlReturn_t view_parent(nvmlDevice_t device, struct view *ret)
{
    nvmlReturn_t rc = view_any(device, ret);
    if (rc == NVML_SUCCESS) {
        ret->is_mig = false;
        ret->gi = ret->ci = SIM_NO_INSTANCE;
    }
    return rc;
}

nvmlReturn_t view_gi(nvmlGpuInstance_t gi, struct view *ret)
{
    struct meaning h;
    return unpack(gi, &h) && h.kind == KIND_GI ? look(&h, ret) : not_ours();
}

nvmlReturn_t view_ci(nvmlComputeInstance_t ci, struct view *ret)
{
    struct meaning h;
    return unpack(ci, &h) && h.kind == KIND_CI ? look(&h, ret) : not_ours();
}

nvmlReturn_t view_number(nvmlDevice_t device, unsigned int *ret, ask_number_fn ask)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    return ret ? ask(&v, ret) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t view_parent_number(nvmlDevice_t device, unsigned int *ret, ask_number_fn ask)
{
    struct view v;
    nvmlReturn_t rc = view_parent(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    return ret ? ask(&v, ret) : NVML_ERROR_INVALID_ARGUMENT;
}

const struct sim_gi *view_instance(const struct view *v)
{
    return &v->card.gi[v->gi];
}

const struct sim_profile *view_profile(const struct view *v)
{
    return &v->board->profiles[view_instance(v)->profile];
}

uint32_t core_branch(void)
{
    struct machine *m = core_machine();
    return m ? machine_branch(m) : 0;
}

nvmlReturn_t core_procs(const struct view *v, struct sim_proc **ret_procs, uint32_t *ret_count)
{
    return code_of(sim_procs_read(v->machine, ret_procs, ret_count, NULL));
}

nvmlReturn_t core_commit(const struct machine *m, struct machine_edit *edit)
{
    (void)machine_edit_commit(edit); /* cannot fail */
    (void)sim_root_sync(m, NULL);    /* the state is what counts; the next sync makes up for it */
    return NVML_SUCCESS;
}

nvmlReturn_t code_of(int rc)
{
    switch (rc) {
    case 0:
        return NVML_SUCCESS;
    case -EINVAL:
        return NVML_ERROR_INVALID_ARGUMENT;
    case -EOPNOTSUPP:
        return NVML_ERROR_NOT_SUPPORTED;
    case -EACCES:
        return NVML_ERROR_NO_PERMISSION;
    case -ENOENT:
        return NVML_ERROR_NOT_FOUND;
    case -ENOSPC:
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case -EBUSY:
        return NVML_ERROR_IN_USE;
    case -EINPROGRESS:
        return NVML_ERROR_RESET_REQUIRED;
    case -ENOMEM:
        return NVML_ERROR_MEMORY;
    case -ESHUTDOWN:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    default:
        return NVML_ERROR_UNKNOWN;
    }
}

nvmlReturn_t give_text(const char *text, char *ret, unsigned int size)
{
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    size_t need = strlen(text) + 1;
    if (size < need)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(ret, text, need);
    return NVML_SUCCESS;
}
