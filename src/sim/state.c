#include "sim/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml/nvml.h"
#include "sim/uuid.h"

#define XID_OFF_THE_BUS 79U

uint32_t sim_branch_of(const char *driver_version)
{
    return (uint32_t)strtoul(driver_version, NULL, 10);
}

uint32_t sim_branch(const struct sim_state *st)
{
    return sim_branch_of(st->driver_version);
}

bool sim_branch_plans_without_mig(const struct sim_state *st)
{
    return sim_branch(st) >= 550;
}

void sim_event_add(struct sim_state *st, uint32_t card, uint64_t type, uint64_t data, uint32_t gi,
                   uint32_t ci)
{
    st->last_event++;
    st->events[st->last_event % SIM_EVENTS_MAX] = (struct sim_event){
        .seq = st->last_event, .type = type, .data = data, .card = card, .gi = gi, .ci = ci
    };
}

static void config_changed(struct sim_state *st, uint32_t card)
{
    sim_event_add(st, card, nvmlEventMigConfigChange, 0, SIM_NO_INSTANCE, SIM_NO_INSTANCE);
}

uint32_t sim_card_instances(const struct sim_card *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < SIM_GI_MAX; i++)
        n += c->gi[i].used;
    return n;
}

static void forget_instances(struct sim_card *c)
{
    memset(c->gi, 0, sizeof c->gi);
}

int sim_card_set_mig(struct sim_state *st, const struct sim_board *boards, uint32_t card, bool on,
                     bool busy)
{
    struct sim_card *c = &st->cards[card];
    if (boards[c->board].mig_enable == SIM_MIG_NONE)
        return -EOPNOTSUPP;
    c->mig_pending = on;
    if (c->mig_current == on)
        return 0;
    if (busy || (c->faults & SIM_FAULT_IN_USE) || sim_card_instances(c) > 0)
        return -EBUSY;
    bool pends =
        c->faults & SIM_FAULT_PASSTHROUGH && boards[c->board].mig_enable == SIM_MIG_GPU_RESET;
    if (c->faults & SIM_FAULT_RESET_REQUIRED || pends)
        return -EINPROGRESS;
    c->mig_current = on;
    config_changed(st, card);
    return 0;
}

int sim_card_reset(struct sim_state *st, uint32_t card, bool busy)
{
    struct sim_card *c = &st->cards[card];
    if (busy || (c->faults & SIM_FAULT_IN_USE))
        return -EBUSY;
    if (c->faults & SIM_FAULT_PASSTHROUGH)
        return -EOPNOTSUPP;
    bool changes = c->mig_current != c->mig_pending || sim_card_instances(c) > 0;
    forget_instances(c);
    c->faults &= ~(uint32_t)(SIM_FAULT_LOST | SIM_FAULT_RESET_REQUIRED);
    c->leak_mib = 0;
    c->mig_current = c->mig_pending;
    if (changes)
        config_changed(st, card);
    return 0;
}

void sim_profile_name(const struct sim_rename *renames, uint32_t count, const char *name,
                      char ret_name[64])
{
    const char *part = strstr(name, "c.");
    size_t skip = part ? (size_t)(part + 2 - name) : 0;
    (void)snprintf(ret_name, 64, "%s", name); /* fits */
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(name + skip, renames[i].from) == 0)
            (void)snprintf(ret_name, 64, "%.*s%s", (int)skip, name, renames[i].to); /* fits */
}

static void load_driver(struct sim_state *st)
{
    const struct sim_package *p = &st->installed;
    memcpy(st->driver_version, p->version, sizeof st->driver_version);
    st->cuda_version = p->cuda_version;
    memcpy(st->renames, p->renames, sizeof st->renames);
    st->rename_count = p->rename_count;
    for (uint32_t i = 0; i < st->card_count; i++)
        st->cards[i].uuid_series = p->uuid_series;
}

void sim_reload(struct sim_state *st, const struct sim_board *boards)
{
    st->boot++;
    load_driver(st);
    for (uint32_t i = 0; i < st->card_count; i++) {
        struct sim_card *c = &st->cards[i];
        forget_instances(c);
        c->leak_mib = 0;
        bool kept = boards[c->board].mig_enable == SIM_MIG_GPU_RESET && c->mig_pending;
        c->mig_current = c->mig_pending = kept;
        c->persistence = false;
        c->compute_mode = NVML_COMPUTEMODE_DEFAULT;
        c->power_limit_mw = 0;
        c->clock_lock_mhz = 0;
        c->app_sm_mhz = c->app_mem_mhz = 0;
    }
}

void sim_reboot(struct sim_state *st, const struct sim_board *boards)
{
    sim_reload(st, boards);
    for (uint32_t i = 0; i < st->card_count; i++) {
        struct sim_card *c = &st->cards[i];
        c->faults &= SIM_FAULT_PASSTHROUGH | SIM_FAULT_NVLINK; /* how the machine is made */
        c->slow_ms = 0;
        c->fail_create_nth = 0;
        c->last_xid = 0;
    }
}

static const struct {
    const char *word;
    uint32_t bit;
} fault_words[] = {
    { "lost", SIM_FAULT_LOST },
    { "in-use", SIM_FAULT_IN_USE },
    { "reset-required", SIM_FAULT_RESET_REQUIRED },
    { "destroy-lies", SIM_FAULT_DESTROY_LIES },
    { "hang", SIM_FAULT_HANG },
    { "passthrough", SIM_FAULT_PASSTHROUGH },
    { "nvlink", SIM_FAULT_NVLINK },
};

static int unknown_fault(const char *words, struct err *e)
{
    return err_set(e, -EINVAL,
                   "no fault is called \"%.40s\"; there are lost, in-use, reset-required, "
                   "create-fails:N, destroy-lies, slow:MS, hang, passthrough, nvlink, leak:MIB, "
                   "xid:N and none",
                   words);
}

/* "word:N" with 1 <= N <= max. */
static bool takes_number(const char *words, const char *word, uint32_t max, uint32_t *ret_n)
{
    size_t len = strlen(word);
    if (strncmp(words, word, len) != 0 || words[len] != ':')
        return false;
    const char *digits = words + len + 1;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 9 || digits[n] != '\0')
        return false;
    unsigned long value = strtoul(digits, NULL, 10);
    if (value == 0 || value > max)
        return false;
    *ret_n = (uint32_t)value;
    return true;
}

static void raise_xid(struct sim_state *st, uint32_t card, uint32_t xid)
{
    st->cards[card].last_xid = xid;
    sim_event_add(st, card, nvmlEventTypeXidCriticalError, xid, SIM_NO_INSTANCE, SIM_NO_INSTANCE);
    if (xid == XID_OFF_THE_BUS)
        st->cards[card].faults |= SIM_FAULT_LOST;
}

int sim_fault_set(struct sim_state *st, uint32_t card, const char *words, struct err *e)
{
    struct sim_card *c = &st->cards[card];
    uint32_t n;
    for (size_t i = 0; i < sizeof fault_words / sizeof fault_words[0]; i++)
        if (strcmp(words, fault_words[i].word) == 0) {
            c->faults |= fault_words[i].bit;
            return 0;
        }
    if (strcmp(words, "none") == 0) {
        c->faults = 0;
        c->slow_ms = 0;
        c->fail_create_nth = 0;
        c->leak_mib = 0;
    } else if (takes_number(words, "leak", 1000000, &n)) {
        c->leak_mib = n;
    } else if (takes_number(words, "create-fails", 1000000, &n)) {
        c->fail_create_nth = n;
    } else if (takes_number(words, "slow", 3600000, &n)) {
        c->slow_ms = n;
    } else if (takes_number(words, "xid", 100000, &n)) {
        raise_xid(st, card, n);
    } else {
        return unknown_fault(words, e);
    }
    return 0;
}

bool sim_create_fails(struct sim_card *c)
{
    return c->fail_create_nth > 0 && --c->fail_create_nth == 0;
}

void sim_mig_uuid(const struct sim_card *c, uint32_t gi, uint32_t ci, char ret_uuid[48])
{
    char identity[128];
    char text[UUID_TEXT_SIZE];
    (void)snprintf(identity, sizeof identity, "%s/%u/%u", c->uuid, gi, ci); /* fits: 48 + 22 */
    if (c->uuid_series)
        (void)snprintf(identity + strlen(identity), 16, "/%u", c->uuid_series); /* fits, too */
    uuid_v5(identity, text);
    (void)snprintf(ret_uuid, 48, "MIG-%s", text); /* 40 characters */
}
