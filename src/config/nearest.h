/*
 * nearest.h - what somebody meant who wrote a name that does not exist.
 *
 *     nearest_name("moed_hold", names, count)  ->  "mode_hold"
 */
#ifndef DIVVY_CONFIG_NEAREST_H
#define DIVVY_CONFIG_NEAREST_H

#include <stddef.h>

/*
 * The name with the fewest letters to change, insert, drop or swap, case not
 * counted; a name that begins as `given` does counts as near, too. NULL when
 * none is near enough to be meant. Names longer than 63 bytes never are.
 */
const char *nearest_name(const char *given, const char *const *names, size_t count);

#endif
