/* Damages a number in another process, as a bad memory chip would: finds eight numbers of a tensor
 * that does not change in its memory, where what lies around them does change (training), and not
 * in a copy of them (a save), and makes the first a NaN, or flips a bit of it. FILE holds the
 * tensor as a checkpoint does; in memory its numbers may lie in blocks, so the eight are those
 * STRIDE apart that are neighbours there.
 * usage: poke PID FILE STRIDE nan|flip     exit code 0: done; 1: not there, or no process; 64 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NEAR = 1 << 17, LOOKS = 6, CHUNK = 1 << 22, PATTERN = 8 };
typedef struct {
    int fd;
    float pattern[PATTERN];
    uint64_t at; /* 0: not found */
} Search;

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Does what is behind (or before) the tensor change from each look to the next? */
static int lives(const Search *s, uint64_t at)
{
    static unsigned char was[2 * NEAR], is[2 * NEAR];
    const uint64_t from[2] = {at > NEAR ? at - NEAR : 0, at + sizeof s->pattern};
    int changes = 0;
    for (int look = 0; look <= LOOKS; look++) {
        memset(is, 0, sizeof is);
        for (int side = 0; side < 2; side++) {
            for (size_t done = 0; done < NEAR; done += 4096) {
                if (pread(s->fd, is + side * NEAR + done, 4096, (off_t)(from[side] + done)) < 0)
                    continue;
            }
        }
        changes += look && memcmp(was, is, sizeof is) != 0;
        memcpy(was, is, sizeof is);
        wait_ms(100);
    }
    fprintf(stderr, "found at %" PRIx64 ": its surroundings changed in %d of %d looks\n", at,
            changes, LOOKS);
    return changes == LOOKS;
}

static void search(Search *s, uint64_t begin, uint64_t end)
{
    unsigned char *chunk = malloc(CHUNK);
    if (!chunk) exit(70);
    for (uint64_t at = begin; !s->at && at + sizeof s->pattern <= end;
         at += CHUNK - sizeof s->pattern) {
        size_t want = end - at < CHUNK ? end - at : CHUNK;
        ssize_t got = pread(s->fd, chunk, want, (off_t)at);
        if (got < (ssize_t)sizeof s->pattern) break;
        for (unsigned char *p = chunk; !s->at && p; p += 4) {
            p = memmem(p, (size_t)(chunk + got - p), s->pattern, sizeof s->pattern);
            if (!p) break;
            if (lives(s, at + (uint64_t)(p - chunk))) s->at = at + (uint64_t)(p - chunk);
        }
    }
    free(chunk);
}

static void search_all(Search *s, const char *pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    FILE *maps = fopen(path, "r");
    while (maps && !s->at && fgets(line, sizeof line, maps)) {
        uint64_t begin, end;
        char rights[5];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights) == 3 &&
            strncmp(rights, "rw", 2) == 0) {
            search(s, begin, end);
        }
    }
    if (maps) fclose(maps);
}

static int read_pattern(Search *s, const char *name, long stride)
{
    FILE *file = fopen(name, "rb");
    int good = file && stride > 0;
    for (int i = 0; good && i < PATTERN; i++) {
        good = fseek(file, i * stride * (long)sizeof(float), SEEK_SET) == 0 &&
               fread(&s->pattern[i], sizeof(float), 1, file) == 1;
    }
    if (file) fclose(file);
    return good;
}

int main(int argc, char **argv)
{
    Search s = {0};
    if (argc != 5 || (strcmp(argv[4], "nan") && strcmp(argv[4], "flip")) ||
        !read_pattern(&s, argv[2], atol(argv[3]))) {
        fprintf(stderr, "usage: poke PID FILE STRIDE nan|flip\n");
        return 64;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/mem", argv[1]);
    s.fd = open(path, O_RDWR);
    if (s.fd >= 0) search_all(&s, argv[1]);
    if (!s.at) return 1;
    uint32_t number;
    memcpy(&number, s.pattern, sizeof number);
    number = strcmp(argv[4], "nan") == 0 ? 0x7fc00000 : number ^ 1u << 20;
    return pwrite(s.fd, &number, sizeof number, (off_t)s.at) == sizeof number ? 0 : 1;
}
