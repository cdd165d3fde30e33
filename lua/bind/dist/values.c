/* lua/bind/dist/values.c: serializes Lua values for messages between ranks.

   Two bytes name the format, then comes one value:

     nil false true    a tag
     integer, float    a tag, 8 bytes
     string            a tag, its length, its bytes
     table             a tag, how many of 1, 2, ... come first, how many pairs follow; the values of
                       the first, then key and value of each pair
     tensor            a tag, dtype, number of dims, the sizes, its elements in logical order
     tensor apart      the same with an offset, where its elements are in a memory of their own

   Numbers are 8 bytes each as this kind of machine keeps them: the ranks of a job are alike. */
#include "bind/dist/values.h"

#include <string.h>

#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/io/json.h"

enum { MAGIC = 'V', VERSION = 1 };
typedef enum tag {
  TAG_NIL,
  TAG_FALSE,
  TAG_TRUE,
  TAG_INTEGER,
  TAG_FLOAT,
  TAG_STRING,
  TAG_TABLE,
  TAG_TENSOR,
  TAG_TENSOR_APART
} tag;

/* Writing. */

/* Where in the value the writer is. */
typedef struct place {
  const struct place *up;
  const char *key; /* NULL: `position` */
  int64_t position;
  const void *table; /* the one that stands here, for cycles */
  int depth;
} place;

typedef struct writer {
  lua_State *L;
  lt_bind *b;
  lt_json *out;
  const char *who, *what;
  int list;       /* where on the stack the list of tensors is that go apart; 0: they do not */
  int64_t *apart; /* their bytes */
} writer;

static void push_path(const writer *w, const place *at) {
  lua_State *L = w->L;
  luaL_checkstack(L, 4, w->who);
  if (at->up == NULL) {
    lua_pushstring(L, w->what);
    return;
  }
  push_path(w, at->up);
  if (at->key != NULL)
    lua_pushfstring(L, ".%s", at->key);
  else
    lua_pushfstring(L, "[%I]", (LUAI_UACINT)at->position);
  lua_concat(L, 2);
}

_Noreturn static void refuse(const writer *w, const place *at, const char *reason) {
  const place *shown = at;
  while (shown->depth > 20) shown = shown->up;
  push_path(w, shown);
  lt_raise(w->L, w->b, LT_EARG, "%s: %s%s %s", w->who, lua_tostring(w->L, -1),
           shown == at ? "" : "...", reason);
}

static void put(const writer *w, const void *data, size_t n) {
  if (n > 0) lt_json_raw(w->out, data, n);
  if (!lt_ok(w->b->c)) lt_raise_failure(w->L, w->b);
}

static void put_tag(const writer *w, tag t) {
  char byte = (char)t;
  put(w, &byte, 1);
}

static void put_int(const writer *w, int64_t n) { put(w, &n, sizeof n); }

static void write_value(const writer *w, const place *at);

/* Without gradients or autocast: a copy for the wire is not an operation of the script, and must
   not be recorded or rounded. */
lt_tensor *lt_plain_tensor(lt_ctx *c, lt_tensor *t) {
  lt_modes modes = c->modes;
  c->modes.grad = c->modes.autocast = false;
  lt_tensor *host = lt_contiguous(c, lt_to_device(c, t, LT_CPU_DEVICE));
  if (host != NULL && lt_tensor_ptr(c, host, LT_READ) == NULL && lt_ok(c))
    lt_assert(c, host->numel == 0);
  c->modes = modes;
  return lt_ok(c) ? host : NULL;
}

static void write_tensor(const writer *w, lt_tensor *t) {
  lt_ctx *c = w->b->c;
  lt_frame frame = lt_frame_open(c);
  const lt_tensor *host = lt_plain_tensor(c, t);
  uint8_t head[3] = {TAG_TENSOR, (uint8_t)t->dtype, (uint8_t)t->ndim};
  if (host != NULL) {
    lt_json_raw(w->out, (const char *)head, sizeof head);
    for (int k = 0; k < t->ndim; k++)
      lt_json_raw(w->out, (const char *)&t->size[k], sizeof t->size[k]);
    size_t n = (size_t)t->numel * lt_item_size(t);
    if (n > 0) lt_json_raw(w->out, lt_data(host), n);
  }
  lt_frame_close(c, frame, 0, NULL);
  if (!lt_ok(c)) lt_raise_failure(w->L, w->b);
}

static void write_apart(const writer *w, const lt_tensor *t) {
  uint8_t head[3] = {TAG_TENSOR_APART, (uint8_t)t->dtype, (uint8_t)t->ndim};
  put(w, head, sizeof head);
  for (int k = 0; k < t->ndim; k++) put_int(w, t->size[k]);
  put_int(w, *w->apart);
  *w->apart += lt_value_bytes(t);
  lua_pushvalue(w->L, -1);
  lt_raw_seti(w->L, w->list, (lua_Integer)lua_rawlen(w->L, w->list) + 1);
}

/* Whether the key at `index` is one of 1..n. */
static bool is_position(lua_State *L, int index, int64_t n) {
  return lua_isinteger(L, index) && lua_tointeger(L, index) >= 1 && lua_tointeger(L, index) <= n;
}

static void check_key(const writer *w, const place *at) {
  lua_State *L = w->L;
  if (lua_type(L, -2) == LUA_TSTRING || lua_isinteger(L, -2)) return;
  lua_pushfstring(L, "has a key that is a %s: only integers and strings can be sent as keys",
                  lua_type(L, -2) == LUA_TNUMBER ? "float" : luaL_typename(L, -2));
  refuse(w, at, lua_tostring(L, -1));
}

/* Written in the order of `next`, which may differ between ranks: what is read is a table, in which
   no order is kept. */
static void write_pairs(const writer *w, const place *at, int64_t n) {
  lua_State *L = w->L;
  for (lua_pushnil(L); lt_raw_next(L, -2) != 0; lua_pop(L, 1)) {
    if (is_position(L, -2, n)) continue;
    place below = {.up = at, .depth = at->depth + 1};
    size_t length;
    if (lua_type(L, -2) == LUA_TSTRING) {
      below.key = lua_tolstring(L, -2, &length);
      put_tag(w, TAG_STRING);
      put_int(w, (int64_t)length);
      put(w, below.key, length);
    } else {
      below.position = lua_tointeger(L, -2);
      put_tag(w, TAG_INTEGER);
      put_int(w, below.position);
    }
    write_value(w, &below);
  }
}

/* Two passes: the counts come first, so that the reader can reserve the table and refuse a count
   that cannot be. Metatables are refused, since a class does not exist on the other side by being
   sent. Cycles are found along the path alone: a table that is there twice is sent twice. */
static void write_table(const writer *w, place *at) {
  lua_State *L = w->L;
  if (lua_getmetatable(L, -1) != 0) refuse(w, at, "is an object: only plain tables can be sent");
  at->table = lua_topointer(L, -1);
  for (const place *p = at->up; p != NULL; p = p->up)
    if (p->table == at->table) refuse(w, at, "is a table that contains itself");
  if (at->depth >= LT_VALUE_DEPTH) refuse(w, at, "is nested too deep");
  luaL_checkstack(L, 8, w->who);
  int64_t n = 0, pairs = 0;
  for (; lt_raw_geti(L, -1, n + 1) != LUA_TNIL; n++) lua_pop(L, 1);
  lua_pop(L, 1);
  for (lua_pushnil(L); lt_raw_next(L, -2) != 0; lua_pop(L, 1)) {
    check_key(w, at);
    pairs += !is_position(L, -2, n);
  }
  put_tag(w, TAG_TABLE);
  put_int(w, n);
  put_int(w, pairs);
  for (int64_t i = 1; i <= n; i++) {
    lt_raw_geti(L, -1, i);
    write_value(w, &(place){.up = at, .position = i, .depth = at->depth + 1});
    lua_pop(L, 1);
  }
  if (pairs > 0) write_pairs(w, at, n);
}

static void write_number(const writer *w) {
  if (lua_isinteger(w->L, -1)) {
    put_tag(w, TAG_INTEGER);
    put_int(w, lua_tointeger(w->L, -1));
  } else {
    double f = lua_tonumber(w->L, -1);
    put_tag(w, TAG_FLOAT);
    put(w, &f, sizeof f);
  }
}

/* Writes the value on top of the stack. */
static void write_value(const writer *w, const place *at) {
  lua_State *L = w->L;
  size_t length;
  const char *text;
  lt_tensor *t = lt_to_tensor(L, w->b, -1);
  if (t != NULL && w->list == 0) write_tensor(w, t);
  if (t != NULL && w->list != 0) write_apart(w, t);
  if (t != NULL) return;
  switch (lua_type(L, -1)) {
    case LUA_TNIL: put_tag(w, TAG_NIL); break;
    case LUA_TBOOLEAN: put_tag(w, lua_toboolean(L, -1) ? TAG_TRUE : TAG_FALSE); break;
    case LUA_TNUMBER: write_number(w); break;
    case LUA_TSTRING:
      text = lua_tolstring(L, -1, &length);
      put_tag(w, TAG_STRING);
      put_int(w, (int64_t)length);
      put(w, text, length);
      break;
    case LUA_TTABLE:
      write_table(
          w, &(place){.up = at->up, .key = at->key, .position = at->position, .depth = at->depth});
      break;
    default:
      lua_pushfstring(L,
                      "is a %s: only nil, booleans, numbers, strings, tensors and plain tables of "
                      "them can be sent",
                      luaL_typename(L, -1));
      refuse(w, at, lua_tostring(L, -1));
  }
}

static void write_whole(const writer *w, int index) {
  static const char head[2] = {MAGIC, VERSION};
  luaL_checkstack(w->L, 8, w->who);
  put(w, head, sizeof head);
  lua_pushvalue(w->L, index);
  write_value(w, &(place){.up = NULL});
  lua_pop(w->L, 1);
}

void lt_value_write(lua_State *L, lt_bind *b, int index, lt_json *out, const char *who,
                    const char *what) {
  const writer w = {.L = L, .b = b, .out = out, .who = who, .what = what};
  write_whole(&w, index);
}

int64_t lt_value_write_apart(lua_State *L, lt_bind *b, int index, int list, lt_json *out,
                             const char *who, const char *what) {
  int64_t apart = 0;
  const writer w = {
      .L = L, .b = b, .out = out, .who = who, .what = what, .list = list, .apart = &apart};
  write_whole(&w, index);
  return apart;
}

/* Reading. */

typedef struct reader {
  lua_State *L;
  lt_bind *b;
  const char *at, *end;
  const char *who;
  const lt_value_memory *memory; /* where tensors are that came apart; NULL: nowhere */
} reader;

_Noreturn static void damaged(const reader *r, const char *how) {
  lt_raise(r->L, r->b, LT_EIO, "%s: the received bytes are not a value: %s", r->who, how);
}

static const char *take(reader *r, size_t n) {
  if ((size_t)(r->end - r->at) < n) damaged(r, "it ends too early");
  const char *at = r->at;
  r->at += n;
  return at;
}

static int take_byte(reader *r) { return (unsigned char)*take(r, 1); }

static int64_t take_int(reader *r) {
  int64_t n;
  memcpy(&n, take(r, sizeof n), sizeof n);
  return n;
}

/* How many things follow that take `least` bytes each, at least. */
static int64_t take_count(reader *r, int64_t least) {
  int64_t n = take_int(r);
  if (n < 0 || n > (int64_t)(r->end - r->at) / least) damaged(r, "a length is out of bounds");
  return n;
}

static void read_value(reader *r, int depth);

static void read_table(reader *r, int depth) {
  lua_State *L = r->L;
  if (depth >= LT_VALUE_DEPTH) damaged(r, "it is nested too deep");
  luaL_checkstack(L, 8, r->who);
  int64_t n = take_count(r, 1), pairs = take_count(r, 2);
  /* Memory is reserved by the counts only up to here: a table of nothing costs 16 bytes an item. */
  lua_createtable(L, n < 1 << 16 ? (int)n : 1 << 16, pairs < 1 << 12 ? (int)pairs : 1 << 12);
  for (int64_t i = 1; i <= n; i++) {
    read_value(r, depth + 1);
    lua_rawseti(L, -2, i);
  }
  for (int64_t i = 0; i < pairs; i++) {
    read_value(r, depth + 1);
    if (lua_type(L, -1) != LUA_TSTRING && !lua_isinteger(L, -1))
      damaged(r, "a key is neither a string nor an integer");
    read_value(r, depth + 1);
    lua_rawset(L, -3);
  }
}

/* A bool that is neither 0 nor 1 is undefined behavior in C, and would compare as neither true nor
   false. */
static bool all_bools(const char *data, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (data[k] != 0 && data[k] != 1) return false;
  return true;
}

/* The shape of a tensor that follows, and its bytes. */
typedef struct extent {
  lt_dtype dtype;
  int ndim;
  int64_t size[LT_MAX_DIMS];
  size_t bytes;
} extent;

static extent take_extent(reader *r) {
  extent e;
  int64_t numel = 1;
  int dtype = take_byte(r), ndim = take_byte(r);
  if (dtype >= LT_DTYPE_COUNT) damaged(r, "a tensor's dtype is unknown");
  if (ndim > LT_MAX_DIMS) damaged(r, "a tensor has too many dims");
  bool empty = false, huge = false;
  for (int k = 0; k < ndim; k++) {
    e.size[k] = take_int(r);
    if (e.size[k] < 0) damaged(r, "a tensor's size is negative");
    empty = empty || e.size[k] == 0;
    huge = huge || __builtin_mul_overflow(numel, e.size[k], &numel);
  }
  if (empty) numel = 0;
  size_t item = lt_dtype_size((lt_dtype)dtype);
  if ((huge && !empty) || (uint64_t)numel > SIZE_MAX / 2 / item)
    damaged(r, "a tensor is longer than the received bytes");
  e.dtype = (lt_dtype)dtype;
  e.ndim = ndim;
  e.bytes = (size_t)numel * item;
  return e;
}

static void read_tensor(reader *r) {
  const extent e = take_extent(r);
  if (e.bytes > (size_t)(r->end - r->at)) damaged(r, "a tensor is longer than the received bytes");
  const char *data = take(r, e.bytes);
  if (e.dtype == LT_BOOL && !all_bools(data, e.bytes)) damaged(r, "a bool is neither 0 nor 1");
  lt_frame frame = lt_begin(r->L, r->b, 1);
  lt_tensor *t = lt_tensor_empty(r->b->c, LT_CPU_DEVICE, e.dtype, e.ndim, e.size);
  if (t != NULL && e.bytes > 0) lt_tensor_write(r->b->c, t, data);
  lt_end(r->L, r->b, frame, 1, &t);
}

static void read_apart(reader *r) {
  const extent e = take_extent(r);
  const int64_t offset = take_int(r);
  if (r->memory == NULL || offset < 0 || (size_t)offset > r->memory->bytes ||
      e.bytes > r->memory->bytes - (size_t)offset)
    damaged(r, "a tensor is outside of the memory that came with it");
  lt_frame frame = lt_begin(r->L, r->b, 1);
  lt_tensor *t =
      r->memory->tensor(r->memory->ud, r->b->c, offset, e.dtype, e.ndim, e.size);
  lt_end(r->L, r->b, frame, 1, &t);
}

/* Pushes one value. */
static void read_value(reader *r, int depth) {
  lua_State *L = r->L;
  double f;
  size_t n;
  luaL_checkstack(L, 4, r->who);
  switch (take_byte(r)) {
    case TAG_NIL: lua_pushnil(L); break;
    case TAG_FALSE: lua_pushboolean(L, false); break;
    case TAG_TRUE: lua_pushboolean(L, true); break;
    case TAG_INTEGER: lua_pushinteger(L, take_int(r)); break;
    case TAG_FLOAT:
      memcpy(&f, take(r, sizeof f), sizeof f);
      lua_pushnumber(L, f);
      break;
    case TAG_STRING:
      n = (size_t)take_count(r, 1);
      lua_pushlstring(L, take(r, n), n);
      break;
    case TAG_TABLE: read_table(r, depth); break;
    case TAG_TENSOR: read_tensor(r); break;
    case TAG_TENSOR_APART: read_apart(r); break;
    default: damaged(r, "it contains an unknown tag");
  }
}

void lt_value_read(lua_State *L, lt_bind *b, const void *data, size_t n, const char *who) {
  lt_value_read_apart(L, b, data, n, NULL, who);
}

void lt_value_read_apart(lua_State *L, lt_bind *b, const void *data, size_t n,
                         const lt_value_memory *memory, const char *who) {
  reader r = {.L = L,
              .b = b,
              .at = data,
              .end = (const char *)data + n,
              .who = who,
              .memory = memory};
  if (n < 2) damaged(&r, "it ends too early");
  int magic = take_byte(&r), version = take_byte(&r);
  if (magic != MAGIC || version != VERSION) damaged(&r, "it begins with other bytes");
  read_value(&r, 0);
  if (r.at != r.end) damaged(&r, "something follows it");
}

int lt_value_encode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 3);
  const char *who = luaL_optstring(L, 2, "encode"), *what = luaL_optstring(L, 3, "value");
  lt_json *out = lt_push_text(L, b);
  lt_value_write(L, b, 1, out, who, what);
  lua_pushlstring(L, out->data, out->size);
  lt_json_free(out);
  return 1;
}

int lt_value_decode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n;
  const char *data = luaL_checklstring(L, 1, &n);
  lt_value_read(L, b, data, n, "decode");
  return 1;
}
