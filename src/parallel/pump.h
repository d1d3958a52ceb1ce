/* A thread that moves messages on while the others compute. MPI moves most of a message only inside its calls (large ones need
 * an answer before they begin), so a sum that is begun between two layers would stand still until the next one ends. The
 * thread sleeps while there is nothing in flight, and between looks while there is. What the thread and its owner both
 * use, they use between pump_lock and pump_unlock only. */
#ifndef WEFT_PARALLEL_PUMP_H
#define WEFT_PARALLEL_PUMP_H

#include "base.h"

typedef enum PumpTurn {
    PUMP_IDLE,    /* nothing is in flight: sleep until pump_wake */
    PUMP_WAITING, /* nothing came: look again soon */
    PUMP_MOVED,   /* something came: look again at once */
} PumpTurn;
typedef struct Pump Pump;
/* turn(of) is called with the lock held, from the thread alone; it may call MPI. */
Pump *pump_new(PumpTurn (*turn)(void *of), void *of);
void pump_free(Pump **pump); /* Waits for a turn to end, not for what is in flight. */
void pump_lock(Pump *pump);
bool pump_try_lock(
    Pump *pump); /* false: the thread is at work, so whoever has other work need not wait */
void pump_unlock(Pump *pump);
void pump_wake(Pump *pump); /* with the lock held: there is something in flight now */
/* Sleeps, with the lock held before and after, until a turn has moved something, or for limit_s. */
void pump_wait(Pump *pump, double limit_s);

#endif
