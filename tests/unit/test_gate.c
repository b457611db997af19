#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "cgroup/gate.h"

/* ---- a small machine that knows the instructions which a gate uses ---- */

#define OPEN (BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE)

static int run(const struct bpf_insn *insns, size_t count, const struct bpf_cgroup_dev_ctx *ctx)
{
    uint64_t r[11] = { 0 };
    size_t steps = 0;
    for (size_t pc = 0; pc < count; pc++) {
        const struct bpf_insn *i = &insns[pc];
        assert_true(++steps <= count); /* only forward: the verifier of every kernel takes it */
        switch (i->code) {
        case BPF_LDX | BPF_MEM | BPF_W:
            assert_int_equal(i->src_reg, BPF_REG_1);
            assert_true(i->off >= 0 && (size_t)i->off <= sizeof *ctx - 4);
            r[i->dst_reg] = ((const uint32_t *)ctx)[i->off / 4];
            break;
        case BPF_ALU64 | BPF_MOV | BPF_X:
            r[i->dst_reg] = r[i->src_reg];
            break;
        case BPF_ALU64 | BPF_MOV | BPF_K:
            r[i->dst_reg] = (uint64_t)i->imm;
            break;
        case BPF_ALU64 | BPF_AND | BPF_K:
            r[i->dst_reg] &= (uint64_t)i->imm;
            break;
        case BPF_ALU64 | BPF_RSH | BPF_K:
            r[i->dst_reg] >>= i->imm;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += r[i->dst_reg] == (uint64_t)i->imm ? (size_t)i->off : 0;
            break;
        case BPF_JMP | BPF_JNE | BPF_K:
            pc += r[i->dst_reg] != (uint64_t)i->imm ? (size_t)i->off : 0;
            break;
        case BPF_JMP | BPF_EXIT:
            return (int)r[0];
        default:
            fail_msg("instruction %zu has the unknown code 0x%x", pc, i->code);
        }
    }
    fail_msg("the program runs off its end");
    return -1;
}

static int ask(const struct gate *g, uint32_t type, uint32_t access, uint32_t major, uint32_t minor)
{
    size_t count = 0;
    auto_free struct bpf_insn *insns = gate_program(g, &count);
    struct bpf_cgroup_dev_ctx ctx = { .access_type = access << 16 | type,
                                      .major = major,
                                      .minor = minor };
    return run(insns, count, &ctx);
}

static int opens(const struct gate *g, uint32_t major, uint32_t minor)
{
    return ask(g, BPF_DEVCG_DEV_CHAR, OPEN, major, minor);
}

/* A MIG job on card 0: nvidiactl, uvm, its card, the nodes of its GI and CI. */
static struct gate job_gate(void)
{
    struct gate g = GATE_INIT;
    assert_int_equal(gate_close_major(&g, 195, NULL), 0);
    assert_int_equal(gate_close_major(&g, 508, NULL), 0);
    assert_int_equal(gate_close_major(&g, 511, NULL), 0);
    assert_int_equal(gate_close_node(&g, 226, 128, NULL), 0);
    assert_int_equal(gate_grant(&g, 195, 255, NULL), 0);
    assert_int_equal(gate_grant(&g, 195, 0, NULL), 0);
    assert_int_equal(gate_grant(&g, 508, 0, NULL), 0);
    assert_int_equal(gate_grant(&g, 511, 21, NULL), 0);
    assert_int_equal(gate_grant(&g, 511, 22, NULL), 0);
    return g;
}

static void granted_devices_open(void **state)
{
    (void)state;
    struct gate g = job_gate();
    assert_int_equal(opens(&g, 195, 255), 1);
    assert_int_equal(opens(&g, 195, 0), 1);
    assert_int_equal(opens(&g, 508, 0), 1);
    assert_int_equal(opens(&g, 511, 22), 1);
}

static void other_cards_and_slices_stay_closed(void **state)
{
    (void)state;
    struct gate g = job_gate();
    assert_int_equal(opens(&g, 195, 1), 0);
    assert_int_equal(opens(&g, 195, 254), 0);
    assert_int_equal(opens(&g, 511, 23), 0);
    assert_int_equal(opens(&g, 511, 0), 0);
    assert_int_equal(opens(&g, 508, 1), 0);
    assert_int_equal(ask(&g, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 195, 1), 0);
}

static void everything_else_is_untouched(void **state)
{
    (void)state;
    struct gate g = job_gate();
    assert_int_equal(opens(&g, 1, 3), 1);    /* null */
    assert_int_equal(opens(&g, 10, 229), 1); /* fuse */
    assert_int_equal(opens(&g, 231, 0), 1);  /* infiniband */
    assert_int_equal(opens(&g, 226, 129), 1);
    assert_int_equal(ask(&g, BPF_DEVCG_DEV_BLOCK, OPEN, 195, 1), 1);
    assert_int_equal(ask(&g, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_MKNOD, 1, 3), 1);
}

static void single_nodes_of_shared_majors_close(void **state)
{
    (void)state;
    struct gate g = job_gate();
    assert_int_equal(opens(&g, 226, 128), 0);
    assert_int_equal(gate_grant(&g, 226, 128, NULL), 0);
    assert_int_equal(opens(&g, 226, 128), 1);
}

static void making_nodes_is_refused_even_for_granted_devices(void **state)
{
    (void)state;
    struct gate g = job_gate();
    assert_int_equal(ask(&g, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_MKNOD, 195, 0), 0);
    assert_int_equal(ask(&g, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_MKNOD | OPEN, 511, 21), 0);
}

static void job_without_a_gpu_opens_none(void **state)
{
    (void)state;
    struct gate g = GATE_INIT;
    assert_int_equal(gate_close_major(&g, 195, NULL), 0);
    assert_int_equal(opens(&g, 195, 255), 0);
    assert_int_equal(opens(&g, 195, 0), 0);
    assert_int_equal(opens(&g, 1, 3), 1);
}

/* Not a sample: every node that any rule mentions, and its neighbours. */
static void program_equals_the_policy_everywhere(void **state)
{
    (void)state;
    struct gate g = job_gate();
    static const uint32_t majors[] = {
        0, 1, 194, 195, 196, 226, 507, 508, 509, 510, 511, 512, 4095
    };
    for (size_t i = 0; i < sizeof majors / sizeof *majors; i++)
        for (uint32_t minor = 0; minor < 300; minor++) {
            assert_int_equal(opens(&g, majors[i], minor), gate_allows(&g, majors[i], minor, false));
            assert_int_equal(ask(&g, BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_MKNOD, majors[i], minor),
                             gate_allows(&g, majors[i], minor, true));
        }
}

static void largest_gate_still_jumps_right(void **state)
{
    (void)state;
    struct gate g = GATE_INIT;
    assert_int_equal(gate_close_major(&g, 511, NULL), 0);
    for (uint32_t minor = 0; minor < GATE_GRANTS_MAX; minor++)
        assert_int_equal(gate_grant(&g, 511, minor * 2, NULL), 0);
    assert_int_equal(gate_grant(&g, 511, 7, NULL), -E2BIG);
    for (uint32_t minor = 0; minor < 2 * GATE_GRANTS_MAX; minor++)
        assert_int_equal(opens(&g, 511, minor), minor % 2 == 0);
    assert_int_equal(opens(&g, 511, 2 * GATE_GRANTS_MAX), 0);
}

/* The verifier refuses a program with an instruction that nothing leads to. */
static void assert_all_reached(const struct gate *g)
{
    size_t count = 0;
    auto_free struct bpf_insn *insns = gate_program(g, &count);
    auto_free bool *reached = mem_new(count);
    reached[0] = true;
    for (size_t i = 0; i < count; i++) {
        assert_true(reached[i]);
        bool jumps = (insns[i].code & 7) == BPF_JMP;
        bool ends = insns[i].code == (BPF_JMP | BPF_EXIT);
        size_t to = i + 1 + (size_t)insns[i].off;
        if (jumps && !ends) {
            assert_true(to < count);
            reached[to] = true;
        }
        if (!ends) {
            assert_true(i + 1 < count);
            reached[i + 1] = true;
        }
    }
}

static void no_instruction_is_out_of_reach(void **state)
{
    (void)state;
    struct gate g = GATE_INIT;
    assert_all_reached(&g);
    assert_int_equal(gate_close_major(&g, 195, NULL), 0);
    assert_all_reached(&g); /* a job without a GPU */
    struct gate job = job_gate();
    assert_all_reached(&job);
}

/* The program itself, so that a change of the generator is seen and meant. */
static void golden_program(void **state)
{
    (void)state;
    struct gate g = GATE_INIT;
    assert_int_equal(gate_close_major(&g, 195, NULL), 0);
    assert_int_equal(gate_grant(&g, 195, 255, NULL), 0);
    static const struct {
        uint8_t code, dst, src;
        int16_t off;
        int32_t imm;
    } golden[] = {
        { 0x61, 2, 1, 0, 0 },                            /* r2 = access_type */
        { 0x61, 4, 1, 4, 0 },                            /* r4 = major */
        { 0x61, 5, 1, 8, 0 },                            /* r5 = minor */
        { 0xbf, 3, 2, 0, 0 },                            /* r3 = r2 */
        { 0x57, 3, 0, 0, 0xffff },                       /* r3 &= 0xffff */
        { 0x77, 2, 0, 0, 16 },                           /* r2 >>= 16 */
        { 0x55, 3, 0, 1, 2 },                            /* if r3 != char goto allow */
        { 0x15, 4, 0, 2, 195 },                          /* if r4 == 195 goto closed */
        { 0xb7, 0, 0, 0, 1 },                            /* allow: r0 = 1 */
        { 0x95, 0, 0, 0, 0 },      { 0x57, 2, 0, 0, 1 }, /* closed: r2 &= mknod */
        { 0x55, 2, 0, 2, 0 },                            /* if r2 goto deny */
        { 0x55, 4, 0, 1, 195 },                          /* if r4 != 195 goto deny */
        { 0x15, 5, 0, 2, 255 },                          /* if r5 == 255 goto open */
        { 0xb7, 0, 0, 0, 0 },                            /* deny: r0 = 0 */
        { 0x95, 0, 0, 0, 0 },      { 0xb7, 0, 0, 0, 1 }, /* open: r0 = 1 */
        { 0x95, 0, 0, 0, 0 },
    };
    size_t count = 0;
    auto_free struct bpf_insn *insns = gate_program(&g, &count);
    assert_int_equal(count, sizeof golden / sizeof *golden);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(insns[i].code, golden[i].code);
        assert_int_equal(insns[i].dst_reg, golden[i].dst);
        assert_int_equal(insns[i].src_reg, golden[i].src);
        assert_int_equal(insns[i].off, golden[i].off);
        assert_int_equal(insns[i].imm, golden[i].imm);
    }
}

static void majors_that_everybody_needs_are_not_closed(void **state)
{
    (void)state;
    struct gate g = GATE_INIT;
    struct err e = ERR_INIT;
    assert_int_equal(gate_close_major(&g, 1, &e), -EINVAL);
    assert_int_equal(gate_close_major(&g, 5, &e), -EINVAL);
    assert_int_equal(gate_close_major(&g, 136, &e), -EINVAL);
    assert_int_equal(gate_close_major(&g, 5000, &e), -EINVAL);
    assert_int_equal(g.major_count, 0);
}

static void write_under(const char *root, const char *folder, const char *name, const char *text)
{
    auto_free char *dir = file_under(root, folder);
    assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(file_replace(fd, name, text, strlen(text), 0644, NULL), 0);
}

static bool closes(const struct gate *g, uint32_t major)
{
    for (size_t i = 0; i < g->major_count; i++)
        if (g->majors[i] == major)
            return true;
    return false;
}

static void majors_come_from_the_driver(void **state)
{
    (void)state;
    char root[] = "/tmp/test-gate-XXXXXX";
    assert_non_null(mkdtemp(root));
    struct gate g = GATE_INIT;
    struct err e = ERR_INIT;
    assert_int_equal(gate_close_driver(&g, root, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/proc/devices"));
    write_under(root, "/proc", "devices",
                "Character devices:\n  1 mem\n195 nvidia-frontend\n195 nvidiactl\n"
                "234 nvidia-caps-imex-channels\n508 nvidia-uvm\n510 nvidia-nvswitch\n"
                "511 nvidia-caps\n226 drm\n\nBlock devices:\n  8 sd\n259 nvidia-lookalike\n");
    write_under(root, "/sys/class/drm/renderD128/device", "vendor", "0x10de\n");
    write_under(root, "/sys/class/drm/renderD128", "dev", "226:128\n");
    write_under(root, "/sys/class/drm/renderD129/device", "vendor", "0x8086\n");
    write_under(root, "/sys/class/drm/renderD129", "dev", "226:129\n");
    assert_int_equal(gate_close_driver(&g, root, &e), 0);
    assert_int_equal(g.major_count, 5);
    assert_true(closes(&g, 195) && closes(&g, 234) && closes(&g, 508) && closes(&g, 510) &&
                closes(&g, 511));
    assert_false(gate_allows(&g, 226, 128, false));
    assert_true(gate_allows(&g, 226, 129, false));
    assert_int_equal(file_remove_tree(AT_FDCWD, root, NULL), 0);
}

static void only_character_devices_are_granted_by_path(void **state)
{
    (void)state;
    struct gate g = GATE_INIT;
    struct err e = ERR_INIT;
    assert_int_equal(gate_grant_path(&g, "/dev/null", &e), 0);
    assert_int_equal(g.grants[0].major, 1);
    assert_int_equal(g.grants[0].minor, 3);
    assert_int_equal(gate_grant_path(&g, "/tmp", &e), -ENODEV);
    assert_int_equal(gate_grant_path(&g, "/dev/there-is-no-such-node", &e), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granted_devices_open),
        cmocka_unit_test(other_cards_and_slices_stay_closed),
        cmocka_unit_test(everything_else_is_untouched),
        cmocka_unit_test(single_nodes_of_shared_majors_close),
        cmocka_unit_test(making_nodes_is_refused_even_for_granted_devices),
        cmocka_unit_test(job_without_a_gpu_opens_none),
        cmocka_unit_test(program_equals_the_policy_everywhere),
        cmocka_unit_test(largest_gate_still_jumps_right),
        cmocka_unit_test(no_instruction_is_out_of_reach),
        cmocka_unit_test(golden_program),
        cmocka_unit_test(majors_that_everybody_needs_are_not_closed),
        cmocka_unit_test(majors_come_from_the_driver),
        cmocka_unit_test(only_character_devices_are_granted_by_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
