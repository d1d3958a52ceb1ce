/* TCP connections from ranks on other hosts to the launcher, while the ranks start. Both sides know
 * a random token, which the ranks get in their environment. */
#ifndef WEFT_CLI_REMOTE_H
#define WEFT_CLI_REMOTE_H

#include "base.h"

/* REMOTE_ADDRESSES: size of the launcher's list of addresses in bytes. REMOTE_HOST: size of a
 * host's name in bytes. Both include the final zero. */
enum { REMOTE_ADDRESSES = 256, REMOTE_HOST = 64 };

/* The first message of a rank. The launcher answers with the token. */
typedef struct RemoteHello {
    /* the random number that both sides know */
    uint64_t token;
    int32_t rank;
    /* process id of the rank */
    int32_t process;
    /* name of the rank's host */
    char host[REMOTE_HOST];
} RemoteHello;
/* Each later message of a rank. */
typedef struct RemoteMessage {
    /* process_work of the rank */
    double work;
    /* the number that a rank on the launcher's host would send instead (MESSAGE_STOP and others in
     * watch.c) */
    int64_t message;
} RemoteMessage;

/* Called by the launcher. Listens on all interfaces, and writes "/PORT/ADDRESS/ADDRESS..." to
 * `addresses`, with as many numeric addresses of this host as fit. Loopback addresses and
 * link-local IPv6 addresses are left out. Returns the listening socket, or -1 with an empty text if
 * there is no network. */
int remote_listen(char addresses[REMOTE_ADDRESSES]);
/* Called by the launcher. Accepts a connection and reads the first message into *hello. Does not
 * wait. Returns the socket, or -1 if the peer is not a rank of this launcher or there is no
 * connection. errno is EMFILE or ENFILE only if there is no free descriptor. */
int remote_accept(int listener, uint64_t token, RemoteHello *hello);
/* Called by a rank. Tries the addresses one after another: connects, sends *hello, and waits for
 * the token. It waits at most half a second for the connection, and two seconds for the answer.
 * Returns the socket for the first address that answers, or -1. addresses: text that remote_listen
 * has written. */
int remote_connect(const char *addresses, const RemoteHello *hello);

#endif
