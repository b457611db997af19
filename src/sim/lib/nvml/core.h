/*
 * core.h - what every function of the simulated libnvidia-ml.so.1 stands on:
 * initialisation, handles, and a card as it is now.
 *
 * Each exported function is declared and defined by NVML(name, arguments), and
 * begins by turning its handle into a view:
 *
 *     NVML(nvmlDeviceGetMinorNumber, nvmlDevice_t device, unsigned int *minor)
 *     {
 *         struct view v;
 *         nvmlReturn_t rc = view_card(device, &v);   // a MIG handle is refused
 *         if (rc != NVML_SUCCESS)
 *             return rc;
 *         ...
 *     }
 *
 * A view is a consistent copy; taking it honours the card's faults (slow,
 * hang, lost). Handles carry what they mean in their bits (kind, card,
 * instance ids, incarnation), so that a handle to a destroyed instance is told
 * from one made later at the same place, and nothing has to be freed.
 */
#ifndef DIVVY_SIM_NVML_CORE_H
#define DIVVY_SIM_NVML_CORE_H

#include "nvml/nvml.h"
#include "sim/mig.h"
#include "sim/process.h"

#define NVML(name, ...)                                                                            \
    __attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__);                         \
    nvmlReturn_t name(__VA_ARGS__)

/* An older name with the same ABI. Must follow the newer one in the same file. */
#define NVML_ALSO(newer, older)                                                                    \
    extern __typeof__(newer) older __attribute__((visibility("default"), alias(#newer)))

struct view {
    struct machine *machine;
    uint32_t ordinal;
    const struct sim_board *board;
    struct sim_card card;
    bool is_mig; /* of a MIG device; gi and ci are then its ids, else SIM_NO_INSTANCE */
    uint32_t gi;
    uint32_t ci;
};

/* Initialisation is counted. core_machine is NULL while there was none. */
nvmlReturn_t core_init(void);
nvmlReturn_t core_shutdown(void);
struct machine *core_machine(void);
/* "MIG 7g.80gb", as the driver that is loaded calls the profile. */
void core_profile_name(const char *name, char *ret, size_t size);

/* Handles. The incarnation of instances is taken from the view's card. */
nvmlDevice_t handle_card(uint32_t ordinal);
nvmlDevice_t handle_mig(const struct view *v, uint32_t gi, uint32_t ci);
nvmlGpuInstance_t handle_gi(const struct view *v, uint32_t gi);
nvmlComputeInstance_t handle_ci(const struct view *v, uint32_t gi, uint32_t ci);
/* Does the value look like a device handle of ours? Touches no memory. */
bool handle_is_device(const void *value);

/*
 * Views. UNINITIALIZED; INVALID_ARGUMENT for no handle, one of another kind or
 * one whose instance is gone; GPU_IS_LOST; DRIVER_NOT_LOADED when the machine
 * was taken down.
 */
nvmlReturn_t view_any(nvmlDevice_t device, struct view *ret);    /* card or MIG device */
nvmlReturn_t view_card(nvmlDevice_t device, struct view *ret);   /* the card; MIG: NOT_SUPPORTED */
nvmlReturn_t view_parent(nvmlDevice_t device, struct view *ret); /* of a MIG device: its card */
nvmlReturn_t view_gi(nvmlGpuInstance_t gi, struct view *ret);
nvmlReturn_t view_ci(nvmlComputeInstance_t ci, struct view *ret);

/*
 * The body of the many functions that give one number of a card: view, then
 * `ask`, which answers NOT_SUPPORTED or writes the number. For a MIG device
 * view_number says NOT_SUPPORTED (sensors belong to the card), and
 * view_parent_number asks the card it is cut from.
 */
typedef nvmlReturn_t (*ask_number_fn)(const struct view *v, unsigned int *ret);
nvmlReturn_t view_number(nvmlDevice_t device, unsigned int *ret, ask_number_fn ask);
nvmlReturn_t view_parent_number(nvmlDevice_t device, unsigned int *ret, ask_number_fn ask);

/* The GPU instance and profile of a view that has a gi. */
const struct sim_gi *view_instance(const struct view *v);
const struct sim_profile *view_profile(const struct view *v);

/* 550 of driver 550.163.01; 0 when it cannot be told. */
uint32_t core_branch(void);

/*
 * Makes an edit the state, and the files under root/ agree with it. What a
 * killed process leaves undone of the latter, the next one does. SUCCESS.
 */
nvmlReturn_t core_commit(const struct machine *m, struct machine_edit *edit);

/* A live process list of the machine; frees with free(). */
nvmlReturn_t core_procs(const struct view *v, struct sim_proc **ret_procs, uint32_t *ret_count);

/* The field's codes for the simulator's. */
nvmlReturn_t code_of(int rc);

/* Copies with the NUL; INSUFFICIENT_SIZE when it does not fit, INVALID_ARGUMENT for NULL. */
nvmlReturn_t give_text(const char *text, char *ret, unsigned int size);

#endif
