/*
 * connect.h - one request to the daemon and its answer. Inside client.
 */
#ifndef DIVVY_CLIENT_CONNECT_H
#define DIVVY_CLIENT_CONNECT_H

#include "client/client.h"

/*
 * Sends `body` (may be NULL; borrowed) and reads the answer: 0 with the JSON
 * of a status below 300 (`ret` may be NULL), or the daemon's refusal with its
 * code and words. At most timeout_ms. Errors as client.h lists them.
 */
int client_ask(struct client *c, const char *method, const char *path, json_t *body, int timeout_ms,
               json_t **ret, struct err *e);

/* Connects if there is no connection. -EHOSTDOWN, -EACCES. */
int client_dial(struct client *c, struct err *e);

#endif
