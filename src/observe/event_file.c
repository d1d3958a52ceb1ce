/* TensorBoard's event files, written by hand. A record is: length (uint64), masked CRC-32C of the length, the data,
 * masked CRC-32C of the data, all little-endian (TensorFlow's record_writer.h). The data is one Event protocol buffer:
 *   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog = 7 }
 *   Summary { repeated Value value = 1 }     Value { string tag = 1; float simple_value = 2 }
 * The first record holds file_version "brain.Event:2". The name must contain "tfevents" and sorts by time. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { TAG_CHARS = 200, MESSAGE_BYTES = 300, NAME_TRIES = 1000 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { SESSION_START = 1 };

struct EventFile {
    char *path; /* owned */
    FILE *file; /* owned */
};

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

static Status write_failed(const EventFile *file)
{
    return fail(ERR_IO, "%s: writing TensorBoard events failed: %s", file->path, strerror(errno));
}

static Status write_record(EventFile *file, const Message *event)
{
    Message head = {0}, tail = {0};
    put_fixed(&head, event->bytes, 8);
    put_fixed(&head, masked_crc(head.data, 8), 4);
    put_fixed(&tail, masked_crc(event->data, event->bytes), 4);
    if (fwrite(head.data, head.bytes, 1, file->file) != 1 ||
        fwrite(event->data, event->bytes, 1, file->file) != 1 ||
        fwrite(tail.data, tail.bytes, 1, file->file) != 1)
        return write_failed(file);
    return OK;
}

/* Opens a name that nobody has: runs started within one second by one process take the next second's name. */
static int open_new(EventFile *file, const char *dir)
{
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    int fd = -1;
    for (long try = 0; fd < 0 && try < NAME_TRIES; ++try) {
        mem_free(&file->path);
        file->path = mem_format("%s/events.out.tfevents.%010ld.%s.%ld.weft", dir,
                                (long)wall_s() + try, host, (long)getpid());
        fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

Status event_file_new(EventFile **out, const char *dir)
{
    EventFile *file = mem_new(sizeof *file);
    int fd = open_new(file, dir);
    Status status = OK;
    if (fd < 0)
        status =
            fail(ERR_IO, "%s: cannot create the TensorBoard file: %s", file->path, strerror(errno));
    else if (!(file->file = fdopen(fd, "wb"))) {
        status = write_failed(file);
        close(fd);
    }
    if (status == OK) {
        static const char version[] = "brain.Event:2";
        Message event = {0};
        put_double(&event, 1, wall_s());
        put_bytes(&event, 3, version, sizeof version - 1);
        status = write_record(file, &event);
    }
    *out = file;
    if (status != OK) {
        if (file->file) fclose(file->file);
        mem_free(&file->path);
        mem_free(out);
    }
    return status;
}

Status event_file_session(EventFile *file, int64_t first_step)
{
    Message session = {0}, event = {0};
    put_key(&session, 1, WIRE_VARINT);
    put_varint(&session, SESSION_START);
    put_double(&event, 1, wall_s());
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)first_step);
    put_bytes(&event, 7, session.data, session.bytes);
    return write_record(file, &event);
}

Status event_file_scalar(EventFile *file, const char *tag, int64_t step, double wall, float value)
{
    size_t tag_bytes = strlen(tag);
    if (tag_bytes > TAG_CHARS)
        return fail(ERR_BUG, "%s: tag '%.40s...' is longer than %d characters", file->path, tag,
                    TAG_CHARS);
    Message scalar = {0}, summary = {0}, event = {0};
    put_bytes(&scalar, 1, tag, tag_bytes);
    put_float(&scalar, 2, value);
    put_bytes(&summary, 1, scalar.data, scalar.bytes);
    put_double(&event, 1, wall);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.data, summary.bytes);
    return write_record(file, &event);
}

Status event_file_flush(EventFile *file)
{
    return fflush(file->file) == 0 ? OK : write_failed(file);
}

Status event_file_free(EventFile **at)
{
    EventFile *file = *at;
    if (!file) return OK;
    Status status = fclose(file->file) == 0 ? OK : write_failed(file);
    mem_free(&file->path);
    mem_free(at);
    return status;
}
