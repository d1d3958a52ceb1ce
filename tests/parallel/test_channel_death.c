/* A rank that is killed while another waits for its message: the waiting rank finds out by itself, says so, and the job ends.
 * The program starts itself under mpirun, which is stopped for a while: it would end the job first. */
#include "harness.h"
#include "parallel.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

/* Lets mpirun go on, in `after` seconds. */
static void continue_later(pid_t launcher, unsigned after)
{
    if (fork() != 0) return;
    sleep(after);
    kill(launcher, SIGCONT);
    _exit(0);
}

/* One rank of the job that dies: from 1 to 0, where 1 never sends. */
static int rank_main(int argc, char **argv)
{
    World world;
    Grid grid;
    Channels *channels = NULL;
    ChannelSpec spec = {.from = 1, .to = 0, .depth = 2, .bytes = 4096};
    pid_t launcher = getppid();
    if (world_init(&world, &argc, &argv) != OK) return 2;
    if (grid_init(&grid, &world, (GridShape){.dp = 1, .pp = 2, .tp = 1}) != OK) return 2;
    if (channels_new(&channels, &grid.pp_world, &spec, 1, TRANSPORT_AUTO) != OK) return 2;
    if (world.rank == 1) {
        continue_later(launcher, 2);
        kill(launcher, SIGSTOP);
        raise(SIGKILL);
    }
    for (double start = clock_s(); !channel_message(channels, 0) && clock_s() - start < 20;)
        channels_wait(channels, clock_s() - start);
    return 0; /* nobody noticed */
}

static void killed_while_waited_for(void)
{
    char command[4096], text[8192] = "";
    snprintf(command, sizeof command, "timeout -k 2 30 mpirun --bind-to none -n 2 '%s' rank 2>&1",
             program);
    double start = clock_s();
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    size_t length = fread(text, 1, sizeof text - 1, pipe);
    int status = pclose(pipe);
    text[length] = '\0';
    CU_ASSERT_TRUE(clock_s() - start < 25);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 124);
    if (!strstr(text, "waiting for a message: rank 1 (process")) printf("%s\n", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "waiting for a message: rank 1 (process"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "rank 0 of 2 (dp 0, pp 0, tp 0) on "));
}

int main(int argc, char **argv)
{
    static const HarnessTest tests[] = {{"killed while waited for", killed_while_waited_for}};
    program = argv[0];
    if (argc > 1) return rank_main(argc, argv);
    return harness_run("death of a peer", tests, 1, 0, NULL);
}
