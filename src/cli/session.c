/* How a call of `divvy` begins, whichever of its two programs takes it. */
#include "cli/verb.h"

#include <string.h>

int session_globals(struct session *s, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--root") == 0 && i + 1 < argc) {
            free(s->root);
            s->root = text_dup(argv[++i]);
        } else if (text_starts(argv[i], "--root=")) {
            free(s->root);
            s->root = text_dup(argv[i] + 7);
        } else if (strcmp(argv[i], "--json") == 0) {
            s->json = true;
        } else {
            break;
        }
    }
    return i;
}

bool session_is_mig_parted(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    return argc > 0 && strcmp(slash ? slash + 1 : argv[0], "nvidia-mig-parted") == 0;
}
