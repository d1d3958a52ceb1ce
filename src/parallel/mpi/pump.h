/* A thread that moves messages on while the others compute. MPI moves most of a message only inside
 * its calls (large ones need an answer before they begin), so a sum that is begun between two
 * layers would stand still until the next one ends. The thread sleeps while there is nothing in
 * flight, and between looks while there is.
 *
 * One thread at a time calls MPI (MPI_THREAD_SERIALIZED): between mpi_lock and mpi_unlock, wherever
 * a pump may be awake. That lock also guards what a pump and its owner both use. */
#ifndef WEFT_PARALLEL_PUMP_H
#define WEFT_PARALLEL_PUMP_H

#include "base.h"

typedef enum PumpPoll {
    /* nothing is in flight: sleep until pump_wake */
    PUMP_IDLE,
    /* nothing came: look again soon */
    PUMP_WAITING,
    /* something came: look again at once */
    PUMP_MOVED,
} PumpPoll;
typedef struct Pump Pump;
/* poll(of) is called with the lock held. */
Pump *pump_new(PumpPoll (*poll)(void *of), void *of);
/* Waits for a poll to end, not for what is in flight. */
void pump_free(Pump **pump);
/* with the lock held: there is something in flight now */
void pump_wake(Pump *pump);
/* Sleeps, with the lock held before and after, until a poll has moved something, or for limit_s. */
void pump_wait(Pump *pump, double limit_s);

void mpi_lock(void);
/* false: another thread is at work, so whoever has other work need not wait */
bool mpi_try_lock(void);
void mpi_unlock(void);

#endif
