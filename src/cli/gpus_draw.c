#include "cli/gpus_hold.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/table.h"
#include "model/address.h"

#define INDENT 5u
#define PICTURE_WIDE 72u

/* The signs of a picture. */
struct pen {
    const char *left, *right, *line, *dot;
};

static struct pen pen_of(const struct screen *s)
{
    if (s->utf8)
        return (struct pen){ "├", "┤", "─", "·" };
    return (struct pen){ "|", "|", "-", "." };
}

/* A card that is being drawn. */
struct drawing {
    const struct inventory *inv;
    const struct inventory_card *c;
    const struct gpus_look *look;
    struct pen pen;
    size_t unit_wide;
    struct text *ret;
};

static void add_gib(struct text *t, bool known, uint64_t used_bytes, uint64_t total_bytes)
{
    double gib = (double)(UINT64_C(1) << 30);
    if (known)
        text_addf(t, "%.1f/%.1f GiB", (double)used_bytes / gib, (double)total_bytes / gib);
    else
        text_add(t, "n/a");
}

static void cell_number(struct table *t, const struct card *c, unsigned bit, uint32_t value,
                        const char *unit)
{
    if (c->known & bit)
        table_cellf(t, "%u%s", value, unit);
    else
        table_cell(t, "n/a");
}

/* Without a daemon nobody knows who may hand a card out. */
static const char *pool_word(const struct inventory_card *c)
{
    return c->owners_known ? card_pool_word(c->pool) : "n/a";
}

const char *gpus_sharing_word(const struct card *c)
{
    if (c->health == CARD_LOST)
        return "n/a"; /* nobody can ask it */
    return c->mig_now ? "slices" : "whole";
}

static void cell_health(struct table *t, const struct inventory_card *c)
{
    bool fine = c->card.health == CARD_OK && !c->quarantined;
    table_cell(t, c->card.health == CARD_OK && c->quarantined ? "quarantined"
                                                              : card_health_word(c->card.health));
    table_tint(t, fine ? COLOUR_GOOD : COLOUR_BAD);
}

static void add_card_row(struct table *t, const struct inventory_card *c)
{
    AUTO(text) struct text mem = TEXT_INIT;
    const char *name = board_short_name(&c->card.board);
    table_cellf(t, "%u", c->card.ordinal);
    table_cell(t, name[0] ? name : "unknown card");
    table_cell(t, pool_word(c));
    table_cell(t, gpus_sharing_word(&c->card));
    add_gib(&mem, (c->card.known & KNOW_MEMORY) != 0, c->card.mem_used_bytes,
            c->card.mem_total_bytes);
    table_cell(t, mem.buf);
    cell_number(t, &c->card, KNOW_LOAD, c->card.load_percent, "%");
    cell_number(t, &c->card, KNOW_TEMPERATURE, c->card.temperature_c, "");
    cell_number(t, &c->card, KNOW_POWER, (c->card.power_mw + 500) / 1000, "");
    cell_health(t, c);
}

static void head_lines(const struct inventory *inv, const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "GPU", 0);
    table_column(&t, "CARD", TABLE_CUT);
    table_column(&t, "POOL", 0);
    table_column(&t, "SHARING", 0);
    table_column(&t, "MEMORY", TABLE_RIGHT);
    table_column(&t, "LOAD", TABLE_RIGHT);
    table_column(&t, s->utf8 ? "°C" : "C", TABLE_RIGHT);
    table_column(&t, "W", TABLE_RIGHT);
    table_column(&t, "HEALTH", 0);
    for (size_t i = 0; i < inv->card_count; i++)
        add_card_row(&t, &inv->cards[i]);
    table_draw(&t, s, ret);
}

static void add_line(const struct drawing *d, enum colour colour, const char *words)
{
    AUTO(table) struct table t = TABLE_INIT;
    t.untitled = true;
    table_column(&t, "", 0);
    table_column(&t, "", TABLE_WRAP);
    table_cell(&t, "   "); /* with the gap: INDENT */
    table_cell(&t, words);
    table_tint(&t, colour);
    table_draw(&t, d->look->screen, d->ret);
}

/* ---- the picture ---- */

static void add_ruler(const struct drawing *d)
{
    AUTO(text) struct text line = TEXT_INIT;
    for (uint32_t u = 0; u < d->c->card.board.units; u++) {
        while (line.len < u * d->unit_wide)
            text_add(&line, " ");
        text_addf(&line, "%u", u);
    }
    cells_add_times(d->ret, " ", INDENT);
    screen_add(d->look->screen, d->ret, COLOUR_DIM, line.buf);
    text_add(d->ret, "\n");
}

/* "├ 2g.20gb ────────┤", or "├·free··┤" */
static void add_box(const struct drawing *d, size_t units, const char *label, const char *fill)
{
    size_t inner = units * d->unit_wide - 2;
    AUTO(text) struct text words = TEXT_INIT;
    bool roomy = cells_wide(label) + 3 <= inner;
    text_add(&words, roomy ? (fill == d->pen.dot ? fill : " ") : "");
    cells_add_cut(&words, label, inner);
    text_add(&words, roomy && fill != d->pen.dot ? " " : "");
    text_add(d->ret, d->pen.left);
    text_add(d->ret, words.buf);
    size_t wide = cells_wide(words.buf);
    cells_add_times(d->ret, fill, wide < inner ? inner - wide : 0);
    text_add(d->ret, d->pen.right);
}

/* The first slice in list order of each GPU instance stands for it. */
static bool begins_instance(const struct card *c, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (c->slices[k].gi == c->slices[i].gi)
            return false;
    return true;
}

static size_t instance_slices(const struct card *c, uint32_t gi)
{
    size_t n = 0;
    for (size_t i = 0; i < c->slice_count; i++)
        n += c->slices[i].gi == gi;
    return n;
}

/* The slice whose instance covers a memory unit; slice_count: none. */
static size_t slice_at(const struct card *c, uint32_t unit)
{
    for (size_t i = 0; i < c->slice_count; i++)
        if (begins_instance(c, i) && unit >= c->slices[i].start &&
            unit < c->slices[i].start + c->slices[i].units)
            return i;
    return c->slice_count;
}

static void label_instance(struct text *t, const struct card *c, size_t i)
{
    const struct slice *s = &c->slices[i];
    const struct profile *p = board_profile_by_id(&c->board, s->profile_id);
    size_t n = instance_slices(c, s->gi);
    if (p)
        text_add(t, p->name);
    else
        text_addf(t, "profile %u", s->profile_id);
    if (n > 1)
        text_addf(t, ": %zu parts", n);
    else if (s->ci == NOT_AN_INSTANCE)
        text_add(t, ", empty");
    else if (!s->full)
        text_add(t, ", in part");
}

/* Free units in a row from `unit` on. */
static uint32_t free_run(const struct card *c, uint32_t unit)
{
    uint32_t n = 0;
    while (unit + n < c->board.units && slice_at(c, unit + n) == c->slice_count)
        n++;
    return n;
}

static void add_boxes(const struct drawing *d)
{
    const struct card *c = &d->c->card;
    cells_add_times(d->ret, " ", INDENT);
    for (uint32_t u = 0; u < c->board.units;) {
        size_t i = slice_at(c, u);
        if (i == c->slice_count) {
            uint32_t n = free_run(c, u);
            add_box(d, n, "free", d->pen.dot);
            u += n;
            continue;
        }
        AUTO(text) struct text label = TEXT_INIT;
        label_instance(&label, c, i);
        uint32_t end = c->slices[i].start + c->slices[i].units;
        end = end > c->board.units ? c->board.units : end;
        add_box(d, end - u, label.buf, d->pen.line);
        u = end;
    }
    text_add(d->ret, "\n");
}

/* The line of holders below the boxes. Sets bits of slices that need a line of their own. */
static void add_holders(const struct drawing *d, bool *needs_line)
{
    const struct card *c = &d->c->card;
    AUTO(text) struct text line = TEXT_INIT;
    for (uint32_t u = 0; u < c->board.units;) {
        size_t i = slice_at(c, u);
        if (i == c->slice_count) {
            u += free_run(c, u);
            continue;
        }
        size_t wide = c->slices[i].units * d->unit_wide;
        size_t from = u * d->unit_wide + (wide > 12 ? 2 : 1);
        size_t have = cells_wide(line.buf);
        cells_add_times(&line, " ", from > have ? from - have : 0);
        bool several = instance_slices(c, c->slices[i].gi) > 1;
        if (several)
            text_add(&line, "see below");
        else if (!hold_add_fitting(&line, d->inv, d->c, &d->c->slices[i].hold, d->look,
                                   wide - (wide > 12 ? 3 : 2)))
            needs_line[i] = d->c->slices[i].hold.kind != HOLD_NONE;
        u = c->slices[i].start + c->slices[i].units;
    }
    if (!line.len)
        return;
    cells_add_times(d->ret, " ", INDENT);
    text_add(d->ret, line.buf);
    text_add(d->ret, "\n");
}

/* With the details it takes two lines: a UUID leaves no room for who has it. */
static void add_slice_line(const struct drawing *d, size_t i)
{
    const struct slice *s = &d->c->card.slices[i];
    AUTO(text) struct text line = TEXT_INIT;
    address_add(&line, &d->c->card, s);
    text_add(&line, "  ");
    if (d->look->details) {
        text_addf(&line, "%s  ", s->uuid[0] ? s->uuid : "no UUID");
        add_gib(&line, s->mem_known, s->mem_used_bytes, s->mem_total_bytes);
        add_line(d, COLOUR_NONE, line.buf);
        if (d->c->slices[i].hold.kind == HOLD_NONE)
            return; /* the picture says that it is idle */
        text_clear(&line);
        text_add(&line, "  ");
    }
    gpus_add_hold(&line, d->inv, d->c, &d->c->slices[i].hold, d->look);
    add_line(d, COLOUR_NONE, line.buf);
}

static void add_picture(const struct drawing *d)
{
    const struct card *c = &d->c->card;
    auto_free bool *needs_line = mem_new((c->slice_count + 1) * sizeof *needs_line);
    add_ruler(d);
    add_boxes(d);
    add_holders(d, needs_line);
    for (size_t i = 0; i < c->slice_count; i++)
        if (needs_line[i] || d->look->details || instance_slices(c, c->slices[i].gi) > 1)
            add_slice_line(d, i);
}

/* ---- the lines below a card ---- */

static bool shown_by_hold(const struct inventory_card *c, const struct gpu_process *p)
{
    if (c->hold.kind != HOLD_NONE && c->hold.pid == p->pid)
        return true;
    for (size_t i = 0; i < c->card.slice_count; i++)
        if (c->slices[i].hold.kind != HOLD_NONE && c->slices[i].hold.pid == p->pid)
            return true;
    return false;
}

/* Is the process where a job is? Then it is taken for the job's. */
static bool on_held_place(const struct inventory_card *c, const struct gpu_process *p)
{
    if (c->hold.kind == HOLD_JOB)
        return true;
    for (size_t i = 0; i < c->card.slice_count; i++)
        if (c->card.slices[i].gi == p->gi && c->slices[i].hold.kind == HOLD_JOB)
            return true;
    return false;
}

/* Processes that no box and no line told of. */
static void add_processes(const struct drawing *d)
{
    for (size_t i = 0; i < d->c->card.process_count; i++) {
        const struct gpu_process *p = &d->c->card.processes[i];
        if (shown_by_hold(d->c, p) || on_held_place(d->c, p))
            continue;
        AUTO(text) struct text line = TEXT_INIT;
        struct hold h = { .kind = d->c->owners_known ? HOLD_FOREIGN : HOLD_UNKNOWN, .pid = p->pid };
        gpus_add_hold(&line, d->inv, d->c, &h, d->look);
        add_line(d, COLOUR_WAIT, line.buf);
    }
}

static void add_whole(const struct drawing *d)
{
    AUTO(text) struct text line = TEXT_INIT;
    gpus_add_hold(&line, d->inv, d->c, &d->c->hold, d->look);
    if (!d->c->card.mig_capable)
        text_add(&line, " (whole only: no MIG on this card)");
    add_line(d, COLOUR_NONE, line.buf);
}

static void add_window(struct text *t, const struct card_window *w, int64_t now_wall_us)
{
    text_add(t, "maintenance ");
    if (w->from_wall_us > now_wall_us) {
        text_add(t, "from ");
        when_add(t, w->from_wall_us, now_wall_us);
        text_add(t, " ");
    }
    text_add(t, "until ");
    when_add(t, w->until_wall_us, now_wall_us);
}

static void add_windows(const struct drawing *d)
{
    for (uint32_t i = 0; i < d->c->planned_count; i++) {
        AUTO(text) struct text line = TEXT_INIT;
        add_window(&line, &d->c->planned[i], d->inv->now.wall_us);
        add_line(d, COLOUR_WAIT, line.buf);
    }
}

/* Has one begun, so that the card takes nobody? */
static const struct card_window *window_now(const struct inventory *inv,
                                            const struct inventory_card *c)
{
    bool begun = c->planned_count && c->planned[0].from_wall_us <= inv->now.wall_us;
    return begun ? &c->planned[0] : NULL;
}

static void add_trouble(const struct drawing *d)
{
    const struct card *c = &d->c->card;
    if (c->health != CARD_OK) {
        auto_free char *words =
            cells_clean(c->trouble[0] ? c->trouble : "the driver tells no more");
        add_line(d, COLOUR_BAD, words);
    }
    if (d->c->quarantined) {
        AUTO(text) struct text line = TEXT_INIT;
        auto_free char *words = cells_clean(d->c->quarantine);
        text_addf(&line, "takes no jobs: %s", words);
        add_line(d, COLOUR_BAD, line.buf);
    }
    if (d->c->reserved[0]) {
        AUTO(text) struct text line = TEXT_INIT;
        auto_free char *words = cells_clean(d->c->reserved);
        text_addf(&line, "reserved: %s", words);
        add_line(d, COLOUR_WAIT, line.buf);
    }
    if (c->mig_now != c->mig_pending) {
        AUTO(text) struct text line = TEXT_INIT;
        text_addf(&line, "MIG turns %s with the next %s", c->mig_pending ? "on" : "off",
                  d->c->no_turn ? "reboot of this machine" : "reset of this card");
        add_line(d, COLOUR_WAIT, line.buf);
    } else if (d->c->no_turn) {
        add_line(d, COLOUR_WAIT, "MIG can be turned here only with a reboot of this machine");
    }
}

static void add_identity(const struct drawing *d)
{
    AUTO(text) struct text line = TEXT_INIT;
    const struct card *c = &d->c->card;
    text_addf(&line, "%s  %s  mode %s", c->uuid[0] ? c->uuid : "no UUID", c->bus_id,
              card_mode_word(d->c->mode));
    add_line(d, COLOUR_DIM, line.buf);
}

static void add_below(const struct drawing *d)
{
    const struct card *c = &d->c->card;
    if (d->look->details)
        add_identity(d);
    add_trouble(d);
    add_windows(d);
    if (c->health != CARD_OK && !c->slice_count && d->c->hold.kind == HOLD_NONE)
        return;
    if (c->mig_now && (c->known & KNOW_SLICES || c->slice_count) && c->board.units)
        add_picture(d);
    else if (c->mig_now)
        add_line(d, COLOUR_WAIT, "its slices cannot be listed");
    else
        add_whole(d);
    add_processes(d);
}

static void draw_pictures(const struct inventory *inv, const struct gpus_look *look,
                          struct text *ret)
{
    AUTO(text) struct text heads = TEXT_INIT;
    head_lines(inv, look->screen, &heads);
    const char *line = heads.buf;
    for (size_t i = 0; i <= inv->card_count; i++) {
        size_t len = strcspn(line, "\n") + 1;
        text_addn(ret, line, len);
        line += len;
        if (!i)
            continue;
        struct drawing d = { inv, &inv->cards[i - 1], look, pen_of(look->screen), 0, ret };
        uint32_t units = d.c->card.board.units ? d.c->card.board.units : 1;
        size_t wide = look->screen->width < PICTURE_WIDE + INDENT + 1
                          ? look->screen->width - INDENT - 1
                          : PICTURE_WIDE;
        d.unit_wide = wide / units > 3 ? wide / units : 3;
        add_below(&d);
    }
}

/* ---- columns ---- */

static void cell_mib(struct table *t, bool known, uint64_t bytes)
{
    if (known)
        table_cellf(t, "%" PRIu64, bytes >> 20);
    else
        table_cell(t, "n/a");
}

/* One word: a script splits at spaces. */
static void cell_word(struct table *t, const char *s)
{
    auto_free char *word = text_dup(s[0] ? s : "-");
    for (char *p = word; *p; p++)
        if (*p == ' ')
            *p = '-';
    table_cell(t, word);
}

static void cells_of_card(struct table *t, const struct inventory *inv,
                          const struct inventory_card *c, const struct gpus_look *look)
{
    AUTO(text) struct text holder = TEXT_INIT;
    bool mem = (c->card.known & KNOW_MEMORY) != 0;
    table_cellf(t, "gpu%u", c->card.ordinal);
    cell_word(t, board_short_name(&c->card.board));
    table_cell(t, pool_word(c));
    table_cell(t, gpus_sharing_word(&c->card));
    cell_mib(t, mem, c->card.mem_used_bytes);
    cell_mib(t, mem, c->card.mem_total_bytes);
    cell_number(t, &c->card, KNOW_LOAD, c->card.load_percent, "");
    cell_number(t, &c->card, KNOW_TEMPERATURE, c->card.temperature_c, "");
    cell_number(t, &c->card, KNOW_POWER, (c->card.power_mw + 500) / 1000, "");
    cell_word(t, c->quarantined ? "quarantined" : card_health_word(c->card.health));
    cell_word(t, c->card.uuid);
    if (c->card.health != CARD_OK)
        text_add(&holder, c->card.trouble[0] ? c->card.trouble : "n/a");
    else if (c->quarantined)
        text_add(&holder, c->quarantine);
    else if (c->reserved[0] && c->hold.kind == HOLD_NONE)
        text_addf(&holder, "reserved: %s", c->reserved);
    else if (window_now(inv, c) && inventory_card_free(c))
        add_window(&holder, window_now(inv, c), inv->now.wall_us);
    else if (c->no_turn && c->hold.kind == HOLD_NONE)
        text_addf(&holder, "MIG waits for a reboot of this machine");
    else if (c->card.mig_now)
        text_add(&holder, "-");
    else
        gpus_add_hold(&holder, inv, c, &c->hold, look);
    table_cell(t, holder.buf);
}

static void cells_of_slice(struct table *t, const struct inventory *inv,
                           const struct inventory_card *c, size_t i, const struct gpus_look *look)
{
    const struct slice *s = &c->card.slices[i];
    AUTO(text) struct text address = TEXT_INIT;
    AUTO(text) struct text profile = TEXT_INIT;
    AUTO(text) struct text holder = TEXT_INIT;
    address_add(&address, &c->card, s);
    slice_add_profile(&profile, &c->card, s);
    gpus_add_hold(&holder, inv, c, &c->slices[i].hold, look);
    table_cell(t, address.buf);
    cell_word(t, profile.buf);
    table_cell(t, pool_word(c));
    table_cell(t, "slice");
    cell_mib(t, s->mem_known, s->mem_used_bytes);
    cell_mib(t, s->mem_known, s->mem_total_bytes);
    table_cell(t, "n/a"), table_cell(t, "n/a"), table_cell(t, "n/a");
    cell_word(t, card_health_word(c->card.health));
    cell_word(t, s->uuid);
    table_cell(t, holder.buf);
}

static void draw_columns(const struct inventory *inv, const struct gpus_look *look,
                         struct text *ret)
{
    static const char *const titles[] = { "ADDRESS",  "WHAT",      "POOL", "SHARING",
                                          "USED_MIB", "TOTAL_MIB", "LOAD", "TEMP",
                                          "POWER",    "HEALTH",    "UUID", "HOLDER" };
    AUTO(table) struct table t = TABLE_INIT;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_column(&t, titles[i], i >= 4 && i <= 8 ? TABLE_RIGHT : 0);
    for (size_t i = 0; i < inv->card_count; i++) {
        cells_of_card(&t, inv, &inv->cards[i], look);
        for (size_t k = 0; k < inv->cards[i].card.slice_count; k++)
            cells_of_slice(&t, inv, &inv->cards[i], k, look);
    }
    table_draw(&t, look->screen, ret);
}

void gpus_draw(const struct inventory *inv, const struct gpus_look *look, struct text *ret)
{
    if (!inv->card_count)
        text_add(ret, "There is no NVIDIA card here.\n");
    else if (look->screen->tty)
        draw_pictures(inv, look, ret);
    else
        draw_columns(inv, look, ret);
}
