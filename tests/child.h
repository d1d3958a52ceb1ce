/* For tests of functions that end their process: runs such a function in a child process. */
#ifndef WEFT_TESTS_CHILD_H
#define WEFT_TESTS_CHILD_H

#include "harness.h"

#include <sys/wait.h>

/* Runs f in a child process. Copies the child's standard error to `text`, which has room for `size`
 * bytes. Returns the child's wait status (waitpid). */
static int in_child(void (*f)(void), char *text, size_t size)
{
    int ends[2], status = -1;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        f();
        _exit(0);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(ends[0], text + got, size - 1 - got)) > 0;) got += (size_t)n;
    text[got] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

#endif
