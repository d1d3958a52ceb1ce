/* Writes messages in the encoding of protocol buffers. */
#include "base.h"

#include <string.h>

/* WIRE_...: types of values; VARINT_BYTES: largest number of bytes of a varint */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, VARINT_BYTES = 10 };

void proto_fini(Proto *message)
{
    mem_free(&message->data);
    *message = (Proto){0};
}

void proto_raw(Proto *m, const void *data, size_t bytes)
{
    if (m->bytes + bytes > m->room) {
        m->room = 2 * m->room + bytes;
        m->data = mem_resize(m->data, m->room);
    }
    if (bytes) memcpy(m->data + m->bytes, data, bytes);
    m->bytes += bytes;
}

void proto_fixed(Proto *m, uint64_t value, int bytes)
{
    unsigned char byte[8];
    for (int i = 0; i < bytes; ++i) byte[i] = (unsigned char)(value >> 8 * i);
    proto_raw(m, byte, (size_t)bytes);
}

/* Writes a value as a varint, seven bits in each byte, the lowest first; all bytes except the last
 * have their highest bit set. */
static void put_varint(Proto *m, uint64_t value)
{
    unsigned char byte[VARINT_BYTES];
    size_t count = 0;
    for (; value >= 128; value >>= 7) byte[count++] = (unsigned char)(value | 128);
    byte[count++] = (unsigned char)value;
    proto_raw(m, byte, count);
}

static void put_key(Proto *m, unsigned field, unsigned wire)
{
    put_varint(m, field << 3 | wire);
}

void proto_int(Proto *m, unsigned field, int64_t value)
{
    put_key(m, field, WIRE_VARINT);
    put_varint(m, (uint64_t)value);
}

void proto_float(Proto *m, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, WIRE_32);
    proto_fixed(m, bits, 4);
}

void proto_double(Proto *m, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, WIRE_64);
    proto_fixed(m, bits, 8);
}

void proto_head(Proto *m, unsigned field, size_t bytes)
{
    put_key(m, field, WIRE_BYTES);
    put_varint(m, bytes);
}

void proto_bytes(Proto *m, unsigned field, const void *data, size_t bytes)
{
    proto_head(m, field, bytes);
    proto_raw(m, data, bytes);
}

void proto_text(Proto *m, unsigned field, const char *text)
{
    proto_bytes(m, field, text, strlen(text));
}

void proto_message(Proto *m, unsigned field, Proto *part)
{
    proto_bytes(m, field, part->data, part->bytes);
    proto_fini(part);
}
