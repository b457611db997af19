/*
 * divvy-session SERVICE USER [DIR]: opens a PAM session, tells what it brought,
 * and closes it when its standard input ends. divvy-supervise starts it; see
 * supervise/session.h. DIR: where the service's file lies, instead of /etc/pam.d.
 */
#include <errno.h>
#include <security/pam_appl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "supervise/session.h"

/* The last thing that a module said; people want to read it. */
static char said[256];

static int converse(int count, const struct pam_message **messages, struct pam_response **ret,
                    void *unused)
{
    (void)unused;
    *ret = calloc((size_t)count, sizeof **ret); /* the library frees it */
    if (!*ret)
        return PAM_BUF_ERR;
    for (int i = 0; i < count; i++) {
        if (messages[i]->msg_style != PAM_ERROR_MSG && messages[i]->msg_style != PAM_TEXT_INFO) {
            free(*ret);
            *ret = NULL;
            return PAM_CONV_ERR; /* nobody is there to answer */
        }
        (void)snprintf(said, sizeof said, "%s", messages[i]->msg); /* cut when too long */
    }
    return PAM_SUCCESS;
}

static void tell(json_t *take_message)
{
    char *text = json_dumps(take_message, JSON_COMPACT);
    if (text)
        (void)!write(1, text, strlen(text)); /* nobody listens: it is closed at once */
    free(text);
    json_decref(take_message);
    (void)close(1); /* it ends the message; nothing more is said */
}

static int fail(pam_handle_t *h, int code, const char *what)
{
    json_t *j = json_object();
    auto_free char *words =
        text_fmt("%s: %s%s%s", what, pam_strerror(h, code), said[0] ? ": " : "", said);
    json_put_text(j, "trouble", words);
    tell(j);
    return 1;
}

static void tell_session(pam_handle_t *h)
{
    struct session s = SESSION_INIT;
    for (int i = 0; i < RLIM_NLIMITS; i++)
        s.limited[i] = getrlimit((__rlimit_resource_t)i, &s.limits[i]) == 0;
    s.umask = umask(022);
    s.nice = getpriority(PRIO_PROCESS, 0);
    s.env = pam_getenvlist(h);
    tell(session_to_json(&s));
    strv_free(s.env);
}

static int serve(pam_handle_t *h)
{
    char byte;
    int code = pam_acct_mgmt(h, PAM_SILENT);
    if (code != PAM_SUCCESS)
        return fail(h, code, "the account may not be used");
    code = pam_open_session(h, PAM_SILENT);
    if (code == PAM_SUCCESS) {
        tell_session(h);
        while (read(0, &byte, 1) > 0 || errno == EINTR)
            errno = 0;
        code = pam_close_session(h, PAM_SILENT);
    } else {
        (void)fail(h, code, "the session could not be opened");
    }
    return code == PAM_SUCCESS ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct pam_conv conv = { .conv = converse };
    pam_handle_t *h = NULL;
    if (argc < 3 || argc > 4) {
        (void)fputs("Usage: divvy-session SERVICE USER [DIR]\n"
                    "divvy-supervise starts it; by hand it is of no use.\n",
                    stderr); /* nowhere else to say it */
        return 2;
    }
    int code = argc == 4 ? pam_start_confdir(argv[1], argv[2], &conv, argv[3], &h)
                         : pam_start(argv[1], argv[2], &conv, &h);
    int status = code == PAM_SUCCESS ? serve(h) : fail(h, code, "PAM does not start");
    if (h)
        (void)pam_end(h, code); /* it ends, whatever it says */
    return status;
}
