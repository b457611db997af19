/*
 * fairtree.h - Fair Tree: in which order the leaves of a share tree go.
 *
 * Every node has shares and a usage. Among the children of one node a child
 * has S, its part of their shares, and U, its part of their usage; its level
 * fairness is S/U: above 1, it had less than its due. No shares: 0; no usage:
 * infinite. The tree is walked depth first, the greatest level fairness first,
 * and leaves are ranked in the order in which they are met. So an account that
 * had too much comes, with all below it, after one that had too little,
 * whatever its users did.
 *
 * Ties, as Slurm resolves them: leaves that are equal share a rank; a leaf
 * equal to an inner node goes before it, and the best leaf in that node gets
 * the same rank; inner nodes that are equal have their children ranked as if
 * they were siblings. After a tie as many ranks are left out as were shared.
 *
 *     struct fairtree_node t[] = {
 *         { .parent = FAIRTREE_TOP, .shares = 2 },                    // account
 *         { .parent = 0, .leaf = true, .shares = 1, .usage = 45 },    // its user
 *         { .parent = FAIRTREE_TOP, .leaf = true, .shares = 1 },
 *     };
 *     fairtree_rank(t, 3);
 *
 * Source of the rules: slurm.schedmd.com/fair_tree.html; the unit test holds
 * the result against what a real Slurm printed.
 */
#ifndef DIVVY_SCHED_FAIRTREE_H
#define DIVVY_SCHED_FAIRTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAIRTREE_TOP UINT32_MAX
#define FAIRTREE_DEPTH 32 /* levels at most: the caller sees to it */

struct fairtree_node {
    uint32_t parent; /* index of a node before this one, or FAIRTREE_TOP */
    bool leaf;       /* is ranked; has no children */
    double shares;   /* weight against its siblings, 0 or more */
    double usage;    /* of a leaf: given, 0 or more; of others: the sum, filled in */
    /* Filled in; ranks of before make the next call quicker, and begin as 0. */
    double norm_shares; /* S: its part of its siblings' shares; 0 to 1 */
    double norm_usage;  /* U: its part of their usage; 0 when they used nothing */
    double level;       /* level fairness S/U; INFINITY: nothing used */
    uint32_t rank;      /* leaves: 1 goes first; others: the best of their leaves, 0: none */
    double factor;      /* leaves: 1 for the first, then less, above 0 */
};

/*
 * Costs O(n log n), and little more than O(n) where the nodes still have the
 * ranks of a call before and few have changed; what was there does not matter
 * to the result. Allocates for the call alone.
 */
void fairtree_rank(struct fairtree_node *nodes, size_t count);

#endif
