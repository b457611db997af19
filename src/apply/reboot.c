#include "apply/reboot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/killpoint.h"
#include "model/fields.h"

#define REBOOT_NAME "reboot.json"
#define REBOOT_BYTES_MAX (4u << 20)
#define REBOOT_VERSION 1

void reboot_done(struct reboot *r)
{
    plan_done(&r->steps);
}

static int read_it(const char *data, size_t len, struct reboot *ret, struct err *e)
{
    struct fields f;
    auto_json json_t *j = NULL;
    int code = json_parse(data, len, REBOOT_NAME, &j, e);
    if (code < 0)
        return code;
    fields_open(&f, j, REBOOT_NAME, e);
    (void)fields_u64(&f, "v", FIELD_REQUIRED, REBOOT_VERSION, REBOOT_VERSION, 0);
    json_t *steps = fields_array(&f, "steps", FIELD_REQUIRED, SIZE_MAX);
    code = fields_close(&f, FIELDS_OPEN);
    return code < 0 ? code : plan_from_json(steps, &ret->steps, e);
}

int reboot_load(const char *dir, struct reboot *ret, struct err *e)
{
    size_t len;
    auto_free char *path = text_fmt("%s/" REBOOT_NAME, dir);
    auto_free char *data = NULL;
    *ret = (struct reboot)REBOOT_INIT;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    int code = file_read(AT_FDCWD, path, REBOOT_BYTES_MAX, &data, &len, e);
    if (code == 0 && read_it(data, len, ret, e) < 0)
        code = err_wrap(e, -EINVAL, "%s", path);
    return code;
}

int reboot_save(const char *dir, const struct reboot *r, struct err *e)
{
    auto_close int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return err_sys(e, "cannot open %s", dir);
    if (!r->steps.count) {
        if (unlinkat(dirfd, REBOOT_NAME, 0) < 0 && errno != ENOENT)
            return err_sys(e, "cannot remove %s/" REBOOT_NAME, dir);
        return file_sync_dir(dirfd, e);
    }
    auto_json json_t *j = json_object();
    json_put_u64(j, "v", REBOOT_VERSION);
    json_put(j, "steps", plan_to_json(&r->steps));
    auto_free char *data = json_dumps(j, JSON_INDENT(2));
    if (!data)
        abort(); /* out of memory: as in base/text.h */
    int code = file_replace(dirfd, REBOOT_NAME, data, strlen(data), 0600, e);
    KILLPOINT(APPLY_ASIDE);
    return code;
}

void reboot_add(struct reboot *r, const struct plan *aside)
{
    for (size_t i = 0; i < aside->count; i++)
        reboot_drop(r, aside->steps[i].card_uuid);
    for (size_t i = 0; i < aside->count; i++)
        plan_add_step(&r->steps, &aside->steps[i]);
}

void reboot_drop(struct reboot *r, const char *card_uuid)
{
    size_t keep = 0;
    for (size_t i = 0; i < r->steps.count; i++)
        if (strcmp(r->steps.steps[i].card_uuid, card_uuid) != 0)
            r->steps.steps[keep++] = r->steps.steps[i];
    r->steps.count = keep;
}

enum reboot_state reboot_look(const struct reboot *r, const struct card *now)
{
    for (size_t i = 0; i < r->steps.count; i++) {
        const struct step *s = &r->steps.steps[i];
        bool on = s->kind == STEP_MIG_ON;
        if (strcmp(s->card_uuid, now->uuid) != 0 || !step_is_mode(s))
            continue;
        if (now->mig_now == on && now->mig_pending == on)
            return REBOOT_DONE;
        return now->mig_pending == on ? REBOOT_WAITS : REBOOT_LOST;
    }
    return REBOOT_NONE;
}

bool reboot_mark(const struct reboot *r, const struct card *now, struct layout_change *ch)
{
    bool planned = ch->verdict == LAYOUT_TO_DO || ch->verdict == LAYOUT_BUSY;
    bool as_stored = ch->turn >= 0 && (ch->turn == 1) == now->mig_pending;
    if (!planned || !as_stored || reboot_look(r, now) != REBOOT_WAITS)
        return false;
    ch->verdict = LAYOUT_NEEDS_REBOOT;
    (void)snprintf(ch->why, sizeof ch->why,
                   "MIG %s is stored and becomes current with a reboot of this machine, since no "
                   "reset works here; the rest follows after it",
                   ch->turn ? "on" : "off");
    return true;
}

void reboot_rest(const struct reboot *r, const char *card_uuid, struct plan *ret)
{
    for (size_t i = 0; i < r->steps.count; i++)
        if (strcmp(r->steps.steps[i].card_uuid, card_uuid) == 0 &&
            !step_is_mode(&r->steps.steps[i]))
            plan_add_step(ret, &r->steps.steps[i]);
}
