/* divvy.yaml and job scripts. */
#include <assert.h>

#include "base/cleanup.h"
#include "config/divvyd.h"
#include "config/script.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct divvyd_config c;
    divvyd_config_init(&c);
    if (divvyd_config_parse("divvy.yaml", (const char *)data, size, &c, &e) == 0) {
        for (size_t i = 0; i < c.account_count; i++)
            assert(divvyd_config_account(&c, c.accounts[i].name) && c.accounts[i].share > 0);
    } else {
        assert(e.code < 0 && e.text[0]);
    }
    divvyd_config_done(&c);

    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    e = (struct err)ERR_INIT;
    if (script_parse("job.sh", (const char *)data, size, &o, &e) == 0)
        assert(!o.count || (o.argv && !o.argv[o.count]));
    else
        assert(e.code < 0 && e.text[0]);
    return 0;
}
