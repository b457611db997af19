/* Tries each file of the folder given once, and says so as TAP. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "fuzz.h"

static int replay_file(int dirfd, const char *name, int n)
{
    auto_free char *data = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;
    if (file_read(dirfd, name, 16 << 20, &data, &len, &e) < 0) {
        printf("not ok %d - %s: %s\n", n, name, e.text);
        return -1;
    }
    /* a copy of just that size, so that a sanitizer sees one byte too far */
    auto_free uint8_t *input = malloc(len ? len : 1);
    if (!input)
        return -1;
    memcpy(input, data, len);
    (void)LLVMFuzzerTestOneInput(input, len); /* always 0: a fault ends the program */
    printf("ok %d - %s\n", n, name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER-OF-SEEDS\n", argv[0]);
        return 2;
    }
    auto_dir DIR *dir = opendir(argv[1]);
    if (!dir) {
        printf("Bail out! cannot open %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    int n = 0;
    int failed = 0;
    for (struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] != '.')
            failed |= replay_file(dirfd(dir), d->d_name, ++n);
    }
    if (n == 0)
        printf("not ok %d - %s holds no seeds\n", ++n, argv[1]);
    printf("1..%d\n", n);
    return failed ? 1 : 0;
}
