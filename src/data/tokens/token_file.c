/* Recognises the format of a file of tokens by its first bytes. Reads two headers: that of llm.c's
 * shards, which modded-nanogpt also writes, and that of NumPy's .npy files. Refuses files of other
 * known kinds with a message that names the kind. Any other file is assumed to be token ids without
 * a header; the user must then give the width of an id. */
#include "token_file.h"

#include "npy.h"

#include <string.h>

/* llm.c's header is 256 numbers of 32 bits. The first three are the magic number, the version and
 * the number of tokens. */
enum { SHARD_HEAD_BYTES = 1024 };
static const struct Shard {
    uint32_t magic, version;
    /* number of bytes of a token */
    int bytes;
    const char *name;
} shards[] = {
    {20240520, 1, 2, "a shard of llm.c's for GPT-2"},
    {20240801, 7, 4, "a shard of llm.c's for Llama 3"},
};

/* Kinds of file that cannot be imported as they are; the advice says what to do instead. Add a new
 * kind as a row. */
static const struct OtherKind {
    const char *magic;
    /* bytes: number of bytes of magic; offset: where they are in the file */
    size_t bytes, offset;
    const char *name, *advice;
} other_kinds[] = {
    {"\x89HDF\r\n\x1a\n", 8, 0, "an HDF5 file",
     "name its array of tokens with `data.x` in a configuration, or import its text"},
    /* The reader has unpacked one layer of gzip. */
    {"\x1f\x8b\x08", 3, 0, "gzip data within gzip data", "unpack it once"},
    {"PK\3\4", 4, 0, "a zip archive", "unpack it"},
    {"PAR1", 4, 0, "a Parquet file", "write its column of tokens with numpy.save"},
    {"ARROW1\0\0", 8, 0, "an Arrow file", "write its column of tokens with numpy.save"},
    {"\xff\xff\xff\xff", 4, 0, "an Arrow stream, as Hugging Face's data sets are",
     "write its column of tokens with numpy.save"},
    {"FEA1", 4, 0, "a Feather file", "write its column of tokens with numpy.save"},
    {"MMIDIDX\0\0", 9, 0, "the index of a Megatron data set", "import the .bin file next to it"},
    {"GGUF", 4, 0, "a GGUF model", "import tokens or text"},
    {"SQLite format 3", 16, 0, "an SQLite database", "write its tokens with numpy.save"},
    {"%PDF-", 5, 0, "a PDF document", "import its text"},
    {"ustar", 5, 257, "a tar archive", "unpack it"},
    {"\xde\xc0\xef\xbe", 4, 16, "an LMDB database", "write its tokens with numpy.save"},
};

static uint32_t read_u32(const uint8_t *p, bool big_endian)
{
    uint32_t v = 0;
    for (int b = 0; b < 4; ++b) v |= (uint32_t)p[big_endian ? 3 - b : b] << 8 * b;
    return v;
}

/* Returns whether the file begins like a pickle of protocols 2 to 5. Such a file begins with the
 * opcode of the protocol; the next opcode begins a frame, or an object such as an array or a
 * dictionary. */
static bool is_pickle(const uint8_t *head, size_t bytes)
{
    if (bytes < 4 || head[0] != 0x80 || head[1] < 2 || head[1] > 5) return false;
    return head[1] >= 4 ? head[2] == 0x95 : memchr("c](}\x8a", head[2], 5) != NULL;
}

/* Returns whether the file begins like a safetensors file: with a length in 8 bytes, which is below
 * the file's size, and a JSON object. */
static bool is_safetensors(const uint8_t *head, size_t bytes, int64_t size)
{
    return bytes > 10 && read_u32(head + 4, false) == 0 &&
           (int64_t)read_u32(head, false) + 8 <= size && head[8] == '{' && head[9] == '"';
}

static Status fail_other_kind(const char *path, const char *name, const char *advice)
{
    return fail(ERR_DATA, "%s: is %s, not a file of text or tokens; %s", path, name, advice);
}

Status token_file_refuse_other_kinds(const char *path, const uint8_t *head, size_t bytes,
                                     int64_t size)
{
    for (size_t i = 0; i < sizeof other_kinds / sizeof *other_kinds; ++i) {
        const struct OtherKind *k = &other_kinds[i];
        if (bytes >= k->offset + k->bytes && memcmp(head + k->offset, k->magic, k->bytes) == 0)
            return fail_other_kind(path, k->name, k->advice);
    }
    if (is_pickle(head, bytes))
        return fail_other_kind(path, "a pickle of Python's", "write its tokens with numpy.save");
    if (is_safetensors(head, bytes, size))
        return fail_other_kind(path, "a safetensors file", "import its tokens or text");
    return OK;
}

static Status read_shard_header(TokenFormat *format, const struct Shard *shard, const char *path,
                                const uint8_t *head, size_t bytes)
{
    if (bytes < SHARD_HEAD_BYTES)
        return fail(ERR_DATA, "%s: is truncated: %s has a header of %d bytes; fetch it again", path,
                    shard->name, SHARD_HEAD_BYTES);
    uint32_t version = read_u32(head + 4, false), count = read_u32(head + 8, false);
    if (version != shard->version || count > INT32_MAX)
        return fail(ERR_DATA,
                    "%s: begins as %s does, but of version %u with %u tokens; only version %u with "
                    "up to 2147483647 tokens can be read; write it again",
                    path, shard->name, version, count, shard->version);
    *format = (TokenFormat){
        .name = shard->name, .offset = SHARD_HEAD_BYTES, .bytes = shard->bytes, .count = count};
    return OK;
}

static Status read_npy_header(TokenFormat *format, const char *path, const uint8_t *head,
                              size_t bytes)
{
    NpyHeader h;
    TRY(npy_header_read(&h, path, head, bytes));
    bool whole = h.kind == 'u' || h.kind == 'i';
    if (!whole || (h.bytes != 1 && h.bytes != 2 && h.bytes != 4 && h.bytes != 8))
        return fail(ERR_DATA,
                    "%s: has numbers of type %c%d, but tokens are whole numbers of 8 to 64 bits; "
                    "save it again with .astype('uint32')",
                    path, h.kind, h.bytes);
    if (h.ndim < 1 || h.ndim > 2)
        return fail(ERR_DATA,
                    "%s: has %d dimensions, but an array of tokens has one, or two if its rows "
                    "follow each other; save it again with .ravel()",
                    path, h.ndim);
    if (h.fortran_order && h.ndim == 2 && h.dim[0] > 1 && h.dim[1] > 1)
        return fail(ERR_DATA,
                    "%s: is stored column by column (fortran_order), so the order of the tokens "
                    "would be wrong; save it again with numpy.ascontiguousarray",
                    path);
    *format = (TokenFormat){.name = ".npy",
                            .offset = h.offset,
                            .bytes = h.bytes,
                            .big_endian = h.big_endian,
                            .is_signed = h.kind == 'i',
                            .count = h.elements};
    return OK;
}

/* Refuses llm.c's files that are not shards of tokens, and shards in big-endian byte order. */
static Status refuse_other_llmc_files(const char *path, const uint8_t *head, size_t bytes)
{
    static const struct Other {
        uint32_t magic;
        const char *name;
    } other[] = {{20240522, "an evaluation set of llm.c's with choices of answers"},
                 {20240326, "a model of llm.c's"},
                 {20240328, "a tokenizer of llm.c's"}};
    if (bytes < 4) return OK;
    for (size_t i = 0; i < sizeof other / sizeof *other; ++i)
        if (read_u32(head, false) == other[i].magic)
            return fail_other_kind(path, other[i].name, "import its shards of tokens");
    for (size_t i = 0; i < sizeof shards / sizeof *shards; ++i)
        if (read_u32(head, true) == shards[i].magic)
            return fail(ERR_DATA,
                        "%s: is %s in big-endian byte order; write it again in little-endian order",
                        path, shards[i].name);
    return OK;
}

Status token_format_read(TokenFormat *format, const char *path, const uint8_t *head, size_t bytes,
                         int bits)
{
    *format = (TokenFormat){.bytes = bits / 8, .count = -1};
    TRY(refuse_other_llmc_files(path, head, bytes));
    for (size_t i = 0; i < sizeof shards / sizeof *shards; ++i)
        if (bytes >= 4 && read_u32(head, false) == shards[i].magic)
            TRY(read_shard_header(format, &shards[i], path, head, bytes));
    if (npy_begins(head, bytes)) TRY(read_npy_header(format, path, head, bytes));
    if (format->name && bits && bits != 8 * format->bytes)
        return fail(
            ERR_USAGE,
            "%s: its header (%s) says that tokens have %d bits, --bits says %d; omit --bits", path,
            format->name, 8 * format->bytes, bits);
    if (format->name || bits) return OK;
    return fail(ERR_USAGE,
                "%s: has no header that gives the width of its tokens; give it: --bits 16, 32 or "
                "64",
                path);
}

int64_t token_value(const TokenFormat *format, const uint8_t *p)
{
    uint64_t v = 0;
    int n = format->bytes, shift = 64 - 8 * n;
    for (int b = 0; b < n; ++b) v |= (uint64_t)p[format->big_endian ? n - 1 - b : b] << 8 * b;
    if (format->is_signed) return (int64_t)(v << shift) >> shift;
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}
