/* The hardware of equal nodes is stored once, on all ranks; switches come from Slurm's address. */
#include "topo.h"

#include "../parallel/mpi_main.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CPUs that sched_getaffinity returns; NULL: those of this process */
static const cpu_set_t *pretended;

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus)
{
    if (!pretended) return syscall(SYS_sched_getaffinity, pid, bytes, cpus) < 0 ? -1 : 0;
    *cpus = *pretended;
    return 0;
}

/* Every second CPU of a large node, as where its two sockets take turns. */
static void test_many_cpus(void)
{
    Topology t;
    cpu_set_t even, back;
    CPU_ZERO(&even);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu += 2) CPU_SET(cpu, &even);
    pretended = &even;
    topo_describe(&t, &test_world);
    pretended = NULL;
    for (int r = 0; r < t.ranks; ++r)
        CU_ASSERT(cpus_read(t.cpus[r], &back) && CPU_EQUAL(&back, &even));
    topo_fini(&t);
}

/* Three ranks of this host, as if they were on three nodes. */
static void test_kinds(void)
{
    Topology t;
    topo_describe(&t, &test_world);
    CU_ASSERT(t.ranks == 3 && t.nodes == 1 && !t.hardware_index && !t.bytes_per_s);
    CU_ASSERT_STRING_EQUAL(t.switches[0], "s0.s4");
    CHECK_OK(topo_describe_hardware(&t, &test_world, false));
    CU_ASSERT(t.hardware_count == 1 && t.hardware_index[0] == 0);
    topo_fini(&t);

    topo_describe(&t, &test_world);
    for (int n = 1; n < 3; ++n) {
        t.host[n] = mem_format("other%d", n);
        t.switches[n] = mem_text("");
        t.node[n] = n;
    }
    t.nodes = 3;
    CHECK_OK(topo_describe_hardware(&t, &test_world, false));
    CU_ASSERT(t.hardware_count == 1 && t.hardware_index[0] == 0 && t.hardware_index[1] == 0 &&
              t.hardware_index[2] == 0);
    CU_ASSERT(t.hardware[0].part_count > 0 && hardware_count(&t.hardware[0], PART_CORE) > 0);
    topo_fini(&t);
}

int main(int argc, char **argv)
{
    static const HarnessTest tests[] = {{"kinds of nodes", test_kinds},
                                        {"many CPUs", test_many_cpus}};
    setenv("SLURM_TOPOLOGY_ADDR", "s0.s4.node7", 1);
    return mpi_test_run(argc, argv, "describe", tests, 2, 3);
}
