#include "base/secure.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define LINKS_MAX 40

/* One question: `wanted` is what was asked for, for the message. */
struct walk {
    const struct secure *rule;
    const char *wanted;
    unsigned links;
};

static int check_owner(const struct walk *w, const char *part, const struct stat *st, struct err *e)
{
    if (st->st_uid == 0 || st->st_uid == w->rule->owner)
        return 0;
    auto_free char *lies =
        strcmp(part, w->wanted) == 0 ? text_dup("") : text_fmt(", who could replace %s", w->wanted);
    return err_set(e, -EPERM, "%s belongs to uid %u%s; this mends it: chown %u %s", part,
                   (unsigned)st->st_uid, lies, (unsigned)w->rule->owner, part);
}

static int check_mode(const struct walk *w, const char *part, const struct stat *st, bool last,
                      struct err *e)
{
    mode_t bad = st->st_mode & w->rule->refused;
    if (!bad || (!last && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX)))
        return 0;
    const char *who = bad == 022 ? "its group and others" : bad == 020 ? "its group" : "others";
    const char *less = bad == 022 ? "go-w" : bad == 020 ? "g-w" : "o-w";
    auto_free char *lies = last ? text_dup("") : text_fmt(", and %s lies in it", w->wanted);
    return err_set(e, -EPERM, "%s may be written by %s (mode %04o)%s; this mends it: chmod %s %s",
                   part, who, (unsigned)(st->st_mode & 07777), lies, less, part);
}

static int walk(struct walk *w, const char *path, struct err *e);

static int follow(struct walk *w, const char *link, const char *rest, struct err *e)
{
    char target[PATH_MAX];
    if (++w->links > LINKS_MAX)
        return err_set(e, -ELOOP, "%s: the symbolic link %s leads round and round", w->wanted,
                       link);
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0)
        return err_sys(e, "cannot read the symbolic link %s", link);
    target[n] = '\0';
    const char *slash = strrchr(link, '/');
    int above = slash ? (int)(slash - link) : 0;
    auto_free char *path = target[0] == '/' ? text_fmt("%s%s", target, rest)
                                            : text_fmt("%.*s/%s%s", above, link, target, rest);
    return walk(w, path, e);
}

/* `part` is the beginning of a path, `rest` what comes after it. 1: a link was followed to the end. */
static int check_part(struct walk *w, const char *part, const char *rest, struct err *e)
{
    struct stat st;
    bool last = rest[strspn(rest, "/")] == '\0';
    const char *top = w->rule->top;
    if (lstat(part, &st) < 0)
        return err_sys(e, "cannot look at %s", part);
    /* Above the top only links matter: they lead elsewhere. */
    bool above = top && strlen(part) < strlen(top) && strncmp(part, top, strlen(part)) == 0;
    int r = above ? 0 : check_owner(w, part, &st, e);
    if (r < 0)
        return r;
    if (S_ISLNK(st.st_mode)) {
        r = follow(w, part, rest, e);
        return r < 0 ? r : 1;
    }
    return above ? 0 : check_mode(w, part, &st, last, e);
}

static int walk(struct walk *w, const char *path, struct err *e)
{
    auto_free char *copy = text_dup(path);
    int r = check_part(w, "/", path + strspn(path, "/"), e);
    for (size_t at = strspn(path, "/"); r == 0 && path[at];) {
        at += strcspn(path + at, "/");
        copy[at] = '\0';
        r = check_part(w, copy, path + at, e);
        copy[at] = path[at];
        at += strspn(path + at, "/");
    }
    return r < 0 ? r : 0;
}

int secure_check(const struct secure *s, const char *path, struct err *e)
{
    struct walk w = { .rule = s, .wanted = path };
    if (path[0] != '/')
        return err_set(e, -EINVAL, "'%s' is no absolute path", path);
    return walk(&w, path, e);
}
