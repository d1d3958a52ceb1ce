/* TensorBoard's event files, written by hand. A record is: length (uint64), masked CRC-32C of the
 * length, the data, masked CRC-32C of the data, all little-endian (TensorFlow's record_writer.h).
 * The data is one Event protocol buffer:
 *   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
 *             SessionLog = 7 }
 *   Summary { repeated Value value = 1 }     Value { string tag = 1; float simple_value = 2 }
 * The first record holds file_version "brain.Event:2". The name must contain "tfevents" and sorts
 * by time. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { TAG_CHARS = 200, MESSAGE_BYTES = 300, NAME_TRIES = 1000 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { SESSION_START = 1 };

typedef struct Message {
    size_t bytes;
    unsigned char data[MESSAGE_BYTES];
} Message;

static void put_fixed(Message *m, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; ++i) m->data[m->bytes++] = (unsigned char)(value >> 8 * i);
}

static void put_varint(Message *m, uint64_t value)
{
    for (; value >= 128; value >>= 7) m->data[m->bytes++] = (unsigned char)(value | 128);
    m->data[m->bytes++] = (unsigned char)value;
}

static void put_key(Message *m, unsigned field, unsigned wire)
{
    put_varint(m, field << 3 | wire);
}

static void put_bytes(Message *m, unsigned field, const void *data, size_t bytes)
{
    put_key(m, field, WIRE_BYTES);
    put_varint(m, bytes);
    memcpy(m->data + m->bytes, data, bytes);
    m->bytes += bytes;
}

static void put_double(Message *m, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, WIRE_64);
    put_fixed(m, bits, 8);
}

static void put_float(Message *m, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, WIRE_32);
    put_fixed(m, bits, 4);
}

static uint32_t masked_crc(const void *data, size_t bytes)
{
    uint32_t crc = crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static void put_record(AppendFile *events, const Message *event)
{
    Message head = {0}, tail = {0};
    put_fixed(&head, event->bytes, 8);
    put_fixed(&head, masked_crc(head.data, 8), 4);
    put_fixed(&tail, masked_crc(event->data, event->bytes), 4);
    append_put(events, head.data, head.bytes);
    append_put(events, event->data, event->bytes);
    append_put(events, tail.data, tail.bytes);
}

/* Opens a name that nobody has: runs started within one second by one process take the next
 * second's name. */
static Status open_new(AppendFile *events, const char *dir)
{
    char host[256];
    host_name(host, sizeof host);
    Status status = OK;
    for (long try = 0; try < NAME_TRIES; ++try) {
        char *path = mem_format("%s/events.out.tfevents.%010ld.%s.%ld.weft", dir,
                                (long)wall_s() + try, host, (long)getpid());
        status = append_open(events, path, O_EXCL);
        bool taken = status != OK && errno == EEXIST;
        mem_free(&path);
        if (!taken) break;
    }
    return status;
}

Status event_file_open(AppendFile *events, const char *dir)
{
    static const char version[] = "brain.Event:2";
    TRY(open_new(events, dir));
    Message event = {0};
    put_double(&event, 1, wall_s());
    put_bytes(&event, 3, version, sizeof version - 1);
    put_record(events, &event);
    return OK;
}

void event_file_session(AppendFile *events, int64_t first_step)
{
    Message session = {0}, event = {0};
    put_key(&session, 1, WIRE_VARINT);
    put_varint(&session, SESSION_START);
    put_double(&event, 1, wall_s());
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)first_step);
    put_bytes(&event, 7, session.data, session.bytes);
    put_record(events, &event);
}

void event_file_scalar(AppendFile *events, const char *tag, int64_t step, double wall, float value)
{
    size_t tag_bytes = strlen(tag);
    if (tag_bytes > TAG_CHARS) die("tag '%.40s...' is longer than %d characters", tag, TAG_CHARS);
    Message scalar = {0}, summary = {0}, event = {0};
    put_bytes(&scalar, 1, tag, tag_bytes);
    put_float(&scalar, 2, value);
    put_bytes(&summary, 1, scalar.data, scalar.bytes);
    put_double(&event, 1, wall);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.data, summary.bytes);
    put_record(events, &event);
}
