/* Encodes a text file with a tokenizer piece by piece, so that the file may be larger than memory.
 * Bytes at the end of a piece whose tokens depend on the next piece are kept and encoded together
 * with it. */
#include "encode_text.h"

#include "../data_private.h"
#include "token_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, WORD_BYTES_MAX = 1 << 26 };

typedef struct Encoder {
    /* borrowed */
    Tokenizer *tokenizer;
    /* true: <|endoftext|> in the text becomes its token */
    bool special;
    PackedFile in;
    FILE *out;
    /* path of `out`; borrowed */
    const char *to;
    /* text that has not been encoded yet; owned */
    char *text;
    /* number of bytes of `text`, and number of bytes allocated for it */
    size_t bytes, room;
    /* tokens that have not been written yet; owned */
    TokenList list;
    /* borrowed */
    Encoded *result;
} Encoder;

/* Appends a piece of the file to e->text. *end: true if the file has ended. */
static Status read_piece(Encoder *e, bool *end)
{
    if (e->bytes + PIECE_BYTES > e->room) {
        e->room = 2 * e->room + PIECE_BYTES;
        e->text = mem_resize(e->text, e->room);
    }
    size_t n;
    TRY(packed_read(&e->in, e->text + e->bytes, PIECE_BYTES, &n));
    e->bytes += n;
    e->result->text_bytes += (int64_t)n;
    *end = n == 0;
    return packed_check_expansion(&e->in, e->result->text_bytes);
}

static Status write_tokens(Encoder *e)
{
    const size_t each = (size_t)e->result->bits / 8;
    uint8_t *bytes = (uint8_t *)e->list.token;
    /* Converts in place: the 32 bits of a token in memory become 16 or 32 bits. */
    for (int64_t i = 0; i < e->list.count; ++i) {
        uint32_t token = (uint32_t)e->list.token[i];
        for (size_t b = 0; b < each; ++b) bytes[(size_t)i * each + b] = (uint8_t)(token >> 8 * b);
    }
    const size_t count = (size_t)e->list.count;
    e->result->tokens += e->list.count;
    e->list.count = 0;
    if (fwrite(bytes, each, count, e->out) == count) return OK;
    return fail(ERR_IO, "%s: cannot be written: %s; free some space or choose another place", e->to,
                strerror(errno));
}

static Status encode(Encoder *e)
{
    for (bool first = true, end = false; !end; first = false) {
        TRY(read_piece(e, &end));
        if (first)
            TRY(token_file_refuse_other_kinds(e->in.path, (const uint8_t *)e->text,
                                              e->bytes < TOKEN_HEAD_MAX ? e->bytes : TOKEN_HEAD_MAX,
                                              e->in.packed ? INT64_MAX : e->in.bytes));
        size_t done = e->bytes;
        if (end)
            tokenizer_encode(e->tokenizer, e->text, e->bytes, e->special, &e->list);
        else
            done = tokenizer_encode_part(e->tokenizer, e->text, e->bytes, e->special, &e->list);
        memmove(e->text, e->text + done, e->bytes - done);
        e->bytes -= done;
        TRY(write_tokens(e));
        if (e->bytes > WORD_BYTES_MAX)
            return fail(ERR_DATA,
                        "%s: a word of more than 64 MB begins at byte %lld: this is no text",
                        e->in.path, (long long)(e->result->text_bytes - (int64_t)e->bytes));
    }
    return OK;
}

Status encode_text(Tokenizer *tokenizer, const char *file, bool special, const char *to,
                   Encoded *result)
{
    Encoder e = {.tokenizer = tokenizer, .special = special, .in.path = file, .to = to};
    const double start_s = clock_s();
    *result = (Encoded){.bits = tokenizer_vocab_size(tokenizer) <= 65536 ? 16 : 32};
    e.result = result;
    TRY(packed_open(&e.in, file));
    e.out = file_create_stream(to);
    Status st =
        e.out ? encode(&e) : fail(ERR_IO, "%s: cannot be written: %s", to, file_error(errno));
    if (e.out && fclose(e.out) != 0 && st == OK)
        st = fail(ERR_IO, "%s: cannot be written: %s", to, strerror(errno));
    if (st != OK && e.out) unlink(to);
    packed_close(&e.in);
    mem_free(&e.text);
    token_list_fini(&e.list);
    result->seconds = clock_s() - start_s;
    return st;
}
