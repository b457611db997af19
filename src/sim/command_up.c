#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/text.h"
#include "config/nearest.h"
#include "sim/command.h"
#include "sim/root.h"

#define DEFAULT_DRIVER "550.163.01"

struct version {
    unsigned part[3];
};

/* CUDA driver API version that each branch brought; the newest not above it counts. */
static const struct {
    unsigned branch;
    uint32_t cuda;
} cuda_of_branch[] = { { 450, 11000 }, { 455, 11010 }, { 460, 11020 }, { 465, 11030 },
                       { 470, 11040 }, { 495, 11050 }, { 510, 11060 }, { 515, 11070 },
                       { 520, 11080 }, { 525, 12000 }, { 530, 12010 }, { 535, 12020 },
                       { 545, 12030 }, { 550, 12040 }, { 555, 12050 }, { 560, 12060 },
                       { 565, 12070 }, { 570, 12080 }, { 575, 12090 }, { 580, 13000 },
                       { 590, 13010 }, { 595, 13020 }, { 610, 13030 } };

/* Two or three numbers of at most four digits, with dots between. */
static bool split_version(const char *s, struct version *ret)
{
    size_t parts = 0;
    struct version v = { { 0, 0, 0 } };
    while (parts < 3) {
        size_t digits = strspn(s, "0123456789");
        if (digits == 0 || digits > 4)
            return false;
        v.part[parts++] = (unsigned)strtoul(s, NULL, 10);
        s += digits;
        if (*s != '.')
            break;
        s++;
    }
    *ret = v;
    return parts >= 2 && *s == '\0';
}

static int parse_version(const char *s, struct version *ret, struct err *e)
{
    struct version v;
    if (!split_version(s, &v))
        return err_set(e, -EINVAL, "'%.32s' is no driver version; write it like %s", s,
                       DEFAULT_DRIVER);
    if (v.part[0] < 450 || v.part[0] > 699)
        return err_set(e, -EINVAL, "driver branch %u is not simulated; 450 to 699 work", v.part[0]);
    *ret = v;
    return 0;
}

static bool is_older(const char *a, const char *b)
{
    struct version x, y;
    if (parse_version(a, &x, NULL) < 0 || parse_version(b, &y, NULL) < 0)
        return false;
    for (int i = 0; i < 3; i++)
        if (x.part[i] != y.part[i])
            return x.part[i] < y.part[i];
    return false;
}

static uint32_t cuda_version(const char *driver)
{
    struct version v;
    uint32_t cuda = cuda_of_branch[0].cuda;
    if (parse_version(driver, &v, NULL) < 0)
        return cuda;
    for (size_t i = 0; i < sizeof cuda_of_branch / sizeof *cuda_of_branch; i++)
        if (cuda_of_branch[i].branch <= v.part[0])
            cuda = cuda_of_branch[i].cuda;
    return cuda;
}

struct order {
    struct sim_board boards[SIM_BOARDS_MAX];
    uint32_t board_count;
    uint32_t cards[SIM_CARDS_MAX];
    uint32_t card_count;
    char driver[24];
};

/* Without --driver the machine gets the oldest that all its boards work with, from the default up. */
static int check_driver(struct order *o, const struct call *c, const struct board *b, struct err *e)
{
    if (!b->min_driver[0] || !is_older(o->driver, b->min_driver))
        return 0;
    if (c->driver)
        return err_set(e, -EINVAL, "driver %s does not know %s; it needs %s or newer", c->driver,
                       b->key, b->min_driver);
    memcpy(o->driver, b->min_driver, sizeof o->driver);
    return 0;
}

static int board_position(struct order *o, const struct call *c, const char *key, uint32_t *ret,
                          struct err *e)
{
    for (uint32_t i = 0; i < o->board_count; i++) {
        if (strcmp(o->boards[i].key, key) == 0) {
            *ret = i;
            return 0;
        }
    }
    if (o->board_count == SIM_BOARDS_MAX)
        return err_set(e, -EINVAL, "one machine has at most %d kinds of boards", SIM_BOARDS_MAX);
    auto_free struct board *b = mem_new(sizeof *b);
    int rc = board_find(key, b, e);
    if (rc >= 0)
        rc = check_driver(o, c, b, e);
    if (rc >= 0)
        rc = command_compile_board(b, &o->boards[o->board_count], e);
    if (rc < 0)
        return rc;
    *ret = o->board_count++;
    return 0;
}

/* "a100-80gb:2" */
static int add_cards(struct order *o, const struct call *c, const char *word, struct err *e)
{
    const char *colon = strchr(word, ':');
    auto_free char *key = text_fmt("%.*s", (int)(colon ? colon - word : (long)strlen(word)), word);
    uint64_t n = 1;
    if (colon) {
        auto_free char *what = text_fmt("number of %s", key);
        int rc = text_parse_u64(colon + 1, 1, SIM_CARDS_MAX, what, &n, e);
        if (rc < 0)
            return rc;
    }
    uint32_t position = 0;
    int rc = board_position(o, c, key, &position, e);
    if (rc < 0)
        return rc;
    if (o->card_count + n > SIM_CARDS_MAX)
        return err_set(e, -EINVAL, "one machine has at most %d cards", SIM_CARDS_MAX);
    while (n--)
        o->cards[o->card_count++] = position;
    return 0;
}

static int read_order(struct order *o, const struct call *c, struct err *e)
{
    if (c->count == 0)
        return err_set(e, -EINVAL,
                       "say which cards: divvy-sim up a100-80gb:2 rtx4090; divvy-sim boards lists "
                       "them");
    const char *driver = c->driver ? c->driver : DEFAULT_DRIVER;
    struct version v;
    int rc = parse_version(driver, &v, e);
    if (rc < 0)
        return rc;
    (void)snprintf(o->driver, sizeof o->driver, "%s", driver); /* 20 bytes at most, just checked */
    for (size_t i = 0; i < c->count && rc >= 0; i++)
        rc = add_cards(o, c, c->words[i], e);
    return rc;
}

static int find_owner(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct err *e)
{
    struct passwd *pw = getpwnam(name);
    uint64_t uid;
    if (!pw && text_parse_u64(name, 0, UINT32_MAX - 1, "--owner", &uid, NULL) == 0)
        pw = getpwuid((uid_t)uid);
    if (!pw)
        return err_set(e, -ENOENT, "--owner: there is no user '%.64s'", name);
    if (geteuid() != 0 && pw->pw_uid != geteuid())
        return err_set(e, -EPERM, "--owner: only root can make a machine for somebody else");
    *ret_uid = pw->pw_uid;
    *ret_gid = pw->pw_gid;
    return 0;
}

static uid_t give_uid; /* nftw takes no argument for its callback */
static gid_t give_gid;

static int give_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return lchown(path, give_uid, give_gid);
}

static int give_away(const char *dir, uid_t uid, gid_t gid, struct err *e)
{
    give_uid = uid;
    give_gid = gid;
    if (nftw(dir, give_one, 16, FTW_PHYS) != 0)
        return err_sys(e, "cannot give %s to its owner", dir);
    return 0;
}

static int clear_away(const char *dir, struct err *e)
{
    auto_free char *root = text_fmt("%s/root", dir);
    int rc = machine_remove(dir, e);
    if (rc >= 0)
        rc = file_remove_tree(AT_FDCWD, root, e);
    if (rc >= 0)
        (void)rmdir(dir); /* stays when somebody keeps other things in it */
    return rc;
}

static int finish(const char *dir, const struct call *c, uid_t uid, gid_t gid, struct err *e)
{
    struct machine *m = NULL;
    int rc = machine_open(dir, &m, e);
    if (rc >= 0)
        rc = sim_root_make(m, e);
    if (rc >= 0 && c->owner)
        rc = give_away(dir, uid, gid, e);
    machine_close(m);
    return rc;
}

static void print_up(const char *dir, const struct order *o)
{
    printf("A simulated machine is up in %s: driver %s, %u card%s.\n", dir, o->driver,
           o->card_count, o->card_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < o->card_count; i++)
        printf("  gpu%u  %s\n", i, o->boards[o->cards[i]].name);
    printf("Point this shell at it:  eval \"$(divvy-sim env)\"\n");
}

int command_up(const struct call *c, struct err *e)
{
    auto_free struct order *o = mem_new(sizeof *o);
    auto_free char *dir = c->dir ? text_dup(c->dir) : machine_default_dir();
    uid_t uid = 0;
    gid_t gid = 0;
    int rc = read_order(o, c, e);
    if (rc >= 0 && c->owner)
        rc = find_owner(c->owner, &uid, &gid, e);
    if (rc < 0)
        return rc;
    const struct machine_plan plan = {
        .boards = o->boards,
        .board_count = o->board_count,
        .cards = o->cards,
        .card_count = o->card_count,
        .driver_version = o->driver,
        .cuda_version = cuda_version(o->driver),
        .seed = c->seed,
    };
    rc = machine_make(dir, &plan, e);
    if (rc < 0)
        return rc;
    rc = finish(dir, c, uid, gid, e);
    if (rc < 0) {
        (void)clear_away(dir, NULL); /* the first error is the one to tell */
        return rc;
    }
    print_up(dir, o);
    return 0;
}

/* "7g.80gb=7g.79gb", "uuids". */
static int add_change(struct sim_package *p, const char *word, struct err *e)
{
    const char *to = strchr(word, '=');
    struct sim_rename *r = &p->renames[p->rename_count];
    if (strcmp(word, "uuids") == 0) {
        p->uuid_series++;
        return 0;
    }
    if (!to || to == word || !to[1])
        return err_set(e, -EINVAL, "'%.64s' is neither OLD=NEW nor uuids", word);
    if (p->rename_count == SIM_RENAMES_MAX || (size_t)(to - word) >= sizeof r->from ||
        strlen(to + 1) >= sizeof r->to)
        return err_set(e, -EINVAL,
                       "'%.64s': a driver renames at most %d profiles of at most %zu "
                       "characters",
                       word, SIM_RENAMES_MAX, sizeof r->to - 1);
    (void)snprintf(r->from, sizeof r->from, "%.*s", (int)(to - word), word);
    (void)snprintf(r->to, sizeof r->to, "%s", to + 1);
    p->rename_count++;
    return 0;
}

int command_install(const struct call *c, struct err *e)
{
    struct machine *m = NULL;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    struct version v;
    struct sim_package p = { .rename_count = 0 };
    int rc = c->count ? parse_version(c->words[0], &v, e)
                      : err_set(e, -EINVAL, "say which version: divvy-sim install 570.86.15");
    if (rc >= 0)
        rc = machine_open(c->dir, &m, e);
    if (rc >= 0)
        rc = machine_edit_begin(m, &edit, e);
    if (rc >= 0) {
        (void)snprintf(p.version, sizeof p.version, "%s", c->words[0]); /* just checked */
        p.cuda_version = cuda_version(p.version);
        p.uuid_series = edit.state->installed.uuid_series;
    }
    for (size_t i = 1; i < c->count && rc >= 0; i++)
        rc = add_change(&p, c->words[i], e);
    if (rc >= 0) {
        edit.state->installed = p;
        rc = machine_edit_commit(&edit);
    }
    machine_edit_done(&edit); /* before the machine that it belongs to */
    machine_close(m);
    return rc;
}

/* Whoever still uses a card is named; --force ends them. */
static int check_users(struct machine *m, const struct call *c, struct err *e)
{
    AUTO(text) struct text who = TEXT_INIT;
    struct sim_proc *procs = NULL;
    uint32_t count = 0;
    int rc = sim_procs_read(m, &procs, &count, e);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        if (c->force)
            (void)kill(procs[i].pid, SIGKILL); /* gone already, or not ours: then it stays */
        else if (i < 8)
            text_addf(&who, "%s%d %s", i ? ", " : "", procs[i].pid, procs[i].name);
    }
    free(procs);
    if (who.len)
        return err_set(e, -EBUSY, "processes use its cards: %s%s; end them, or use --force",
                       who.buf, count > 8 ? ", …" : "");
    return 0;
}

int command_down(const struct call *c, struct err *e)
{
    struct machine *m = NULL;
    int rc = machine_open(c->dir, &m, e);
    if (rc == -EINVAL) { /* of another version: it can still be cleared away */
        auto_free char *dir = c->dir ? text_dup(c->dir) : machine_default_dir();
        return clear_away(dir, e);
    }
    if (rc < 0)
        return rc;
    auto_free char *dir = text_dup(machine_dir(m));
    if (!machine_is_ours(m))
        rc = err_set(e, -EACCES,
                     "only the owner of the simulated machine in %s and root may take "
                     "it down",
                     dir);
    if (rc >= 0)
        rc = check_users(m, c, e);
    machine_close(m);
    return rc < 0 ? rc : clear_away(dir, e);
}
