/* Reads the values of the line that a start writes to ledger.jsonl at its end. */
#ifndef WEFT_OBSERVE_LEDGER_READ_H
#define WEFT_OBSERVE_LEDGER_READ_H

#include "observer.h"

#include "base/json_scan.h"
#include "observe/history.h"

/* A key of a number, and the variable that receives the number. */
typedef struct LedgerNumber {
    const char *key;
    double *value;
} LedgerNumber;

/* Reads the value of one key of an end line; the value of an unknown key is skipped. ERR_DATA. */
Status ledger_read_end(LedgerHistory *history, JsonScan *scan, const char *key);
/* Frees and clears the values that ledger_read_end has read. */
void ledger_forget_end(LedgerHistory *history);

#endif
