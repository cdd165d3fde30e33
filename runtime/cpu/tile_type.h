/* runtime/cpu/tile_type.h: loads and stores of one compute type; included by tile.c with
   T (the type), NAME(f) (the suffix) and OWN (its dtype) defined. No guard.

   Loads and stores are the only places that know dtypes and strides; loops see T alone. Each stride
   has a loop of its own: 1 is a vector load, 0 (a broadcast operand) is one conversion for all, the
   rest is gathered element by element. */

#define LOAD(type, convert)                                               \
  {                                                                       \
    const type *s = (const type *)from;                                   \
    if (stride == 1) {                                                    \
      for (int64_t i = 0; i < n; i++) to[i] = (T)convert(s[i]);           \
    } else if (stride == 0) {                                             \
      T v = (T)convert(s[0]);                                             \
      for (int64_t i = 0; i < n; i++) to[i] = v;                          \
    } else {                                                              \
      for (int64_t i = 0; i < n; i++) to[i] = (T)convert(s[i * stride]);  \
    }                                                                     \
    return;                                                               \
  }

static void NAME(load_run)(lt_dtype d, const void *from, int64_t stride, int64_t n, T *to) {
  switch (d) {
#define LT_DTYPE(id, category, memory, own, half, ...) case LT_##id: LOAD(memory, FROM_##half)
#include "tensor/dtype.def"
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: return;
  }
}
#undef LOAD

#define STORE(type, value)                                                \
  {                                                                       \
    type *d = (type *)to;                                                 \
    if (stride == 1)                                                      \
      for (int64_t at = 0; at < n; at++) d[at] = (type)(value);           \
    else                                                                  \
      for (int64_t at = 0; at < n; at++) d[at * stride] = (type)(value);  \
    return;                                                               \
  }
#define STORE_FLOATING(memory, own, half) STORE(memory, TO_##half((own)from[at]))
#define STORE_INTEGER(memory, own, half) STORE(memory, lt_to_int(from[at]))
#define STORE_BOOLEAN(memory, own, half) STORE(memory, from[at] != 0)

static void NAME(store_run)(lt_dtype dtype, void *to, int64_t stride, int64_t n, const T *from) {
  switch (dtype) {
#define LT_DTYPE(id, category, memory, own, half, ...) \
  case LT_##id: STORE_##category(memory, own, half)
#include "tensor/dtype.def"
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: return;
  }
}
#undef STORE_FLOATING
#undef STORE_INTEGER
#undef STORE_BOOLEAN
#undef STORE

/* Elements start..start+n-1 of operand k, in the order of the result. Where they lie so in memory,
   in the right type, the tensor's own memory is returned and nothing is copied. */
const T *LT_CPU(NAME(lt_load))(const lt_iter *it, int k, int64_t start, int64_t n, T *buffer) {
  const lt_operand *o = &it->operand[k];
  size_t item = lt_dtype_size(o->dtype);
  if (o->linear && o->dtype == OWN) return (const T *)(const void *)o->data + start;
  if (o->linear) {
    NAME(load_run)(o->dtype, o->data + (size_t)start * item, 1, n, buffer);
    return buffer;
  }
  walk w = walk_from(it, start);
  for (int64_t done = 0; done < n;) {
    int64_t run = walk_run(it, &w, n - done), stride = o->stride[it->ndim - 1];
    const char *from = o->data + walk_at(it, &w, o) * (int64_t)item;
    if (run == n && stride == 1 && o->dtype == OWN) return (const T *)(const void *)from;
    NAME(load_run)(o->dtype, from, stride, run, buffer + done);
    walk_on(it, &w, run);
    done += run;
  }
  return buffer;
}

/* The inverse. The conversion to the dtype rounds here, once for each element of the result. */
void LT_CPU(NAME(lt_store))(const lt_iter *it, int k, int64_t start, int64_t n, const T *from) {
  const lt_operand *o = &it->operand[k];
  size_t item = lt_dtype_size(o->dtype);
  if (o->linear && o->dtype == OWN) return; /* computed in place: lt_target said so */
  if (o->linear) {
    NAME(store_run)(o->dtype, o->data + (size_t)start * item, 1, n, from);
    return;
  }
  walk w = walk_from(it, start);
  for (int64_t done = 0; done < n;) {
    int64_t run = walk_run(it, &w, n - done);
    NAME(store_run)(o->dtype, o->data + walk_at(it, &w, o) * (int64_t)item, o->stride[it->ndim - 1],
                    run, from + done);
    walk_on(it, &w, run);
    done += run;
  }
}
