#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "driver/holders.h"
#include "driver/state.h"

#define MODE_TRIES 10
#define CI_IDS 8u /* a GPU instance has compute instances 0 to 7 */

/* One step on its way. */
struct doing {
    struct driver *d;
    const struct library *lib;
    nvmlDevice_t dev;
    struct known_card *known;
    const struct board *board; /* of a card with MIG on */
    struct step s;             /* as asked; gi, ci and uuid are filled in */
};

/* "cannot create gpu0/2g.20gb@4: <why>", with the errno for an NVML code. */
static int refuse(const struct doing *w, nvmlReturn_t code, struct err *e)
{
    AUTO(text) struct text what = TEXT_INIT;
    step_add_text(&what, &w->s);
    int number = library_errno(code);
    if (number == -EACCES)
        return err_set(e, number, "cannot %s: this needs root", what.buf);
    return err_set(e, number, "cannot %s: the driver says: %s", what.buf,
                   library_words(w->lib, code));
}

static int refuse_words(const struct doing *w, int number, struct err *e, const char *why)
{
    AUTO(text) struct text what = TEXT_INIT;
    step_add_text(&what, &w->s);
    return err_set(e, number, "cannot %s: %s", what.buf, why);
}

static void find_holders(const struct doing *w, uint32_t gi, struct holders *ret)
{
    struct card c = { .uuid = "", .minor = UINT32_MAX };
    (void)driver_add_processes(w->d, w->dev, &c);
    if (w->lib->nvmlDeviceGetMinorNumber &&
        w->lib->nvmlDeviceGetMinorNumber(w->dev, &c.minor) != NVML_SUCCESS)
        c.minor = UINT32_MAX;
    holders_find(w->d->driver_root, &c, gi, ret);
    card_done(&c);
}

/* In use, with everybody who can be found there. */
static int refuse_busy(const struct doing *w, uint32_t gi, struct err *e)
{
    AUTO(holders) struct holders h = HOLDERS_INIT;
    AUTO(text) struct text why = TEXT_INIT;
    find_holders(w, gi, &h);
    holders_add_sentence(&why, &h, NULL, NULL);
    auto_free char *words =
        h.count ? text_fmt("it is in use by %s", why.buf)
                : text_fmt("it is in use by something that the driver does not list%s%s",
                           why.len ? "; " : "", why.buf);
    return refuse_words(w, -EBUSY, e, words);
}

static int refuse_for(const struct doing *w, nvmlReturn_t code, uint32_t gi, struct err *e)
{
    return code == NVML_ERROR_IN_USE ? refuse_busy(w, gi, e) : refuse(w, code, e);
}

/* ---- GPU instances ---- */

struct wanted {
    const struct step *s;
    nvmlGpuInstance_t handle;
    nvmlGpuInstanceInfo_t info;
    bool found;
};

static bool same_place(nvmlGpuInstance_t gi, const nvmlGpuInstanceInfo_t *info, void *arg)
{
    struct wanted *w = arg;
    if (info->placement.start != w->s->start || info->profileId != w->s->profile_id)
        return false;
    w->found = true;
    w->handle = gi;
    w->info = *info;
    return true;
}

/* The instance at the step's placement. A listing that failed is not the same as none. */
static int find_gi(struct doing *w, struct wanted *ret, struct err *e)
{
    *ret = (struct wanted){ .s = &w->s };
    nvmlReturn_t r = driver_each_gi(w->d, w->dev, w->board, same_place, ret);
    return ret->found || r == NVML_SUCCESS ? 0 : refuse(w, r, e);
}

/* As find_gi; -ENOENT where there is none, -ESTALE where there is another than the step means. */
static int need_gi(struct doing *w, struct wanted *ret, struct err *e)
{
    int code = find_gi(w, ret, e);
    if (code < 0)
        return code;
    if (!ret->found)
        return refuse_words(w, -ENOENT, e, "there is no such instance (any more)");
    if (w->s.gi != NOT_AN_INSTANCE && w->s.gi != ret->info.id)
        return refuse_words(w, -ESTALE, e, "another instance is there by now");
    w->s.gi = ret->info.id;
    return 0;
}

static nvmlReturn_t create_at(const struct doing *w, nvmlGpuInstance_t *ret)
{
    const nvmlGpuInstancePlacement_t at = { .start = w->s.start, .size = w->s.units };
    if (w->lib->nvmlDeviceCreateGpuInstanceWithPlacement)
        return w->lib->nvmlDeviceCreateGpuInstanceWithPlacement(w->dev, w->s.profile_id, &at, ret);
    if (w->lib->nvmlDeviceCreateGpuInstance)
        return w->lib->nvmlDeviceCreateGpuInstance(w->dev, w->s.profile_id, ret);
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static int create_gi(struct doing *w, struct err *e)
{
    struct wanted there;
    nvmlGpuInstance_t gi;
    nvmlGpuInstanceInfo_t info = { .id = NVML_NO_INSTANCE };
    int code = find_gi(w, &there, e);
    if (code < 0)
        return code;
    if (there.found)
        return refuse_words(w, -EEXIST, e, "it is there already");
    nvmlReturn_t r = create_at(w, &gi);
    if (r == NVML_ERROR_INVALID_ARGUMENT)
        return refuse_words(w, -ENOTSUP, e, "the card has no such placement");
    if (r != NVML_SUCCESS)
        return refuse_for(w, r, NOT_AN_INSTANCE, e);
    r = w->lib->nvmlGpuInstanceGetInfo(gi, &info);
    bool right = r == NVML_SUCCESS && info.placement.start == w->s.start &&
                 info.profileId == w->s.profile_id;
    if (right) {
        w->s.gi = info.id;
        return 0;
    }
    if (w->lib->nvmlGpuInstanceDestroy)
        (void)w->lib->nvmlGpuInstanceDestroy(gi); /* -EIO says to look again in any case */
    return refuse_words(w, -EIO, e, "the driver made something else than it was asked for");
}

static int destroy_gi(struct doing *w, struct err *e)
{
    struct wanted there;
    int code = need_gi(w, &there, e);
    if (code < 0)
        return code;
    if (!w->lib->nvmlGpuInstanceDestroy)
        return refuse(w, NVML_ERROR_FUNCTION_NOT_FOUND, e);
    nvmlReturn_t r = w->lib->nvmlGpuInstanceDestroy(there.handle);
    if (r != NVML_SUCCESS)
        return refuse_for(w, r, w->s.gi, e);
    code = find_gi(w, &there, e);
    if (code < 0)
        return err_wrap(e, -EIO, "it was destroyed, and the card tells no more");
    if (there.found)
        return refuse_words(w, -EIO, e, "the driver says that it did, and it is still there");
    return 0;
}

/* ---- compute instances ---- */

static int choose_ci_profile(struct doing *w, nvmlGpuInstance_t gi, struct err *e)
{
    const struct profile *p = board_profile_by_id(w->board, w->s.profile_id);
    if (w->s.ci_slices && (!p || w->s.ci_slices != p->slices))
        return 0;
    /* All of it: the id is asked of the driver, since a plan made without hardware guessed it. */
    if (!p || !driver_full_ci(w->d, gi, p->slices, &w->s.ci_profile_id))
        return refuse_words(w, -ENOTSUP, e, "the driver tells no compute instance that fills it");
    w->s.ci_slices = p->slices;
    w->s.ci_start = 0;
    return 0;
}

static nvmlReturn_t create_ci_at(const struct doing *w, nvmlGpuInstance_t gi,
                                 nvmlComputeInstance_t *ret)
{
    const nvmlComputeInstancePlacement_t at = { .start = w->s.ci_start, .size = w->s.ci_slices };
    const struct profile *p = board_profile_by_id(w->board, w->s.profile_id);
    bool part = p && w->s.ci_slices < p->slices;
    if (part && w->lib->nvmlGpuInstanceCreateComputeInstanceWithPlacement)
        return w->lib->nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, w->s.ci_profile_id,
                                                                         &at, ret);
    if (!w->lib->nvmlGpuInstanceCreateComputeInstance)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    return w->lib->nvmlGpuInstanceCreateComputeInstance(gi, w->s.ci_profile_id, ret);
}

/* Fills ci and uuid from what came into being; false when that is not what was asked. */
static bool read_back_ci(struct doing *w, nvmlComputeInstance_t ci)
{
    nvmlComputeInstanceInfo_t info = { .id = NVML_NO_INSTANCE };
    if (!w->lib->nvmlComputeInstanceGetInfo_v2 ||
        w->lib->nvmlComputeInstanceGetInfo_v2(ci, &info) != NVML_SUCCESS)
        return false;
    w->s.ci = info.id;
    return info.profileId == w->s.ci_profile_id && info.placement.start == w->s.ci_start &&
           driver_mig_uuid(w->d, w->dev, w->s.gi, info.id, w->s.uuid);
}

/* The id of the compute instance at the step's place; left alone where there is none. */
static void find_ci(struct doing *w, nvmlGpuInstance_t gi)
{
    nvmlComputeInstance_t ci;
    nvmlComputeInstanceInfo_t info;
    if (!w->lib->nvmlGpuInstanceGetComputeInstanceById || !w->lib->nvmlComputeInstanceGetInfo_v2)
        return;
    for (uint32_t id = 0; id < CI_IDS; id++)
        if (w->lib->nvmlGpuInstanceGetComputeInstanceById(gi, id, &ci) == NVML_SUCCESS &&
            w->lib->nvmlComputeInstanceGetInfo_v2(ci, &info) == NVML_SUCCESS &&
            info.placement.start == w->s.ci_start)
            w->s.ci = id;
}

static int create_ci(struct doing *w, struct err *e)
{
    struct wanted there;
    nvmlComputeInstance_t ci;
    int code = need_gi(w, &there, e);
    if (code == 0)
        code = choose_ci_profile(w, there.handle, e);
    if (code < 0)
        return code;
    w->s.ci = NOT_AN_INSTANCE;
    find_ci(w, there.handle);
    if (w->s.ci != NOT_AN_INSTANCE)
        return refuse_words(w, -EEXIST, e, "it is there already");
    nvmlReturn_t r = create_ci_at(w, there.handle, &ci);
    if (r == NVML_ERROR_INVALID_ARGUMENT)
        return refuse_words(w, -ENOTSUP, e, "the instance has no such placement inside it");
    if (r != NVML_SUCCESS)
        return refuse_for(w, r, w->s.gi, e);
    if (read_back_ci(w, ci))
        return 0;
    if (w->lib->nvmlComputeInstanceDestroy)
        (void)w->lib->nvmlComputeInstanceDestroy(ci); /* -EIO says to look again in any case */
    return refuse_words(w, -EIO, e, "the driver made something else than it was asked for");
}

static nvmlReturn_t ci_by_id(const struct doing *w, nvmlGpuInstance_t gi,
                             nvmlComputeInstance_t *ret)
{
    nvmlComputeInstanceInfo_t info;
    if (!w->lib->nvmlGpuInstanceGetComputeInstanceById || !w->lib->nvmlComputeInstanceGetInfo_v2)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t r = w->lib->nvmlGpuInstanceGetComputeInstanceById(gi, w->s.ci, ret);
    return r == NVML_SUCCESS ? w->lib->nvmlComputeInstanceGetInfo_v2(*ret, &info) : r;
}

static int destroy_ci(struct doing *w, struct err *e)
{
    struct wanted there;
    nvmlComputeInstance_t ci;
    int code = need_gi(w, &there, e);
    if (code < 0)
        return code;
    if (w->s.ci == NOT_AN_INSTANCE)
        find_ci(w, there.handle);
    nvmlReturn_t r = ci_by_id(w, there.handle, &ci);
    if (r == NVML_ERROR_NOT_FOUND || r == NVML_ERROR_INVALID_ARGUMENT)
        return refuse_words(w, -ENOENT, e, "there is none (any more)");
    if (r == NVML_SUCCESS && !w->lib->nvmlComputeInstanceDestroy)
        r = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (r == NVML_SUCCESS)
        r = w->lib->nvmlComputeInstanceDestroy(ci);
    if (r != NVML_SUCCESS)
        return refuse_for(w, r, w->s.gi, e);
    if (ci_by_id(w, there.handle, &ci) == NVML_SUCCESS)
        return refuse_words(w, -EIO, e, "the driver says that it did, and it is still there");
    return 0;
}

/* ---- the card ---- */

static int mode_of(const struct doing *w, unsigned int *ret_now, unsigned int *ret_pending,
                   struct err *e)
{
    if (!w->lib->nvmlDeviceGetMigMode || !w->lib->nvmlDeviceSetMigMode)
        return refuse(w, NVML_ERROR_FUNCTION_NOT_FOUND, e);
    nvmlReturn_t r = w->lib->nvmlDeviceGetMigMode(w->dev, ret_now, ret_pending);
    if (r == NVML_ERROR_NOT_SUPPORTED)
        return refuse_words(w, -ENOTSUP, e, "the card has no MIG");
    return r == NVML_SUCCESS ? 0 : refuse(w, r, e);
}

/*
 * Clients that are about to let go of the card get a moment to do so. *ret_stored: the driver took
 * the mode once, even where it said no to a later try.
 */
static nvmlReturn_t set_mode(const struct doing *w, unsigned int mode, nvmlReturn_t *activation,
                             bool *ret_stored)
{
    const struct timespec moment = { .tv_nsec = 100 * 1000 * 1000 };
    nvmlReturn_t r = NVML_SUCCESS;
    *ret_stored = false;
    for (int tries = 0; tries < MODE_TRIES; tries++) {
        if (tries)
            (void)nanosleep(&moment, NULL); /* woken early: asked early */
        *activation = NVML_SUCCESS;
        r = w->lib->nvmlDeviceSetMigMode(w->dev, mode, activation);
        *ret_stored = *ret_stored || r == NVML_SUCCESS;
        if (r != NVML_ERROR_IN_USE && *activation != NVML_ERROR_IN_USE)
            break;
    }
    return r;
}

/* The card keeps what it was told, and the driver takes nothing back: that has to be undone. */
static int refuse_stored(const struct doing *w, nvmlReturn_t code, struct err *e)
{
    (void)refuse(w, code, e);
    e->code = -EIO;
    return -EIO;
}

static int turn_mig(struct doing *w, unsigned int mode, struct err *e)
{
    unsigned int now, pending;
    nvmlReturn_t activation;
    nvmlReturn_t ignored;
    bool stored;
    int code = mode_of(w, &now, &pending, e);
    if (code < 0 || (now == mode && pending == mode))
        return code;
    unsigned int before = pending;
    nvmlReturn_t r = set_mode(w, mode, &activation, &stored);
    if (r != NVML_SUCCESS)
        return stored ? refuse_stored(w, r, e) : refuse_for(w, r, NOT_AN_INSTANCE, e);
    code = mode_of(w, &now, &pending, e);
    if (code < 0)
        return err_set(e, -EIO, "gpu%u does not tell its MIG mode after a change of it",
                       w->s.ordinal);
    if (now == mode && pending == mode)
        return 0;
    if (activation == NVML_ERROR_IN_USE) {
        r = w->lib->nvmlDeviceSetMigMode(w->dev, before, &ignored); /* as it was */
        return r == NVML_SUCCESS ? refuse_busy(w, NOT_AN_INSTANCE, e) : refuse_stored(w, r, e);
    }
    if (pending == mode)
        return refuse_words(w, -EAGAIN, e, "it is stored, and becomes so by a reset of the card");
    return refuse_words(w, -EIO, e, "the driver says that it did, and the mode is as before");
}

/*
 * As it was stored earlier. Where nobody keeps the driver from it, the driver makes it current at
 * once: that is what was stored for.
 */
static int store_mig(struct doing *w, struct err *e)
{
    unsigned int now, pending;
    nvmlReturn_t activation;
    unsigned int mode = w->s.was_pending ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    int code = mode_of(w, &now, &pending, e);
    if (code < 0 || pending == mode)
        return code;
    bool stored;
    nvmlReturn_t r = set_mode(w, mode, &activation, &stored);
    if (r != NVML_SUCCESS)
        return refuse_for(w, r, NOT_AN_INSTANCE, e);
    code = mode_of(w, &now, &pending, e);
    if (code == 0 && pending != mode)
        code = refuse_words(w, -EIO, e, "the driver says that it did, and it is not stored");
    return code;
}

static bool is_a_guest(const struct doing *w)
{
    unsigned int mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
    return w->lib->nvmlDeviceGetVirtualizationMode &&
           w->lib->nvmlDeviceGetVirtualizationMode(w->dev, &mode) == NVML_SUCCESS &&
           (mode == NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH ||
            mode == NVML_GPU_VIRTUALIZATION_MODE_VGPU);
}

/* Where the links are known, by PCI address; those behind switches are not told apart. */
static void add_peers(struct text *t, const struct known_card *k)
{
    for (uint32_t i = 0; i < k->link_count; i++)
        text_addf(t, "%s%s", i ? ", " : " (its NVLink peers: ", k->links[i].bus_id);
    if (k->link_count)
        text_add(t, ")");
    else if (k->switch_links)
        text_add(t, " (its NVLinks go to switches, and so to all cards on them)");
}

static int refuse_reset(const struct doing *w, bool guest, const struct err *why, struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (guest || strcasestr(why->text, "not supported")) {
        text_addf(&t,
                  "no reset works here%s, so it needs a reboot of this machine; the command said: "
                  "%s",
                  guest ? " in a virtual machine" : "", why->text);
        return refuse_words(w, -ENOTSUP, e, t.buf);
    }
    if (strcasestr(why->text, "nvlink")) {
        text_add(&t, "the driver resets it only together with the cards that NVLink connects it "
                     "to");
        add_peers(&t, w->known);
        text_addf(&t,
                  ", and those are not touched for it; when nobody uses any of them, give all of "
                  "them to the reset command at once. It said: %s",
                  why->text);
        return refuse_words(w, -EBUSY, e, t.buf);
    }
    AUTO(holders) struct holders h = HOLDERS_INIT;
    find_holders(w, NOT_AN_INSTANCE, &h);
    holders_add_sentence(&t, &h, NULL, NULL);
    return err_set(e, why->code, "%s%s%s", why->text, t.len ? "; on it: " : "", t.buf);
}

/* That the mode still waits is how a guest's reset fails that claims to have worked. */
static int read_back_reset(struct doing *w, struct err *e)
{
    unsigned int now, pending;
    if (mode_of(w, &now, &pending, NULL) == 0 && now != pending)
        return refuse_words(w, -ENOTSUP, e,
                            "the reset command says that it did, and the MIG mode still waits: no "
                            "reset works here, so it needs a reboot of this machine");
    return 0;
}

static int reset_card(struct doing *w, struct err *e)
{
    char bus_id[CARD_BUS_ID_SIZE];
    struct err failed = ERR_INIT;
    bool guest = is_a_guest(w);
    memcpy(bus_id, w->known->bus_id, sizeof bus_id);
    driver_release(w->d);
    int code = driver_run_reset(w->d, w->s.card_uuid, bus_id, &failed);
    int back = driver_ready(w->d, e);
    if (back < 0)
        return back;
    /* Another driver may have come, and forgotten what was known. */
    w->known = driver_know(w->d, w->s.card_uuid, bus_id);
    nvmlReturn_t r = w->lib->nvmlDeviceGetHandleByUUID(w->s.card_uuid, &w->dev);
    if (r != NVML_SUCCESS)
        return refuse(w, r, e);
    return code < 0 ? refuse_reset(w, guest, &failed, e) : read_back_reset(w, e);
}

static int find_card(struct doing *w, struct err *e)
{
    nvmlPciInfo_t pci = { .domain = 0 };
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    driver_at(w->d, w->s.card_uuid);
    nvmlReturn_t r = w->lib->nvmlDeviceGetHandleByUUID(w->s.card_uuid, &w->dev);
    if (r == NVML_ERROR_NOT_FOUND)
        return refuse_words(w, -ENODEV, e, "the card is not there");
    if (r == NVML_SUCCESS)
        r = w->lib->nvmlDeviceGetPciInfo_v3(w->dev, &pci);
    if (r == NVML_SUCCESS)
        r = w->lib->nvmlDeviceGetName(w->dev, name, sizeof name);
    if (r != NVML_SUCCESS)
        return refuse(w, r, e);
    w->known = driver_know(w->d, w->s.card_uuid, pci.busId);
    (void)snprintf(w->known->name, sizeof w->known->name, "%s", name);
    w->known->pci_device_id = pci.pciDeviceId;
    return 0;
}

/* Geometry, which older drivers tell only while MIG is on. */
static int need_mig(struct doing *w, struct err *e)
{
    unsigned int now, pending;
    int code = mode_of(w, &now, &pending, e);
    if (code < 0)
        return code;
    bool destroys = w->s.kind == STEP_CI_DESTROY || w->s.kind == STEP_GI_DESTROY;
    if (now != NVML_DEVICE_MIG_ENABLE)
        return refuse_words(w, destroys ? -ENOENT : -ENXIO, e, "MIG is off on this card");
    w->board = driver_board(w->d, w->dev, w->known, true);
    return 0;
}

static int carry_out(struct doing *w, struct err *e)
{
    int code = w->s.kind > STEP_RESET ? need_mig(w, e) : 0;
    if (code < 0)
        return code;
    switch (w->s.kind) {
    case STEP_MIG_ON:
        return turn_mig(w, NVML_DEVICE_MIG_ENABLE, e);
    case STEP_MIG_OFF:
        return turn_mig(w, NVML_DEVICE_MIG_DISABLE, e);
    case STEP_MIG_STORE:
        return store_mig(w, e);
    case STEP_RESET:
        return reset_card(w, e);
    case STEP_CI_DESTROY:
        return destroy_ci(w, e);
    case STEP_GI_DESTROY:
        return destroy_gi(w, e);
    case STEP_GI_CREATE:
        return create_gi(w, e);
    case STEP_CI_CREATE:
        return create_ci(w, e);
    }
    return err_set(e, -EINVAL, "no such step");
}

int driver_step(struct driver *d, const struct step *s, struct step *ret_done, struct err *e)
{
    int code = driver_ready(d, e);
    if (code < 0)
        return code;
    struct doing w = { .d = d, .lib = &d->lib, .s = *s };
    code = find_card(&w, e);
    if (code == 0)
        code = carry_out(&w, e);
    driver_at(d, NULL);
    bool stored = code == -EAGAIN && step_is_mode(s);
    if (code == 0 || stored)
        *ret_done = w.s;
    return code;
}
