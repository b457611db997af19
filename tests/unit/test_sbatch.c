#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/sbatch.h"

/*
 * The words that come of #SBATCH `line`, then the note; or what is wrong. That
 * it runs once, as every such script, is left out.
 */
static char *ours(const char *line)
{
    AUTO(script_options) struct script_options found = SCRIPT_OPTIONS_INIT;
    AUTO(script_options) struct script_options words = SCRIPT_OPTIONS_INIT;
    auto_free char *text = text_fmt("#!/bin/sh\n#SBATCH %s\ntrue\n", line);
    auto_free char *note = NULL;
    struct err e = ERR_INIT;
    if (script_parse_sbatch("s.sh", text, strlen(text), &found, &e) < 0 ||
        sbatch_words("s.sh", &found, &words, &note, &e) < 0)
        return text_dup(e.text);
    struct text t = TEXT_INIT;
    for (size_t i = 0; i < words.count; i++)
        if (strcmp(words.argv[i], "--srun=each") != 0)
            text_addf(&t, i ? " %s" : "%s", words.argv[i]);
    if (note)
        text_addf(&t, " [%s]", note);
    return text_take(&t);
}

static void becomes(const char *line, const char *words)
{
    auto_free char *found = ours(line);
    assert_string_equal(found, words);
}

static void says(const char *line, const char *said)
{
    auto_free char *found = ours(line);
    if (!strstr(found, said))
        fail_msg("'%s' gives '%s' without '%s'", line, found, said);
}

static void counterparts_are_understood(void **state)
{
    (void)state;
    becomes("--job-name=a --time 1:00 -A nlp", "--name=a --time=1:00 --account=nlp");
    becomes("-J \"my run\"", "--name=my run");
    becomes("-t5 -o=x", "--time=5 --output=x");
    becomes("--requeue --hold", "--requeue-on-fault --hold");
    becomes("--mem=16G", "--mem=16G");
    becomes("--mem=4000", "--mem=4000M");
    becomes("--mem=0", "");
    becomes("--signal=B:USR1@60", "--signal=USR1@60s");
    becomes("-N 1 --ntasks=1", "--srun=1");
    becomes("--open-mode=append --kill-on-invalid-dep=no", "--append --keep-invalid");
    becomes("--open-mode=truncate --kill-on-invalid-dep=yes", "");
    becomes("-n 4 --ntasks-per-node=4 -e x", "--error=x --srun=4");
}

static void gpus_are_cards_or_slices(void **state)
{
    (void)state;
    becomes("--gres=gpu:2", "--gpus=2");
    becomes("--gres=gpu", "--gpus=1");
    becomes("--gres=gpu:2g.20gb:1", "--slice=2g.20gb");
    becomes("--gres=gpu:1g.10gb", "--slice=1g.10gb");
    becomes("-G 4", "--gpus=4");
    becomes("--gpus=0", "");
    says("--gres=gpu:a100:2", "--gpus=2 [");
    says("--gpus=a100:2", "left out: the kind of card, a100 (line 2)");
    becomes("--gres=gpu:2g.20gb:2", "--slice=2g.20gb:2");
    becomes("--gpus-per-task=1g.10gb:1 --ntasks=3", "--slice=1g.10gb:3 --srun=3");
    becomes("--gpus-per-task=2 --ntasks=2", "--gpus=4 --srun=2");
    says("--gres=gpu:999999999999", "s.sh:2: ");
    says("--gres=gpu:2 --gpus=1", "s.sh:2: a GPU was asked for in line 2 already");
    says("--gres=shard:1", "--gres=shard:1");
}

static void what_means_nothing_here_is_named(void **state)
{
    (void)state;
    says("--partition=gpu --exclusive --frobnicate x --time=5", "--time=5 [");
    says("--partition=gpu", "--partition (line 2)");
    says("--ntasks=0", "s.sh:2: ");
    says("--open-mode=a", "s.sh:2: --open-mode is append or truncate");
    says("--ntasks=4 --ntasks-per-node=2", "s.sh:2: --ntasks and");
    says("--frobnicate=x", "--frobnicate=x");
    says("--nodes=2", "s.sh:2: this is one machine");
    says("--time", "s.sh:2: this option needs a value");
    says("train.py", "s.sh:2: this is no option");
}

static void an_option_of_sbatch_leads_to_ours(void **state)
{
    (void)state;
    assert_string_equal(sbatch_nearest("--cpus-per-task=4"), "cpus");
    assert_string_equal(sbatch_nearest("-c"), "cpus");
    assert_string_equal(sbatch_nearest("--gres"), "gpus");
    assert_null(sbatch_nearest("--partition=a"));
    assert_null(sbatch_nearest("--frobnicate"));
    assert_null(sbatch_nearest("-"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counterparts_are_understood),
        cmocka_unit_test(gpus_are_cards_or_slices),
        cmocka_unit_test(what_means_nothing_here_is_named),
        cmocka_unit_test(an_option_of_sbatch_leads_to_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
