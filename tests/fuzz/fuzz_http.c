/* The answers that the command reads from the daemon's socket, whoever sits there. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/http.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    AUTO(http_answer) struct http_answer a = HTTP_ANSWER_INIT(4096);
    size_t piece = size ? 1 + data[0] % 64u : 1;
    int r = HTTP_MORE;
    for (size_t at = 0; at < size && r == HTTP_MORE; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        r = http_feed(&a, (const char *)data + at, n, &e);
    }
    if (r == HTTP_MORE)
        r = http_end(&a, &e);
    assert(a.body.len <= 4096);
    if (r < 0)
        assert(e.code == r && e.text[0]);
    else
        assert(r == HTTP_DONE && a.status >= 200 && a.status <= 599);
    return 0;
}
