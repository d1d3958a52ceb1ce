/* Writes TensorBoard's event files without its library. A record is: length (uint64), masked
 * CRC-32C of the length, the data, masked CRC-32C of the data, all little-endian (TensorFlow's
 * record_writer.h). The data is one Event protocol buffer:
 *   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
 *             SessionLog = 7 }
 *   Summary { repeated Value value = 1 }
 *   Value   { string tag = 1; float simple_value = 2; Image image = 4 }
 *   Image   { int32 height = 1; int32 width = 2; int32 colorspace = 3 (RGB: 3);
 *             bytes encoded_image_string = 4 }
 * The first record holds file_version "brain.Event:2". The name of the file must contain
 * "tfevents"; names sort by the time of their creation. */
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* TAG_CHARS: largest number of characters of a tag. NAME_TRIES: names that are tried for a new
 * file. */
enum { TAG_CHARS = 200, NAME_TRIES = 1000 };
/* value of SessionLog.status that marks the start of a session */
enum { SESSION_START = 1 };

static uint32_t masked_crc(const void *data, size_t bytes)
{
    uint32_t crc = crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* Appends the event as a record and releases the event. */
static void put_record(AppendFile *events, Proto *event)
{
    Proto record = {0};
    proto_fixed(&record, event->bytes, 8);
    proto_fixed(&record, masked_crc(record.data, 8), 4);
    proto_raw(&record, event->data, event->bytes);
    proto_fixed(&record, masked_crc(event->data, event->bytes), 4);
    append_put(events, record.data, record.bytes);
    proto_fini(&record);
    proto_fini(event);
}

/* Makes a file under a new name. The name has the time in seconds; if one process starts several
 * runs within a second, the later runs use the names of the following seconds. */
static Status open_new(AppendFile *events, const char *dir, const Lease *lease)
{
    char host[256];
    host_name(host, sizeof host);
    Status status = OK;
    for (long try = 0; try < NAME_TRIES; ++try) {
        char *path = mem_format("%s/events.out.tfevents.%010ld.%s.%ld.weft", dir,
                                (long)wall_s() + try, host, (long)getpid());
        status = append_open(events, path, O_EXCL, lease);
        bool taken = status != OK && errno == EEXIST;
        mem_free(&path);
        if (!taken) break;
    }
    return status;
}

Status event_file_open(AppendFile *events, const char *dir, const Lease *lease)
{
    TRY(open_new(events, dir, lease));
    Proto event = {0};
    proto_double(&event, 1, wall_s());
    proto_text(&event, 3, "brain.Event:2");
    put_record(events, &event);
    return OK;
}

void event_file_session(AppendFile *events, int64_t first_step)
{
    Proto session = {0}, event = {0};
    proto_int(&session, 1, SESSION_START);
    proto_double(&event, 1, wall_s());
    proto_int(&event, 2, first_step);
    proto_message(&event, 7, &session);
    put_record(events, &event);
}

/* Appends an event with one value, and releases the value. */
static void put_value(AppendFile *events, int64_t step, double wall, Proto *value)
{
    Proto summary = {0}, event = {0};
    proto_message(&summary, 1, value);
    proto_double(&event, 1, wall);
    proto_int(&event, 2, step);
    proto_message(&event, 5, &summary);
    put_record(events, &event);
}

static Proto value_with_tag(const char *tag)
{
    Proto value = {0};
    if (strlen(tag) > TAG_CHARS) die("tag '%.40s...' is longer than %d characters", tag, TAG_CHARS);
    proto_text(&value, 1, tag);
    return value;
}

void event_file_scalar(AppendFile *events, const char *tag, int64_t step, double wall, float value)
{
    Proto scalar = value_with_tag(tag);
    proto_float(&scalar, 2, value);
    put_value(events, step, wall, &scalar);
}

void event_file_picture(AppendFile *events, const EvalPicture *picture, int64_t step, double wall)
{
    enum { RGB = 3 };
    Proto image = {0}, value = value_with_tag(picture->tag);
    proto_int(&image, 1, picture->height);
    proto_int(&image, 2, picture->width);
    proto_int(&image, 3, RGB);
    proto_bytes(&image, 4, picture->png, picture->bytes);
    proto_message(&value, 4, &image);
    put_value(events, step, wall, &value);
}
