/*
 * mig_parted.h - `divvy mig-parted`: what its files share.
 *
 * A drop-in for nvidia-mig-parted: its words, options, environment variables,
 * files, success lines, hooks and exit statuses (0 or 1). What the original does
 * to a card in silence is refused with a message instead, before anything is
 * touched.
 */
#ifndef DIVVY_CLI_MIG_PARTED_H
#define DIVVY_CLI_MIG_PARTED_H

#include "cli/layout_apply.h"
#include "config/mig_hooks.h"

/* What was asked; words are borrowed from the command line and the environment. */
struct mig_call {
    const char *verb;
    const char *config_file, *selected_config, *hooks_file, *checkpoint_file;
    const char *output_file, *output_format, *config_label;
    bool debug, skip_reset, mode_only, valid_config;
};

/* Leaves the modes of a layout and forgets its slices, for --mode-only. */
void mig_keep_modes(struct layout *l);

/*
 * Makes the cards as `layout` (of a->work.list) has it, with the hooks around it.
 * 0 or 1; prints what was wrong, and nothing on success.
 */
int mig_apply(struct applying *a, const struct mig_call *c, const struct mig_hooks *hooks);

/* The same through divvyd, with modes and slices in one order: pre-apply-config comes before both. */
int mig_apply_through_daemon(struct applying *a, const struct mig_call *c,
                             const struct mig_hooks *hooks, struct client *client);

/* Says of each card that is in the way why. 1. */
int mig_refuse(const struct layout_work *w);
/* Does the MIG mode of any card change? */
bool mig_turns(const struct layout_work *w);
/* The cards as the driver itself shows them, in PCI order, as numbers in these files mean them. */
int mig_read_cards(const struct session *s, struct inventory *ret);

/*
 * Runs a point's commands, each in its own folder and with its own environment: what the file
 * gives, and on top the MIG_PARTED_ variables of this call. Output is shown with --debug. Stops at
 * the first that fails, with its name.
 */
int mig_hook_run(const struct mig_hooks *hooks, enum mig_hook_point p, const struct mig_call *c,
                 struct err *e);

#endif
