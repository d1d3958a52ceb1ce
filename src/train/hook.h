/* run.hook as processes: one runs at a time, beside training; of each moment that comes meanwhile
 * the newest waits. Rank 0's alone; nothing here stops training. */
#ifndef WEFT_TRAIN_HOOK_H
#define WEFT_TRAIN_HOOK_H

#include "train.h"
#include "wish.h"

typedef struct Hook Hook;
/* command: borrowed; it may take limit_s. Owner: the caller. */
Hook *hook_new(const char *command, double limit_s);
/* What runs is ended, with all that it has started. */
void hook_free(Hook **hook);
/* Runs the command with that line, at once or when those before it have ended. step: for
 * messages. */
void hook_tell(Hook *hook, HookMoment moment, int64_t step, const char *line);
/* Takes what has come since: an answer, an end, the time that is up; then starts what waits. Never
 * waits. What is wrong is a warning. */
void hook_look(Hook *hook);
/* Until nothing runs or waits any more. Once one had to be ended, those that wait are passed
 * over. */
void hook_wait(Hook *hook);
/* What the commands have asked for since the last call. */
bool hook_take(Hook *hook, Wish *wish);
/* Does one run, or wait? Has one asked for something? */
bool hook_busy(const Hook *hook);
bool hook_asks(const Hook *hook);

#endif
