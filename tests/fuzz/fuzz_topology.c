/* Target: a file of a topology. hwloc's XML is left out, since a separate process reads it. */
#include "fuzz.h"
#include "report.h"
#include "topo.h"

/* Returns the text that topo_print writes. The caller releases it with free. */
static char *print(const Topology *topo)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die("open_memstream");
    topo_print(topo, out);
    fclose(out);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Topology topo, again;
    size_t blank = 0;
    while (blank < size && strchr(" \t\r\n", data[blank])) ++blank;
    if (blank < size && data[blank] == '<') return 0;
    if (topo_read(&topo, fuzz_file(data, size)) != OK) return 0;
    char *text = print(&topo);
    if (topo_read(&again, fuzz_file((const uint8_t *)text, strlen(text))) != OK)
        die("a topology is refused that was written: %s\n%s", fail_message(), text);
    char *second = print(&again);
    if (strcmp(text, second) != 0) die("it changes when it is written: %s\n%s", text, second);
    if (report_topology_svg(&topo, "/dev/null") != OK || report_topology(&topo, "/dev/null") != OK)
        die("it cannot be drawn: %s", fail_message());
    fuzz_took(OK);
    free(second);
    free(text);
    topo_fini(&again);
    topo_fini(&topo);
    return 0;
}
