#include "cgroup/gate.h"

#include <stdlib.h>

#include "base/text.h"

/*
 * r1 context, then: r0 verdict, r2 access, r3 type, r4 major, r5 minor.
 *
 *         not a character device: allow
 *         each closed major:      if r4 == M goto closed
 *         each closed node:       if r4 == M and r5 == m goto closed
 * allow:  r0 = 1; exit
 * closed: if access has MKNOD goto deny
 *         each grant:             if r4 == M and r5 == m goto allow
 * deny:   r0 = 0; exit
 */
struct program {
    struct bpf_insn *insns;
    size_t count, alloc;
};

static size_t emit(struct program *p, uint8_t code, uint8_t dst, uint8_t src, int16_t off,
                   int32_t imm)
{
    ARRAY_ROOM(p->insns, p->alloc, p->count + 1);
    p->insns[p->count] = (struct bpf_insn){
        .code = code, .dst_reg = dst & 0xfu, .src_reg = src & 0xfu, .off = off, .imm = imm
    };
    return p->count++;
}

static void load(struct program *p, uint8_t dst, size_t field)
{
    emit(p, BPF_LDX | BPF_MEM | BPF_W, dst, BPF_REG_1, (int16_t)field, 0);
}

static size_t jump_equal(struct program *p, uint8_t reg, uint32_t value)
{
    return emit(p, BPF_JMP | BPF_JEQ | BPF_K, reg, 0, 0, (int32_t)value);
}

/* Makes the jump at `from` land at `to`. */
static void land(struct program *p, size_t from, size_t to)
{
    p->insns[from].off = (int16_t)((ptrdiff_t)to - (ptrdiff_t)from - 1);
}

static void give(struct program *p, int verdict)
{
    emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, verdict);
    emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Returns the jump taken when the node is that one; falls through otherwise. */
static size_t jump_node(struct program *p, const struct gate_device *d)
{
    size_t other = emit(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_4, 0, 0, (int32_t)d->major);
    size_t same = jump_equal(p, BPF_REG_5, d->minor);
    land(p, other, p->count);
    return same;
}

static size_t begin(struct program *p)
{
    load(p, BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
    load(p, BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, major));
    load(p, BPF_REG_5, offsetof(struct bpf_cgroup_dev_ctx, minor));
    emit(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0);
    emit(p, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_3, 0, 0, 0xffff);
    emit(p, BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_2, 0, 0, 16);
    return emit(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_3, 0, 0, BPF_DEVCG_DEV_CHAR);
}

/* What no jump reaches is left out: the verifier refuses a program that has such a place. */
static void add_closed(struct program *p, const struct gate *g)
{
    emit(p, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, BPF_DEVCG_ACC_MKNOD);
    size_t making = emit(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 0, 0);
    size_t granted[GATE_GRANTS_MAX];
    for (size_t i = 0; i < g->grant_count; i++)
        granted[i] = jump_node(p, &g->grants[i]);
    land(p, making, p->count);
    give(p, 0);
    for (size_t i = 0; i < g->grant_count; i++) /* forward: no loop for the verifier to doubt */
        land(p, granted[i], p->count);
    if (g->grant_count > 0)
        give(p, 1);
}

struct bpf_insn *gate_program(const struct gate *g, size_t *ret_count)
{
    struct program p = { .insns = NULL };
    size_t to_closed[GATE_MAJORS_MAX + GATE_NODES_MAX];
    size_t closed_count = 0;
    size_t not_char = begin(&p);
    for (size_t i = 0; i < g->major_count; i++)
        to_closed[closed_count++] = jump_equal(&p, BPF_REG_4, g->majors[i]);
    for (size_t i = 0; i < g->node_count; i++)
        to_closed[closed_count++] = jump_node(&p, &g->nodes[i]);
    land(&p, not_char, p.count);
    give(&p, 1);
    for (size_t i = 0; i < closed_count; i++)
        land(&p, to_closed[i], p.count);
    if (closed_count > 0)
        add_closed(&p, g);
    *ret_count = p.count;
    return p.insns;
}
