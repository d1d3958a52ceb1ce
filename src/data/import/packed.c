/* Reads files to import, plain or gzip. A gzip file is one or more members, possibly followed by
 * zeros that pad it to the blocks of a tape. A damaged or truncated member, and other bytes after
 * the last member, are refused with their offset, since data would be missing. A kilobyte of
 * deflate can expand to a megabyte of zeros. So a file is refused if it unpacks to more than
 * EXPANSION_MAX times its size and to more than SMALL_BYTES; a user who trusts it can unpack it. */
#include "../data_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* IN_BYTES: size of the buffer; GZIP_ONLY: zlib's windowBits for the largest window and for gzip's
 * format alone */
enum { SMALL_BYTES = 64 << 20, EXPANSION_MAX = 100, IN_BYTES = 128 << 10, GZIP_ONLY = 15 + 16 };

/* other compressed formats: the bytes by which they are recognised, and the command that unpacks
 * them */
static const struct Packer {
    const char *name, *magic;
    /* bytes: number of bytes of magic; offset: where they are in the file */
    size_t bytes, offset;
    const char *command;
} packers[] = {
    {"zip (as NumPy's .npz are)", "PK\3\4", 4, 0, "unzip"},
    {"bzip2", "1AY&SY", 6, 4, "bunzip2 -k"},
    {"xz", "\xfd\x37zXZ\0", 6, 0, "unxz -k"},
    {"zstd", "\x28\xb5\x2f\xfd", 4, 0, "unzstd"},
    {"lz4", "\x04\x22\x4d\x18", 4, 0, "unlz4"},
    {"7-zip", "7z\xbc\xaf\x27\x1c", 6, 0, "7z x"},
};

/* Reads more of the file if all bytes of the buffer are used. Leaves the buffer empty at the end of
 * the file. */
static Status refill(PackedFile *file)
{
    ssize_t n = 0;
    if (file->stream.avail_in > 0) return OK;
    do n = read(file->fd, file->in, IN_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail(ERR_IO, "%s: cannot be read: %s", file->path, strerror(errno));
    file->stream.next_in = file->in;
    file->stream.avail_in = (uInt)n;
    file->read_to += n;
    return OK;
}

/* Returns the offset in the file of the first unused byte of the buffer. */
static int64_t unused_offset(const PackedFile *file)
{
    return file->read_to - (int64_t)file->stream.avail_in;
}

/* Returns whether the unused bytes begin a gzip member. Reads the two magic bytes from the file,
 * since the buffer may have only one of them. */
static bool begins_member(const PackedFile *file)
{
    uint8_t magic[2];
    return pread(file->fd, magic, 2, (off_t)unused_offset(file)) == 2 && magic[0] == 0x1f &&
           magic[1] == 0x8b;
}

/* Returns whether the file begins as torch.save's files do: with a zip archive whose first member
 * is NAME/data.pkl. head: the first bytes of the file. */
static bool is_torch_file(const uint8_t *head, size_t bytes)
{
    const char member[] = "/data.pkl";
    const size_t length = bytes > 30 ? head[26] + 256U * head[27] : 0, end = 30 + length;
    return length >= sizeof member && end <= bytes && memcmp(head, "PK\3\4", 4) == 0 &&
           memcmp(head + end + 1 - sizeof member, member, sizeof member - 1) == 0;
}

/* Refuses files of torch.save, files of other compressed formats, and plain files whose name ends
 * in .gz. */
static Status refuse_other_formats(const PackedFile *file)
{
    size_t length = strlen(file->path);
    if (is_torch_file(file->in, file->stream.avail_in))
        return fail(ERR_DATA,
                    "%s: is a file of torch.save, which only weft ckpt import reads; for data, "
                    "load its tensor with torch.load and save it with "
                    "numpy.save(\"data.npy\", tensor.numpy())",
                    file->path);
    for (size_t i = 0; i < sizeof packers / sizeof *packers; ++i)
        if (file->stream.avail_in >= packers[i].offset + packers[i].bytes &&
            memcmp(file->in + packers[i].offset, packers[i].magic, packers[i].bytes) == 0)
            return fail(ERR_DATA,
                        "%s: is packed by %s, but only gzip files can be read; run `%s` on it "
                        "first",
                        file->path, packers[i].name, packers[i].command);
    if (length < 3 || strcmp(file->path + length - 3, ".gz") != 0) return OK;
    return fail(
        ERR_DATA,
        "%s: its name ends in .gz, but at byte 0 it does not begin as gzip files do; fetch it "
        "again, or, if it is not compressed, remove .gz from its name",
        file->path);
}

Status packed_open_plain(PackedFile *file, const char *path)
{
    struct stat st;
    *file = (PackedFile){.path = path};
    file->fd = file_open(path, O_RDONLY);
    if (file->fd < 0 || fstat(file->fd, &st) != 0) {
        Status status = fail(ERR_NOINPUT, "%s: cannot be opened: %s", path, file_error(errno));
        if (file->fd >= 0) close(file->fd);
        return status;
    }
    file->bytes = (int64_t)st.st_size;
    file->open = true;
    file->in = mem_new(IN_BYTES);
    if (inflateInit2(&file->stream, GZIP_ONLY) != Z_OK) die("out of memory for zlib");
    return OK;
}

Status packed_open(PackedFile *file, const char *path)
{
    TRY(packed_open_plain(file, path));
    Status status = refill(file);
    file->packed = status == OK && begins_member(file);
    if (status == OK && !file->packed) status = refuse_other_formats(file);
    if (status != OK) packed_close(file);
    return status;
}

void packed_close(PackedFile *file)
{
    if (!file->open) return;
    inflateEnd(&file->stream);
    mem_free(&file->in);
    close(file->fd);
    file->open = false;
}

Status packed_rewind(PackedFile *file)
{
    if (lseek(file->fd, 0, SEEK_SET) != 0)
        return fail(ERR_IO, "%s: cannot be read again: %s", file->path, strerror(errno));
    inflateReset(&file->stream);
    file->stream.avail_in = 0;
    file->read_to = file->member = 0;
    file->in_member = file->ended = false;
    return OK;
}

/* Begins the next member, or sets file->ended if the file ends here or if only zeros follow.
 * ERR_DATA: other bytes follow. */
static Status begin_member(PackedFile *file)
{
    TRY(refill(file));
    if (file->stream.avail_in == 0) {
        file->ended = true;
        return OK;
    }
    if (begins_member(file)) {
        file->member = unused_offset(file);
        file->in_member = true;
        inflateReset(&file->stream);
        return OK;
    }
    while (file->stream.avail_in > 0 && *file->stream.next_in == 0) {
        ++file->stream.next_in, --file->stream.avail_in;
        TRY(refill(file));
    }
    if (file->stream.avail_in > 0)
        return fail(ERR_DATA,
                    "%s: after its gzip data, at byte %lld, there is other data: the beginning of "
                    "a member is damaged, or something was appended; fetch it again",
                    file->path, (long long)unused_offset(file));
    file->ended = true;
    return OK;
}

/* Unpacks bytes of the current member until the output is full, the buffer is empty, or the member
 * ends. */
static Status read_member(PackedFile *file)
{
    TRY(refill(file));
    if (file->stream.avail_in == 0)
        return fail(ERR_DATA,
                    "%s: is truncated: at byte %lld it ends within the gzip member that begins at "
                    "byte %lld; fetch it again",
                    file->path, (long long)file->read_to, (long long)file->member);
    int code = inflate(&file->stream, Z_NO_FLUSH);
    if (code == Z_STREAM_END) file->in_member = false;
    if (code == Z_STREAM_END || code == Z_OK) return OK;
    if (code == Z_MEM_ERROR) die("out of memory for zlib");
    return fail(ERR_DATA,
                "%s: is damaged at byte %lld, in the gzip member that begins at byte %lld (%s); "
                "fetch it again",
                file->path, (long long)unused_offset(file), (long long)file->member,
                file->stream.msg ? file->stream.msg : "it needs a dictionary");
}

static Status read_plain(PackedFile *file)
{
    z_stream *s = &file->stream;
    TRY(refill(file));
    uInt n = s->avail_in < s->avail_out ? s->avail_in : s->avail_out;
    file->ended = n == 0;
    memcpy(s->next_out, s->next_in, n);
    s->next_in += n, s->avail_in -= n;
    s->next_out += n, s->avail_out -= n;
    return OK;
}

Status packed_read(PackedFile *file, void *to, size_t most, size_t *got)
{
    Status status = OK;
    file->stream.next_out = to;
    file->stream.avail_out = (uInt)most;
    while (status == OK && !file->ended && file->stream.avail_out > 0)
        status = !file->packed     ? read_plain(file)
                 : file->in_member ? read_member(file)
                                   : begin_member(file);
    *got = most - file->stream.avail_out;
    return status;
}

Status packed_text(const char *path, size_t most, char **text, size_t *bytes)
{
    enum { PIECE_BYTES = 1 << 20 };
    PackedFile file;
    size_t room = 0, got = 0;
    *text = NULL;
    *bytes = 0;
    TRY(packed_open(&file, path));
    Status status = OK;
    while (status == OK && !file.ended && *bytes <= most) {
        if (*bytes + PIECE_BYTES >= room)
            *text = mem_resize(*text, room = 2 * room + PIECE_BYTES + 1);
        status = packed_read(&file, *text + *bytes, PIECE_BYTES, &got);
        *bytes += got;
        if (status == OK) status = packed_check_expansion(&file, (int64_t)*bytes);
    }
    packed_close(&file);
    if (status == OK && *bytes > most)
        status = fail(ERR_DATA, "%s: has more than the %zu bytes that can be imported", path, most);
    if (status == OK)
        (*text)[*bytes] = 0;
    else
        mem_free(text);
    return status;
}

Status packed_check_expansion(const PackedFile *file, int64_t unpacked)
{
    char size_unpacked[16], size_in_file[16];
    if (!file->packed || unpacked <= SMALL_BYTES || unpacked / EXPANSION_MAX <= file->bytes)
        return OK;
    return fail(ERR_DATA,
                "%s: unpacks to %s or more, over %d times its size of %s; unpack it with gunzip "
                "first, if you trust it",
                file->path, text_bytes((double)unpacked, size_unpacked), EXPANSION_MAX,
                text_bytes((double)file->bytes, size_in_file));
}
