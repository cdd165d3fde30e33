/* lua/bind/ops/views.c: views that are not op rows: several at once (split, chunk, unbind, rows),
   or shaped as another tensor.

   The parts of split, chunk, unbind and rows are slices that share x's memory, O(1) each; each has
   a node of its own for gradients. None copies. */

#include <string.h>

#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"

static int push_reshaped(lua_State *L, lt_bind *b, lt_tensor *x, lt_shape shape) {
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *y = lt_reshape(b->c, x, shape);
  return lt_end(L, b, frame, 1, &y);
}

static void need_dims(lua_State *L, lt_bind *b, const lt_tensor *x, const char *who) {
  if (x->ndim == 0) lt_raise(L, b, LT_ESHAPE, "%s: a tensor of shape [] has no dims", who);
}

static int push_slice(lua_State *L, lt_bind *b, lt_tensor *x, int dim, lt_range r) {
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *y = lt_slice(b->c, x, dim, r.from, r.n, r.step);
  return lt_end(L, b, frame, 1, &y);
}

/* Whether the second argument is a list. x:split{1, 2, dim = 2}: the name would be dropped without
   a word. */
static bool is_list(lua_State *L, lt_bind *b, const char *who, const char *of) {
  if (!lua_istable(L, 2)) return false;
  for (lua_pushnil(L); lt_raw_next(L, 2) != 0; lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING)
      lt_raise(L, b, LT_EARG, "%s: a list of %s has the option '%s': give it in a table after it",
               who, of, lua_tostring(L, -2));
  return true;
}

/* x:split(size | sizes [, dim = 1]) -> table of parts */
static int split(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "split");
  need_dims(L, b, x, "split");
  int dim = lua_isnoneornil(L, 3) ? 0 : lt_check_dim_of(L, b, 3, x, "split", "dim");
  bool listed = is_list(L, b, "split", "sizes");
  int64_t each = listed ? 0 : lt_check_int(L, b, 2, "split", "split_size");
  int64_t total = x->size[dim], sum = 0;
  if (!listed && each <= 0)
    lt_raise(L, b, LT_EARG, "split: split_size must be at least 1, got %lld", (long long)each);
  lua_settop(L, 2);
  lua_newtable(L);
  lua_Integer parts = listed ? lt_length(L, 2) : total == 0 ? 1 : (total - 1) / each + 1;
  for (lua_Integer k = 1; k <= parts; k++) {
    int64_t n = each < total - sum ? each : total - sum;
    if (listed) {
      lua_geti(L, 2, k);
      n = lt_check_int(L, b, -1, "split", "sizes");
      lua_pop(L, 1);
    }
    if (n < 0 || n > total - sum) break;
    push_slice(L, b, x, dim, (lt_range){.from = n > 0 ? sum : 0, .n = n, .step = 1});
    lt_raw_seti(L, 3, k);
    sum += n;
  }
  if (sum != total || (lua_Integer)lua_rawlen(L, 3) != parts)
    lt_raise(L, b, LT_ESHAPE, "split: the sizes do not add up to %lld of shape %s",
             (long long)total, LT_TENSOR_STR(x));
  return 1;
}

/* x:chunk(chunks [, dim = 1]) -> table of n parts, the last may be shorter. Parts of ceil(size /
   n): as PyTorch's, they may be fewer than n. tensor_split gives exactly n. */
static int chunk(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *x = lt_check_tensor(L, b, 1, "chunk");
  need_dims(L, b, x, "chunk");
  int64_t n = lt_check_int(L, b, 2, "chunk", "chunks");
  int dim = lua_isnoneornil(L, 3) ? 0 : lt_check_dim_of(L, b, 3, x, "chunk", "dim");
  if (n <= 0) lt_raise(L, b, LT_EARG, "chunk: chunks must be at least 1, got %lld", (long long)n);
  int64_t each = x->size[dim] > 0 ? (x->size[dim] - 1) / n + 1 : 0;
  lua_settop(L, 3);
  lua_pushinteger(L, each > 0 ? each : 1);
  lua_replace(L, 2);
  return split(L);
}

/* Parts of a dim that is shorter: the rest are empty. */
enum { MOST_EMPTY = 65536 };

/* x:tensor_split(n | places [, dim = 1]) -> table of n parts, the first ones longer by one, or of
   those between places: how many elements lie before each cut */
static int tensor_split(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "tensor_split");
  need_dims(L, b, x, "tensor_split");
  int dim = lua_isnoneornil(L, 3) ? 0 : lt_check_dim_of(L, b, 3, x, "tensor_split", "dim");
  bool listed = is_list(L, b, "tensor_split", "places");
  int64_t n = listed ? lt_length(L, 2) + 1 : lt_check_int(L, b, 2, "tensor_split", "n");
  int64_t total = x->size[dim], from = 0;
  int64_t most = total > MOST_EMPTY ? total : MOST_EMPTY;
  if (n <= 0 || n > most)
    lt_raise(L, b, LT_EARG, "tensor_split: n must be at %s %lld, got %lld (dim %d of %s)",
             n <= 0 ? "least" : "most", (long long)(n <= 0 ? 1 : most), (long long)n, dim + 1,
             LT_TENSOR_STR(x));
  lua_settop(L, 2);
  lua_createtable(L, (int)n, 0);
  for (int64_t k = 1; k <= n; k++) {
    int64_t to = listed ? total : from + total / n + (k <= total % n);
    if (listed && k < n) {
      lua_geti(L, 2, k);
      to = lt_check_int(L, b, -1, "tensor_split", "places");
      lua_pop(L, 1);
      to = to < 0 ? to + total : to;
      to = to < 0 ? 0 : to > total ? total : to;
    }
    int64_t length = to > from ? to - from : 0;
    push_slice(L, b, x, dim, (lt_range){.from = length > 0 ? from : 0, .n = length, .step = 1});
    lt_raw_seti(L, 3, k);
    from = to;
  }
  return 1;
}

/* Tensors that come one by one as a list of them. */
static void collect_tensors(lua_State *L, lt_bind *b) {
  int n = 0;
  while (lt_to_tensor(L, b, n + 1) != NULL) n++;
  if (n == 0) return;
  lua_createtable(L, n, 0);
  lua_insert(L, 1);
  for (int k = n; k > 0; k--) {
    lua_pushvalue(L, k + 1);
    lt_raw_seti(L, 1, k);
    lua_remove(L, k + 1);
  }
}

/* Whether the last table, or a text behind the list, says indexing = "xy". */
static bool read_indexing(lua_State *L, lt_bind *b) {
  static const lt_arg indexing = {.name = "indexing", .choices = "ij|xy"};
  bool swap = false;
  lt_check_count(L, b, "meshgrid", 2);
  if (lua_isnoneornil(L, 2)) return false;
  if (!lua_istable(L, 2)) return lt_check_choice(L, b, 2, "meshgrid", &indexing) == 1;
  for (lua_pushnil(L); lt_raw_next(L, 2) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || strcmp(lua_tostring(L, -2), "indexing") != 0)
      lt_raise(L, b, LT_EARG, "meshgrid: unknown option '%s'; there is indexing",
               luaL_tolstring(L, -2, NULL));
    swap = lt_check_choice(L, b, lua_gettop(L), "meshgrid", &indexing) == 1;
  }
  return swap;
}

/* lt.meshgrid(a, b, ... [, {indexing = "ij" | "xy"}]), or a list of the vectors -> table of tensors
   that repeat them */
static int meshgrid(lua_State *L) {
  lt_bind *b = lt_enter(L);
  collect_tensors(L, b);
  int n = lua_istable(L, 1) ? (int)lt_length(L, 1) : 0;
  if (n < 1 || n > LT_MAX_DIMS)
    lt_raise(L, b, LT_EARG, "meshgrid: needs 1 to %d vectors, or a list of them", LT_MAX_DIMS);
  bool swap = read_indexing(L, b) && n > 1;
  lt_tensor *in[LT_MAX_DIMS];
  lt_shape all = {.ndim = n};
  for (int k = 0; k < n; k++) {
    int at = swap && k < 2 ? 1 - k : k;
    lua_geti(L, 1, k + 1);
    in[k] = lt_check_tensor(L, b, lua_gettop(L), "meshgrid");
    if (in[k]->ndim > 1)
      lt_raise(L, b, LT_ESHAPE, "meshgrid: needs vectors, got %s", LT_TENSOR_STR(in[k]));
    all.size[at] = in[k]->numel;
  }
  lua_createtable(L, n, 0);
  int result = lua_gettop(L);
  for (int k = 0; k < n; k++) {
    lt_shape own = {.ndim = n};
    int at = swap && k < 2 ? 1 - k : k;
    for (int d = 0; d < n; d++) own.size[d] = d == at ? all.size[d] : 1;
    lt_frame frame = lt_begin(L, b, 1);
    lt_tensor *y = lt_reshape(b->c, in[k], own);
    y = lt_apply1(b->c, LT_OP_expand, 1, &y, &(lt_args_expand){.size = lt_sizes_of(all)});
    lt_end(L, b, frame, 1, &y);
    lt_raw_seti(L, result, k + 1);
  }
  return 1;
}

/* x:unbind([dim = 1]) -> table of x:select(dim, k) */
static int unbind(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "unbind");
  need_dims(L, b, x, "unbind");
  int dim = lua_isnoneornil(L, 2) ? 0 : lt_check_dim_of(L, b, 2, x, "unbind", "dim");
  lua_settop(L, 1);
  lua_createtable(L, (int)x->size[dim], 0);
  for (int64_t k = 0; k < x->size[dim]; k++) {
    lt_frame frame = lt_begin(L, b, 1);
    lt_tensor *y = lt_select(b->c, x, dim, k);
    lt_end(L, b, frame, 1, &y);
    lt_raw_seti(L, 2, k + 1);
  }
  return 1;
}

/* The control variable of Lua's generic `for` is the row before: the iterator has no state, so that
   one may be used twice or in two threads. */
static int next_row(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "rows");
  int64_t k = luaL_checkinteger(L, 2);
  if (k >= x->size[0]) return 0;
  lua_pushinteger(L, k + 1);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *y = lt_select(b->c, x, 0, k);
  lt_end(L, b, frame, 1, &y);
  return 2;
}

/* for i, row in x:rows() do */
static int rows(lua_State *L) {
  lt_bind *b = lt_enter(L);
  need_dims(L, b, lt_check_tensor(L, b, 1, "rows"), "rows");
  lua_pushlightuserdata(L, b);
  lua_pushcclosure(L, next_row, 1);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  return 3;
}

static int expand_as(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "expand_as"), *y = lt_check_tensor(L, b, 2, "expand_as");
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *r = lt_expand_to(b->c, x, lt_tensor_shape(y));
  if (r == x) lt_frame_add(b->c, lt_retain(x));
  return lt_end(L, b, frame, 1, &r);
}

static int view_as(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "view_as"), *y = lt_check_tensor(L, b, 2, "view_as");
  return push_reshaped(L, b, x, lt_tensor_shape(y));
}

/* split, chunk and unbind are functions of `lt` too, as PyTorch has them. */
void lt_bind_views(lua_State *L, lt_bind *b) {
  static const lt_formed parts[] = {
      {{"split", split, 3}, "x split_size | dim"},
      {{"chunk", chunk, 3}, "x chunks | dim"},
      {{"unbind", unbind, 2}, "x | dim"},
      {{"tensor_split", tensor_split, 3}, "x indices_or_sections | dim"},
      {{NULL, NULL, 0}, NULL}};
  static const lt_formed others[] = {{{"rows", rows, 1}, "x"},
                                     {{"expand_as", expand_as, 2}, "x other"},
                                     {{"view_as", view_as, 2}, "x other"},
                                     {{NULL, NULL, 0}, NULL}};
  static const lt_formed functions[] = {{{"meshgrid", meshgrid, -1}, "tensors | indexing"},
                                        {{NULL, NULL, 0}, NULL}};
  lua_pushvalue(L, 1);
  lt_add_formed(L, b, parts);
  lt_add_formed(L, b, functions);
  lua_pop(L, 1);
  lua_pushvalue(L, 2);
  lt_add_formed(L, b, parts);
  lt_add_formed(L, b, others);
  lua_pop(L, 1);
}
