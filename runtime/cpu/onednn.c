/* runtime/cpu/onednn.c: oneDNN 2.x behind cpu/onednn.h. Only this file and onednn_sgemm.c
   know its API.

   oneDNN generates machine code for each shape (a primitive), which takes up to milliseconds, more
   than a small product. A table in the ctx keeps primitives by all that they were made for: shapes,
   strides, dtype, threads. A training loop has few shapes, and finds nearly all in the table after
   its first step.

   Scratch memory is ours (scratchpad_mode_user), from the pool, so that it counts in the ctx's
   limit and is not kept by the library. oneDNN's threads are OpenMP's (base/cpu_load.c). */
#include "cpu/onednn.h"

#include <dnnl.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu_load.h"
#include "base/threads.h"
#include "cpu/onednn_guard.h"
#include "cpu/onednn_sgemm.h"
#include "cpu/thread_invariance.h"
#include "device/device.h"

enum { KEY_WORDS = 48, MOST_ARGS = 6, BUCKETS = 256, MOST_ENTRIES = 1024 };

/* What a primitive was made for. */
typedef struct key {
  int n, threads;
  uint64_t hash; /* of the words */
  int64_t word[KEY_WORDS];
} key;

/* A primitive with its memory objects. Its packed operand, if any, is brought into oneDNN's own
   layout before it runs, or out of it afterwards, by `reorder`. */
typedef struct entry {
  struct entry *next;
  key key;
  dnnl_primitive_t primitive, reorder;
  int n_args, packed; /* packed: index in args, -1: none */
  int alone;          /* a product of several threads: 1: equal on one; -1: not; 0: not known */
  bool reorder_after;
  bool moves_stack; /* see lt_onednn_block_signals */
  int arg[MOST_ARGS];
  dnnl_memory_t memory[MOST_ARGS];
  dnnl_memory_t plain; /* the packed operand as the caller has it */
  dnnl_memory_t scratch, reorder_scratch;
  size_t scratch_bytes, reorder_scratch_bytes, packed_bytes;
} entry;

typedef struct state {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  int count;
  entry *bucket[BUCKETS];
  lt_thread warming; /* see lt_onednn_warm_up; name NULL: never started */
} state;

static bool check(lt_ctx *c, dnnl_status_t status, const char *what) {
  if (status == dnnl_success) return true;
  if (status == dnnl_out_of_memory)
    return lt_fail(c, LT_EMEMORY, "%s: out of memory in oneDNN", c->op != NULL ? c->op : "cpu");
  return lt_fail(c, LT_EINTERNAL, "%s: oneDNN refused to %s: status %d",
                 c->op != NULL ? c->op : "cpu", what, (int)status);
}

static void entry_free(lt_ctx *c, entry *e) {
  if (e->primitive != NULL) dnnl_primitive_destroy(e->primitive);
  if (e->reorder != NULL) dnnl_primitive_destroy(e->reorder);
  for (int k = 0; k < e->n_args; k++)
    if (e->memory[k] != NULL) dnnl_memory_destroy(e->memory[k]);
  if (e->plain != NULL) dnnl_memory_destroy(e->plain);
  if (e->scratch != NULL) dnnl_memory_destroy(e->scratch);
  if (e->reorder_scratch != NULL) dnnl_memory_destroy(e->reorder_scratch);
  lt_free(c, e, sizeof *e);
}

/* Everything goes at once, without an order of use: 1024 shapes are many more than a loop has, and
   a table that overflows belongs to a program whose shapes do not come back. */
static void table_clear(lt_ctx *c, state *s) {
  for (int k = 0; k < BUCKETS; k++)
    while (s->bucket[k] != NULL) {
      entry *e = s->bucket[k];
      s->bucket[k] = e->next;
      entry_free(c, e);
    }
  s->count = 0;
}

static void state_drop(lt_ctx *c, void *slot) {
  state *s = slot;
  lt_thread_join(c, &s->warming);
  table_clear(c, s);
  if (s->stream != NULL) dnnl_stream_destroy(s->stream);
  if (s->engine != NULL) dnnl_engine_destroy(s->engine);
  c->slot[LT_SLOT_CPU] = NULL;
  lt_free(c, s, sizeof *s);
}

/* One engine and one stream a ctx, which one thread uses at a time: no lock, and oneDNN's errors
   belong to one op. */
static state *state_of(lt_ctx *c) {
  if (c->slot[LT_SLOT_CPU] != NULL) return c->slot[LT_SLOT_CPU];
  state *s = lt_alloc(c, sizeof *s);
  if (s == NULL) return NULL;
  if (!check(c, dnnl_engine_create(&s->engine, dnnl_cpu, 0), "make an engine") ||
      !check(c, dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags),
             "make a stream")) {
    state_drop(c, s);
    return NULL;
  }
  c->slot_drop[LT_SLOT_CPU] = state_drop;
  return c->slot[LT_SLOT_CPU] = s;
}

/* FNV-1a by words, with the multiplier of Fibonacci hashing in place of FNV's prime. */
static uint64_t hash_of(const key *k) {
  uint64_t h = 1469598103934665603u;
  for (int i = 0; i < k->n; i++) h = (h ^ (uint64_t)k->word[i]) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 32;
}

static entry **bucket_of(state *s, const key *k) {
  return &s->bucket[(k->hash + (uint64_t)k->threads) % BUCKETS];
}

/* The hash first: comparing 48 words costs more than the rest of the lookup. */
static entry *find(state *s, const key *k) {
  for (entry *e = *bucket_of(s, k); e != NULL; e = e->next)
    if (e->key.hash == k->hash && e->key.threads == k->threads && e->key.n == k->n &&
        memcmp(e->key.word, k->word, (size_t)k->n * sizeof *k->word) == 0)
      return e;
  return NULL;
}

/* A full table is emptied: primitives come back equal, from oneDNN's own cache. */
static entry *add(lt_ctx *c, state *s, const key *k) {
  if (s->count == MOST_ENTRIES) table_clear(c, s);
  entry *e = lt_alloc(c, sizeof *e);
  if (e == NULL) return NULL;
  e->key = *k;
  e->packed = -1;
  return e;
}

static void keep(state *s, entry *e) {
  entry **bucket = bucket_of(s, &e->key);
  e->next = *bucket;
  *bucket = e;
  s->count++;
}

/* oneDNN writes machine code without looking whether it got memory for it, so address space is
   asked for beforehand. Its kernels of gemm move the stack pointer (cpu/onednn_guard.h); their name
   is the only mark of them. The scratchpad's size is known only once there is a plan. */
static bool make_primitive(lt_ctx *c, state *s, entry *e, const_dnnl_op_desc_t desc,
                           dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *pd) {
  dnnl_primitive_attr_t attr = NULL;
  if (!lt_onednn_has_address_space(LT_CODE_OF_PRIMITIVE))
    return lt_fail(c, LT_EMEMORY, "%s%sout of memory in oneDNN", lt_op_name(c), lt_op_colon(c));
  bool ok = check(c, dnnl_primitive_attr_create(&attr), "make attributes") &&
            check(c, dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
                  "take our scratchpad") &&
            check(c, dnnl_primitive_desc_create(pd, desc, attr, s->engine, hint), "plan") &&
            check(c, dnnl_primitive_create(&e->primitive, *pd), "make a primitive");
  if (ok) {
    const char *kernel = "";
    dnnl_primitive_desc_query(*pd, dnnl_query_impl_info_str, 0, &kernel);
    e->moves_stack = strstr(kernel, "gemm") != NULL;
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(*pd, dnnl_query_scratchpad_md, 0);
    e->scratch_bytes = dnnl_memory_desc_get_size(md);
    ok = check(c, dnnl_memory_create(&e->scratch, md, s->engine, DNNL_MEMORY_NONE), "make memory");
  }
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  return ok;
}

static bool add_argument(lt_ctx *c, state *s, entry *e, int arg, const dnnl_memory_desc_t *md) {
  e->arg[e->n_args] = arg;
  return check(c, dnnl_memory_create(&e->memory[e->n_args++], md, s->engine, DNNL_MEMORY_NONE),
               "make memory");
}

/* Scratch comes from the ctx's pool, and goes back with the frame: primitives share it. */
static bool execute(lt_ctx *c, state *s, dnnl_primitive_t p, int n, dnnl_exec_arg_t *args,
                    dnnl_memory_t scratch, size_t scratch_bytes) {
  if (scratch_bytes > 0) {
    lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_U8, 1, &(int64_t){(int64_t)scratch_bytes});
    if (t == NULL) return false;
    dnnl_memory_set_data_handle(scratch, lt_data(t));
    args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, scratch};
  }
  return check(c, dnnl_primitive_execute(p, s->stream, n, args), "run");
}

/* Run on these addresses, in the order of the entry's arguments. */
static bool run(lt_ctx *c, state *s, entry *e, void *const *data) {
  dnnl_exec_arg_t args[MOST_ARGS + 1];
  void *packed = NULL;
  if (e->reorder != NULL) {
    lt_tensor *t =
        lt_tensor_empty(c, LT_CPU_DEVICE, LT_U8, 1, &(int64_t){(int64_t)e->packed_bytes});
    if (t == NULL) return false;
    packed = lt_data(t);
    dnnl_memory_set_data_handle(e->plain, data[e->packed]);
  }
  for (int k = 0; k < e->n_args; k++) {
    bool is_packed = packed != NULL && k == e->packed;
    dnnl_memory_set_data_handle(e->memory[k], is_packed ? packed : data[k]);
    args[k] = (dnnl_exec_arg_t){e->arg[k], e->memory[k]};
  }
  dnnl_exec_arg_t move[3];
  if (e->reorder != NULL) {
    dnnl_memory_t own = e->memory[e->packed];
    move[0] = (dnnl_exec_arg_t){DNNL_ARG_FROM, e->reorder_after ? own : e->plain};
    move[1] = (dnnl_exec_arg_t){DNNL_ARG_TO, e->reorder_after ? e->plain : own};
  }
  bool before = e->reorder != NULL && !e->reorder_after;
  bool after = e->reorder != NULL && e->reorder_after;
  sigset_t signals;
  if (e->moves_stack) lt_onednn_block_signals(&signals);
  bool ok = (!before || execute(c, s, e->reorder, 2, move, e->reorder_scratch,
                                e->reorder_scratch_bytes)) &&
            execute(c, s, e->primitive, e->n_args, args, e->scratch, e->scratch_bytes) &&
            (!after || execute(c, s, e->reorder, 2, move, e->reorder_scratch,
                               e->reorder_scratch_bytes));
  if (e->moves_stack) lt_signals_restore(&signals);
  return ok;
}

/* Finish a new entry: in the table if all went well, else freed. */
static entry *settle(lt_ctx *c, state *s, entry *e, bool ok) {
  if (ok)
    keep(s, e);
  else
    entry_free(c, e);
  return ok ? e : NULL;
}

/* Matrix products. */

static dnnl_data_type_t type_of(lt_dtype d) { return d == LT_BF16 ? dnnl_bf16 : dnnl_f32; }

static void put_matrix(key *k, const lt_matrix *m, int n_batch) {
  k->word[k->n++] = m->row;
  k->word[k->n++] = m->col;
  for (int i = 0; i < n_batch; i++) k->word[k->n++] = m->batch[i];
}

/* All that oneDNN bakes into the code of a product: sizes and strides of the three matrices,
   whether there is a bias, dtype. Addresses are not part of it. 7 + n_batch + 3 * (2 + n_batch)
   words: 37 with 6 batch dims. */
static key product_key(const lt_product *p, int threads) {
  key k = {.threads = threads};
  const int64_t head[] = {0, p->dtype, p->bias != NULL, p->n_batch, p->m, p->n, p->k};
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) k.word[k.n++] = head[i];
  for (int i = 0; i < p->n_batch; i++) k.word[k.n++] = p->batch[i];
  put_matrix(&k, &p->a, p->n_batch);
  put_matrix(&k, &p->b, p->n_batch);
  put_matrix(&k, &p->out, p->n_batch);
  k.hash = hash_of(&k);
  return k;
}

/* A batch dim of stride 0 is one of size 1 to oneDNN, which broadcasts it. */
static bool matrix_desc(lt_ctx *c, dnnl_memory_desc_t *md, const lt_product *p, const lt_matrix *m,
                        int64_t rows, int64_t cols) {
  dnnl_dims_t dims, strides;
  for (int i = 0; i < p->n_batch; i++) {
    dims[i] = m->batch[i] == 0 ? 1 : p->batch[i];
    strides[i] = m->batch[i] == 0 ? rows * cols : m->batch[i];
  }
  dims[p->n_batch] = rows, strides[p->n_batch] = m->row;
  dims[p->n_batch + 1] = cols, strides[p->n_batch + 1] = m->col;
  return check(
      c, dnnl_memory_desc_init_by_strides(md, p->n_batch + 2, dims, type_of(p->dtype), strides),
      "describe a matrix");
}

/* A row of N that is broadcast over all other dims. */
static bool bias_desc(lt_ctx *c, dnnl_memory_desc_t *md, const lt_product *p) {
  dnnl_dims_t dims, strides;
  for (int i = 0; i < p->n_batch + 1; i++) dims[i] = 1, strides[i] = p->n;
  dims[p->n_batch + 1] = p->n, strides[p->n_batch + 1] = 1;
  return check(
      c, dnnl_memory_desc_init_by_strides(md, p->n_batch + 2, dims, type_of(p->dtype), strides),
      "describe a bias");
}

static bool make_product(lt_ctx *c, state *s, entry *e, const lt_product *p) {
  dnnl_memory_desc_t a, b, bias, out;
  dnnl_matmul_desc_t desc;
  dnnl_primitive_desc_t pd = NULL;
  bool ok =
      matrix_desc(c, &a, p, &p->a, p->m, p->k) && matrix_desc(c, &b, p, &p->b, p->k, p->n) &&
      matrix_desc(c, &out, p, &p->out, p->m, p->n) && (p->bias == NULL || bias_desc(c, &bias, p)) &&
      check(c, dnnl_matmul_desc_init(&desc, &a, &b, p->bias != NULL ? &bias : NULL, &out),
            "describe a product") &&
      make_primitive(c, s, e, &desc, NULL, &pd) && add_argument(c, s, e, DNNL_ARG_SRC, &a) &&
      add_argument(c, s, e, DNNL_ARG_WEIGHTS, &b) && add_argument(c, s, e, DNNL_ARG_DST, &out) &&
      (p->bias == NULL || add_argument(c, s, e, DNNL_ARG_BIAS, &bias));
  if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  return ok;
}

/* What has little work is slower on several threads. */
static int threads_for(const lt_ctx *c, double work) { return work < 1 << 17 ? 1 : c->threads; }

/* By the number of multiplications: below some 10^5 starting a team takes longer than the
   product. */
static int product_threads(const lt_ctx *c, const lt_product *p) {
  double work = (double)p->m * (double)p->n * (double)p->k;
  for (int i = 0; i < p->n_batch; i++) work *= (double)p->batch[i];
  return threads_for(c, work);
}

/* Gradients of large linear layers (b not transposed) are faster by sgemm. Small products never
   take it, because its first call is slow. */
static bool by_sgemm(const lt_product *p) {
  if (p->adds) return true;
  if (p->dtype != LT_F32 || p->n_batch != 0 || p->bias != NULL || p->b.col != 1) return false;
  return (double)p->m * (double)p->n * (double)p->k >= 0x1p25;
}

/* BLAS counts columns first and has one transpose flag a matrix; dnnl_sgemm is row-major. b and the
   result are row-major here (by_sgemm has seen to it), so only `a` may be transposed: its leading
   dimension is the stride that is not 1. */
static bool product_by_sgemm(lt_ctx *c, const lt_product *p) {
  bool ta = p->a.col != 1;
  return lt_onednn_sgemm_here(ta, false, p->m, p->n, p->k, 1, p->a.data,
                              ta ? p->a.col : p->a.row, p->b.data, p->b.row, p->adds, p->out.data,
                              p->out.row) ||
         lt_fail(c, LT_EMEMORY, "%s: out of memory in oneDNN", c->op != NULL ? c->op : "product");
}

/* With oneDNN's threads set to as many as the key says. */
static entry *product_entry(lt_ctx *c, state *s, const lt_product *p, const key *k) {
  entry *e = find(s, k);
  if (e != NULL || (e = add(c, s, k)) == NULL) return e;
  return settle(c, s, e, make_product(c, s, e, p));
}

static bool product_by_key(lt_ctx *c, const lt_product *p, const key *k) {
  int before = lt_onednn_set_threads(k->threads);
  state *s = state_of(c);
  entry *e = s != NULL ? product_entry(c, s, p, k) : NULL;
  bool ok =
      e != NULL && run(c, s, e, (void *[]){p->a.data, p->b.data, p->out.data, (void *)p->bias});
  lt_onednn_set_threads(before);
  return ok;
}

static bool product(lt_ctx *c, const lt_product *p, int threads) {
  key k = product_key(p, threads);
  return product_by_key(c, p, &k);
}

/* Whether one thread gives the same bits; found out once a product. A product on one thread is
   chosen only if the trial (cpu/thread_invariance.c) found no difference. */
static bool is_same_alone(lt_ctx *c, const lt_product *p, const key *k) {
  state *s = state_of(c);
  entry *e = s != NULL ? find(s, k) : NULL;
  if (e == NULL) return false;
  if (e->alone != 0) return e->alone > 0;
  bool same = lt_product_trial(c, p, product);
  if ((e = find(s, k)) != NULL) e->alone = same ? 1 : -1; /* the trial may have emptied the table */
  return same;
}

/* Where the cores are shared one thread is enough, if it gives the same; but large products, which
   sgemm takes, keep their threads. */
bool lt_onednn_product(lt_ctx *c, const lt_product *p) {
  int threads = product_threads(c, p);
  bool shared = threads > 1 && lt_load_threads(c) == 1;
  if (by_sgemm(p)) {
    int before = lt_onednn_set_threads(threads);
    bool ok = product_by_sgemm(c, p);
    lt_onednn_set_threads(before);
    return ok;
  }
  key k = product_key(p, threads);
  if (shared && is_same_alone(c, p, &k)) k.threads = 1;
  return product_by_key(c, p, &k);
}

/* Convolutions. */

/* The first word tells convolutions from products, which have 0 there. */
static key conv_key(lt_conv_pass pass, const lt_conv *v, bool bias, int threads) {
  key k = {.threads = threads};
  const int64_t all[] = {1 + pass,     v->dtype,     bias,         v->n,         v->c,
                         v->h,         v->w,         v->o,         v->oh,        v->ow,
                         v->kh,        v->kw,        v->groups,    v->stride.h,  v->stride.w,
                         v->padding.h, v->padding.w, v->dilation.h, v->dilation.w};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) k.word[k.n++] = all[i];
  k.hash = hash_of(&k);
  return k;
}

/* What a convolution is made of: x, weight as the caller has it and in any layout, bias, y. */
typedef struct conv_descs {
  dnnl_memory_desc_t x, plain, weight, bias, y;
  dnnl_dims_t stride, dilation, padding;
} conv_descs;

static bool describe_conv(lt_ctx *c, const lt_conv *v, conv_descs *d) {
  dnnl_data_type_t t = type_of(v->dtype);
  int grouped = v->groups > 1, n_weight = 4 + grouped;
  dnnl_dims_t w = {v->groups};
  const int64_t tail[] = {v->o / v->groups, v->c / v->groups, v->kh, v->kw};
  for (int i = 0; i < 4; i++) w[i + grouped] = tail[i];
  const int64_t stride[] = {v->stride.h, v->stride.w}, padding[] = {v->padding.h, v->padding.w};
  const int64_t dilation[] = {v->dilation.h - 1, v->dilation.w - 1};
  for (int i = 0; i < 2; i++)
    d->stride[i] = stride[i], d->padding[i] = padding[i], d->dilation[i] = dilation[i];
  return check(c,
               dnnl_memory_desc_init_by_tag(&d->x, 4, (dnnl_dims_t){v->n, v->c, v->h, v->w}, t,
                                            dnnl_nhwc),
               "describe x") &&
         check(c,
               dnnl_memory_desc_init_by_tag(&d->y, 4, (dnnl_dims_t){v->n, v->o, v->oh, v->ow}, t,
                                            dnnl_nhwc),
               "describe y") &&
         check(c,
               dnnl_memory_desc_init_by_tag(&d->plain, n_weight, w, t,
                                            grouped ? dnnl_goihw : dnnl_oihw),
               "describe a weight") &&
         check(c, dnnl_memory_desc_init_by_tag(&d->weight, n_weight, w, t, dnnl_format_tag_any),
               "describe a weight") &&
         check(c, dnnl_memory_desc_init_by_tag(&d->bias, 1, (dnnl_dims_t){v->o}, t, dnnl_x),
               "describe a bias");
}

static bool conv_desc(lt_ctx *c, lt_conv_pass pass, conv_descs *d, bool bias,
                      dnnl_convolution_desc_t *desc) {
  const dnnl_memory_desc_t *b = bias ? &d->bias : NULL;
  dnnl_status_t status;
  if (pass == LT_CONV_FORWARD)
    status = dnnl_dilated_convolution_forward_desc_init(
        desc, dnnl_forward_training, dnnl_convolution_direct, &d->x, &d->weight, b, &d->y,
        d->stride, d->dilation, d->padding, d->padding);
  else if (pass == LT_CONV_INPUT)
    status = dnnl_dilated_convolution_backward_data_desc_init(desc, dnnl_convolution_direct, &d->x,
                                                              &d->weight, &d->y, d->stride,
                                                              d->dilation, d->padding, d->padding);
  else
    status = dnnl_dilated_convolution_backward_weights_desc_init(
        desc, dnnl_convolution_direct, &d->x, &d->weight, b, &d->y, d->stride, d->dilation,
        d->padding, d->padding);
  return check(c, status, "describe a convolution");
}

/* Between the caller's weight and the layout that the primitive chose. None where the primitive
   chose the caller's own layout. */
static bool make_reorder(lt_ctx *c, state *s, entry *e, const dnnl_memory_desc_t *plain,
                         const dnnl_memory_desc_t *packed) {
  if (dnnl_memory_desc_equal(plain, packed)) return true;
  const dnnl_memory_desc_t *from = e->reorder_after ? packed : plain;
  const dnnl_memory_desc_t *to = e->reorder_after ? plain : packed;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_primitive_desc_t pd = NULL;
  bool ok =
      check(c, dnnl_primitive_attr_create(&attr), "make attributes") &&
      check(c, dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
            "take our scratchpad") &&
      check(c, dnnl_reorder_primitive_desc_create(&pd, from, s->engine, to, s->engine, attr),
            "plan a reorder") &&
      check(c, dnnl_primitive_create(&e->reorder, pd), "make a reorder") &&
      check(c, dnnl_memory_create(&e->plain, plain, s->engine, DNNL_MEMORY_NONE), "make memory");
  if (ok) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    e->reorder_scratch_bytes = dnnl_memory_desc_get_size(md);
    e->packed_bytes = dnnl_memory_desc_get_size(packed);
    ok = check(c, dnnl_memory_create(&e->reorder_scratch, md, s->engine, DNNL_MEMORY_NONE),
               "make memory");
  }
  if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  return ok;
}

/* The gradients' plans start from the forward plan. */
static bool forward_hint(lt_ctx *c, state *s, conv_descs *d, bool bias,
                         dnnl_primitive_desc_t *hint) {
  dnnl_convolution_desc_t desc;
  return conv_desc(c, LT_CONV_FORWARD, d, bias, &desc) &&
         check(c, dnnl_primitive_desc_create(hint, &desc, NULL, s->engine, NULL), "plan");
}

/* Weights have the layout `any`: the primitive chooses its own, and `reorder` converts from the
   caller's before it runs, or to it after it when the weight's gradient is the result. */
static bool make_conv(lt_ctx *c, state *s, entry *e, lt_conv_pass pass, const lt_conv *v,
                      bool bias) {
  conv_descs d;
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t hint = NULL, pd = NULL;
  static const dnnl_query_t weight_of[] = {dnnl_query_weights_md, dnnl_query_weights_md,
                                           dnnl_query_diff_weights_md};
  static const int args_of[][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                   {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                   {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  bool ok = describe_conv(c, v, &d) &&
            (pass == LT_CONV_FORWARD || forward_hint(c, s, &d, bias, &hint)) &&
            conv_desc(c, pass, &d, bias, &desc) && make_primitive(c, s, e, &desc, hint, &pd);
  if (ok) {
    const dnnl_memory_desc_t *packed = dnnl_primitive_desc_query_md(pd, weight_of[pass], 0);
    e->packed = 1;
    e->reorder_after = pass == LT_CONV_WEIGHT;
    ok =
        add_argument(c, s, e, args_of[pass][0], &d.x) &&
        add_argument(c, s, e, args_of[pass][1], packed) &&
        add_argument(c, s, e, args_of[pass][2], &d.y) &&
        (!bias || add_argument(c, s, e, pass == LT_CONV_WEIGHT ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS,
                               &d.bias)) &&
        make_reorder(c, s, e, &d.plain, packed);
  }
  if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  if (hint != NULL) dnnl_primitive_desc_destroy(hint);
  return ok;
}

static bool conv(lt_ctx *c, lt_conv_pass pass, const lt_conv *v, int threads, void *const *data) {
  state *s = state_of(c);
  if (s == NULL) return false;
  bool bias = data[3] != NULL;
  key k = conv_key(pass, v, bias, threads);
  entry *e = find(s, &k);
  if (e == NULL) {
    e = add(c, s, &k);
    if (e == NULL || (e = settle(c, s, e, make_conv(c, s, e, pass, v, bias))) == NULL) return false;
  }
  return run(c, s, e, data);
}

bool lt_onednn_conv(lt_ctx *c, lt_conv_pass pass, const lt_conv *v, void *x, void *weight,
                    void *bias, void *y) {
  double work = (double)v->n * (double)v->oh * (double)v->ow * (double)v->o * (double)v->kh *
                (double)v->kw * (double)(v->c / v->groups);
  int threads = threads_for(c, work), before = lt_onednn_set_threads(threads);
  if (threads > 1) lt_load_threads(c); /* looks; the number stays */
  bool ok = conv(c, pass, v, threads, (void *[]){x, weight, y, bias});
  lt_onednn_set_threads(before);
  return ok;
}

void lt_onednn_version(char *text, size_t size) {
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, size, "%d.%d.%d", v->major, v->minor, v->patch);
}

bool lt_onednn_has_bf16(void) {
  dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}

static void warm_up(void *ud) {
  (void)ud;
  lt_onednn_make_sgemm();
}

void lt_onednn_warm_up(lt_ctx *c) {
  state *s = lt_ok(c) ? state_of(c) : NULL;
  if (s == NULL || s->warming.name != NULL) return;
  s->warming = (lt_thread){.name = "warm-up", .fn = warm_up};
  if (!lt_thread_start(c, &s->warming)) lt_take_failure(c, NULL); /* a product will do it */
}
