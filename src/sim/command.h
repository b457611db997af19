/*
 * command.h - divvy-sim: one file per group of verbs behind one table.
 *
 * Each verb gets its words and options as a struct call, prints to standard
 * output and returns 0, or a negative code with a sentence for the user.
 */
#ifndef DIVVY_SIM_COMMAND_H
#define DIVVY_SIM_COMMAND_H

#include <sys/types.h>

#include "config/board.h"
#include "sim/machine.h"
#include "sim/process.h"

#define COMMAND_WORDS_MAX 64

struct call {
    const char *dir;    /* --dir, else NULL */
    const char *driver; /* --driver, else NULL */
    const char *owner;  /* --owner, else NULL */
    uint64_t seed;
    bool json;
    bool force;
    bool kill;
    char *words[COMMAND_WORDS_MAX]; /* after the verb */
    size_t count;
};

int command_up(const struct call *c, struct err *e);
int command_down(const struct call *c, struct err *e);
int command_status(const struct call *c, struct err *e);
int command_boards(const struct call *c, struct err *e);
int command_env(const struct call *c, struct err *e);
int command_fault(const struct call *c, struct err *e);
int command_reboot(const struct call *c, struct err *e);
int command_install(const struct call *c, struct err *e);
int command_reload(const struct call *c, struct err *e);
int command_reset(const struct call *c, struct err *e);

/*
 * A board file's board as the simulated driver takes it, checked. -EINVAL when
 * it has more profiles than the driver's state has room for.
 */
int command_compile_board(const struct board *b, struct sim_board *ret, struct err *e);

/* "gpu0", "0" or its UUID: a card of the machine. -EINVAL with the cards there are. */
int command_card(const struct machine *m, const char *word, uint32_t *ret_card, struct err *e);

#endif
