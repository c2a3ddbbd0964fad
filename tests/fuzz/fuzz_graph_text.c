/* Fuzzer of the graph's text form: what parses must verify, print, and parse to the same text. */
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/ir/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    plm_graph g, h;
    plm_error err;
    char *once = NULL, *twice = NULL;
    if (plm_graph_parse((const char *)data, size, &g, &err) == PLM_OK) {
        if (plm_graph_print(&g, &once, &err) != PLM_OK)
            abort();
        if (plm_graph_parse(once, strlen(once), &h, &err) != PLM_OK)
            abort();
        if (plm_graph_print(&h, &twice, &err) != PLM_OK || strcmp(once, twice) != 0)
            abort();
        plm_graph_fini(&h);
        plm_free(once);
        plm_free(twice);
    }
    plm_graph_fini(&g);
    return 0;
}
