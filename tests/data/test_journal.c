/* Tests who holds the lock of an import's journal, and for how long. */
#include "data/folder/folder.h"
#include "harness.h"

#include <stdlib.h>
#include <unistd.h>

/* While rank 0 reads the journal and closes gaps, no other import may begin. */
static void the_lock_stays_to_the_end(void)
{
    char path[] = "/tmp/weft-journal-XXXXXX";
    int file = mkstemp(path);
    FolderImport import = {.out = "out.h5"};
    FolderWork work = {.import = &import, .journal = path, .journal_fd = -1, .journal_lock = -1};
    FolderWork second = work;
    CU_ASSERT(file >= 0 && close(file) == 0);
    CHECK_OK(journal_open(&work, true));
    CHECK_OK(journal_reopen(&work));
    CHECK_OK(journal_clear(&work));
    CHECK_FAILS(journal_open(&second, true), ERR_USAGE, "another import is writing out.h5");
    journal_close(&second);
    journal_close(&work);
    CHECK_OK(journal_open(&second, true));
    journal_close(&second);
    unlink(path);
}

TEST_MAIN("journal", {"the lock stays to the end", the_lock_stays_to_the_end})
