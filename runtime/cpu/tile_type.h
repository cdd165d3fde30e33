/* runtime/cpu/tile_type.h: loads and stores of one compute type; included by tile.c with
   T (the type), NAME(f) (the suffix) and OWN (its dtype) defined. No guard. */

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
    case LT_F32: LOAD(float, )
    case LT_F64: LOAD(double, )
    case LT_F16: LOAD(uint16_t, lt_f16_to_f32)
    case LT_BF16: LOAD(uint16_t, lt_bf16_to_f32)
    case LT_I64: LOAD(int64_t, )
    case LT_I32: LOAD(int32_t, )
    default: LOAD(uint8_t, )
  }
}
#undef LOAD

#define STORE(type, convert)                                              \
  {                                                                       \
    type *d = (type *)to;                                                 \
    if (stride == 1)                                                      \
      for (int64_t i = 0; i < n; i++) d[i] = (type)convert(from[i]);      \
    else                                                                  \
      for (int64_t i = 0; i < n; i++) d[i * stride] = (type)convert(from[i]); \
    return;                                                               \
  }
#define TO_F16(x) lt_f32_to_f16((float)(x))
#define TO_BF16(x) lt_f32_to_bf16((float)(x))
#define TO_INT(x) lt_to_int(x)
#define TO_BOOL(x) ((x) != 0)

static void NAME(store_run)(lt_dtype dtype, void *to, int64_t stride, int64_t n, const T *from) {
  switch (dtype) {
    case LT_F32: STORE(float, )
    case LT_F64: STORE(double, )
    case LT_F16: STORE(uint16_t, TO_F16)
    case LT_BF16: STORE(uint16_t, TO_BF16)
    case LT_I64: STORE(int64_t, TO_INT)
    case LT_I32: STORE(int32_t, TO_INT)
    case LT_U8: STORE(uint8_t, TO_INT)
    default: STORE(uint8_t, TO_BOOL)
  }
}
#undef STORE

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
    int64_t run = walk_run(it, &w, n - done);
    NAME(load_run)(o->dtype, o->data + walk_at(it, &w, o) * (int64_t)item, o->stride[it->ndim - 1],
                   run, buffer + done);
    walk_on(it, &w, run);
    done += run;
  }
  return buffer;
}

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
