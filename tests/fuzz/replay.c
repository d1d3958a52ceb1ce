/* Runs a fuzz target without libFuzzer on every file of its corpus once, with limits on the time of
 * each file and on the memory of all. It is built by the compiler that builds weft. usage:
 * test_TARGET [FILE or FOLDER...]    without any: the target's corpus (tests/fuzz/corpus) */
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

enum { FILE_S = 20, MEMORY_MB = 1024, FILES = 4096 };

static const char *now;
static int passed;

static void late(int number)
{
    (void)number;
    static const char words[] = "a file takes too long: ";
    (void)!write(STDERR_FILENO, words, sizeof words - 1);
    (void)!write(STDERR_FILENO, now, strlen(now));
    _exit(1);
}

static void replay_file(const char *path)
{
    char *text;
    size_t bytes;
    now = path;
    if (file_text(path, 64 << 20, &text, &bytes) != OK) die("%s", fail_message());
    /* a separate allocation, so that a sanitizer sees reads beyond the end */
    uint8_t *data = malloc(bytes ? bytes : 1);
    if (!data) die("out of memory");
    memcpy(data, text, bytes);
    mem_free(&text);
    alarm(FILE_S);
    LLVMFuzzerTestOneInput(data, bytes);
    alarm(0);
    free(data);
    ++passed;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay(const char *path)
{
    struct dirent **entry;
    int count = scandir(path, &entry, visible, alphasort);
    if (count < 0) {
        replay_file(path);
        return;
    }
    for (int i = 0; i < count; ++i) {
        char *name = mem_format("%s/%s", path, entry[i]->d_name);
        replay_file(name);
        mem_free(&name);
        free(entry[i]);
    }
    free(entry);
}

int main(int argc, char **argv)
{
    struct rusage used;
    signal(SIGALRM, late);
    for (int i = 1; i < argc; ++i) replay(argv[i]);
    if (argc == 1) replay("tests/fuzz/corpus/" FUZZ_TARGET);
    getrusage(RUSAGE_SELF, &used);
    bool small = used.ru_maxrss / 1024 < MEMORY_MB;
    if (!small) printf("%ld MB of memory were taken\n", used.ru_maxrss / 1024);
    bool good = small && passed && (argc > 1 || fuzz_taken);
    if (passed && !fuzz_taken) printf("none was taken\n");
    printf("fuzz " FUZZ_TARGET ": %d passed, %d failed\n", passed, !good);
    return !good;
}
