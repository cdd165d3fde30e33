/* runtime/ops/abi_hash.c: a hash of the internal ABI that backends in the tree are compiled
   against: ids of ops, offsets of arguments, numbers of choices and dtypes, layouts of structs.

   Such a backend compiles this file into its shared object and gives the number as `op_hash`: one
   that was built from other rows or structs is refused. So it depends on headers and rows alone.
   (Backends out of the tree ask for ops and arguments by name, and give 0.) */
#include <string.h>

#include "base/hash.h"
#include "ltrain/backend.h"
#include "ops/op.h"

#define CHOICES_INT(name)
#define CHOICES_NUMBER(name)
#define CHOICES_FLAG(name)
#define CHOICES_DIM(name)
#define CHOICES_DIMS(name)
#define CHOICES_POS(name)
#define CHOICES_SIZES(name)
#define CHOICES_PAIR(name)
#define CHOICES_EACH(name)
#define CHOICES_PADDING(name)
#define CHOICES_SCALAR(name)
#define CHOICES_DTYPE(name)
#define CHOICES_DEVICE(name)
#define CHOICES_RNG_KEY(name)
#define CHOICES_CHOICE(name) LT_CHOICES_##name
#define ARG_TEXT(type_, name_, default_) " " #type_ " " #name_ CHOICES_##type_(name_)
#define ARG_OFFSET(type_, name_, default_) , offsetof(this_kind, name_)

uint64_t lt_op_hash(void) {
  static const char rows[] =
#define LT_UNARY(name, ...) "unary " #name "\n"
#define LT_TEST(name, ...) "test " #name "\n"
#include "ops/unary.def"
#define LT_BINARY(name, ...) "binary " #name "\n"
#define LT_COMPARE(name, ...) "compare " #name "\n"
#include "ops/binary.def"
#define LT_UPDATE(name, fewest, most, ...) "update " #name " " #fewest " " #most "\n"
#include "ops/updates.def"
#define LT_OP(name, kind, ...) #kind " " #name "\n"
#include "ops/ops.def"
#define LT_KIND(name, inputs, min_in, max_in, n_out, flags) \
  #name " " inputs " " #min_in " " #max_in " " #n_out LT_ARGS_##name(ARG_TEXT) "\n"
#include "ops/kinds.def"
#define LT_DTYPE(id, category, memory, ...) #id " " #memory "\n"
#include "tensor/dtype.def"
      ;
  static const size_t structs[] = {
      LT_MAX_DIMS, LT_DTYPE_COUNT, LT_NO_SCALAR, LT_SCALAR_BOOL, LT_SCALAR_INT, LT_SCALAR_FLOAT,
      sizeof(lt_scalar), offsetof(lt_scalar, f), offsetof(lt_scalar, i),
      sizeof(lt_dims), sizeof(lt_sizes), sizeof(lt_pair), sizeof(lt_rng_key), sizeof(lt_device),
      sizeof(lt_event), sizeof(lt_view), offsetof(lt_view, size), offsetof(lt_view, stride),
      sizeof(lt_call), offsetof(lt_call, in), offsetof(lt_call, out), offsetof(lt_call, args),
      sizeof(lt_tensor), offsetof(lt_tensor, storage), offsetof(lt_tensor, size),
      offsetof(lt_tensor, stride), offsetof(lt_tensor, offset), offsetof(lt_tensor, numel),
      offsetof(lt_tensor, ndim), offsetof(lt_tensor, dtype), offsetof(lt_tensor, contiguous),
      sizeof(lt_storage), offsetof(lt_storage, data), offsetof(lt_storage, device),
      sizeof(lt_device_ops), sizeof(lt_host)};
  uint64_t h = lt_hash_bytes(rows, sizeof rows, LT_BACKEND_VERSION);
#define LT_KIND(name, ...)                                                          \
  {                                                                                 \
    typedef lt_args_##name this_kind;                                               \
    static const size_t args[] = {sizeof(this_kind) LT_ARGS_##name(ARG_OFFSET)};    \
    h = lt_hash_bytes(args, sizeof args, h);                                        \
  }
#include "ops/kinds.def"
  return lt_hash_bytes(structs, sizeof structs, h);
}

#undef CHOICES_INT
#undef CHOICES_NUMBER
#undef CHOICES_FLAG
#undef CHOICES_DIM
#undef CHOICES_DIMS
#undef CHOICES_POS
#undef CHOICES_SIZES
#undef CHOICES_PAIR
#undef CHOICES_EACH
#undef CHOICES_PADDING
#undef CHOICES_SCALAR
#undef CHOICES_DTYPE
#undef CHOICES_DEVICE
#undef CHOICES_RNG_KEY
#undef CHOICES_CHOICE
#undef ARG_TEXT
#undef ARG_OFFSET
