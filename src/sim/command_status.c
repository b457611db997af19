#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "sim/command.h"
#include "sim/mig.h"
#include "sim/root.h"

DEFINE_AUTO_PTR(struct machine, machine_close);
DEFINE_AUTO_PTR(json_t, json_decref);

struct view {
    struct machine *machine;
    struct sim_state *state;
    struct sim_proc *procs;
    uint32_t proc_count;
};

static void add_fault(struct text *t, bool is, const char *word)
{
    if (is)
        text_addf(t, "%s%s", t->len ? " " : "", word);
}

static void add_faults(struct text *t, const struct sim_card *c)
{
    add_fault(t, c->faults & SIM_FAULT_LOST, "lost");
    add_fault(t, c->faults & SIM_FAULT_IN_USE, "in-use");
    add_fault(t, c->faults & SIM_FAULT_RESET_REQUIRED, "reset-required");
    add_fault(t, c->faults & SIM_FAULT_DESTROY_LIES, "destroy-lies");
    add_fault(t, c->faults & SIM_FAULT_HANG, "hang");
    add_fault(t, c->faults & SIM_FAULT_PASSTHROUGH, "passthrough");
    add_fault(t, c->faults & SIM_FAULT_NVLINK, "nvlink");
    if (c->slow_ms)
        text_addf(t, "%sslow:%u", t->len ? " " : "", c->slow_ms);
    if (c->leak_mib)
        text_addf(t, "%sleak:%u", t->len ? " " : "", c->leak_mib);
    if (c->fail_create_nth)
        text_addf(t, "%screate-fails:%u", t->len ? " " : "", c->fail_create_nth);
}

static const char *mig_word(const struct sim_board *b, const struct sim_card *c)
{
    if (b->mig_enable == SIM_MIG_NONE)
        return "not on this board";
    if (c->mig_current != c->mig_pending)
        return c->mig_pending ? "off, on after reset" : "on, off after reset";
    return c->mig_current ? "on" : "off";
}

static void bus_id(const struct sim_card *c, char ret[32])
{
    (void)snprintf(ret, 32, "%08x:%02x:%02x.0", c->pci_domain, c->pci_bus, c->pci_device);
}

static const char *user_name(uid_t uid)
{
    const struct passwd *pw = getpwuid(uid);
    return pw ? pw->pw_name : "?";
}

static void print_procs(const struct view *v, uint32_t card, uint32_t gi, uint32_t ci)
{
    for (uint32_t i = 0; i < v->proc_count; i++) {
        const struct sim_proc *p = &v->procs[i];
        for (uint32_t u = 0; u < p->use_count; u++) {
            const struct sim_use *use = &p->uses[u];
            if (use->card != card || use->gi != gi || use->ci != ci)
                continue;
            AUTO(text) struct text mem = TEXT_INIT;
            text_add_size(&mem, use->memory_bytes);
            printf("        pid %d %s (%s)  %s, load %u%%\n", p->pid, p->name, user_name(p->uid),
                   mem.buf, use->load_percent);
        }
    }
}

static void print_ci(const struct view *v, uint32_t card, const struct sim_board *b, uint32_t gi,
                     uint32_t ci)
{
    const struct sim_card *c = &v->state->cards[card];
    char uuid[48];
    sim_mig_uuid(c, gi, ci, uuid);
    AUTO(text) struct text place = TEXT_INIT;
    text_addf(&place, "%s@%u", mig_device_profile(b, c, gi, ci), c->gi[gi].span.start);
    if (c->gi[gi].ci[ci].span.size < b->profiles[c->gi[gi].profile].slices)
        text_addf(&place, ".%u", c->gi[gi].ci[ci].span.start);
    printf("      %-18s GI %-2u CI %u  %s\n", place.buf, gi, ci, uuid);
    print_procs(v, card, gi, ci);
}

static void print_gi(const struct view *v, uint32_t card, const struct sim_board *b, uint32_t gi)
{
    const struct sim_gi *g = &v->state->cards[card].gi[gi];
    bool any = false;
    for (uint32_t ci = 0; ci < SIM_CI_MAX; ci++) {
        if (g->ci[ci].used) {
            any = true;
            print_ci(v, card, b, gi, ci);
        }
    }
    if (!any)
        printf("      %s@%-10u GI %-2u no compute instance\n", b->profiles[g->profile].name,
               g->span.start, gi);
}

static void print_card(const struct view *v, uint32_t card)
{
    const struct sim_card *c = &v->state->cards[card];
    const struct sim_board *b = &machine_boards(v->machine)[c->board];
    AUTO(text) struct text faults = TEXT_INIT;
    add_faults(&faults, c);
    char bus[32];
    bus_id(c, bus);
    printf("gpu%-2u %-15s %-16s %s  %s\n", card, b->key, bus, c->uuid, b->name);
    printf("      MIG %s%s%s\n", mig_word(b, c), faults.len ? ", FAULT " : "", faults.buf);
    print_procs(v, card, SIM_NO_INSTANCE, SIM_NO_INSTANCE);
    for (uint32_t gi = 0; gi < SIM_GI_MAX; gi++)
        if (c->gi[gi].used)
            print_gi(v, card, b, gi);
}

static json_t *json_slices(const struct view *v, uint32_t card)
{
    const struct sim_card *c = &v->state->cards[card];
    const struct sim_board *b = &machine_boards(v->machine)[c->board];
    json_t *list = json_array();
    for (uint32_t gi = 0; gi < SIM_GI_MAX; gi++) {
        const struct sim_gi *g = &c->gi[gi];
        json_t *parts = g->used ? json_array() : NULL;
        for (uint32_t ci = 0; g->used && ci < SIM_CI_MAX; ci++) {
            if (!g->ci[ci].used)
                continue;
            char uuid[48];
            sim_mig_uuid(c, gi, ci, uuid);
            json_array_append_new(parts,
                                  json_pack("{s:i, s:s, s:s, s:i, s:i}", "id", ci, "uuid", uuid,
                                            "profile", mig_device_profile(b, c, gi, ci), "start",
                                            g->ci[ci].span.start, "slices", g->ci[ci].span.size));
        }
        if (parts)
            json_array_append_new(list,
                                  json_pack("{s:i, s:s, s:i, s:i, s:i, s:o}", "id", gi, "profile",
                                            b->profiles[g->profile].name, "profile_id",
                                            b->profiles[g->profile].id, "start", g->span.start,
                                            "units", g->span.size, "compute_instances", parts));
    }
    return list;
}

static json_t *json_id(uint32_t id)
{
    return id == SIM_NO_INSTANCE ? json_null() : json_integer(id);
}

static json_t *json_procs(const struct view *v, uint32_t card)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < v->proc_count; i++) {
        const struct sim_proc *p = &v->procs[i];
        for (uint32_t u = 0; u < p->use_count; u++) {
            const struct sim_use *use = &p->uses[u];
            if (use->card == card)
                json_array_append_new(list, json_pack("{s:i, s:i, s:s, s:o, s:o, s:I, s:i}", "pid",
                                                      p->pid, "uid", p->uid, "name", p->name, "gi",
                                                      json_id(use->gi), "ci", json_id(use->ci),
                                                      "memory_bytes", (json_int_t)use->memory_bytes,
                                                      "load_percent", use->load_percent));
        }
    }
    return list;
}

static json_t *json_card(const struct view *v, uint32_t card)
{
    const struct sim_card *c = &v->state->cards[card];
    const struct sim_board *b = &machine_boards(v->machine)[c->board];
    AUTO(text) struct text faults = TEXT_INIT;
    add_faults(&faults, c);
    char bus[32];
    bus_id(c, bus);
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:b, s:s, s:i, s:o, s:o}", "ordinal",
                     card, "board", b->key, "name", b->name, "uuid", c->uuid, "bus_id", bus,
                     "minor", c->minor, "mig_capable", b->mig_enable != SIM_MIG_NONE, "mig_current",
                     c->mig_current, "mig_pending", c->mig_pending, "faults", faults.buf,
                     "last_xid", c->last_xid, "gpu_instances", json_slices(v, card), "processes",
                     json_procs(v, card));
}

static void print_json(const struct view *v)
{
    json_t *cards = json_array();
    for (uint32_t i = 0; i < v->state->card_count; i++)
        json_array_append_new(cards, json_card(v, i));
    AUTO_PTR(json_decref)
    json_t *all = json_pack("{s:s, s:s, s:i, s:i, s:o}", "dir", machine_dir(v->machine),
                            "driver_version", v->state->driver_version, "cuda_version",
                            v->state->cuda_version, "boot", v->state->boot, "cards", cards);
    (void)json_dumpf(all, stdout, JSON_INDENT(2)); /* main looks at standard output's error */
    putchar('\n');
}

static void print_text(const struct view *v)
{
    const struct sim_state *st = v->state;
    AUTO(text) struct text up = TEXT_INIT;
    text_add_duration(&up, clock_now().boot_us - machine_up_us(v->machine));
    printf("%s: driver %s, CUDA %u.%u, %u card%s, boot %u, up %s\n", machine_dir(v->machine),
           st->driver_version, st->cuda_version / 1000, st->cuda_version % 1000 / 10,
           st->card_count, st->card_count == 1 ? "" : "s", st->boot, up.buf);
    for (uint32_t i = 0; i < st->card_count; i++)
        print_card(v, i);
}

int command_status(const struct call *c, struct err *e)
{
    AUTO_PTR(machine_close) struct machine *m = NULL;
    int rc = machine_open(c->dir, &m, e);
    if (rc < 0)
        return rc;
    if (machine_is_ours(m))
        (void)sim_root_sync(m,
                            NULL); /* mends what a killed process left; the state is shown anyway */
    struct view v = { .machine = m, .state = mem_new(sizeof *v.state) };
    machine_read(m, v.state);
    rc = sim_procs_read(m, &v.procs, &v.proc_count, e);
    if (rc >= 0 && c->json)
        print_json(&v);
    else if (rc >= 0)
        print_text(&v);
    free(v.procs);
    free(v.state);
    return rc < 0 ? rc : 0;
}

static json_t *json_board(const struct board *b)
{
    json_t *profiles = json_array();
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        json_t *starts = json_array();
        for (uint32_t s = 0; s < p->start_count; s++)
            json_array_append_new(starts, json_integer(p->starts[s]));
        json_array_append_new(profiles,
                              json_pack("{s:s, s:i, s:i, s:i, s:I, s:i, s:o, s:b}", "name", p->name,
                                        "id", p->id, "slices", p->slices, "units", p->units,
                                        "memory_mib", (json_int_t)(p->mem_bytes >> 20), "max",
                                        p->max, "starts", starts, "unconfirmed", p->unconfirmed));
    }
    return json_pack("{s:s, s:s, s:I, s:i, s:b, s:s, s:b, s:o}", "board", b->key, "name", b->name,
                     "memory_mib", (json_int_t)(b->mem_bytes >> 20), "sms", b->sms, "mig",
                     b->activation != MIG_NONE, "min_driver", b->min_driver, "unconfirmed",
                     b->unconfirmed, "profiles", profiles);
}

static void print_board(const struct board *b)
{
    printf("%-15s %-42.42s %6" PRIu64 " MiB  ", b->key, board_short_name(b), b->mem_bytes >> 20);
    if (b->activation == MIG_NONE)
        printf("no MIG\n");
    else
        printf("%u profiles, %s to %s\n", b->profile_count, b->profiles[0].name,
               b->profiles[b->profile_count - 1].name);
}

int command_boards(const struct call *c, struct err *e)
{
    struct field_words keys;
    int rc = board_keys(&keys, e);
    if (rc < 0)
        return rc;
    auto_free struct board *b = mem_new(sizeof *b);
    AUTO_PTR(json_decref) json_t *list = json_array();
    for (size_t i = 0; i < keys.count && rc >= 0; i++) {
        rc = board_find(keys.words[i], b, e);
        if (rc >= 0 && c->json)
            json_array_append_new(list, json_board(b));
        else if (rc >= 0)
            print_board(b);
    }
    if (rc >= 0 && c->json) {
        (void)json_dumpf(list, stdout, JSON_INDENT(2)); /* main looks at standard output's error */
        putchar('\n');
    }
    field_words_done(&keys);
    return rc;
}
