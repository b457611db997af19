/* GPM, on Hopper and later: activity between two samples, of a card or a GPU instance. */
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sim/lib/nvml/core.h"

#define METRIC_GRAPHICS_UTIL 1U
#define METRIC_SM_UTIL 2U
#define METRICS_MAX 333U

struct nvmlGpmSample_st {
    struct nvmlGpmSample_st *next;
    bool taken;
    uint32_t card;
    uint32_t gi; /* SIM_NO_INSTANCE: the whole card */
    uint32_t load;
};

static pthread_mutex_t samples_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvmlGpmSample_st *samples;

static bool is_known(const struct nvmlGpmSample_st *sample)
{
    for (const struct nvmlGpmSample_st *s = samples; s; s = s->next)
        if (s == sample)
            return true;
    return false;
}

NVML(nvmlGpmQueryDeviceSupport, nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!support)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (support->version != 1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = v.board->arch >= NVML_DEVICE_ARCH_HOPPER;
    return NVML_SUCCESS;
}

NVML(nvmlGpmSampleAlloc, nvmlGpmSample_t *ret_sample)
{
    if (!core_machine())
        return NVML_ERROR_UNINITIALIZED;
    if (!ret_sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct nvmlGpmSample_st *s = mem_new(sizeof *s);
    (void)pthread_mutex_lock(&samples_lock);
    s->next = samples;
    samples = s;
    (void)pthread_mutex_unlock(&samples_lock);
    *ret_sample = s;
    return NVML_SUCCESS;
}

NVML(nvmlGpmSampleFree, nvmlGpmSample_t sample)
{
    nvmlReturn_t rc = NVML_ERROR_INVALID_ARGUMENT;
    (void)pthread_mutex_lock(&samples_lock);
    for (struct nvmlGpmSample_st **at = &samples; *at; at = &(*at)->next)
        if (*at == sample) {
            *at = sample->next;
            free(sample);
            rc = NVML_SUCCESS;
            break;
        }
    (void)pthread_mutex_unlock(&samples_lock);
    return rc;
}

static nvmlReturn_t store(nvmlGpmSample_t sample, const struct nvmlGpmSample_st *now)
{
    nvmlReturn_t rc = NVML_SUCCESS;
    (void)pthread_mutex_lock(&samples_lock);
    if (!is_known(sample)) {
        rc = NVML_ERROR_INVALID_ARGUMENT;
    } else {
        sample->taken = true;
        sample->card = now->card;
        sample->gi = now->gi;
        sample->load = now->load;
    }
    (void)pthread_mutex_unlock(&samples_lock);
    return rc;
}

static nvmlReturn_t take(const struct view *v, uint32_t gi, nvmlGpmSample_t sample)
{
    struct sim_proc *list = NULL;
    uint32_t count = 0;
    if (v->board->arch < NVML_DEVICE_ARCH_HOPPER)
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t rc = core_procs(v, &list, &count);
    if (rc != NVML_SUCCESS)
        return rc;
    auto_free struct sim_proc *procs = list;
    uint32_t load = gi == SIM_NO_INSTANCE
                        ? sim_card_load(v->board, &v->card, procs, count, v->ordinal)
                        : sim_gi_load(v->board, &v->card, procs, count, v->ordinal, gi);
    return store(sample, &(struct nvmlGpmSample_st){ .card = v->ordinal, .gi = gi, .load = load });
}

NVML(nvmlGpmSampleGet, nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    return rc == NVML_SUCCESS ? take(&v, v.gi, sample) : rc;
}

NVML(nvmlGpmMigSampleGet, nvmlDevice_t device, unsigned int gi, nvmlGpmSample_t sample)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (gi >= SIM_GI_MAX || !v.card.gi[gi].used)
        return NVML_ERROR_INVALID_ARGUMENT;
    return take(&v, gi, sample);
}

/* Only what load tells; every other metric fails alone. */
static void fill_metric(nvmlGpmMetric_t *m, const struct nvmlGpmSample_st *a,
                        const struct nvmlGpmSample_st *b)
{
    if (m->metricId != METRIC_GRAPHICS_UTIL && m->metricId != METRIC_SM_UTIL) {
        m->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        return;
    }
    m->nvmlReturn = NVML_SUCCESS;
    m->value = (a->load + b->load) / 2.0;
    static char names[2][16] = { "graphicsUtil", "smUtil" };
    static char unit[] = "%";
    m->metricInfo.shortName = m->metricInfo.longName = names[m->metricId - METRIC_GRAPHICS_UTIL];
    m->metricInfo.unit = unit;
}

/* The structure grew with each header; only metrics[0..numMetrics-1] are the caller's. */
NVML(nvmlGpmMetricsGet, nvmlGpmMetricsGet_t *get)
{
    if (!core_machine())
        return NVML_ERROR_UNINITIALIZED;
    if (!get || get->numMetrics == 0 || get->numMetrics > METRICS_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (get->version != 1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t rc = NVML_SUCCESS;
    (void)pthread_mutex_lock(&samples_lock);
    const struct nvmlGpmSample_st *a = get->sample1, *b = get->sample2;
    if (!is_known(a) || !is_known(b) || !a->taken || !b->taken || a->card != b->card ||
        a->gi != b->gi)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; rc == NVML_SUCCESS && i < get->numMetrics; i++)
        fill_metric(&get->metrics[i], a, b);
    (void)pthread_mutex_unlock(&samples_lock);
    return rc;
}
