#include "cli/ids.h"

static const char doc[] =
    "Ends jobs that run and puts them back into the queue, at their old place.\vThey begin anew, "
    "as "
    "another attempt of the same job; DIVVY_ATTEMPT tells which. Jobs that were submitted with "
    "--no-requeue, and those that somebody is attached to (divvy run), are refused.";

int verb_requeue(struct session *s, int argc, char **argv)
{
    return ids_act(s, argc, argv, "requeue", doc, JOB_ACTION_REQUEUE);
}
