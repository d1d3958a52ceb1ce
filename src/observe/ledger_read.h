/* Reads the values of the line that a start writes to ledger.jsonl at its end. */
#ifndef WEFT_OBSERVE_LEDGER_READ_H
#define WEFT_OBSERVE_LEDGER_READ_H

#include "observer.h"

#include "base/json_scan.h"
#include "observe/history.h"

/* A number in a line of ledger.jsonl. */
typedef struct LedgerNumber {
    /* key of the number; borrowed */
    const char *key;
    /* variable that receives the number; borrowed */
    double *value;
} LedgerNumber;

/* Reads the value of one key of the line that a start writes at its end; skips the value of an
 * unknown key. ERR_DATA: the value is not valid. */
Status ledger_read_end(LedgerHistory *history, JsonScan *scan, const char *key);
/* Frees and clears the values that ledger_read_end has read. */
void ledger_forget_end(LedgerHistory *history);

#endif
