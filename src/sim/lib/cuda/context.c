#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "sim/lib/cuda/cuda.h"

#define CONTEXT_BYTES (UINT64_C(128) << 20) /* a context takes memory before anything is asked */
#define PAGE_BYTES (UINT64_C(2) << 20)      /* memory is taken in pages of 2 MiB */
#define LOAD_WINDOW_US CLOCK_SECOND         /* NVML's load is an average, too */
#define LOAD_STEP_MS 100

struct allocation {
    CUdeviceptr address;
    uint64_t bytes; /* asked */
    uint64_t taken; /* whole pages */
};

struct cuda_context {
    struct cuda_context *next;
    CUdevice device;
    uint32_t primary_refs; /* 0: made by cuCtxCreate */
    bool primary;
    int64_t since_us;
    uint64_t memory_bytes;
    struct allocation *allocations;
    size_t allocation_count, allocation_alloc;
    int64_t busy_until_us; /* when the last queued kernel ends */
    int64_t busy_us;       /* kernel time in the window that began at window_us */
    int64_t window_us;
    uint32_t load_percent; /* as last computed */
};

static struct cuda_context *contexts;
static __thread struct cuda_context *current;
static CUdeviceptr next_address = UINT64_C(0x7f0000000000);
static bool load_thread_runs;

static int64_t now_us(void)
{
    return clock_now().boot_us;
}

/* ---- registering ---- */

static struct sim_use *use_of(struct sim_use *uses, uint32_t *count, const struct cuda_context *c)
{
    const struct device *d = device_at(c->device);
    for (uint32_t i = 0; i < *count; i++)
        if (uses[i].card == d->place.ordinal && uses[i].gi == d->place.gi &&
            uses[i].ci == d->place.ci)
            return &uses[i];
    uses[*count] = (struct sim_use){
        .card = d->place.ordinal, .gi = d->place.gi, .ci = d->place.ci, .kind = SIM_USE_COMPUTE
    };
    return &uses[(*count)++];
}

CUresult context_register_locked(void)
{
    struct sim_use uses[VISIBLE_MAX];
    uint32_t count = 0;
    for (const struct cuda_context *c = contexts; c; c = c->next) {
        struct sim_use *u = use_of(uses, &count, c);
        u->memory_bytes += c->memory_bytes;
        u->load_percent += c->load_percent;
        if (u->load_percent > 100)
            u->load_percent = 100;
    }
    return device_code(sim_use_set(device_machine(), count ? uses : NULL, count, NULL));
}

static __attribute__((destructor)) void leave(void)
{
    if (device_machine() && contexts)
        (void)sim_use_set(device_machine(), NULL, 0, NULL); /* we end: nobody to tell */
}

/* ---- is it still there? ---- */

static CUresult check_place(const struct device *d, const struct sim_card *card)
{
    if (card->faults & SIM_FAULT_LOST)
        return CUDA_ERROR_LAUNCH_FAILED;
    if (d->place.gi == VISIBLE_CARD)
        return card->mig_current ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    const struct sim_gi *g = &card->gi[d->place.gi];
    bool same =
        card->mig_current && g->used && g->ci[d->place.ci].used &&
        g->ci[d->place.ci].incarnation == d->card.gi[d->place.gi].ci[d->place.ci].incarnation;
    return same ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static uint32_t boot_now(void)
{
    struct sim_state *st = mem_new(sizeof *st);
    machine_read(device_machine(), st);
    uint32_t boot = st->boot;
    free(st);
    return boot;
}

/* The boot number costs a copy of everything, so it is read only after a change. */
static bool was_rebooted(void)
{
    static uint64_t seen_version;
    static uint32_t seen_boot;
    uint64_t version = machine_version(device_machine());
    if (version != seen_version || seen_boot == 0) {
        seen_boot = boot_now();
        seen_version = version;
    }
    return seen_boot != device_boot();
}

CUresult context_check_locked(CUcontext c)
{
    const struct device *d = device_at(c->device);
    struct sim_card card;
    if (machine_is_gone(device_machine()) || was_rebooted())
        return CUDA_ERROR_UNKNOWN;
    machine_card(device_machine(), d->place.ordinal, &card);
    return check_place(d, &card);
}

static bool is_ours(const struct cuda_context *c)
{
    for (const struct cuda_context *x = contexts; x; x = x->next)
        if (x == c)
            return true;
    return false;
}

CUresult context_current_locked(CUcontext *ret)
{
    if (!device_machine())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!current || !is_ours(current))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret = current;
    return context_check_locked(current);
}

/* ---- making and ending ---- */

static CUresult make_locked(CUdevice device, struct cuda_context **ret)
{
    if (!device_at(device))
        return device_count() ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NOT_INITIALIZED;
    struct cuda_context *c = mem_new(sizeof *c);
    c->device = device;
    c->memory_bytes = CONTEXT_BYTES;
    c->since_us = now_us();
    c->next = contexts;
    contexts = c;
    CUresult rc = context_check_locked(c);
    if (rc == CUDA_SUCCESS)
        rc = context_register_locked();
    if (rc != CUDA_SUCCESS) {
        contexts = c->next;
        free(c);
        return rc;
    }
    *ret = c;
    return CUDA_SUCCESS;
}

static void end_locked(struct cuda_context *c)
{
    struct cuda_context **at = &contexts;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (current == c)
        current = NULL;
    free(c->allocations);
    free(c);
    (void)context_register_locked(); /* giving back cannot fail for lack of room */
}

CUDA(cuCtxCreate_v2, CUcontext *ret_context, unsigned int flags, CUdevice device)
{
    (void)flags; /* scheduling hints, and mapped host memory, which is not simulated */
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    device_lock();
    CUresult rc = make_locked(device, ret_context);
    if (rc == CUDA_SUCCESS)
        current = *ret_context;
    device_unlock();
    return rc;
}

CUDA(cuCtxDestroy_v2, CUcontext context)
{
    device_lock();
    bool ours = context && is_ours(context) && !context->primary;
    if (ours)
        end_locked(context);
    device_unlock();
    return ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static struct cuda_context *primary_of(CUdevice device)
{
    struct cuda_context *c = contexts;
    while (c && !(c->primary && c->device == device))
        c = c->next;
    return c;
}

CUDA(cuDevicePrimaryCtxRetain, CUcontext *ret_context, CUdevice device)
{
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    device_lock();
    struct cuda_context *c = primary_of(device);
    CUresult rc = c ? CUDA_SUCCESS : make_locked(device, &c);
    if (rc == CUDA_SUCCESS) {
        c->primary = true;
        c->primary_refs++;
        *ret_context = c;
    }
    device_unlock();
    return rc;
}

CUDA(cuDevicePrimaryCtxRelease_v2, CUdevice device)
{
    device_lock();
    struct cuda_context *c = primary_of(device);
    if (c && --c->primary_refs == 0)
        end_locked(c);
    device_unlock();
    return c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA(cuDevicePrimaryCtxRelease, CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

CUDA(cuCtxSetCurrent, CUcontext context)
{
    device_lock();
    bool known = !context || is_ours(context);
    if (known)
        current = context;
    device_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA(cuCtxGetCurrent, CUcontext *ret_context)
{
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_context = current;
    return CUDA_SUCCESS;
}

CUDA(cuCtxGetDevice, CUdevice *ret_device)
{
    if (!ret_device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_device = current->device;
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

static CUresult take_locked(struct cuda_context *c, size_t bytes, CUdeviceptr *ret)
{
    if (bytes > UINT64_MAX / 4)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t taken = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    c->memory_bytes += taken;
    CUresult rc = context_register_locked();
    if (rc != CUDA_SUCCESS) {
        c->memory_bytes -= taken;
        return rc;
    }
    ARRAY_ROOM(c->allocations, c->allocation_alloc, c->allocation_count + 1);
    c->allocations[c->allocation_count++] =
        (struct allocation){ .address = next_address, .bytes = bytes, .taken = taken };
    *ret = next_address;
    next_address += taken;
    return CUDA_SUCCESS;
}

CUDA(cuMemAlloc_v2, CUdeviceptr *ret_address, size_t bytes)
{
    if (!ret_address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct cuda_context *c;
    device_lock();
    CUresult rc = context_current_locked(&c);
    if (rc == CUDA_SUCCESS)
        rc = take_locked(c, bytes, ret_address);
    device_unlock();
    return rc;
}

static CUresult give_locked(struct cuda_context *c, CUdeviceptr address)
{
    for (size_t i = 0; i < c->allocation_count; i++) {
        if (c->allocations[i].address != address)
            continue;
        c->memory_bytes -= c->allocations[i].taken;
        c->allocations[i] = c->allocations[--c->allocation_count];
        return context_register_locked();
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUDA(cuMemFree_v2, CUdeviceptr address)
{
    struct cuda_context *c;
    if (address == 0)
        return CUDA_SUCCESS;
    device_lock();
    CUresult rc = context_current_locked(&c);
    if (rc == CUDA_SUCCESS)
        rc = give_locked(c, address);
    device_unlock();
    return rc;
}

static CUresult info_locked(const struct device *d, size_t *ret_free, size_t *ret_total)
{
    struct sim_proc *procs = NULL;
    uint32_t count = 0;
    if (sim_procs_read(device_machine(), &procs, &count, NULL) < 0)
        return CUDA_ERROR_UNKNOWN;
    uint64_t used = sim_memory_used(procs, count, d->place.ordinal, d->place.gi);
    free(procs);
    *ret_free = used < d->total_bytes ? d->total_bytes - used : 0;
    *ret_total = d->total_bytes;
    return CUDA_SUCCESS;
}

CUDA(cuMemGetInfo_v2, size_t *ret_free, size_t *ret_total)
{
    struct cuda_context *c;
    if (!ret_free || !ret_total)
        return CUDA_ERROR_INVALID_VALUE;
    device_lock();
    CUresult rc = context_current_locked(&c);
    if (rc == CUDA_SUCCESS)
        rc = info_locked(device_at(c->device), ret_free, ret_total);
    device_unlock();
    return rc;
}

/* ---- kernels ---- */

/* Kernel time that lies behind us counts; what is queued for later does not. */
static void measure(struct cuda_context *c, int64_t now)
{
    int64_t elapsed = now - c->window_us;
    int64_t ahead = c->busy_until_us > now ? c->busy_until_us - now : 0;
    int64_t done = c->busy_us > ahead ? c->busy_us - ahead : 0;
    if (elapsed <= 0)
        return;
    int64_t percent = done * 100 / elapsed;
    c->load_percent = (uint32_t)(percent > 100 ? 100 : percent);
    if (elapsed < LOAD_WINDOW_US)
        return;
    c->busy_us = ahead + done / 2; /* half of the past stays: a fading average */
    c->window_us = now - elapsed / 2;
}

static bool measure_all(void)
{
    int64_t now = now_us();
    bool changed = false;
    bool busy = false;
    for (struct cuda_context *c = contexts; c; c = c->next) {
        uint32_t before = c->load_percent;
        measure(c, now);
        changed |= c->load_percent != before;
        busy |= c->load_percent > 0 || c->busy_until_us > now;
    }
    if (changed)
        (void)context_register_locked(); /* a machine that is gone shows at the next call */
    return busy;
}

/* Lives while there is load to tell of. */
static void *tell_load(void *arg)
{
    const struct timespec step = { .tv_nsec = LOAD_STEP_MS * 1000000L };
    bool busy = true;
    while (busy) {
        (void)nanosleep(&step, NULL); /* cut short: measured a little early */
        device_lock();
        busy = measure_all();
        load_thread_runs = busy;
        device_unlock();
    }
    return arg;
}

static void start_telling_locked(void)
{
    pthread_t thread;
    if (load_thread_runs || pthread_create(&thread, NULL, tell_load, NULL) != 0)
        return;                   /* without the thread only the load is not told */
    (void)pthread_detach(thread); /* just made by us */
    load_thread_runs = true;
}

CUresult context_launch_locked(CUcontext c, uint64_t duration_ns)
{
    int64_t now = now_us();
    int64_t length = (int64_t)(duration_ns / 1000);
    if (c->window_us == 0 || (c->load_percent == 0 && c->busy_until_us < now)) {
        c->window_us = now;
        c->busy_us = 0;
    }
    if (c->busy_until_us < now)
        c->busy_until_us = now;
    c->busy_until_us += length;
    c->busy_us += length;
    start_telling_locked();
    return CUDA_SUCCESS;
}

static void sleep_until(int64_t until_us)
{
    const struct timespec t = { .tv_sec = until_us / CLOCK_SECOND,
                                .tv_nsec = until_us % CLOCK_SECOND * 1000 };
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

CUDA(cuCtxSynchronize, void)
{
    struct cuda_context *c;
    struct sim_card card;
    device_lock();
    CUresult rc = context_current_locked(&c);
    int64_t until = rc == CUDA_SUCCESS ? c->busy_until_us : 0;
    uint32_t ordinal = rc == CUDA_SUCCESS ? device_at(c->device)->place.ordinal : 0;
    device_unlock();
    if (rc != CUDA_SUCCESS)
        return rc;
    machine_gate(device_machine(), ordinal, &card);
    sleep_until(until);
    device_lock();
    rc = context_current_locked(&c);
    device_unlock();
    return rc;
}
