#include "api/caller.h"

#include <errno.h>
#include <sys/socket.h>

static int read_groups(int fd, struct api_caller *c, struct err *e)
{
    socklen_t bytes = 64 * sizeof(gid_t);
    auto_free gid_t *groups = mem_new(bytes);
    int r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes);
    if (r < 0 && errno == ERANGE && bytes <= API_CALLER_GROUPS_MAX * sizeof(gid_t)) {
        free(groups);
        groups = mem_new(bytes);
        r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes);
    }
    if (r < 0)
        return err_sys(e, "cannot ask the kernel for the groups of the caller");
    c->group_count = bytes / sizeof(gid_t);
    c->groups = take_ptr(groups);
    return 0;
}

int api_caller_read(int fd, struct api_caller *ret, struct err *e)
{
    struct ucred cred;
    socklen_t bytes = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
        return err_sys(e, "cannot ask the kernel who is calling");
    struct api_caller c = { .uid = cred.uid, .gid = cred.gid, .pid = cred.pid };
    int r = read_groups(fd, &c, e);
    if (r == 0)
        *ret = c;
    return r;
}

void api_caller_done(struct api_caller *c)
{
    free(c->groups);
    *c = (struct api_caller){ .groups = NULL };
}

static bool in_group(const struct api_caller *c, gid_t gid)
{
    for (size_t i = 0; i < c->group_count; i++)
        if (c->groups[i] == gid)
            return true;
    return c->gid == gid;
}

int api_caller_judge(struct api_caller *c, const struct api_config *cfg, uid_t daemon_uid,
                     struct err *e)
{
    bool master = c->uid == 0 || c->uid == daemon_uid;
    if (cfg->private_root && !master)
        return err_set(e, -EACCES,
                       "this is the private Divvy of user %u; start one with --root DIR",
                       (unsigned)daemon_uid);
    c->is_operator = master || (cfg->has_operators && in_group(c, cfg->operators_gid));
    return 0;
}
