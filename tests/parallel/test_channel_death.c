/* Tests that a rank that waits for a message notices that the sender has been killed, reports this,
 * and ends the job. The program starts itself under mpirun. mpirun would end the job before the
 * rank notices, so it is stopped until the rank has reported. A stopped mpirun forwards no output,
 * so ranks write to a file.
 * cores: 0.1 */
#include "harness.h"
#include "parallel.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;
static const char WORDS[] = "waiting for a message: rank 1 (process";
static const double LIMIT_S = 100;

/* Returns the text of a file, in static memory. */
static const char *text_of(const char *path)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = '\0';
    return text;
}

/* Continues mpirun (process `launcher`) when the waiting rank has written its report to the file
 * `said`. */
static void continue_later(pid_t launcher, const char *said)
{
    if (fork() != 0) return;
    for (double start = clock_s(); !strstr(text_of(said), WORDS) && clock_s() - start < LIMIT_S;)
        usleep(10000);
    kill(launcher, SIGCONT);
    _exit(0);
}

/* Runs one rank of the job: rank 0 waits for a message that rank 1 never sends. */
static int rank_main(int argc, char **argv)
{
    World world;
    Grid grid;
    Channels *channels = NULL;
    ChannelSpec spec = {.from = 1, .to = 0, .depth = 2, .bytes = 4096};
    pid_t launcher = getppid();
    const char *said = argv[1];
    if (!freopen(said, "a", stderr)) return 2;
    if (world_init(&world, &argc, &argv) != OK) return 2;
    if (grid_init(&grid, &world, (GridShape){.dp = 1, .pp = 2, .tp = 1}) != OK) return 2;
    if (channels_new(&channels, &grid.pp_world, &spec, 1, TRANSPORT_AUTO) != OK) return 2;
    if (world.rank == 1) {
        continue_later(launcher, said);
        kill(launcher, SIGSTOP);
        raise(SIGKILL);
    }
    for (double start = clock_s(); !channel_message(channels, 0) && clock_s() - start < LIMIT_S;)
        channels_wait(channels, clock_s() - start);
    /* reached only if the death is not noticed */
    return 0;
}

static void killed_while_waited_for(void)
{
    char command[4096], said[] = "/tmp/weft-death-XXXXXX";
    int file = mkstemp(said);
    CU_ASSERT_FATAL(file >= 0);
    close(file);
    snprintf(command, sizeof command,
             "timeout -k 2 %.0f mpirun --bind-to none -n 2 '%s' '%s' >/dev/null 2>&1", 2 * LIMIT_S,
             program, said);
    int status = system(command);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 124);
    const char *text = text_of(said);
    if (!strstr(text, WORDS)) printf("%s\n", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, WORDS));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "rank 0 of 2 (dp 0, pp 0, tp 0) on "));
    unlink(said);
}

int main(int argc, char **argv)
{
    static const HarnessTest tests[] = {{"killed while waited for", killed_while_waited_for}};
    program = argv[0];
    if (argc > 1) return rank_main(argc, argv);
    return harness_run("death of a peer", tests, 1, 0, NULL);
}
