/* Writes protocol buffers without their library: a message is a sequence of fields, each a key
 * (field number and wire type) and a value (protobuf.dev, "Encoding"). Numbers of fixed size are
 * little-endian. Not collective. */
#ifndef WEFT_BASE_PROTO_H
#define WEFT_BASE_PROTO_H

#include <stddef.h>
#include <stdint.h>

/* A growing message. Begin with {0}, release with proto_fini. */
typedef struct Proto {
    /* bytes: number of bytes of the message; room: number of bytes that `data` has room for */
    size_t bytes, room;
    /* the message; owned */
    unsigned char *data;
} Proto;
void proto_fini(Proto *message);
/* Each function appends a field to the message. field: number of the field. */
void proto_int(Proto *message, unsigned field, int64_t value);
void proto_float(Proto *message, unsigned field, float value);
void proto_double(Proto *message, unsigned field, double value);
void proto_bytes(Proto *message, unsigned field, const void *data, size_t bytes);
void proto_text(Proto *message, unsigned field, const char *text);
/* Appends the message `part` as a field, and releases part. */
void proto_message(Proto *message, unsigned field, Proto *part);
/* Appends the key of a field and the length of its value, `bytes`. The caller then appends the
 * value. */
void proto_head(Proto *message, unsigned field, size_t bytes);
/* Both append bytes without a key. proto_fixed appends the low `bytes` bytes of a number, at most
 * 8, the lowest byte first. proto_raw appends data unchanged. */
void proto_fixed(Proto *message, uint64_t value, int bytes);
void proto_raw(Proto *message, const void *data, size_t bytes);

#endif
