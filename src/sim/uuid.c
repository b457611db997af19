#include "sim/uuid.h"

#include <stdio.h>
#include <string.h>

struct sha1 {
    uint32_t h[5];
};

static uint32_t rotate(uint32_t x, unsigned int n)
{
    return (x << n) | (x >> (32 - n));
}

static void schedule(const uint8_t *block, uint32_t w[80])
{
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

static uint32_t mix(size_t round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20)
        return ((b & c) | (~b & d)) + 0x5A827999U;
    if (round < 40)
        return (b ^ c ^ d) + 0x6ED9EBA1U;
    if (round < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDCU;
    return (b ^ c ^ d) + 0xCA62C1D6U;
}

static void add_block(struct sha1 *s, const uint8_t *block)
{
    uint32_t w[80];
    schedule(block, w);
    uint32_t a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];
    for (size_t i = 0; i < 80; i++) {
        uint32_t t = rotate(a, 5) + mix(i, b, c, d) + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = t;
    }
    s->h[0] += a;
    s->h[1] += b;
    s->h[2] += c;
    s->h[3] += d;
    s->h[4] += e;
}

void sha1(const void *data, size_t len, uint8_t ret_digest[20])
{
    struct sha1 s = { { 0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U, 0xC3D2E1F0U } };
    const uint8_t *p = data;
    size_t left = len;
    for (; left >= 64; left -= 64, p += 64)
        add_block(&s, p);
    uint8_t tail[128] = { 0 };
    memcpy(tail, p, left);
    tail[left] = 0x80;
    size_t tail_len = left < 56 ? 64 : 128;
    uint64_t bits = (uint64_t)len * 8;
    for (size_t i = 0; i < 8; i++)
        tail[tail_len - 1 - i] = (uint8_t)(bits >> (8 * i));
    for (size_t at = 0; at < tail_len; at += 64)
        add_block(&s, tail + at);
    for (size_t i = 0; i < 20; i++)
        ret_digest[i] = (uint8_t)(s.h[i / 4] >> (24 - 8 * (i % 4)));
}

void uuid_v5(const char *name, char ret_text[UUID_TEXT_SIZE])
{
    /* RFC 4122 names the DNS namespace; ours need only be the same every time. */
    static const uint8_t space[16] = { 0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                       0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8 };
    uint8_t input[16 + 256];
    size_t len = strnlen(name, sizeof input - sizeof space);
    memcpy(input, space, sizeof space);
    memcpy(input + sizeof space, name, len);
    uint8_t d[20];
    sha1(input, sizeof space + len, d);
    d[6] = (uint8_t)((d[6] & 0x0F) | 0x50);
    d[8] = (uint8_t)((d[8] & 0x3F) | 0x80);
    (void)snprintf(ret_text, UUID_TEXT_SIZE, /* always 36 characters */
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", d[0],
                   d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8], d[9], d[10], d[11], d[12], d[13],
                   d[14], d[15]);
}
