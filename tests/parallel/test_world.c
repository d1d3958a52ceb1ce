/* Tests the world of a process without a launcher, which needs no MPI, and the detection of
 * launchers by the environment variables that they set. */
#include "child.h"
#include "harness.h"
#include "parallel.h"
#include "parallel/world/launcher.h"

#include <limits.h>

static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
                                    "SLURM_NODEID",         "SLURM_NTASKS",
                                    "SLURM_PROCID",         "PMI_SIZE",
                                    "MPI_LOCALNRANKS",      "PMIX_RANK",
                                    "PMIX_NAMESPACE"};

static void clear_environment(void)
{
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); ++i) unsetenv(names[i]);
}

static void expect(const char *name, int size, int local_size)
{
    Launcher found = launcher_find();
    CU_ASSERT_STRING_EQUAL(found.name ? found.name : "none", name);
    CU_ASSERT_EQUAL(found.size, size);
    CU_ASSERT_EQUAL(found.local_size, local_size);
    clear_environment();
}

static void launchers(void)
{
    clear_environment();
    expect("none", 1, 1);
    setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
    expect("mpirun", 8, 4);
    setenv("PMI_SIZE", "6", 1);
    setenv("MPI_LOCALNRANKS", "3", 1);
    expect("mpiexec", 6, 3);
    setenv("PMIX_RANK", "0", 1);
    setenv("PMIX_NAMESPACE", "job", 1);
    expect("prun", 0, 0);
}

static void slurm(void)
{
    /* variables of a batch script, which is not a job step */
    setenv("SLURM_NTASKS", "8", 1);
    setenv("SLURM_PROCID", "0", 1);
    expect("none", 1, 1);
    setenv("SLURM_STEP_NUM_TASKS", "11", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2),3", 1);
    setenv("SLURM_NODEID", "1", 1);
    expect("srun", 11, 4);
    setenv("SLURM_STEP_NUM_TASKS", "11", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2),3", 1);
    setenv("SLURM_NODEID", "2", 1);
    expect("srun", 11, 3);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "nonsense", 1);
    expect("srun", 2, 0);
    /* variables of a shell on a node */
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    setenv("PMIX_RANK", "0", 1);
    setenv("PMIX_NAMESPACE", "slurm.1", 1);
    Launcher shell = launcher_find();
    CU_ASSERT_PTR_NULL(shell.name);
    CU_ASSERT_EQUAL(shell.size, 1);
    clear_environment();
    /* Hydra starts its daemons by srun, one on each node */
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("PMI_SIZE", "16", 1);
    expect("mpiexec", 16, 0);
}

static void alone(void)
{
    clear_environment();
    int local = 0;
    CU_ASSERT_FALSE(world_launched(&local));
    CU_ASSERT_EQUAL(local, 1);
    World world;
    CHECK_OK(world_init(&world, NULL, NULL));
    int up = 1;
    MPI_Initialized(&up);
    CU_ASSERT_FALSE(up);
    CU_ASSERT_EQUAL(world.size, 1);
    CU_ASSERT_EQUAL(world.rank, 0);
    CU_ASSERT_TRUE(world.one_node && world.comm == MPI_COMM_NULL);
    CHECK_OK(status_agree(&world, OK));
    CHECK_FAILS(status_agree(&world, fail(ERR_IO, "disk full")), ERR_IO, "disk full");
    int data = 5, all = 0;
    world_bcast(&world, &data, sizeof data, 0);
    world_allgather(&world, &data, sizeof data, &all);
    CU_ASSERT_EQUAL(all, 5);
    world_barrier(&world);
    world_fini(&world);
}

static void *host_alloc(Backend *b, size_t bytes)
{
    (void)b;
    return mem_pages_new(bytes);
}
static void host_release(Backend *b, void *p, size_t bytes)
{
    (void)b;
    mem_pages_free(p, bytes);
}

static void comm_alone(void)
{
    static const BackendTable table = {
        .name = "host", .host_memory = true, .alloc = host_alloc, .release = host_release};
    Backend backend = {.table = &table};
    World world;
    CHECK_OK(world_init(&world, NULL, NULL));
    for (int transport = TRANSPORT_AUTO; transport <= TRANSPORT_NCCL; ++transport) {
        Comm *comm = NULL;
        CHECK_OK(comm_new(&comm, &world, &backend, transport, 10));
        CU_ASSERT_PTR_EQUAL(comm->table, &comm_self);
        comm->arena[9] = 3;
        comm_allreduce_begin(comm, 0, 10);
        comm_progress(comm);
        comm_wait(comm);
        CU_ASSERT_EQUAL(comm->arena[9], 3);
        comm_free(&comm);
    }
    world_fini(&world);
}

/* A message with more bytes than MPI can count is refused before MPI is called. MPI has not been
 * started here. */
static void send_too_much(void)
{
    const World world = {.size = 2};
    char byte = 0;
    world_send(&world, 1, &byte, (size_t)INT_MAX + 1);
}

static void message_too_large(void)
{
    char said[512];
    int status = in_child(send_too_much, said, sizeof said);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "a message between two ranks has 2147483648 bytes"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "lower train.batch"));
}

TEST_MAIN("world", {"launchers", launchers}, {"slurm", slurm}, {"world alone", alone},
          {"comm alone", comm_alone}, {"message too large", message_too_large})
