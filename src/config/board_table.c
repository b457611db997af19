/*
 * board-table FILE... - a step of the build: board files as C (board_known.h).
 *
 * It is linked with the readers of the program itself, and with a table that is
 * empty, so that what it prints is what they say.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "config/board.h"
#include "config/board_known.h"

#define GAP 8 /* as many zeros are cheaper to write than another run */

const struct board_known board_table[] = { { .text = NULL } };

static void print_bytes(const unsigned char *bytes, size_t len)
{
    (void)printf("\"");
    for (size_t i = 0; i < len; i++)
        (void)printf("\\%03o%s", bytes[i], i % 16 == 15 ? "\"\n    \"" : "");
    (void)printf("\"");
}

/* Where the run that begins at `at` ends: before GAP zeros, or at the end. */
static size_t run_end(const unsigned char *bytes, size_t at, size_t size)
{
    size_t end = at;
    for (size_t i = at; i < size && i - end <= GAP; i++)
        if (bytes[i])
            end = i + 1;
    return end;
}

static void print_runs(size_t number, const struct board *b)
{
    const unsigned char *bytes = (const unsigned char *)b;
    (void)printf("static const struct board_run runs_%zu[] = {\n", number);
    for (size_t at = 0; at < sizeof *b; at++) {
        if (!bytes[at])
            continue;
        size_t end = run_end(bytes, at, sizeof *b);
        (void)printf("  { %zu, %zu, ", at, end - at);
        print_bytes(bytes + at, end - at);
        (void)printf(" },\n");
        at = end;
    }
    (void)printf("};\n");
}

static int print_board(size_t number, const char *path, struct err *e)
{
    auto_free char *text = NULL;
    auto_free struct board *b = mem_new(sizeof *b);
    size_t len = 0;
    int r = file_read(AT_FDCWD, path, 1u << 20, &text, &len, e);
    if (r == 0)
        r = board_parse(path, text, len, b, e);
    if (r < 0)
        return r;
    print_runs(number, b);
    (void)printf("static const char text_%zu[] =\n    ", number);
    print_bytes((const unsigned char *)text, len);
    (void)printf(";\n");
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    (void)printf("#include \"config/board_known.h\"\n");
    for (int i = 1; i < argc; i++)
        if (print_board((size_t)i, argv[i], &e) < 0) {
            (void)fprintf(stderr, "%s\n", e.text);
            return 1;
        }
    (void)printf("const struct board_known board_table[] = {\n");
    for (int i = 1; i < argc; i++)
        (void)printf(
            "  { text_%d, sizeof text_%d - 1, runs_%d, sizeof runs_%d / sizeof *runs_%d },\n", i, i,
            i, i, i);
    (void)printf("  { 0, 0, 0, 0 },\n};\n");
    return fflush(stdout) == 0 ? 0 : 1;
}
