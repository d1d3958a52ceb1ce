/* A progress thread: it moves messages while the other threads compute. MPI moves most of a message
 * only inside its calls (large messages need an answer before they start), so a sum begun between
 * two layers would otherwise stand still until the next layer ends. The thread sleeps while nothing
 * is in flight, and between polls while something is.
 *
 * Only one thread at a time may call MPI (MPI_THREAD_SERIALIZED): every call is between mpi_lock
 * and mpi_unlock wherever a progress thread may be awake. The lock also guards the data that the
 * thread shares with the communicator. */
#ifndef WEFT_PARALLEL_PUMP_H
#define WEFT_PARALLEL_PUMP_H

#include "base.h"

typedef enum PumpPoll {
    /* nothing is in flight: sleep until woken */
    PUMP_IDLE,
    /* nothing arrived: poll again soon */
    PUMP_WAITING,
    /* something arrived: poll again at once */
    PUMP_MOVED,
} PumpPoll;
typedef struct Pump Pump;
/* Starts the thread, which calls poll(of) with mpi_lock locked. */
Pump *pump_new(PumpPoll (*poll)(void *of), void *of);
/* Ends the thread after its current poll; does not wait for what is in flight. */
void pump_free(Pump **pump);
/* Called with mpi_lock locked when something is in flight now. */
void pump_wake(Pump *pump);
/* Sleeps until a poll has moved something, limit_s at most. mpi_lock is locked before and after. */
void pump_wait(Pump *pump, double limit_s);

void mpi_lock(void);
/* Returns false if another thread has the lock: MPI then progresses without the caller. */
bool mpi_try_lock(void);
void mpi_unlock(void);

#endif
