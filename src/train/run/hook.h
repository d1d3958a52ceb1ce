/* Runs the command of run.hook in the background, one process at a time. While a process runs, the
 * newest notification of each event is queued. Used only on rank 0. Errors of a command do not stop
 * training. */
#ifndef WEFT_TRAIN_HOOK_H
#define WEFT_TRAIN_HOOK_H

#include "train.h"
#include "hook_request.h"

typedef struct Hook Hook;
/* Creates a hook that runs `command`, which is borrowed. limit_s: time limit of one process. Owner:
 * the caller. */
Hook *hook_new(const char *command, double limit_s);
/* Kills the running command with its process group, and frees the hook. */
void hook_free(Hook **hook);
/* Runs the command with `line` as its input: at once, or after the notifications that are queued. A
 * queued notification of the same event is dropped. step: number of the step, for messages. */
void hook_notify(Hook *hook, HookEvent event, int64_t step, const char *line);
/* Reads the running command's answer and checks its end and its time limit; if no command runs,
 * starts the next queued one. Does not wait. Errors become warnings. */
void hook_poll(Hook *hook);
/* Waits until no command runs or is queued. If a command had to be killed, drops the queued
 * notifications, and waits at most two seconds for its end. */
void hook_wait(Hook *hook);
/* Sets *request to all requests since the last call; returns true if there is one. */
bool hook_take_request(Hook *hook, HookRequest *request);
/* Returns true if a command runs or is queued. */
bool hook_busy(const Hook *hook);
/* Returns true if a command has made a request that has not been taken yet. */
bool hook_has_request(const Hook *hook);

#endif
