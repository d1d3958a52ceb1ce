/* TCP connections from ranks on other hosts to the launcher, while the ranks start. Both sides know
 * a random token, which the ranks get in their environment. */
#ifndef WEFT_CLI_REMOTE_H
#define WEFT_CLI_REMOTE_H

#include "base.h"

/* bytes of the launcher's list of addresses, and of a host's name */
enum { REMOTE_ADDRESSES = 256, REMOTE_HOST = 64 };

/* The first message of a rank. The launcher answers with the token. */
typedef struct RemoteHello {
    uint64_t token;
    int32_t rank, process;
    char host[REMOTE_HOST];
} RemoteHello;
/* All later messages of a rank. */
typedef struct RemoteMessage {
    /* process_work of the rank */
    double work;
    /* the message that a rank of the launcher's host would send (watch.c) */
    int64_t message;
} RemoteMessage;

/* Launcher: listens on all interfaces. Writes "/PORT/ADDRESS/ADDRESS..." with numeric addresses of
 * this host, as many as fit, without loopback and addresses of one link. Returns the listening
 * socket; -1: there is no network, and `addresses` is empty. */
int remote_listen(char addresses[REMOTE_ADDRESSES]);
/* Launcher: accepts a connection and reads its first message; returns the socket, or -1 if the peer
 * is not a rank of this launcher. Does not wait. */
int remote_accept(int listener, uint64_t token, RemoteHello *hello);
/* Rank: connects to the addresses, one after another, sends the first message, and waits for the
 * token. Each address has half a second to connect and two to answer. Returns the socket of the
 * first that answers, or -1. */
int remote_connect(const char *addresses, const RemoteHello *hello);

#endif
