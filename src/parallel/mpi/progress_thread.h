/* A progress thread: it moves messages while the other threads compute. MPI moves messages only
 * inside its calls: the data of a large message are sent only after an answer of the receiver.
 * Without the thread, a sum begun between two layers would make no progress until the next layer
 * ends. The thread sleeps while nothing is in flight, and between two polls otherwise.
 *
 * Only one thread at a time may call MPI (MPI_THREAD_SERIALIZED): where a progress thread may be
 * awake, every MPI call is between mpi_lock and mpi_unlock. The lock also guards the data that the
 * thread shares with the communicator. */
#ifndef WEFT_PARALLEL_PROGRESS_THREAD_H
#define WEFT_PARALLEL_PROGRESS_THREAD_H

#include "base.h"

typedef enum ProgressPoll {
    /* nothing is in flight: sleep until woken */
    PROGRESS_IDLE,
    /* nothing arrived: poll again soon */
    PROGRESS_WAITING,
    /* something arrived: poll again at once */
    PROGRESS_MOVED,
} ProgressPoll;
typedef struct ProgressThread ProgressThread;
/* Starts the thread, which calls poll(user) with mpi_lock locked. */
ProgressThread *progress_thread_new(ProgressPoll (*poll)(void *user), void *user);
/* Ends the thread after its current poll; does not wait for operations in flight. */
void progress_thread_free(ProgressThread **progress);
/* Makes the thread poll. Call it with mpi_lock locked after an operation has been begun. */
void progress_thread_wake(ProgressThread *progress);
/* Sleeps until a poll has moved something or found nothing in flight, limit_s at most. mpi_lock is
 * locked at the call and at the return, and unlocked during the sleep. */
void progress_thread_wait(ProgressThread *progress, double limit_s);

void mpi_lock(void);
/* Returns false if another thread has the lock; that thread's MPI calls then make progress for
 * all. */
bool mpi_try_lock(void);
void mpi_unlock(void);

#endif
