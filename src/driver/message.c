#include "driver/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"

union descriptor_space {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static int send_packet(int sock, const char *data, size_t len, int fd, int flags, struct err *e)
{
    union descriptor_space space = { .bytes = { 0 } };
    struct iovec part = { .iov_base = (void *)data, .iov_len = len };
    struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
    if (fd >= 0) {
        m.msg_control = space.bytes;
        m.msg_controllen = sizeof space.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t n;
    do
        n = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    if (errno == ECONNRESET)
        errno = EPIPE;
    return err_sys(e, "cannot send to the other process");
}

static int send_by_memory(int sock, const char *data, size_t len, int flags, struct err *e)
{
    char packet[64];
    auto_close int fd = memfd_create("divvy-message", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot make a memory file");
    int code = file_write_all(fd, data, len, e);
    if (code < 0)
        return code;
    int n = snprintf(packet, sizeof packet, "{\"memfd\": %zu}", len);
    return send_packet(sock, packet, (size_t)n, fd, flags, e);
}

int message_send(int sock, json_t *take_message, int flags, struct err *e)
{
    auto_free char *data = json_dumps(take_message, JSON_COMPACT);
    json_decref(take_message);
    if (!data)
        abort(); /* out of memory: as in base/text.h; texts are valid UTF-8 by json_put_text */
    size_t len = strlen(data);
    return len <= MESSAGE_INLINE ? send_packet(sock, data, len, -1, flags, e)
                                 : send_by_memory(sock, data, len, flags, e);
}

static int take_descriptor(struct msghdr *m)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && fd < 0)
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

static int parse_memory(int fd, json_t **ret, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > (off_t)MESSAGE_MAX)
        return err_set(e, -EPROTO, "a message of another process has no or too many bytes");
    size_t len = (size_t)st.st_size;
    char *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return err_sys(e, "cannot read a message of another process");
    int code = json_parse(data, len, "message", ret, e);
    (void)munmap(data, len); /* cannot fail for what was just mapped */
    return code;
}

int message_receive(int sock, int flags, json_t **ret, struct err *e)
{
    auto_free char *buf = mem_new(MESSAGE_INLINE + 1);
    union descriptor_space space = { .bytes = { 0 } };
    struct iovec part = { .iov_base = buf, .iov_len = MESSAGE_INLINE + 1 };
    struct msghdr m = { .msg_iov = &part,
                        .msg_iovlen = 1,
                        .msg_control = space.bytes,
                        .msg_controllen = sizeof space.bytes };
    ssize_t n;
    do
        n = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE)))
        return err_set(e, -EPIPE, "the other process is gone");
    if (n < 0)
        return err_sys(e, "cannot receive from the other process");
    auto_close int fd = take_descriptor(&m);
    if (m.msg_flags & MSG_TRUNC)
        return err_set(e, -EPROTO, "a message of another process is too long");
    int code = fd >= 0 ? parse_memory(fd, ret, e) : json_parse(buf, (size_t)n, "message", ret, e);
    return code < 0 ? err_set(e, -EPROTO, "a message of another process is not readable") : 1;
}
