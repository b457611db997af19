/*
 * http.h - reads one HTTP/1.1 answer, piece by piece.
 *
 * Only what divvyd sends: a status line, headers, and a body by
 * Content-Length, in chunks, or up to the end of the connection. No I/O: bytes
 * are fed in, so that a test or a fuzzer can feed anything.
 *
 *     AUTO(http_answer) struct http_answer a = HTTP_ANSWER_INIT(max);
 *     while ((r = http_feed(&a, buf, n, e)) == HTTP_MORE)
 *         n = read more; on the end of the connection: r = http_end(&a, e);
 *     // a.status, a.body
 *
 * Limits: a line of HTTP_LINE_MAX bytes, HTTP_HEADERS_MAX headers, a body of
 * `max` bytes.
 */
#ifndef DIVVY_CLIENT_HTTP_H
#define DIVVY_CLIENT_HTTP_H

#include "base/text.h"

#define HTTP_LINE_MAX 8192u
#define HTTP_HEADERS_MAX 64u

enum http_progress { HTTP_MORE = 0, HTTP_DONE = 1 };

enum http_state {
    HTTP_STATUS = 0,
    HTTP_HEADERS,
    HTTP_BODY, /* `left` bytes */
    HTTP_BODY_TO_END,
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK, /* `left` bytes */
    HTTP_CHUNK_END,
    HTTP_TRAILERS,
    HTTP_COMPLETE,
};

struct http_answer {
    enum http_state state;
    unsigned status; /* 100 to 599 */
    bool closes;     /* the connection is of no use afterwards */
    struct text body;
    /* inside */
    size_t max;
    uint64_t left;
    bool has_length, chunked;
    unsigned headers;
    struct text line;
};

#define HTTP_ANSWER_INIT(max_)                                                                     \
    {                                                                                              \
        .state = HTTP_STATUS, .body = TEXT_INIT, .max = (max_), .line = TEXT_INIT                  \
    }

void http_answer_done(struct http_answer *a);

/*
 * Takes `n` bytes. HTTP_MORE, or HTTP_DONE when the answer is whole (bytes
 * behind it are an error: nothing was asked yet). -EPROTO: no HTTP; -EFBIG:
 * beyond a limit.
 */
int http_feed(struct http_answer *a, const char *data, size_t n, struct err *e);

/* The connection has ended. HTTP_DONE, or -EPROTO when the answer is not whole. */
int http_end(struct http_answer *a, struct err *e);

#endif
