/* The message of a Status: one text for each thread, which each fail() replaces. Nothing is printed
 * here. A message that is longer than the buffer is cut. The arguments of a fail() may contain
 * fail_message(). */
#include "base.h"

#include <string.h>

enum { MESSAGE_BYTES = 4096 };
static _Thread_local char message[MESSAGE_BYTES];

Status fail(Status code, const char *fmt, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    memcpy(message, text, strlen(text) + 1);
    return code;
}

Status row_check(const char *table, const char *row, const char *fault)
{
    return fault ? fail(ERR_BUG, "%s %s: %s", table, row ? row : "without a name", fault) : OK;
}

Status slots_check(const char *table, const char *row, const RowSlot *slot, int count)
{
    for (int i = 0; i < count; ++i)
        if (slot[i].given != slot[i].needed)
            return fail(ERR_BUG, "%s %s: %s is %s", table, row ? row : "without a name",
                        slot[i].name, slot[i].needed ? "not given" : "given, but must not be");
    return OK;
}

const char *fail_message(void)
{
    return message;
}

void error_keep(KeptError *error, Status status)
{
    if (status == OK || error->status != OK) return;
    *error = (KeptError){status, mem_text(message)};
}

Status error_report(KeptError *error)
{
    Status status = error->status == OK ? OK : fail(error->status, "%s", error->message);
    mem_free(&error->message);
    error->status = OK;
    return status;
}
