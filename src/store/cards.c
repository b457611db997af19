#include "store/cards.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "store/db.h"

#define CARD_COLUMNS                                                                               \
    "uuid, ordinal, bus_id, name, pool, mode, quarantine, compute_mode, app_sm_mhz, app_mem_mhz,"  \
    " settings_known, first_seen_wall_us, last_seen_wall_us, no_turn_boot, layout"

static int read_card(struct store *s, struct query *q, struct card_row *c, struct err *e)
{
    memset(c, 0, sizeof *c);
    query_copy(q, c->uuid, sizeof c->uuid);
    c->ordinal = (uint32_t)query_int(q);
    query_copy(q, c->bus_id, sizeof c->bus_id);
    query_copy(q, c->name, sizeof c->name);
    int r = card_pool_parse(query_text(q), &c->pool, e);
    if (r == 0)
        r = card_mode_parse(query_text(q), &c->mode, e);
    if (r < 0)
        return err_wrap(e, -EILSEQ, "the store's row of card %s", c->uuid);
    query_copy(q, c->quarantine, sizeof c->quarantine);
    c->settings.compute_mode = (uint32_t)query_int(q);
    c->settings.app_sm_mhz = (uint32_t)query_int(q);
    c->settings.app_mem_mhz = (uint32_t)query_int(q);
    c->settings_known = (unsigned int)query_int(q);
    c->first_seen_wall_us = query_int(q);
    c->last_seen_wall_us = query_int(q);
    c->no_turn = s->boot_id[0] && strcmp(query_text(q), s->boot_id) == 0;
    c->layout = query_text(q);
    return 0;
}

static int upsert_card(struct store *s, const struct card *card, enum card_pool pool,
                       enum card_mode mode, struct now now, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO cards (uuid, bus_id, name, pool, mode, first_seen_wall_us,"
               " last_seen_wall_us, ordinal)"
               " VALUES (?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(ordinal) + 1, 0) FROM cards))"
               " ON CONFLICT (uuid) DO UPDATE SET bus_id = excluded.bus_id, name = excluded.name,"
               " last_seen_wall_us = excluded.last_seen_wall_us");
    query_bind_text(&q, card->uuid);
    query_bind_text(&q, card->bus_id);
    query_bind_text(&q, card->board.name);
    query_bind_text(&q, card_pool_word(pool));
    query_bind_text(&q, card_mode_word(mode));
    query_bind_int(&q, now.wall_us);
    query_bind_int(&q, now.wall_us);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

int store_see_card(struct store *s, const struct card *card, enum card_pool pool,
                   enum card_mode mode, struct now now, struct card_row *ret, struct err *e)
{
    if (!card->uuid[0])
        return err_set(e, -EINVAL, "a card at %s tells no UUID and cannot be managed",
                       card->bus_id);
    int r = upsert_card(s, card, pool, mode, now, e);
    if (r < 0 || !ret)
        return r;
    AUTO(query) struct query q;
    query_open(&q, s, "SELECT " CARD_COLUMNS " FROM cards WHERE uuid = ?");
    query_bind_text(&q, card->uuid);
    r = query_next(&q, e);
    struct card_row row;
    if (r > 0)
        r = read_card(s, &q, &row, e);
    row.layout = NULL; /* it ends with the query */
    if (r == 0)
        *ret = row;
    return r;
}

static int set_card(struct store *s, const char *sql, const char *uuid, const char *value,
                    struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, sql);
    query_bind_text(&q, value);
    query_bind_text(&q, uuid);
    return query_write_one(&q, e, "such card");
}

int store_set_card_pool(struct store *s, const char *uuid, enum card_pool pool, struct err *e)
{
    return set_card(s, "UPDATE cards SET pool = ? WHERE uuid = ?", uuid, card_pool_word(pool), e);
}

int store_set_card_mode(struct store *s, const char *uuid, enum card_mode mode, struct err *e)
{
    return set_card(s, "UPDATE cards SET mode = ? WHERE uuid = ?", uuid, card_mode_word(mode), e);
}

int store_set_card_quarantine(struct store *s, const char *uuid, const char *why, struct err *e)
{
    return set_card(s, "UPDATE cards SET quarantine = ? WHERE uuid = ?", uuid, why, e);
}

int store_set_card_settings(struct store *s, const char *uuid, const struct card_settings *settings,
                            unsigned int known, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "UPDATE cards SET compute_mode = ?, app_sm_mhz = ?, app_mem_mhz = ?,"
               " settings_known = ? WHERE uuid = ?");
    query_bind_int(&q, settings->compute_mode);
    query_bind_int(&q, settings->app_sm_mhz);
    query_bind_int(&q, settings->app_mem_mhz);
    query_bind_int(&q, known);
    query_bind_text(&q, uuid);
    return query_write_one(&q, e, "such card");
}

int store_set_card_no_turn(struct store *s, const char *uuid, struct err *e)
{
    return set_card(s, "UPDATE cards SET no_turn_boot = ? WHERE uuid = ?", uuid, s->boot_id, e);
}

int store_set_card_layout(struct store *s, const char *uuid, const char *layout, struct err *e)
{
    return set_card(s, "UPDATE cards SET layout = ? WHERE uuid = ?", uuid, layout, e);
}

int store_each_card(struct store *s, store_card_fn fn, void *arg, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "SELECT " CARD_COLUMNS " FROM cards ORDER BY ordinal");
    int r;
    while ((r = query_next(&q, e)) > 0) {
        struct card_row row;
        r = read_card(s, &q, &row, e);
        if (r == 0)
            r = fn(&row, arg);
        if (r != 0)
            break;
    }
    return r;
}

/* ---- slices ---------------------------------------------------------------- */

/* Not an instance is -1 in the store, whatever number stands for it here. */
static int64_t instance_to_store(uint32_t id)
{
    return id == NOT_AN_INSTANCE ? -1 : (int64_t)id;
}

static uint32_t instance_from_store(int64_t id)
{
    return id < 0 ? NOT_AN_INSTANCE : (uint32_t)id;
}

static void bind_slice(struct query *q, const struct slice_row *row, struct now now)
{
    query_bind_text(q, row->card_uuid);
    query_bind_int(q, instance_to_store(row->gi));
    query_bind_int(q, instance_to_store(row->ci));
    query_bind_int(q, row->profile_id);
    query_bind_text(q, row->profile);
    query_bind_int(q, row->start);
    query_bind_int(q, row->units);
    query_bind_int(q, row->ci_profile_id);
    query_bind_int(q, row->ci_start);
    query_bind_int(q, row->ci_slices);
    query_bind_text(q, row->uuid);
    query_bind_int(q, row->adopted);
    query_bind_u64(q, row->job_id);
    query_bind_int(q, now.wall_us);
}

int store_add_slice(struct store *s, const struct slice_row *row, struct now now,
                    uint64_t *ret_generation, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO slices (card_uuid, gi, ci, profile_id, profile, start, units,"
               " ci_profile_id, ci_start, ci_slices, uuid, adopted, job_id, made_wall_us)"
               " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    bind_slice(&q, row, now);
    int r = query_write(&q, e);
    if (r == -EEXIST)
        return err_set(e, r, "the store has a living slice with GI %u, CI %d on card %s already",
                       row->gi, (int)instance_to_store(row->ci), row->card_uuid);
    if (r < 0)
        return r;
    *ret_generation = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return 0;
}

int store_end_slice(struct store *s, uint64_t generation, struct now now, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "UPDATE slices SET gone_wall_us = ?"
               " WHERE generation = ? AND gone_wall_us IS NULL");
    query_bind_int(&q, now.wall_us);
    query_bind_u64(&q, generation);
    return query_write_one(&q, e, "such living slice");
}

static void read_slice(struct query *q, struct slice_row *row)
{
    memset(row, 0, sizeof *row);
    row->generation = query_u64(q);
    query_copy(q, row->card_uuid, sizeof row->card_uuid);
    row->gi = instance_from_store(query_int(q));
    row->ci = instance_from_store(query_int(q));
    row->profile_id = (uint32_t)query_int(q);
    query_copy(q, row->profile, sizeof row->profile);
    row->start = (uint32_t)query_int(q);
    row->units = (uint32_t)query_int(q);
    row->ci_profile_id = (uint32_t)query_int(q);
    row->ci_start = (uint32_t)query_int(q);
    row->ci_slices = (uint32_t)query_int(q);
    query_copy(q, row->uuid, sizeof row->uuid);
    row->adopted = query_int(q) != 0;
    row->job_id = query_u64(q);
    row->made_wall_us = query_int(q);
}

int store_each_slice(struct store *s, store_slice_fn fn, void *arg, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "SELECT s.generation, s.card_uuid, s.gi, s.ci, s.profile_id, s.profile,"
               " s.start, s.units, s.ci_profile_id, s.ci_start, s.ci_slices, s.uuid,"
               " s.adopted, s.job_id, s.made_wall_us"
               " FROM slices s JOIN cards c ON c.uuid = s.card_uuid"
               " WHERE s.gone_wall_us IS NULL ORDER BY c.ordinal, s.start, s.gi, s.ci");
    int r;
    while ((r = query_next(&q, e)) > 0) {
        struct slice_row row;
        read_slice(&q, &row);
        r = fn(&row, arg);
        if (r != 0)
            break;
    }
    return r;
}
