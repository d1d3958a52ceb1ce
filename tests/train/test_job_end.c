/* Tests the parsing of squeue's answers. tests/cli/time.sh tests how a run asks squeue. */
#include "train/run/job_end.h"
#include "harness.h"

#include <math.h>

static void test_read(void)
{
    static const struct {
        const char *text, *job;
        /* remaining seconds; negative: the answer does not tell them */
        double left_s;
    } answers[] = {{"7 59:03\n", "7", 3543},
                   {"7 0:09\n", "7", 9},
                   {"7 1:00:00\n", "7", 3600},
                   {"7 1-12:00:00\n", "7", 129600},
                   {"7 UNLIMITED\n", "7", INFINITY},
                   {"  7   5:00  \n", "7", 300},
                   {"6 1:00\n7 2:00\n8 3:00\n", "7", 120},
                   {"17 1:00\n71 2:00\n7 3:00", "7", 180},
                   {"slurm: a notice to all\n7 5:00\n", "7", 300},
                   {"7 INVALID\n", "7", -1},
                   {"7 NOT_SET\n", "7", -1},
                   {"7 5\n", "7", -1},
                   {"7 5:60\n", "7", -1},
                   {"7\n8 5:00\n", "7", -1},
                   {"8 5:00\n", "7", -1},
                   {"squeue: error: Invalid job id specified\n", "7", -1},
                   {"\n\n", "7", -1},
                   {"", "7", -1}};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; ++i) {
        double left = -1;
        bool read = job_end_read(answers[i].text, answers[i].job, &left);
        CU_ASSERT_EQUAL(read, answers[i].left_s >= 0);
        if (read) CU_ASSERT_EQUAL(left, answers[i].left_s);
    }
}

TEST_MAIN("job end", {"squeue's answers", test_read})
