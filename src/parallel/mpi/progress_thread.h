/* A thread that moves messages of MPI while the other threads compute. MPI moves messages only
 * inside its calls: the data of a large message are sent only after an answer of the receiver.
 * Without the thread, a sum that is begun between two layers would make no progress until the next
 * layer ends. The thread sleeps while nothing is in flight, and otherwise pauses between two polls.
 *
 * Only one thread at a time may call MPI (MPI_THREAD_SERIALIZED). Wherever a progress thread may be
 * awake, every call of MPI is between mpi_lock and mpi_unlock. The lock also guards the data that
 * the thread shares with the communicator. */
#ifndef WEFT_PARALLEL_PROGRESS_THREAD_H
#define WEFT_PARALLEL_PROGRESS_THREAD_H

#include "base.h"

typedef enum ProgressPoll {
    /* nothing is in flight: the thread sleeps until it is woken */
    PROGRESS_IDLE,
    /* nothing has arrived: the thread polls again after a pause */
    PROGRESS_WAITING,
    /* something has arrived: the thread polls again at once */
    PROGRESS_MOVED,
} ProgressPoll;
typedef struct ProgressThread ProgressThread;
/* Starts the thread. It calls poll(user) with mpi_lock locked. */
ProgressThread *progress_thread_new(ProgressPoll (*poll)(void *user), void *user);
/* Ends the thread after its current poll, and frees it. Does not wait for operations in flight. */
void progress_thread_free(ProgressThread **progress);
/* Wakes the thread if it sleeps. Call it with mpi_lock locked, after an operation has been
 * begun. */
void progress_thread_wake(ProgressThread *progress);
/* Sleeps until a poll of the thread has moved something or found nothing in flight, at most for
 * limit_s seconds. mpi_lock is locked at the call and at the return, and unlocked during the
 * sleep. */
void progress_thread_wait(ProgressThread *progress, double limit_s);

void mpi_lock(void);
/* Locks mpi_lock if no thread has it; otherwise returns false. The calls of MPI by the thread that
 * has the lock then move this thread's messages, too. */
bool mpi_try_lock(void);
void mpi_unlock(void);

#endif
