/* client/http.h: answers in any pieces, and what is no answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "client/http.h"

#define BODY_MAX 64

/* Feeds `answer` in pieces of `piece` bytes, then the end of the connection if it is not whole. */
static int read_all(const char *answer, size_t piece, struct http_answer *a)
{
    int r = HTTP_MORE;
    for (size_t len = strlen(answer); len && r == HTTP_MORE;) {
        size_t n = piece < len ? piece : len;
        r = http_feed(a, answer, n, NULL);
        answer += n;
        len -= n;
    }
    return r == HTTP_MORE ? http_end(a, NULL) : r;
}

static void expect(const char *answer, unsigned status, const char *body)
{
    for (size_t piece = 1; piece < 40; piece++) {
        AUTO(http_answer) struct http_answer a = HTTP_ANSWER_INIT(BODY_MAX);
        assert_int_equal(read_all(answer, piece, &a), HTTP_DONE);
        assert_int_equal(a.status, status);
        assert_string_equal(a.body.buf, body);
    }
}

static void expect_failure(const char *answer, int code)
{
    for (size_t piece = 1; piece < 40; piece++) {
        AUTO(http_answer) struct http_answer a = HTTP_ANSWER_INIT(BODY_MAX);
        assert_int_equal(read_all(answer, piece, &a), code);
    }
}

static void test_body_by_length(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
    expect("HTTP/1.1 404 Not Found\ncontent-length:2\n\n{}", 404, "{}");
    expect("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "");
    expect("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
}

static void test_body_in_chunks(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
           200, "hello world");
    expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n"
           "Later: yes\r\n\r\n",
           200, "0123456789");
}

static void test_body_to_the_end(void **state)
{
    (void)state;
    expect("HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it");
}

static void test_a_hundred_comes_before(void **state)
{
    (void)state;
    expect("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 201,
           "ok");
}

static void test_who_closes(void **state)
{
    (void)state;
    AUTO(http_answer) struct http_answer a = HTTP_ANSWER_INIT(BODY_MAX);
    assert_int_equal(
        read_all("HTTP/1.1 429 Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 9, &a),
        HTTP_DONE);
    assert_true(a.closes);
}

static void test_what_is_no_answer(void **state)
{
    (void)state;
    expect_failure("SSH-2.0-OpenSSH\r\n\r\n", -EPROTO);
    expect_failure("HTTP/1.1 99 Low\r\n\r\n", -EPROTO);
    expect_failure("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", -EPROTO);
    expect_failure("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -EPROTO);
    expect_failure("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", -EPROTO);
    expect_failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", -EPROTO);
    expect_failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", -EPROTO);
    expect_failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", -EPROTO);
    expect_failure("", -EPROTO);
}

static void test_limits(void **state)
{
    (void)state;
    expect_failure("HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n", -EFBIG);
    expect_failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffff\r\n", -EFBIG);
    AUTO(text) struct text many = TEXT_INIT;
    text_add(&many, "HTTP/1.1 200 OK\r\n");
    for (unsigned i = 0; i <= HTTP_HEADERS_MAX; i++)
        text_addf(&many, "H%u: x\r\n", i);
    expect_failure(many.buf, -EFBIG);
    AUTO(text) struct text longer = TEXT_INIT;
    text_add(&longer, "HTTP/1.1 200 ");
    while (longer.len <= HTTP_LINE_MAX)
        text_add(&longer, "very ");
    expect_failure(longer.buf, -EFBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_body_by_length),  cmocka_unit_test(test_body_in_chunks),
        cmocka_unit_test(test_body_to_the_end), cmocka_unit_test(test_a_hundred_comes_before),
        cmocka_unit_test(test_who_closes),      cmocka_unit_test(test_what_is_no_answer),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
