#include "client/http.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

void http_answer_done(struct http_answer *a)
{
    text_done(&a->body);
    text_done(&a->line);
}

/* "HTTP/1.1 200 OK" */
static int take_status(struct http_answer *a, const char *line, struct err *e)
{
    bool is_http = strncmp(line, "HTTP/1.", 7) == 0 && strlen(line) >= 12 && line[8] == ' ';
    uint64_t n = 0;
    char digits[4] = "";
    if (is_http)
        memcpy(digits, line + 9, 3);
    if (!is_http || text_parse_u64(digits, 100, 599, "status", &n, NULL) < 0)
        return err_set(e, -EPROTO, "the answer does not begin like HTTP: '%.32s'", line);
    a->status = (unsigned)n;
    a->closes = line[7] == '0';
    a->state = HTTP_HEADERS;
    return 0;
}

static int take_length(struct http_answer *a, const char *value, struct err *e)
{
    uint64_t n = 0;
    if (text_parse_u64(value, 0, INT64_MAX, "Content-Length", &n, e) < 0)
        return err_set(e, -EPROTO, "the answer's Content-Length is no number: '%.32s'", value);
    if (n > a->max)
        return err_set(e, -EFBIG, "the answer has %s bytes, more than this program takes", value);
    if (a->has_length && n != a->left)
        return err_set(e, -EPROTO, "the answer has two lengths");
    a->has_length = true;
    a->left = n;
    return 0;
}

static int take_header(struct http_answer *a, char *line, struct err *e)
{
    char *colon = strchr(line, ':');
    if (!colon)
        return err_set(e, -EPROTO, "the answer has a header without a colon: '%.32s'", line);
    if (++a->headers > HTTP_HEADERS_MAX)
        return err_set(e, -EFBIG, "the answer has more than %u headers", HTTP_HEADERS_MAX);
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    if (strcasecmp(line, "Content-Length") == 0)
        return take_length(a, value, e);
    if (strcasecmp(line, "Transfer-Encoding") == 0) {
        if (strcasecmp(value, "chunked") != 0)
            return err_set(e, -EPROTO, "the answer is encoded as '%.32s'", value);
        a->chunked = true;
    }
    if (strcasecmp(line, "Connection") == 0 && strcasecmp(value, "close") == 0)
        a->closes = true;
    return 0;
}

/* The empty line: what kind of body follows? */
static void end_headers(struct http_answer *a)
{
    if (a->status < 200) {
        a->state = HTTP_STATUS; /* "100 Continue": the answer is still to come */
        a->has_length = a->chunked = false;
        a->left = 0;
        return;
    }
    if (a->status == 204 || a->status == 304)
        a->state = HTTP_COMPLETE;
    else if (a->chunked)
        a->state = HTTP_CHUNK_SIZE;
    else if (a->has_length)
        a->state = a->left ? HTTP_BODY : HTTP_COMPLETE;
    else
        a->state = HTTP_BODY_TO_END;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* "1a2b" or "1a2b;extension" */
static int take_chunk_size(struct http_answer *a, const char *line, struct err *e)
{
    uint64_t n = 0;
    const char *p = line;
    for (; hex_digit(*p) >= 0; p++) {
        n = n * 16 + (uint64_t)hex_digit(*p);
        if (n > a->max)
            return err_set(e, -EFBIG, "the answer has more bytes than this program takes");
    }
    if (p == line || (*p && *p != ';' && *p != ' '))
        return err_set(e, -EPROTO, "the answer has a chunk of no size: '%.32s'", line);
    a->left = n;
    a->state = n ? HTTP_CHUNK : HTTP_TRAILERS;
    return 0;
}

static int take_line(struct http_answer *a, char *line, struct err *e)
{
    switch (a->state) {
    case HTTP_STATUS:
        return take_status(a, line, e);
    case HTTP_HEADERS:
        if (line[0])
            return take_header(a, line, e);
        end_headers(a);
        return 0;
    case HTTP_CHUNK_SIZE:
        return take_chunk_size(a, line, e);
    case HTTP_CHUNK_END:
        a->state = HTTP_CHUNK_SIZE;
        return line[0] ? err_set(e, -EPROTO, "a chunk of the answer is too long") : 0;
    case HTTP_TRAILERS:
        if (!line[0])
            a->state = HTTP_COMPLETE;
        else if (++a->headers > HTTP_HEADERS_MAX)
            return err_set(e, -EFBIG, "the answer has too many trailers");
        return 0;
    case HTTP_BODY:
    case HTTP_BODY_TO_END:
    case HTTP_CHUNK:
    case HTTP_COMPLETE:
        break;
    }
    return err_set(e, -EPROTO, "the answer goes on behind its end");
}

/* Bytes up to and with the next newline; how many were used. */
static ssize_t eat_line(struct http_answer *a, const char *data, size_t n, struct err *e)
{
    const char *newline = memchr(data, '\n', n);
    size_t used = newline ? (size_t)(newline - data) + 1 : n;
    if (a->line.len + used > HTTP_LINE_MAX)
        return err_set(e, -EFBIG, "the answer has a line of more than %u bytes", HTTP_LINE_MAX);
    if (memchr(data, '\0', used))
        return err_set(e, -EPROTO, "the answer has a NUL in a header");
    text_addn(&a->line, data, used);
    if (!newline)
        return (ssize_t)used;
    a->line.buf[strcspn(a->line.buf, "\r\n")] = '\0';
    int r = take_line(a, a->line.buf, e);
    text_clear(&a->line);
    return r < 0 ? r : (ssize_t)used;
}

static ssize_t eat_body(struct http_answer *a, const char *data, size_t n, struct err *e)
{
    bool counted = a->state != HTTP_BODY_TO_END;
    size_t used = counted && n > a->left ? (size_t)a->left : n;
    if (a->body.len + used > a->max)
        return err_set(e, -EFBIG, "the answer has more bytes than this program takes");
    text_addn(&a->body, data, used);
    if (!counted)
        return (ssize_t)used;
    a->left -= used;
    if (!a->left)
        a->state = a->state == HTTP_BODY ? HTTP_COMPLETE : HTTP_CHUNK_END;
    return (ssize_t)used;
}

static bool in_body(enum http_state s)
{
    return s == HTTP_BODY || s == HTTP_BODY_TO_END || s == HTTP_CHUNK;
}

int http_feed(struct http_answer *a, const char *data, size_t n, struct err *e)
{
    while (n) {
        if (a->state == HTTP_COMPLETE)
            return err_set(e, -EPROTO, "the answer goes on behind its end");
        ssize_t used = in_body(a->state) ? eat_body(a, data, n, e) : eat_line(a, data, n, e);
        if (used < 0)
            return (int)used;
        data += used;
        n -= (size_t)used;
    }
    return a->state == HTTP_COMPLETE ? HTTP_DONE : HTTP_MORE;
}

int http_end(struct http_answer *a, struct err *e)
{
    a->closes = true;
    if (a->state == HTTP_BODY_TO_END)
        a->state = HTTP_COMPLETE;
    if (a->state == HTTP_COMPLETE)
        return HTTP_DONE;
    return err_set(e, -EPROTO, "the connection ended in the middle of the answer");
}
