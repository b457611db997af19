#include "cli/ids.h"

static const char hold_doc[] =
    "Keeps jobs that wait from starting, until they are released.\vThey keep their place in line. "
    "What an operator holds of others' jobs only operators can release. Tasks of an array are "
    "named as in 41_7 or 41_[3-9]; 41 is all of it.";

static const char release_doc[] = "Lets jobs that are held start again, at their old place.";

int verb_hold(struct session *s, int argc, char **argv)
{
    return ids_act(s, argc, argv, "hold", hold_doc, JOB_ACTION_HOLD);
}

int verb_release(struct session *s, int argc, char **argv)
{
    return ids_act(s, argc, argv, "release", release_doc, JOB_ACTION_RELEASE);
}
