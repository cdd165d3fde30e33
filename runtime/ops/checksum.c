/* runtime/ops/checksum.c: hashes of tensors that their device computes, for comparing ranks: a few
   numbers come to the host, not the bytes.

   The words of a tensor are multiplied by random odd numbers, one a place, and added up modulo
   2^64: exact, and the same in any order of addition (multilinear hashing: two tensors that differ
   have the same sum with a chance of at most 2^-32, and each span of SPAN words has a sum). */
#include "ops/checksum.h"

#include "base/hash.h"
#include "ops/fallback.h"

enum { SPAN = 1 << 16, ROWS = 64 /* spans at a time: their words take 2 * 8 bytes each */ };

static lt_dtype words_of(const lt_tensor *t) {
  switch (lt_item_size(t)) {
    case 8: return LT_I64;
    case 4: return LT_I32;
    case 2: return LT_I16;
    default: return LT_U8;
  }
}

bool lt_can_checksum(const lt_ctx *c, const lt_tensor *t) {
  const lt_device_ops *ops = lt_device_table(c, t->storage->device);
  /* Words are another dtype's view of the bytes, which values without bytes do not have. */
  return ops->copy != NULL && !ops->whole_storages &&
         lt_kernel_of(ops, LT_OP_mul, LT_I64) != NULL &&
         lt_kernel_of(ops, LT_OP_cast, LT_I64) != NULL &&
         lt_kernel_of(ops, LT_OP_sum, LT_I64) != NULL &&
         lt_kernel_of(ops, LT_OP_cat, LT_I64) != NULL;
}

/* n random odd numbers on the device. */
static lt_tensor *numbers(lt_ctx *c, lt_device d, int64_t n) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_I64, 1, &n);
  if (t == NULL) return NULL;
  uint64_t *out = lt_data(t);
  for (int64_t k = 0; k < n; k++) out[k] = lt_hash_mix(0, (uint64_t)k) | 1;
  return lt_to_device(c, t, d);
}

/* The sums of `rows` spans of n words, the first at `offset`: [rows]. */
static lt_tensor *sums_of(lt_ctx *c, const lt_tensor *t, int64_t offset, int64_t rows, int64_t n,
                          lt_tensor *numbers) {
  const int64_t size[] = {rows, n};
  lt_frame frame = lt_frame_open(c);
  lt_tensor *words = lt_tensor_make(c, t->storage, words_of(t), 2, size, NULL, t->offset + offset);
  lt_tensor *wide = words != NULL ? lt_cast(c, words, LT_I64) : NULL;
  lt_tensor *by = wide != NULL ? lt_slice(c, numbers, 0, 0, n, 1) : NULL;
  lt_tensor *products = by != NULL ? lt_binary(c, LT_OP_mul, wide, by) : NULL;
  lt_tensor *sums = NULL;
  if (products != NULL)
    sums = lt_apply1(c, LT_OP_sum, LT_IN(products), &(lt_args_reduce){.dims = LT_ONE_DIM(1)});
  void *keep[] = {sums};
  lt_frame_close(c, frame, 1, keep);
  return sums != NULL && lt_frame_add(c, sums) ? sums : NULL;
}

/* Adds the sums of a tensor to the list; its new length, or with list == NULL what it would be. */
static int64_t add_sums(lt_ctx *c, lt_tensor *t, lt_tensor *by, int64_t n, lt_tensor **list) {
  lt_tensor *row = list != NULL ? lt_contiguous(c, t) : t;
  for (int64_t at = 0; at < t->numel && lt_ok(c); n++) {
    int64_t left = t->numel - at, rows = left / SPAN < ROWS ? left / SPAN : ROWS;
    int64_t length = rows > 0 ? SPAN : left;
    if (rows == 0) rows = 1;
    if (list != NULL) list[n] = sums_of(c, row, at, rows, length, by);
    at += rows * length;
  }
  return n;
}

/* The sums in the list, joined and on the host, into the hash. */
static bool mix_sums(lt_ctx *c, int64_t n, lt_tensor *const *list, uint64_t *h) {
  lt_tensor *row = lt_apply1(c, LT_OP_cat, (int)n, list, NULL);
  lt_tensor *here = row != NULL ? lt_to_device(c, row, LT_CPU_DEVICE) : NULL;
  if (here == NULL) return false;
  *h = lt_hash_bytes(lt_data(here), (size_t)here->numel * sizeof(int64_t), *h);
  return true;
}

bool lt_checksum(lt_ctx *c, int n, lt_tensor *const *tensors, uint64_t *h) {
  int64_t count = 0, most = 0;
  for (int k = 0; k < n; k++) {
    count = add_sums(c, tensors[k], NULL, count, NULL);
    if (tensors[k]->numel > most) most = tensors[k]->numel;
  }
  if (count == 0 || !lt_ok(c)) return lt_ok(c);
  lt_tensor **list = lt_alloc(c, (size_t)count * sizeof *list);
  if (list == NULL) return false;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *by = numbers(c, tensors[0]->storage->device, most < SPAN ? most : SPAN);
  int64_t at = 0;
  for (int k = 0; k < n && by != NULL && lt_ok(c); k++) at = add_sums(c, tensors[k], by, at, list);
  bool ok = by != NULL && lt_ok(c) && mix_sums(c, count, list, h);
  lt_frame_close(c, frame, 0, NULL);
  lt_free(c, list, (size_t)count * sizeof *list);
  return ok;
}
