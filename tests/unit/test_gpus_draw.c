/* cli/gpus_draw.h: the picture of ux, and what must never be missing from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/gpus_draw.h"
#include "cli/table.h"

#define GIB (UINT64_C(1) << 30)
#define NOW_US (10 * CLOCK_HOUR)

static const struct screen terminal = { .tty = true, .utf8 = true, .width = 80 };
static const struct screen ascii = { .tty = true, .utf8 = false, .width = 80 };
static const struct screen file = { .tty = false };

static const char *user_name(uid_t uid, void *arg)
{
    (void)arg; /* knows one user */
    return uid == 1004 ? "dave" : NULL;
}

static void name(char *ret, size_t size, const char *s)
{
    assert_true(strlen(s) < size);
    memcpy(ret, s, strlen(s) + 1);
}

static void add_profile(struct board *b, uint32_t id, const char *called, uint32_t slices,
                        uint32_t units)
{
    struct profile *p = &b->profiles[b->profile_count++];
    *p = (struct profile){ .id = id, .slices = slices, .units = units };
    name(p->name, sizeof p->name, called);
}

static void add_slice(struct inventory_card *c, uint32_t gi, uint32_t profile_id, uint32_t start,
                      uint32_t units)
{
    struct slice *s = card_add_slice(&c->card);
    *s = (struct slice){ .gi = gi,
                         .ci = 0,
                         .profile_id = profile_id,
                         .start = start,
                         .units = units,
                         .full = true,
                         .mem_known = true,
                         .mem_total_bytes = units * 10 * GIB };
    (void)snprintf(s->uuid, sizeof s->uuid, "MIG-%u", (unsigned)gi);
}

static struct hold job(uint64_t id, const char *user, const char *called, int64_t minutes)
{
    struct hold h = { .kind = HOLD_JOB,
                      .job_id = id,
                      .since_boot_us = NOW_US - minutes * CLOCK_MINUTE };
    name(h.user, sizeof h.user, user);
    name(h.name, sizeof h.name, called);
    return h;
}

static void fill_readings(struct card *c, uint64_t used_gib, uint64_t total_gib)
{
    c->known = KNOW_MEMORY | KNOW_TEMPERATURE | KNOW_POWER | KNOW_PROCESSES;
    c->mem_used_bytes = used_gib * GIB;
    c->mem_total_bytes = total_gib * GIB;
    c->temperature_c = 41;
    c->power_mw = 212000;
}

/* Card 0 of the picture in ux: three slices, a free unit. */
static void make_cut_card(struct inventory_card *c)
{
    *c = (struct inventory_card){ .pool = POOL_QUEUE, .mode = MODE_AUTO, .owners_known = true };
    name(c->card.board.name, BOARD_NAME_SIZE, "NVIDIA A100-SXM4-80GB");
    name(c->card.uuid, CARD_UUID_SIZE, "GPU-aaaa");
    c->card.board.units = 8;
    c->card.board.slices = 7;
    add_profile(&c->card.board, 14, "2g.20gb", 2, 2);
    add_profile(&c->card.board, 19, "1g.10gb", 1, 1);
    add_profile(&c->card.board, 9, "3g.40gb", 3, 4);
    fill_readings(&c->card, 51, 80);
    c->card.known |= KNOW_SLICES;
    c->card.mig_capable = c->card.mig_now = c->card.mig_pending = true;
    add_slice(c, 3, 14, 0, 2);
    add_slice(c, 9, 19, 2, 1);
    add_slice(c, 2, 9, 4, 4);
    c->slices = mem_new(3 * sizeof *c->slices);
    c->slices[0].hold = job(41, "alice", "serve", 133);
    c->slices[2].hold = job(57, "bob", "train-7b", 41);
}

static void make_whole_card(struct inventory_card *c)
{
    *c = (struct inventory_card){ .pool = POOL_QUEUE, .mode = MODE_WHOLE, .owners_known = true };
    name(c->card.board.name, BOARD_NAME_SIZE, "NVIDIA A100-SXM4-80GB");
    name(c->card.uuid, CARD_UUID_SIZE, "GPU-bbbb");
    c->card.ordinal = 1;
    c->card.mig_capable = true;
    fill_readings(&c->card, 71, 80);
    c->card.known |= KNOW_LOAD;
    c->card.load_percent = 98;
    c->hold = job(58, "carol", "", 12);
}

static void make_plain_card(struct inventory_card *c)
{
    *c = (struct inventory_card){ .pool = POOL_OFF, .owners_known = true };
    name(c->card.board.name, BOARD_NAME_SIZE, "NVIDIA GeForce RTX 4090");
    name(c->card.uuid, CARD_UUID_SIZE, "GPU-cccc");
    c->card.ordinal = 2;
    fill_readings(&c->card, 1, 24);
    struct gpu_process *p = card_add_process(&c->card);
    *p = (struct gpu_process){
        .pid = 8121, .uid = 1004, .gi = NOT_AN_INSTANCE, .ci = NOT_AN_INSTANCE
    };
    name(p->name, sizeof p->name, "python3");
    c->hold = (struct hold){ .kind = HOLD_FOREIGN, .pid = 8121 };
}

static void make_server(struct inventory *inv)
{
    *inv = (struct inventory){ .now = { .boot_us = NOW_US }, .from_daemon = true };
    inv->card_count = 3;
    inv->cards = mem_new(3 * sizeof *inv->cards);
    make_cut_card(&inv->cards[0]);
    make_whole_card(&inv->cards[1]);
    make_plain_card(&inv->cards[2]);
}

static void expect(const struct inventory *inv, const struct screen *s, const char *wanted)
{
    struct gpus_look look = { .screen = s, .user_name = user_name };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(inv, &look, &got);
    assert_string_equal(got.buf, wanted);
}

static void test_the_picture(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    make_server(&inv);
    expect(&inv, &terminal,
           "GPU  CARD              POOL   SHARING         MEMORY  LOAD  °C    W  HEALTH\n"
           "0    A100-SXM4-80GB    queue  slices   51.0/80.0 GiB   n/a  41  212  ok\n"
           "     0        1        2        3        4        5        6        7\n"
           "     ├ 2g.20gb ───────┤├1g.10gb┤├·free··┤├ 3g.40gb ─────────────────────────┤\n"
           "       #41 alice 2h13m  idle               #57 bob train-7b 41m\n"
           "1    A100-SXM4-80GB    queue  whole    71.0/80.0 GiB   98%  41  212  ok\n"
           "     #58 carol 12m\n"
           "2    GeForce RTX 4090  off    whole     1.0/24.0 GiB   n/a  41  212  ok\n"
           "     pid 8121 python3 (dave) is not a Divvy job (whole only: no MIG on this\n"
           "     card)\n");
}

static void test_without_utf8(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    make_server(&inv);
    struct gpus_look look = { .screen = &ascii };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(&inv, &look, &got);
    assert_non_null(
        strstr(got.buf,
               "     | 2g.20gb -------||1g.10gb||.free..|| 3g.40gb -------------------------|\n"));
    for (const char *p = got.buf; *p; p++)
        assert_true((unsigned char)*p < 0x80);
}

static void test_columns_for_scripts(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    make_server(&inv);
    expect(
        &inv, &file,
        "ADDRESS         WHAT              POOL   SHARING  USED_MIB  TOTAL_MIB  LOAD  TEMP  POWER "
        " HEALTH  UUID      HOLDER\n"
        "gpu0            A100-SXM4-80GB    queue  slices      52224      81920   n/a    41    212 "
        " ok      GPU-aaaa  -\n"
        "gpu0/2g.20gb@0  2g.20gb           queue  slice           0      20480   n/a   n/a    n/a "
        " ok      MIG-3     #41 alice serve 2h13m\n"
        "gpu0/1g.10gb@2  1g.10gb           queue  slice           0      10240   n/a   n/a    n/a "
        " ok      MIG-9     idle\n"
        "gpu0/3g.40gb@4  3g.40gb           queue  slice           0      40960   n/a   n/a    n/a "
        " ok      MIG-2     #57 bob train-7b 41m\n"
        "gpu1            A100-SXM4-80GB    queue  whole       72704      81920    98    41    212 "
        " ok      GPU-bbbb  #58 carol 12m\n"
        "gpu2            GeForce-RTX-4090  off    whole        1024      24576   n/a    41    212 "
        " ok      GPU-cccc  pid 8121 python3 (dave) is not a Divvy job\n");
}

static void test_a_holder_without_room_gets_a_line(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    make_server(&inv);
    inv.cards[0].slices[1].hold = job(43, "dorothea", "sweep", 3);
    struct gpus_look look = { .screen = &terminal };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(&inv, &look, &got);
    assert_non_null(strstr(got.buf, "\n     gpu0/1g.10gb@2  #43 dorothea sweep 3m\n"));
}

static void test_a_lost_card_says_why_and_hides_nobody(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    make_server(&inv);
    inv.cards[1].card.health = CARD_LOST;
    inv.cards[1].card.known = 0;
    inv.cards[1].hold.kind = HOLD_NONE;
    name(inv.cards[1].card.trouble, sizeof inv.cards[1].card.trouble, "fell off the bus (XID 79)");
    struct gpus_look look = { .screen = &terminal };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(&inv, &look, &got);
    assert_non_null(strstr(
        got.buf,
        "queue  n/a                n/a   n/a  n/a  n/a  lost\n     fell off the bus (XID 79)\n"));
    assert_non_null(strstr(got.buf, "#41 alice"));
    assert_non_null(strstr(got.buf, "pid 8121"));
}

static void expect_within(const struct inventory *inv, const struct screen *s, const char *wanted)
{
    struct gpus_look look = { .screen = s, .user_name = user_name };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(inv, &look, &got);
    if (!strstr(got.buf, wanted))
        fail_msg("no '%s' in %s", wanted, got.buf);
}

static void test_planned_maintenance(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    AUTO(text) struct text ahead = TEXT_INIT, begun = TEXT_INIT;
    make_server(&inv);
    inv.now.wall_us = 100 * CLOCK_DAY;
    struct card_window w = { inv.now.wall_us + CLOCK_HOUR, inv.now.wall_us + 2 * CLOCK_HOUR };
    inv.cards[1].planned[0] = w;
    inv.cards[1].planned_count = 1;
    text_add(&ahead, "     maintenance from ");
    when_add(&ahead, w.from_wall_us, inv.now.wall_us);
    text_add(&ahead, " until ");
    when_add(&ahead, w.until_wall_us, inv.now.wall_us);
    text_add(&ahead, "\n     #58 carol 12m\n");
    expect_within(&inv, &terminal, ahead.buf);
    expect_within(&inv, &file, "#58 carol 12m\n");
    inv.now.wall_us += CLOCK_HOUR;
    inv.cards[1].hold = (struct hold){ .kind = HOLD_NONE };
    text_add(&begun, " maintenance until ");
    when_add(&begun, w.until_wall_us, inv.now.wall_us);
    text_add(&begun, "\n");
    expect_within(&inv, &terminal, begun.buf);
    expect_within(&inv, &file, begun.buf); /* takes nobody, though it is idle */
}

static void test_details_fit_a_terminal(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    make_server(&inv);
    name(inv.cards[1].card.trouble, sizeof inv.cards[1].card.trouble,
         "the driver says that it fell off the bus; a reboot or a reset of the machine's power may "
         "bring it back");
    inv.cards[1].card.health = CARD_LOST;
    name(inv.cards[0].card.slices[1].uuid, sizeof inv.cards[0].card.slices[1].uuid,
         "MIG-97554c76-af23-5053-a17a-638a9b9b824e");
    struct gpus_look look = { .screen = &terminal, .details = true };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(&inv, &look, &got);
    assert_non_null(strstr(got.buf, "  MIG-97554c76-af23-5053-a17a-638a9b9b824e  "));
    assert_non_null(strstr(got.buf, "\n       #41 alice serve 2h13m\n"));
    assert_null(strstr(got.buf, "\n       idle\n"));
    for (char *save = NULL, *line = strtok_r(got.buf, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        assert_true(cells_wide(line) <= 80);
}

static void test_owners_unknown(void **state)
{
    (void)state;
    struct snapshot s = SNAPSHOT_INIT;
    AUTO(inventory) struct inventory inv;
    struct card *c = snapshot_add_card(&s);
    name(c->board.name, BOARD_NAME_SIZE, "NVIDIA T4");
    inventory_from_snapshot(&s, &inv);
    snapshot_done(&s);
    struct gpus_look look = { .screen = &terminal };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(&inv, &look, &got);
    assert_non_null(strstr(got.buf, "no process"));
    assert_null(strstr(got.buf, "idle"));
    assert_null(strstr(got.buf, "0.0/0.0"));
}

static void test_parts_of_an_instance(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv;
    make_server(&inv);
    struct inventory_card *c = &inv.cards[0];
    struct board *b = &c->card.board;
    b->profiles[2].cis[b->profiles[2].ci_count++] =
        (struct ci_profile){ .id = 0, .slices = 1, .name = "1c.3g.40gb" };
    add_slice(c, 2, 9, 4, 4);
    for (size_t i = 2; i < 4; i++) {
        c->card.slices[i].full = false;
        c->card.slices[i].ci = (uint32_t)i;
        c->card.slices[i].ci_slices = 1;
        c->card.slices[i].ci_start = (uint32_t)i - 2;
    }
    struct inventory_slice *grown = mem_new(4 * sizeof *grown);
    memcpy(grown, c->slices, 3 * sizeof *grown);
    free(c->slices);
    c->slices = grown;
    struct gpus_look look = { .screen = &terminal };
    AUTO(text) struct text got = TEXT_INIT;
    gpus_draw(&inv, &look, &got);
    assert_non_null(strstr(got.buf, "├ 3g.40gb: 2 parts "));
    assert_non_null(strstr(got.buf, "gpu0/1c.3g.40gb@4.0  #57 bob train-7b 41m\n"));
    assert_non_null(strstr(got.buf, "gpu0/1c.3g.40gb@4.1  idle\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_picture),
        cmocka_unit_test(test_without_utf8),
        cmocka_unit_test(test_columns_for_scripts),
        cmocka_unit_test(test_a_holder_without_room_gets_a_line),
        cmocka_unit_test(test_a_lost_card_says_why_and_hides_nobody),
        cmocka_unit_test(test_planned_maintenance),
        cmocka_unit_test(test_details_fit_a_terminal),
        cmocka_unit_test(test_owners_unknown),
        cmocka_unit_test(test_parts_of_an_instance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
