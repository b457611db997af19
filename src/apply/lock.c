#include "apply/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define LOCK_DIR "/run/divvy-cards"

static int held_by_another(int fd, const char *card_uuid, struct err *e)
{
    char who[128] = "";
    ssize_t n = pread(fd, who, sizeof who - 1, 0);
    if (n > 0)
        who[strcspn(who, "\n")] = '\0';
    return err_set(e, -EBUSY, "%s is being managed by %s; one at a time", card_uuid,
                   n > 0 && text_is_printable(who) ? who : "another process");
}

static int no_way(const char *path, struct err *e)
{
    if (errno == EACCES || errno == EPERM || errno == EROFS)
        return err_set(e, -EACCES,
                       "cannot lock a card in %s: an administrator manages the cards of this "
                       "machine; run this as root",
                       path);
    return err_sys(e, "cannot lock a card in %s", path);
}

static int write_owner(int fd, const char *who, struct err *e)
{
    auto_free char *line = text_fmt("%s (pid %d)\n", who, (int)getpid());
    if (ftruncate(fd, 0) < 0)
        return err_sys(e, "cannot write a card's lock");
    return file_write_all(fd, line, strlen(line), e);
}

int card_lock_take(struct card_lock *l, const char *driver_root, const char *card_uuid,
                   const char *who, struct err *e)
{
    const char *root = driver_root ? driver_root : getenv("DIVVY_DRIVER_ROOT");
    if (strchr(card_uuid, '/') || !card_uuid[0])
        return err_set(e, -EINVAL, "'%.64s' is no UUID of a card", card_uuid);
    auto_free char *dir = file_under(root ? root : "/", LOCK_DIR);
    int code = file_mkdirs(dir, 0755, NULL);
    if (code < 0) {
        errno = -code;
        return no_way(dir, e);
    }
    auto_free char *path = text_fmt("%s/%s", dir, card_uuid);
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return no_way(dir, e);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? held_by_another(fd, card_uuid, e) : no_way(dir, e);
    code = write_owner(fd, who, e);
    if (code == 0)
        l->fd = take_fd(fd);
    return code;
}

void card_lock_done(struct card_lock *l)
{
    if (l->fd >= 0)
        (void)close(l->fd); /* lets go of the lock */
    l->fd = -1;
}
