/* runtime/xla/lower.c: what lowerings ask for, arguments and numbers of their call, and what they
   share. */
#include "xla/lowerings.h"
#include "xla/program_text.h"

const void *lt_lower_argument(const lt_lowering *l, const char *name) {
  return lt_xla_host->argument(l->call, name);
}

int64_t lt_lower_int(const lt_lowering *l, const char *name) {
  const int64_t *at = lt_lower_argument(l, name);
  return at != NULL ? *at : 0;
}

bool lt_lower_flag(const lt_lowering *l, const char *name) {
  const bool *at = lt_lower_argument(l, name);
  return at != NULL && *at;
}

/* Where the numbers and words of an argument are; NULL: all of them, for what is derived. */
static lt_arg_type find(lt_lowering *l, const char *name) {
  struct lt_program_text *p = l->program;
  int n = 0;
  const lt_arg *args = lt_xla_host->arguments(l->op, &n);
  p->number = p->node->number;
  p->word = p->node->word + 1;
  for (int k = 0; k < n; k++) {
    if (name != NULL && strcmp(args[k].name, name) == 0) return args[k].type;
    if (args[k].type == LT_ARG_NUMBER || args[k].type == LT_ARG_SCALAR) p->number++;
    if (args[k].type == LT_ARG_SCALAR) p->word++;
    if (args[k].type == LT_ARG_RNG_KEY) p->word += 3;
  }
  if (name != NULL) l->h->failed = true;
  return LT_ARG_INT;
}

lt_hlo lt_hlo_element(lt_hlo_text *h, lt_hlo flat, size_t k) {
  int64_t at = (int64_t)k;
  if (h->discard) flat.size[0] = at + 1;
  return lt_hlo_reshape(h, lt_hlo_slice(h, flat, 0, at, at + 1, 1), 0, NULL);
}

static lt_hlo spread(lt_hlo_text *h, lt_hlo scalar, lt_hlo like) {
  return lt_hlo_expand(h, lt_hlo_convert(h, scalar, like.type), like);
}

/* Number k of the program, for a computation in this type. */
static lt_hlo number(lt_lowering *l, size_t k, int type) {
  struct lt_program_text *p = l->program;
  bool wide = type != LT_BOOL && (type == LT_F64 || !lt_hlo_is_float(type));
  if (wide) p->uses.wide = true;
  else p->uses.numbers = true;
  return lt_hlo_element(l->h, wide ? p->wide : p->numbers, k);
}

/* Integers take what a scalar is as an integer from the words (record.c). */
lt_hlo lt_lower_number(lt_lowering *l, const char *name, lt_hlo like) {
  struct lt_program_text *p = l->program;
  lt_arg_type type = find(l, name);
  const lt_scalar *s = type == LT_ARG_SCALAR ? lt_lower_argument(l, name) : NULL;
  bool whole = s != NULL && !lt_hlo_is_float(like.type) &&
               (s->kind != LT_SCALAR_FLOAT || like.type != LT_BOOL);
  lt_hlo x = whole ? lt_hlo_bits(l->h, lt_hlo_element(l->h, p->words, p->word), LT_I64)
                   : number(l, p->number, like.type);
  return spread(l->h, x, like);
}

lt_hlo lt_lower_key(lt_lowering *l, const char *name, int part) {
  find(l, name);
  return lt_hlo_element(l->h, l->program->words, l->program->word + (size_t)part);
}

lt_hlo lt_lower_derived(lt_lowering *l, int k, lt_hlo like) {
  find(l, NULL);
  return spread(l->h, number(l, l->program->number + (size_t)k, like.type), like);
}

static lt_hlo one(lt_hlo_text *h, lt_hlo scalar) {
  return lt_hlo_reshape(h, lt_hlo_convert(h, scalar, LT_I64), 1, (int64_t[]){1});
}

/* The first in the order of elements, of the first call: as a GPU would not promise, and the CPU
   does. */
void lt_lower_check(lt_lowering *l, lt_hlo bad, lt_hlo value, int64_t limit) {
  struct lt_program_text *p = l->program;
  lt_hlo_text *h = l->h;
  lt_hlo flat = lt_hlo_flat(h, bad), values = lt_hlo_flat(h, value);
  lt_hlo scalar = lt_hlo_scalar(LT_I64);
  int64_t n = lt_hlo_numel(flat);
  if (n == 0) return;
  lt_hlo at = lt_hlo_iota(h, LT_I64, flat, 0);
  lt_hlo none = lt_hlo_integer(h, n, at);
  lt_hlo first = lt_hlo_reduce(h, "minimum", (double)n, lt_hlo_choose(h, flat, at, none), 1, false);
  lt_hlo here = lt_hlo_compare(h, "EQ", at, lt_hlo_expand(h, first, at));
  lt_hlo found = lt_hlo_sum(h, lt_hlo_choose(h, here, values, lt_hlo_integer(h, 0, values)), 1,
                            false);
  lt_hlo any = lt_hlo_compare(h, "LT", first, lt_hlo_integer(h, n, scalar));
  lt_hlo line = lt_hlo_element(h, p->words, p->node->word);
  lt_hlo parts[ERROR_WORDS] = {one(h, any), one(h, lt_hlo_integer(h, l->op, scalar)), one(h, line),
                               one(h, found), one(h, lt_hlo_integer(h, limit, scalar))};
  lt_hlo word = lt_hlo_join(h, ERROR_WORDS, parts, 0);
  lt_hlo before = lt_hlo_element(h, p->error, 0);
  lt_hlo taken = lt_hlo_compare(h, "NE", before, lt_hlo_integer(h, 0, scalar));
  p->error = lt_hlo_choose(h, lt_hlo_expand(h, taken, lt_hlo_typed(word, LT_BOOL)), p->error, word);
  p->uses.error = true;
}

int lt_lower_computed_in(int type) {
  if (type == LT_F64) return LT_F64;
  return type == LT_F32 || type == LT_F16 || type == LT_BF16 ? LT_F32 : LT_I64;
}

const void *lt_lower_find(const void *rows, size_t n, size_t size, const char *name) {
  for (const char *at = rows; n > 0; n--, at += size)
    if (strcmp(*(const char *const *)(const void *)at, name) == 0) return at;
  return NULL;
}

bool lt_lower_is(const lt_lowering *l, const char *name) {
  return strcmp(lt_xla_host->op_name(l->op), name) == 0;
}

lt_hlo lt_lower_in(lt_lowering *l, int k) {
  if (!lt_has(l, k)) return (lt_hlo){0};
  return lt_hlo_convert(l->h, l->in[k], lt_lower_computed_in(l->in[k].type));
}

lt_hlo lt_lower_float(lt_lowering *l, int k) {
  if (!lt_has(l, k)) return (lt_hlo){0};
  return lt_hlo_convert(l->h, l->in[k], l->in[k].type == LT_F64 ? LT_F64 : LT_F32);
}

unsigned lt_lower_dims(const lt_lowering *l, const char *name, int ndim) {
  const lt_dims *dims = lt_lower_argument(l, name);
  unsigned mask = 0;
  for (int k = 0; k < dims->n; k++) mask |= 1u << dims->dim[k];
  return dims->n > 0 ? mask : (1u << ndim) - 1;
}

const lt_sizes *lt_lower_sizes(const lt_lowering *l, const char *name) {
  return lt_lower_argument(l, name);
}

lt_pair lt_lower_pair(const lt_lowering *l, const char *name) {
  return *(const lt_pair *)lt_lower_argument(l, name);
}

lt_hlo lt_lower_index(lt_lowering *l, lt_hlo index, int64_t n, bool wraps) {
  lt_hlo_text *h = l->h;
  lt_hlo i = lt_hlo_convert(h, index, LT_I64), zero = lt_hlo_integer(h, 0, i);
  lt_hlo size = lt_hlo_integer(h, n, i);
  lt_hlo negative = lt_hlo_compare(h, "LT", i, zero), at = i;
  if (wraps) {
    at = lt_hlo_choose(h, negative, lt_hlo_two(h, "add", i, size), i);
    negative = lt_hlo_compare(h, "LT", at, zero);
  }
  lt_hlo bad = lt_hlo_two(h, "or", negative, lt_hlo_compare(h, "GE", at, size));
  if (lt_hlo_numel(i) > 0) lt_lower_check(l, bad, i, n);
  return lt_hlo_choose(h, bad, zero, at);
}

void lt_lower_region(lt_hlo_text *h, const char *op, int type) {
  lt_hlo x = lt_hlo_scalar(type), a = x, b = x;
  a.id = ++h->values, b.id = ++h->values;
  lt_hlo_put(h, "({\n^bb0($: @, $: @):\n", &a, &x, &b, &x);
  lt_hlo y = strcmp(op, "second") == 0 ? b : lt_hlo_two(h, op, a, b);
  lt_hlo_put(h, "stablehlo.return $ : @\n})", &y, &y);
}
