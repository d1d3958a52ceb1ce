/* Protocol buffers, written by hand: a message is fields one behind the other, each a key (number
 * and form) and a value (protobuf.dev, "Encoding"). Little-endian. Not collective. */
#ifndef WEFT_BASE_PROTO_H
#define WEFT_BASE_PROTO_H

#include <stddef.h>
#include <stdint.h>

/* A message that grows. Begin with {0}, release with proto_fini. */
typedef struct Proto {
    size_t bytes, room;
    /* owned */
    unsigned char *data;
} Proto;
void proto_fini(Proto *message);
/* Fields, in the order of the calls. */
void proto_int(Proto *message, unsigned field, int64_t value);
void proto_float(Proto *message, unsigned field, float value);
void proto_double(Proto *message, unsigned field, double value);
void proto_bytes(Proto *message, unsigned field, const void *data, size_t bytes);
void proto_text(Proto *message, unsigned field, const char *text);
/* part becomes a field, and is released. */
void proto_message(Proto *message, unsigned field, Proto *part);
/* What stands before `bytes` bytes of a field that the caller writes himself. */
void proto_head(Proto *message, unsigned field, size_t bytes);
/* No field: `bytes` bytes of a number, and bytes as they are. */
void proto_fixed(Proto *message, uint64_t value, int bytes);
void proto_raw(Proto *message, const void *data, size_t bytes);

#endif
