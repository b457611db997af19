/*
 * board.h - board files (boards/NAME.yaml) into struct board.
 *
 * A board file tells the geometry of a GPU model where no driver can be
 * asked: for the simulated driver and for planning without hardware.
 * boards/README.md explains each field.
 *
 * Files are looked for in the directories of DIVVY_BOARDS (separated by ":"),
 * or, where that is not set, in the source tree's boards/ when the program
 * runs from its build tree, then in the installed data directory. The first
 * file called KEY.yaml wins.
 *
 *     struct board b;
 *     r = board_find("a100-80gb", &b, e);
 */
#ifndef DIVVY_CONFIG_BOARD_H
#define DIVVY_CONFIG_BOARD_H

#include "config/field.h"
#include "model/board.h"

/*
 * Reads and checks one file: units, starts and orders lie within the card,
 * ids and names are single, compute instances fit. `ret` is written only on
 * success. -ENOENT, -EINVAL with file:line:column.
 */
int board_read(const char *path, struct board *ret, struct err *e);

/* The same from text; `file` names it in messages. */
int board_parse(const char *file, const char *text, size_t len, struct board *ret, struct err *e);

/*
 * The board called `key`. -ENOENT when there is none; the text then names the
 * nearest keys. Reads files.
 */
int board_find(const char *key, struct board *ret, struct err *e);

/*
 * The board of a card that is there, by its PCI device id (device << 16 |
 * vendor, as NVML gives it) or by its name as NVML writes it, with or without
 * "NVIDIA " in front. -ENOENT. Reads every board file: for a start, not a loop.
 */
int board_find_device(const char *name, uint32_t pci_device_id, struct board *ret, struct err *e);

/*
 * Takes over from a board file what a driver does not tell about `own`: its key,
 * compute instances of profiles that are not cut now, a missing device id.
 */
void board_know(struct board *own, const struct board *file);

/* All keys that board_find knows, sorted, each once; caller calls field_words_done. */
int board_keys(struct field_words *ret, struct err *e);

#endif
