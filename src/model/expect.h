/*
 * expect.h - a card as it will be when a step is done.
 *
 * Lets a plan that is still being carried out be seen as if it were finished,
 * so that the next decision builds on it, and lets a snapshot be brought up to
 * date by the answer to a step. Doing a step twice changes nothing.
 */
#ifndef DIVVY_MODEL_EXPECT_H
#define DIVVY_MODEL_EXPECT_H

#include "model/step.h"

/*
 * Changes `c` as the step would. An instance that is created has the step's gi
 * and ci, which are NOT_AN_INSTANCE while the step is only planned. A step
 * that is about something which is not there (or there already) does nothing.
 */
void card_expect(struct card *c, const struct step *s);

#endif
