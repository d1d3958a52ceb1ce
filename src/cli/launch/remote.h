/* TCP connections from ranks on other hosts to the launcher, for the time of their start. Both
 * sides know a random token from the ranks' environment. */
#ifndef WEFT_CLI_REMOTE_H
#define WEFT_CLI_REMOTE_H

#include "base.h"

enum { REMOTE_ADDRESSES = 256, REMOTE_HOST = 64 };

/* first message of a rank; answered with the token */
typedef struct RemoteHello {
    uint64_t token;
    int32_t rank, process;
    char host[REMOTE_HOST];
} RemoteHello;
/* later messages. word: as on the local socket (watch.c); work: starting_work of the rank */
typedef struct RemoteWord {
    double work;
    int64_t word;
} RemoteWord;

/* Launcher: listens on all interfaces. Writes "/PORT/ADDRESS/ADDRESS..." with the numeric addresses
 * of this host. Returns the listener; -1: there is no network, and `where` is empty. */
int remote_listen(char where[REMOTE_ADDRESSES]);
/* Launcher: accepts a connection and reads its first message; returns the file, or -1 if it is not
 * a rank of this launcher. Does not wait. */
int remote_accept(int listener, uint64_t token, RemoteHello *hello);
/* Rank: connects to the first address in `where` that answers; each has half a second. Sends the
 * first message. Returns the file, or -1. */
int remote_connect(const char *where, const RemoteHello *hello);

#endif
