#include "client/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "model/job_json.h"

int packet_send(int sock, enum attach_type type, const void *body, size_t len, const int streams[3])
{
    struct attach_head head = { .type = type };
    struct iovec iov[2] = { { .iov_base = &head, .iov_len = sizeof head },
                            { .iov_base = (void *)(uintptr_t)body, .iov_len = len } };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
    if (streams) {
        memset(&control, 0, sizeof control);
        msg.msg_control = &control;
        msg.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(3 * sizeof(int));
        memcpy(CMSG_DATA(c), streams, 3 * sizeof(int));
    }
    return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int packet_read_end(const char *text, size_t len, struct job_exit *ret, struct err *e)
{
    auto_json json_t *j = NULL;
    int r = json_parse(text, len, "the end of the job", &j, e);
    return r < 0 ? r : exit_from_json(j, ret, e);
}
