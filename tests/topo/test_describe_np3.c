/* The hardware of equal nodes is stored once, on all ranks; switches come from Slurm's address. */
#include "topo.h"

#include "../parallel/mpi_main.h"

#include <string.h>

/* Three ranks of this host, as if they were on three nodes. */
static void test_kinds(void)
{
    Topology t;
    topo_describe(&t, &test_world);
    CU_ASSERT(t.ranks == 3 && t.nodes == 1 && !t.kind && !t.bytes_per_s);
    CU_ASSERT_STRING_EQUAL(t.switches[0], "s0.s4");
    CHECK_OK(topo_describe_hardware(&t, &test_world, false));
    CU_ASSERT(t.kinds == 1 && t.kind[0] == 0);
    topo_fini(&t);

    topo_describe(&t, &test_world);
    for (int n = 1; n < 3; ++n) {
        t.host[n] = mem_format("other%d", n);
        t.switches[n] = mem_text("");
        t.node[n] = n;
    }
    t.nodes = 3;
    CHECK_OK(topo_describe_hardware(&t, &test_world, false));
    CU_ASSERT(t.kinds == 1 && t.kind[0] == 0 && t.kind[1] == 0 && t.kind[2] == 0);
    CU_ASSERT(t.hardware[0].parts > 0 && hardware_count(&t.hardware[0], PART_CORE) > 0);
    topo_fini(&t);
}

int main(int argc, char **argv)
{
    static const HarnessTest tests[] = {{"kinds of nodes", test_kinds}};
    setenv("SLURM_TOPOLOGY_ADDR", "s0.s4.node7", 1);
    return mpi_test_run(argc, argv, "describe", tests, 1, 3);
}
