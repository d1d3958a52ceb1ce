/* hwloc's synthetic machines, as XML and as Hardware. */
#ifndef WEFT_TESTS_TOPO_SYNTHETIC_H
#define WEFT_TESTS_TOPO_SYNTHETIC_H

#include "harness.h"
#include "topo.h"

#include <hwloc.h>

/* Returns the XML of a synthetic machine, owned by the caller. description: hwloc's text for it,
 * such as "core:4 pu:2". */
static char *synthetic_xml(const char *description, size_t *bytes)
{
    hwloc_topology_t topology;
    char *buffer, *copy;
    int length;
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_init(&topology), 0);
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_set_synthetic(topology, description), 0);
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_load(topology), 0);
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_export_xmlbuffer(topology, &buffer, &length, 0), 0);
    copy = mem_text(buffer);
    *bytes = strlen(copy);
    hwloc_free_xmlbuffer(topology, buffer);
    hwloc_topology_destroy(topology);
    return copy;
}

static Hardware synthetic(const char *description)
{
    Hardware h;
    size_t bytes;
    char *xml = synthetic_xml(description, &bytes);
    CHECK_OK(hardware_from_xml(&h, "made-up", xml, bytes));
    mem_free(&xml);
    return h;
}

#endif
