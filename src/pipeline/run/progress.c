/* Waits for messages and sums, and calls the progress functions of all communication meanwhile. */
#include "progress.h"

static void poll_channels(const Progress *p)
{
    if (p->stages) channels_progress(p->stages);
    if (p->group) channels_progress(p->group);
    if (p->replicas) channels_progress(p->replicas);
}

void progress_poll(const Progress *p)
{
    comm_progress(p->comm);
    poll_channels(p);
}

static void mark(const Progress *p, const Channels *channels, int channel)
{
    channel_mark(channels, channel,
                 channels == p->group      ? "a slice"
                 : channels == p->replicas ? "statistics"
                                           : "a message");
}

static void wait_a_little(const Progress *p, Channels *channels, double start)
{
    if (channels_on_device(channels)) die("a wait for a message that no rank has moved");
    progress_poll(p);
    channels_wait(channels, clock_s() - start);
}

char *await_slot(const Progress *p, Channels *channels, int channel)
{
    char *at = channel_slot(channels, channel);
    if (at) return at;
    double start = clock_s();
    mark(p, channels, channel);
    while (!(at = channel_slot(channels, channel))) wait_a_little(p, channels, start);
    return at;
}

const char *await_message(const Progress *p, Channels *channels, int channel)
{
    const char *at = channel_message(channels, channel);
    if (at) return at;
    double start = clock_s();
    mark(p, channels, channel);
    while (!(at = channel_message(channels, channel))) wait_a_little(p, channels, start);
    return at;
}

void collective_wait(const Progress *p, bool (*wait)(Comm *, int64_t), int64_t number)
{
    Phase outer = phase_enter(PHASE_SUM);
    while (!wait(p->comm, number)) poll_channels(p);
    phase_enter(outer);
}
