#include "model/step.h"

#include <errno.h>
#include <string.h>

#include "model/address.h"
#include "model/fields.h"

static const char *const kind_words[STEP_KINDS] = { "mig_on",    "mig_off",    "mig_store",
                                                    "reset",     "ci_destroy", "gi_destroy",
                                                    "gi_create", "ci_create" };

void step_init(struct step *s, enum step_kind kind, const struct card *c)
{
    memset(s, 0, sizeof *s);
    s->kind = kind;
    memcpy(s->card_uuid, c->uuid, sizeof s->card_uuid);
    s->ordinal = c->ordinal;
    s->gi = NOT_AN_INSTANCE;
    s->ci = NOT_AN_INSTANCE;
    s->was_on = c->mig_now;
    s->was_pending = c->mig_pending;
}

bool step_is_mode(const struct step *s)
{
    return s->kind == STEP_MIG_ON || s->kind == STEP_MIG_OFF;
}

/* Back to the current mode, unless it is current still; then to the stored one, where it differs. */
static size_t reverse_mode(const struct step *s, bool only_stored,
                           struct step ret[STEP_REVERSE_MAX])
{
    bool turned = s->was_on != (s->kind == STEP_MIG_ON);
    bool differed = s->was_on != s->was_pending;
    size_t n = 0;
    if (turned && !(only_stored && differed)) {
        ret[n] = *s;
        ret[n++].kind = s->was_on ? STEP_MIG_ON : STEP_MIG_OFF;
    }
    if (differed) {
        ret[n] = *s;
        ret[n++].kind = STEP_MIG_STORE;
    }
    return n;
}

size_t step_reverse(const struct step *s, bool only_stored, struct step ret[STEP_REVERSE_MAX])
{
    static const int opposites[STEP_KINDS] = {
        [STEP_MIG_STORE] = -1,
        [STEP_RESET] = -1,
        [STEP_CI_DESTROY] = STEP_CI_CREATE,
        [STEP_GI_DESTROY] = STEP_GI_CREATE,
        [STEP_GI_CREATE] = STEP_GI_DESTROY,
        [STEP_CI_CREATE] = STEP_CI_DESTROY,
    };
    if (step_is_mode(s))
        return reverse_mode(s, only_stored, ret);
    int kind = opposites[s->kind];
    if (kind < 0)
        return 0;
    struct step back = *s;
    back.kind = (enum step_kind)kind;
    if (back.kind == STEP_GI_CREATE)
        back.gi = NOT_AN_INSTANCE;
    if (back.kind == STEP_CI_CREATE) {
        back.ci = NOT_AN_INSTANCE;
        back.gi = NOT_AN_INSTANCE; /* its GPU instance may have been made again meanwhile */
        back.uuid[0] = '\0';
    }
    ret[0] = back;
    return 1;
}

const char *step_kind_word(enum step_kind k)
{
    return kind_words[k];
}

void step_add_text(struct text *t, const struct step *s)
{
    switch (s->kind) {
    case STEP_MIG_ON:
        text_addf(t, "turn MIG on for gpu%u", s->ordinal);
        return;
    case STEP_MIG_OFF:
        text_addf(t, "turn MIG off for gpu%u", s->ordinal);
        return;
    case STEP_MIG_STORE:
        text_addf(t, "store MIG %s for gpu%u again", s->was_pending ? "on" : "off", s->ordinal);
        return;
    case STEP_RESET:
        text_addf(t, "reset gpu%u", s->ordinal);
        return;
    case STEP_CI_DESTROY:
        text_add(t, "destroy the compute instance of ");
        break;
    case STEP_GI_DESTROY:
        text_add(t, "destroy ");
        break;
    case STEP_GI_CREATE:
        text_add(t, "create ");
        break;
    case STEP_CI_CREATE:
        text_add(t, "create the compute instance of ");
        break;
    }
    address_add_place(t, s->ordinal, s->profile, s->start);
}

static void put_instance(json_t *j, const char *key, uint32_t id)
{
    json_put(j, key, id == NOT_AN_INSTANCE ? json_null() : json_integer(id));
}

json_t *step_to_json(const struct step *s)
{
    json_t *j = json_object();
    json_put_text(j, "do", kind_words[s->kind]);
    json_put_text(j, "card", s->card_uuid);
    json_put_u64(j, "gpu", s->ordinal);
    if (s->kind <= STEP_RESET) {
        json_put_bool(j, "was_on", s->was_on);
        json_put_bool(j, "was_pending", s->was_pending);
        return j;
    }
    json_put_u64(j, "profile_id", s->profile_id);
    json_put_text(j, "profile", s->profile);
    json_put_u64(j, "start", s->start);
    json_put_u64(j, "units", s->units);
    put_instance(j, "gi", s->gi);
    if (s->kind == STEP_GI_CREATE || s->kind == STEP_GI_DESTROY)
        return j;
    json_put_u64(j, "ci_profile_id", s->ci_profile_id);
    json_put_u64(j, "ci_start", s->ci_start);
    json_put_u64(j, "ci_slices", s->ci_slices);
    put_instance(j, "ci", s->ci);
    json_put_text(j, "uuid", s->uuid);
    return j;
}

static enum step_kind read_kind(struct fields *f)
{
    const char *word = fields_text(f, "do", FIELD_REQUIRED, 16);
    for (int k = 0; word && k < STEP_KINDS; k++)
        if (strcmp(word, kind_words[k]) == 0)
            return (enum step_kind)k;
    if (word)
        fields_fail(f, "'%s' is no step", word);
    return STEP_RESET;
}

static uint32_t read_u32(struct fields *f, const char *key, uint32_t absent)
{
    return (uint32_t)fields_u64(f, key, FIELD_OPTIONAL, 0, UINT32_MAX, absent);
}

int step_from_json(json_t *j, struct step *ret, struct err *e)
{
    struct fields f;
    struct step s = { .kind = STEP_RESET };
    fields_open(&f, j, "step", e);
    s.kind = read_kind(&f);
    fields_copy(&f, "card", FIELD_REQUIRED, s.card_uuid, sizeof s.card_uuid);
    s.ordinal = read_u32(&f, "gpu", 0);
    s.profile_id = read_u32(&f, "profile_id", 0);
    fields_copy(&f, "profile", FIELD_OPTIONAL, s.profile, sizeof s.profile);
    s.start = (uint32_t)fields_u64(&f, "start", FIELD_OPTIONAL, 0, BOARD_UNITS_MAX, 0);
    s.units = (uint32_t)fields_u64(&f, "units", FIELD_OPTIONAL, 0, BOARD_UNITS_MAX, 0);
    s.gi = read_u32(&f, "gi", NOT_AN_INSTANCE);
    s.ci_profile_id = read_u32(&f, "ci_profile_id", 0);
    s.ci_start = read_u32(&f, "ci_start", 0);
    s.ci_slices = read_u32(&f, "ci_slices", 0);
    s.ci = read_u32(&f, "ci", NOT_AN_INSTANCE);
    fields_copy(&f, "uuid", FIELD_OPTIONAL, s.uuid, sizeof s.uuid);
    /* What was written without them had one mode, current and stored: the other one. */
    s.was_on = fields_bool(&f, "was_on", s.kind == STEP_MIG_OFF);
    s.was_pending = fields_bool(&f, "was_pending", s.was_on);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        *ret = s;
    return code;
}
