/* divvy.yaml. */
#include <assert.h>

#include "config/divvyd.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct divvyd_config c;
    if (divvyd_config_parse("divvy.yaml", (const char *)data, size, &c, &e) == 0) {
        for (size_t i = 0; i < c.account_count; i++)
            assert(divvyd_config_account(&c, c.accounts[i].name) && c.accounts[i].share >= 0);
        divvyd_config_done(&c);
    } else {
        assert(e.code < 0 && e.text[0]);
    }
    return 0;
}
