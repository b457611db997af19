/*
 * killpoint.h - named places where a test may kill the process that passes.
 *
 * "Every process may be killed at any instruction" is a promise that only a
 * kill can check, and one that comes by chance checks little. So the places
 * that matter have names, and tests/e2e/test_kill.py kills at each of them in
 * each of its stories. A point that no story passes fails that test.
 *
 *     store_commit(s, e);
 *     KILLPOINT(COMMIT_DONE);
 *
 * Only a build with -Dkillpoints=true has them; elsewhere the macro is empty,
 * and no release is built with it. There a process heeds the directory that
 * DIVVY_KILL names:
 *
 *     DIR/NAME     the process that passes NAME takes one byte off this file,
 *                  and dies by SIGKILL when that was the last. The file is gone
 *                  then, so what is started again lives.
 *     DIR/passed   where it exists, every pass adds a line with its name
 *     DIR/killed   the name and pid of whoever died, a line each
 *
 * A new point is a line here and a KILLPOINT where it belongs.
 */
#ifndef DIVVY_BASE_KILLPOINT_H
#define DIVVY_BASE_KILLPOINT_H

/* clang-format off */
#define KILLPOINTS(X)                                                                              \
    /* divvyd: a start */                                                                          \
    X(STORE_OPENED)      /* nothing else was read */                                               \
    X(LOADED)            /* the picture is the store's; no child runs, no folder was looked at */  \
    X(SWEPT)             /* the folders were looked at; nothing of it is committed */              \
    X(CUT_RECOVERED)     /* what became of a step was looked up; not committed */                  \
    /* divvyd: a turn */                                                                           \
    X(COMMIT)            /* about to commit */                                                     \
    X(COMMITTED)         /* on disk; nobody was told, nothing was begun */                         \
    X(ANSWERED)          /* one of the turn's answers was given */                                 \
    /* divvyd: a cut */                                                                            \
    X(STEP_SEND)         /* journaled as sent, and not sent */                                     \
    X(STEP_SENT)         /* `act` has it */                                                        \
    X(STEP_RESULT)       /* its result came and is not written */                                  \
    X(JOURNAL_TAKEN)     /* a command's journal is in the store, and its file is there */          \
    X(REBOOTS_TAKEN)     /* the cards it set aside are in the store, and their file is there */    \
    /* divvyd: an attempt */                                                                       \
    X(LAUNCH)            /* no folder */                                                           \
    X(FOLDER_FILLED)     /* under its temporary name */                                            \
    X(FOLDER_MADE)       /* under its name; no supervisor */                                       \
    X(SUPERVISOR_MADE)   /* spawned */                                                             \
    X(STARTED_READ)      /* not committed */                                                       \
    X(STOP)              /* committed, the file is not written */                                  \
    X(STOP_WRITTEN)                                                                                \
    X(EXIT_READ)         /* not committed */                                                       \
    X(FOLDER_REMOVE)     /* the end is committed, the folder is there */                           \
    X(FOLDER_RENAMED)    /* and is not removed yet */                                              \
    X(FOLDER_REMOVED)                                                                              \
    /* divvyd --child */                                                                           \
    X(ACT_STEP)          /* has the step, did nothing */                                           \
    X(ACT_DONE)          /* did it, told nobody */                                                 \
    X(WATCH_LOOK)        /* about to take a snapshot */                                            \
    X(WATCH_TOLD)        /* half of it was sent */                                                 \
    /* divvy-supervise */                                                                          \
    X(LAUNCHER_ASKED)    /* has the folder's name; no supervisor */                                \
    X(LAUNCHER_FORKED)   /* and the supervisor lives */                                            \
    X(SUPERVISE_LOCKED)  /* has the lock, read nothing */                                          \
    X(SUPERVISE_TREE)    /* cgroup and gate are there, no task */                                  \
    X(SUPERVISE_HELD)    /* the tasks are there and wait; `started` is not written */              \
    X(SUPERVISE_STARTED) /* `started` is on disk; the tasks wait */                                \
    X(SUPERVISE_LETGO)   /* the tasks run */                                                       \
    X(SUPERVISE_OVER)    /* nothing lives; `exit` is not written */                                \
    X(SUPERVISE_EXIT)    /* `exit` is on disk */                                                   \
    /* a change without divvyd: tests/e2e/test_layout_kill.py kills at these */                    \
    X(APPLY_PLANNED)     /* the journal has the plan, nothing is begun */                          \
    X(APPLY_BEGUN)       /* journaled as begun, not done */                                        \
    X(APPLY_DONE)        /* done, and not journaled as done */                                     \
    X(APPLY_JOURNALED)   /* done and journaled */                                                  \
    X(APPLY_ASIDE)       /* what waits for a reboot is on disk; the journal is there, too */       \
    X(APPLY_OVER)        /* all is done; the journal is there */                                   \
    X(APPLY_CLOSED)      /* the journal is gone, and nobody was told */
/* clang-format on */

enum killpoint {
#define X(name) KILLPOINT_##name,
    KILLPOINTS(X)
#undef X
};

#ifdef DIVVY_KILLPOINTS
void killpoint_pass(enum killpoint point);
#define KILLPOINT(name) killpoint_pass(KILLPOINT_##name)
#else
#define KILLPOINT(name) ((void)0)
#endif

#endif
