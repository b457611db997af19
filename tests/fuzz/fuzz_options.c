/* The options of a job, as a script's lines or anybody's command line may have them. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/spec.h"
#include "fuzz.h"

#define WORDS_MAX 64

/* One word a line. */
static size_t split(char *text, char *words[WORDS_MAX], unsigned lines[WORDS_MAX])
{
    size_t n = 0;
    char *save = NULL;
    for (char *w = strtok_r(text, "\n", &save); w && n < WORDS_MAX;
         w = strtok_r(NULL, "\n", &save)) {
        lines[n] = (unsigned)n + 1;
        words[n++] = w;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[WORDS_MAX];
    unsigned lines[WORDS_MAX];
    char *command[] = { (char *)"train", NULL };
    char *env[] = { (char *)"HOME=/", (char *)"EMPTY=", NULL };
    struct err e = ERR_INIT;
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    auto_free char *text = mem_new(size + 1);
    memcpy(text, data, size);
    size_t n = split(text, words, lines);
    if (job_option_words("job.sh", words, lines, n, &o, &e) < 0) {
        assert(e.text[0]);
        return 0;
    }
    struct submit_place where = { .cwd = "/", .environ_ = env, .command = command };
    struct job_spec spec = { .name = NULL };
    auto_free char *left_out = NULL;
    int r = job_options_spec(&o, &where, &spec, &left_out, &e);
    assert(r < 0 ? e.text[0] && !spec.name : job_spec_check(&spec, NULL) == 0 || !spec.account);
    job_spec_done(&spec);
    return 0;
}
