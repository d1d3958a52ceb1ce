/* torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, metadata)
 * describes a view of a storage, which is a member of the zip. Several tensors may view one
 * storage, with gaps, overlaps and any order of dimensions. */
#include "torch_tensor.h"

#include <string.h>

/* Tags of torch_names: the low byte is an element type (ForeignType), the other bits are the kind
 * of object. */
enum {
    TAG_TYPE = 0x0ff,
    TAG_STORAGE = 0x100,
    TAG_UNTYPED = 0x200,
    TAG_DTYPE = 0x300,
    TAG_VIEW = 0x400,
    TAG_VIEW_OF_TYPE = 0x500,
    TAG_WRAPPER = 0x600,
    TAG_SUBCLASS = 0x700,
};
#define STORAGE(name, type)                                                                        \
    {                                                                                              \
        "torch." name "Storage", PICKLE_MAKES_OTHER, TAG_STORAGE | FOREIGN_##type                  \
    }
#define DTYPE(name, type)                                                                          \
    {                                                                                              \
        "torch." name, PICKLE_MAKES_OTHER, TAG_DTYPE | FOREIGN_##type                              \
    }
#define OTHER(name)                                                                                \
    {                                                                                              \
        name, PICKLE_MAKES_OTHER, 0                                                                \
    }

const PickleName torch_names[] = {
    {"collections.OrderedDict", PICKLE_MAKES_DICT, 0},
    {"collections.defaultdict", PICKLE_MAKES_DICT, 0},
    {"torch._utils._rebuild_tensor_v2", PICKLE_MAKES_CALL, TAG_VIEW},
    {"torch._utils._rebuild_tensor_v3", PICKLE_MAKES_CALL, TAG_VIEW_OF_TYPE},
    {"torch._utils._rebuild_parameter", PICKLE_MAKES_CALL, TAG_WRAPPER},
    {"torch._utils._rebuild_parameter_with_state", PICKLE_MAKES_CALL, TAG_WRAPPER},
    {"torch._tensor._rebuild_from_type_v2", PICKLE_MAKES_CALL, TAG_SUBCLASS},
    STORAGE("Float", F32),
    STORAGE("Double", F64),
    STORAGE("Half", F16),
    STORAGE("BFloat16", BF16),
    STORAGE("Long", I64),
    STORAGE("Int", I32),
    STORAGE("Short", I16),
    STORAGE("Char", I8),
    STORAGE("Byte", U8),
    STORAGE("Bool", BOOL),
    STORAGE("ComplexFloat", C64),
    {"torch.storage.UntypedStorage", PICKLE_MAKES_OTHER, TAG_UNTYPED},
    {"torch.UntypedStorage", PICKLE_MAKES_OTHER, TAG_UNTYPED},
    DTYPE("float32", F32),
    DTYPE("float64", F64),
    DTYPE("float16", F16),
    DTYPE("bfloat16", BF16),
    DTYPE("int64", I64),
    DTYPE("int32", I32),
    DTYPE("int16", I16),
    DTYPE("int8", I8),
    DTYPE("uint8", U8),
    DTYPE("uint16", U16),
    DTYPE("uint32", U32),
    DTYPE("uint64", U64),
    DTYPE("bool", BOOL),
    DTYPE("complex64", C64),
    DTYPE("float8_e4m3fn", F8_E4M3),
    DTYPE("float8_e5m2", F8_E5M2),
    /* objects next to the tensors, whose content is not read */
    OTHER("torch.Tensor"),
    OTHER("torch.nn.parameter.Parameter"),
    OTHER("torch.nn.parameter.Buffer"),
    OTHER("torch.Size"),
    OTHER("torch.device"),
    OTHER("argparse.Namespace"),
    OTHER("pathlib.Path"),
    OTHER("pathlib.PosixPath"),
    OTHER("pathlib.PurePosixPath"),
    OTHER("pathlib._local.PosixPath"),
    OTHER("numpy.dtype"),
    OTHER("numpy.ndarray"),
    OTHER("numpy.core.multiarray.scalar"),
    OTHER("numpy._core.multiarray.scalar"),
    OTHER("numpy.core.multiarray._reconstruct"),
    OTHER("numpy._core.multiarray._reconstruct"),
    OTHER("_codecs.encode"),
    OTHER("datetime.datetime"),
    OTHER("datetime.timedelta"),
    OTHER("__builtin__.set"),
    OTHER("__builtin__.int"),
    OTHER("__builtin__.float"),
    OTHER("__builtin__.list"),
    OTHER("__builtin__.dict"),
    OTHER("__builtin__.bool"),
    OTHER("__builtin__.complex"),
    OTHER("__builtin__.bytearray"),
    OTHER("builtins.set"),
    OTHER("builtins.int"),
    OTHER("builtins.float"),
    OTHER("builtins.list"),
    OTHER("builtins.dict"),
    OTHER("builtins.bool"),
    OTHER("builtins.complex"),
    OTHER("builtins.bytearray"),
    {NULL, 0, 0},
};

static const PickleValue *value_at(const TorchFile *torch, int i)
{
    return &torch->pickle.value[i];
}

/* Returns item i of a tuple, or NULL if there is no such tuple or item. */
static const PickleValue *item_of(const TorchFile *torch, const PickleValue *tuple, int i)
{
    if (!tuple || tuple->kind != PICKLE_TUPLE || i >= tuple->count) return NULL;
    return value_at(torch, tuple->item[i]);
}

static int kind_of(const PickleName *name)
{
    return name->tag & ~TAG_TYPE;
}

static bool read_call(const TorchFile *torch, const PickleValue *value, TorchCall *call)
{
    if (!value || value->kind != PICKLE_CALL) return false;
    *call = (TorchCall){value->name, value_at(torch, value->item[0])};
    return true;
}

/* Unwraps _rebuild_from_type_v2(function, type, arguments, state), which calls
 * function(*arguments). */
static bool unwrap_subclass(const TorchFile *torch, TorchCall *call)
{
    const PickleValue *function = item_of(torch, call->arguments, 0);
    const PickleValue *arguments = item_of(torch, call->arguments, 2);
    if (!function || function->kind != PICKLE_NAME || !arguments) return false;
    *call = (TorchCall){function->name, arguments};
    return true;
}

bool torch_tensor_call(const TorchFile *torch, int value, TorchCall *call)
{
    enum { WRAPPERS = 4 };
    if (!read_call(torch, value_at(torch, value), call)) return false;
    for (int i = 0; i < WRAPPERS; ++i) {
        bool inside = false;
        switch (kind_of(call->name)) {
        case TAG_VIEW:
        case TAG_VIEW_OF_TYPE:
            return true;
        case TAG_WRAPPER:
            inside = read_call(torch, item_of(torch, call->arguments, 0), call);
            break;
        case TAG_SUBCLASS:
            inside = unwrap_subclass(torch, call);
            break;
        }
        if (!inside) return false;
    }
    return false;
}

/* ---- a storage ---- */

/* A storage. In the pickle it is ('storage', type, key, device, number of elements or bytes). */
typedef struct Storage {
    ForeignType type;
    /* member of the zip with the values; borrowed */
    ZipMember *member;
    /* number of elements in the member */
    int64_t elements;
} Storage;

static Status refuse(const TorchFile *torch, const ForeignTensor *t, const char *why)
{
    return fail(ERR_DATA, "%s: tensor %s %s", torch->file->path, t->name, why);
}

/* Reads the element type from the storage or, if the storage is untyped, from the call's seventh
 * argument. *typed: true if the storage has a type. */
static bool read_type(const TorchFile *torch, const TorchCall *call, ForeignType *type, bool *typed)
{
    const PickleValue *storage = item_of(torch, call->arguments, 0);
    if (!storage || storage->kind != PICKLE_PERSISTENT) return false;
    const PickleValue *name = item_of(torch, value_at(torch, storage->item[0]), 1);
    if (!name || name->kind != PICKLE_NAME) return false;
    *typed = kind_of(name->name) == TAG_STORAGE;
    if (!*typed) {
        if (kind_of(name->name) != TAG_UNTYPED || kind_of(call->name) != TAG_VIEW_OF_TYPE)
            return false;
        name = item_of(torch, call->arguments, 6);
        if (!name || name->kind != PICKLE_NAME || kind_of(name->name) != TAG_DTYPE) return false;
    }
    *type = (ForeignType)(name->name->tag & TAG_TYPE);
    return true;
}

static Status find_storage(const TorchFile *torch, const TorchCall *call, const ForeignTensor *t,
                           Storage *storage)
{
    bool typed = false;
    if (!read_type(torch, call, &storage->type, &typed))
        return refuse(torch, t, "has a storage of an unknown kind");
    const PickleValue *persistent = item_of(torch, call->arguments, 0);
    const PickleValue *id = value_at(torch, persistent->item[0]);
    const PickleValue *word = item_of(torch, id, 0), *key = item_of(torch, id, 2);
    const PickleValue *count = item_of(torch, id, 4);
    if (!pickle_is_text(word, "storage") || !key || key->kind != PICKLE_TEXT || key->bytes > 64 ||
        !count || count->kind != PICKLE_WHOLE || count->whole < 0)
        return refuse(torch, t, "has a storage of an unknown kind");
    char *name = mem_format("%s/data/%.*s", torch->folder, (int)key->bytes, key->text);
    storage->member = zip_find(&torch->zip, name);
    mem_free(&name);
    if (!storage->member)
        return refuse(torch, t, "has a storage that is not in the file: it was cut or packed anew");
    int64_t each = foreign_type_bytes(storage->type), bytes = storage->member->bytes;
    storage->elements = bytes / each;
    if (typed ? bytes % each || count->whole != bytes / each : count->whole != bytes)
        return fail(ERR_DATA,
                    "%s: tensor %s says that its storage has %lld %s, and the file holds %lld "
                    "bytes of it",
                    torch->file->path, t->name, (long long)count->whole,
                    typed ? foreign_type_name(storage->type) : "bytes", (long long)bytes);
    return OK;
}

/* ---- a view ---- */

static bool read_sizes(const TorchFile *torch, const PickleValue *tuple, int64_t *size, int count)
{
    if (!tuple || tuple->kind != PICKLE_TUPLE || tuple->count != count) return false;
    for (int i = 0; i < count; ++i) {
        const PickleValue *v = item_of(torch, tuple, i);
        if (v->kind != PICKLE_WHOLE || v->whole < 0) return false;
        size[i] = v->whole;
    }
    return true;
}

/* Returns true if a view is lazily conjugated or negated, so that its values differ from the
 * storage's, or if its metadata have an unknown form. */
static bool is_lazy(const TorchFile *torch, const TorchCall *call)
{
    const PickleValue *more =
        item_of(torch, call->arguments, kind_of(call->name) == TAG_VIEW ? 6 : 7);
    if (!more || more->kind == PICKLE_NONE) return false;
    if (more->kind != PICKLE_DICT) return true;
    for (int i = 1; i < more->count; i += 2) {
        const PickleValue *v = value_at(torch, more->item[i]);
        if (v->kind != PICKLE_BOOL || v->whole) return true;
    }
    return false;
}

/* Computes t->elements, and *span, the number of elements in the storage from the view's first
 * element to its last. Returns false if the numbers overflow. */
static bool measure(ForeignTensor *t, int64_t *span)
{
    int64_t last = 0, step;
    t->elements = 1;
    for (int d = 0; d < t->ndim; ++d)
        if (__builtin_mul_overflow(t->elements, t->dim[d], &t->elements)) return false;
    for (int d = 0; d < t->ndim; ++d)
        if (__builtin_mul_overflow(t->dim[d] - 1, t->stride[d], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    if (last == INT64_MAX) return false;
    *span = t->elements > 0 ? last + 1 : 0;
    return true;
}

static bool is_contiguous(const ForeignTensor *t)
{
    int64_t row = 1;
    for (int d = t->ndim - 1; d >= 0; --d) {
        if (t->dim[d] != 1 && t->stride[d] != row) return false;
        row *= t->dim[d];
    }
    return true;
}

/* Limits the sum of the values of all tensors, because a small file may have many tensors that
 * share values of a storage. */
static Status count_values(TorchFile *torch, const ForeignTensor *t, int64_t span)
{
    int64_t more = t->elements > span ? t->elements : span;
    int64_t most = 4 * torch->file->bytes + (1 << 20);
    if (more > most - torch->values)
        return refuse(torch, t,
                      "repeats the values of its storage: the file's tensors would hold far more "
                      "values than the file");
    torch->values += more;
    return OK;
}

bool torch_tensor_is_weight(const TorchFile *torch, const TorchCall *call)
{
    ForeignTensor t = {0};
    bool typed;
    const PickleValue *size = item_of(torch, call->arguments, 2);
    if (!read_type(torch, call, &t.type, &typed) || !foreign_is_float(&t)) return false;
    for (int i = 0; size && i < size->count; ++i) {
        const PickleValue *v = item_of(torch, size, i);
        if (v && v->kind == PICKLE_WHOLE && v->whole != 1) return true;
    }
    return false;
}

Status torch_tensor_fill(TorchFile *torch, const TorchCall *call, ForeignTensor *t)
{
    Storage storage = {0};
    const PickleValue *offset = item_of(torch, call->arguments, 1);
    const PickleValue *size = item_of(torch, call->arguments, 2);
    int64_t span = 0;
    TRY(find_storage(torch, call, t, &storage));
    t->type = storage.type;
    t->ndim = size ? size->count : 0;
    if (t->ndim > FOREIGN_DIMS) return refuse(torch, t, "has more than 8 dimensions");
    if (!offset || offset->kind != PICKLE_WHOLE || offset->whole < 0 ||
        !read_sizes(torch, size, t->dim, t->ndim) ||
        !read_sizes(torch, item_of(torch, call->arguments, 3), t->stride, t->ndim))
        return refuse(torch, t, "has no good offset, size or strides");
    if (is_lazy(torch, call))
        return refuse(torch, t, "is a lazily negated or conjugated view: save its clone()");
    if (!measure(t, &span) || offset->whole > storage.elements ||
        span > storage.elements - offset->whole)
        return refuse(torch, t, "reaches beyond the end of its storage");
    TRY(count_values(torch, t, span));
    TRY(zip_check(&torch->zip, storage.member));
    int64_t each = foreign_type_bytes(t->type);
    t->strided = t->elements > 0 && !is_contiguous(t);
    t->begin = storage.member->begin + offset->whole * each;
    t->end = t->begin + span * each;
    return OK;
}
