/* Tests segments of shared memory in a world of one rank. They are aligned and zeroed, and after
 * their release no file is open. Also tests that a dead peer is distinguished from a live one, and
 * that threads are counted while they sleep. */
#include "harness.h"
#include "parallel/shm/futex.h"
#include "parallel/shm/shm_segments.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

static const World alone = {.size = 1, .one_node = true, .comm = MPI_COMM_NULL};

static int open_files(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir)) ++count;
    if (dir) closedir(dir);
    return count;
}

static void made_and_released(void)
{
    static const size_t sizes[] = {4096, 3 * 4096, (size_t)5 << 20};
    int before = open_files();
    for (int i = 0; i < 3; ++i) {
        ShmSegments shared;
        CHECK_OK(shm_segments_init(&shared, &alone, sizes[i], "the test"));
        char *base = shared.segment[0];
        CU_ASSERT_EQUAL((uintptr_t)base % ((uintptr_t)2 << 20), 0);
        bool zero = true;
        for (size_t at = 0; at < sizes[i]; ++at) zero = zero && base[at] == 0;
        CU_ASSERT_TRUE(zero);
        memset(base, 1, sizes[i]);
        CU_ASSERT_TRUE(shm_segments_rank_is_alive(&shared, 0));
        shm_segments_fini(&shared);
        CU_ASSERT_PTR_NULL(shared.segment);
    }
    CU_ASSERT_EQUAL(open_files(), before);
}

static void too_much(void)
{
    ShmSegments shared;
    CHECK_FAILS(shm_segments_init(&shared, &alone, (size_t)1 << 46, "the test"), ERR_CONFIG,
                "is free");
    CU_ASSERT_PTR_NULL(shared.segment);
}

static void dead_peer(void)
{
    ShmSegments shared;
    CHECK_OK(shm_segments_init(&shared, &alone, 4096, "the test"));
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    shared.pid[0] = child;
    CU_ASSERT_TRUE(shm_segments_rank_is_alive(&shared, 0));
    kill(child, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    /* the child has ended, but its parent has not waited for it */
    CU_ASSERT_FALSE(shm_segments_rank_is_alive(&shared, 0));
    waitpid(child, NULL, 0);
    CU_ASSERT_FALSE(shm_segments_rank_is_alive(&shared, 0));
    shm_segments_fini(&shared);
}

static void sleepers(void)
{
    _Atomic uint32_t word = 1, asleep = 0;
    CU_ASSERT_FALSE(futex_sleep(&word, &asleep, 1, 0.001));
    CU_ASSERT_TRUE(futex_sleep(&word, &asleep, 0, 0.001));
    CU_ASSERT_EQUAL(asleep, 0);
}

TEST_MAIN("shared", {"made and released", made_and_released}, {"too much", too_much},
          {"a dead peer", dead_peer}, {"sleepers", sleepers})
