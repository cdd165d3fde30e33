/* lua/bind/data/text.c: tokenizers (text.h).

   What a file may spoil gives nil and the reason. */
#include "bind/data/text.h"

#include <string.h>

#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/io/io.h"
#include "bind/io/json.h"
#include "bind/ops/convert.h"
#include "device/device.h"

#define TOKENIZER_NAME "ltrain.Tokenizer"
#define IDS_NAME "ltrain.Ids"

typedef struct tokenizer_box {
  lt_tokenizer *t; /* NULL: none */
  lt_ctx *c;
} tokenizer_box;

static int tokenizer_gc(lua_State *L) {
  tokenizer_box *h = luaL_checkudata(L, 1, TOKENIZER_NAME);
  if (h->t != NULL) lt_tokenizer_free(h->c, h->t);
  h->t = NULL;
  return 0;
}

/* Ids that are freed also when Lua raises in the middle. */
typedef struct ids_box {
  lt_ids list;
  lt_ctx *c;
} ids_box;

static int ids_gc(lua_State *L) {
  ids_box *h = luaL_checkudata(L, 1, IDS_NAME);
  lt_ids_free(h->c, &h->list);
  return 0;
}

lt_tokenizer *lt_check_tokenizer(lua_State *L, int index) {
  tokenizer_box *h = luaL_checkudata(L, index, TOKENIZER_NAME);
  luaL_argcheck(L, h->t != NULL, index, "a tokenizer that was freed");
  return h->t;
}

static lt_ids *push_ids(lua_State *L, lt_bind *b) {
  ids_box *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (ids_box){.c = b->c};
  luaL_setmetatable(L, IDS_NAME);
  return &h->list;
}

/* text.read(what, json) -> tokenizer */
static int text_read(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n;
  const char *what = luaL_checkstring(L, 1), *json = luaL_checklstring(L, 2, &n);
  tokenizer_box *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (tokenizer_box){.c = b->c};
  luaL_setmetatable(L, TOKENIZER_NAME);
  lt_note_line(b);
  h->t = lt_tokenizer_read(b->c, what, json, n);
  return h->t != NULL ? 1 : lt_refused(L, b);
}

static void add_all(lt_ctx *c, const lt_ids *from, lt_ids *to) {
  for (int64_t k = 0; k < from->n; k++) lt_ids_add(c, to, from->id[k]);
}

/* One text, with what sequences begin and end with if `special`, cut to `most` ids. Truncation
   keeps the special tokens at both ends: what is cut is the text's own ids, as Hugging Face's
   tokenizers do. If even those do not fit, the end is cut too. */
static void encode_one(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, bool special,
                       int64_t most, lt_ids *out) {
  int64_t from = out->n;
  if (special) add_all(c, &t->before, out);
  lt_tokenizer_encode(c, t, text, n, out);
  int64_t end = from + most - (special ? t->after.n : 0);
  if (most > 0 && out->n > end) out->n = end > from ? end : from;
  if (special) add_all(c, &t->after, out);
  if (most > 0 && out->n > from + most) out->n = from + most;
}

/* tokenizer:encode(text, special) -> i64 tensor [n]. Ids come as a C list and are copied once their
   number is known: the tensor has the exact size. */
static int encode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tokenizer *t = lt_check_tokenizer(L, 1);
  size_t n;
  const char *text = luaL_checklstring(L, 2, &n);
  bool special = lua_toboolean(L, 3);
  lt_ids *ids = push_ids(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  encode_one(b->c, t, text, n, special, 0, ids);
  lt_tensor *out = lt_ok(b->c) ? lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_I64, 1, &ids->n) : NULL;
  int64_t *to = out != NULL ? lt_data(out) : NULL;
  for (int64_t k = 0; to != NULL && k < ids->n; k++) to[k] = ids->id[k];
  lt_ids_free(b->c, ids);
  return lt_end(L, b, frame, 1, &out);
}

/* All texts of the list at index 2 into `ids`, their ends into `end`; the longest of them. Strings
   stay in the list at index 2 while they are read: luaL_checklstring's pointer is good for as
   long. */
static int64_t encode_list(lua_State *L, lt_bind *b, lt_tokenizer *t, bool special, int64_t most,
                           lt_ids *ids, int64_t *end) {
  int64_t longest = 0, n_texts = (int64_t)lua_rawlen(L, 2);
  for (int64_t k = 0; k < n_texts; k++) {
    size_t n;
    lt_raw_geti(L, 2, k + 1);
    const char *text = luaL_checklstring(L, -1, &n);
    int64_t from = ids->n;
    encode_one(b->c, t, text, n, special, most, ids);
    if (!lt_ok(b->c)) lt_raise_failure(L, b);
    lua_pop(L, 1);
    end[k] = ids->n;
    if (ids->n - from > longest) longest = ids->n - from;
  }
  return longest;
}

/* tokenizer:encode_batch(texts, special, length, pad) -> i64 [N, T], bool [N, T]; length 0: that of
   the longest. Two passes: all texts first, since the width of the result is the longest's; ids of
   all texts are one list with their ends, not a list each. */
static int encode_batch(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tokenizer *t = lt_check_tokenizer(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  bool special = lua_toboolean(L, 3);
  int64_t length = luaL_checkinteger(L, 4), pad = luaL_checkinteger(L, 5);
  int64_t n = (int64_t)lua_rawlen(L, 2), begin = 0;
  lt_ids *ids = push_ids(L, b);
  int64_t *end = lua_newuserdatauv(L, (size_t)n * sizeof *end + 1, 0);
  int64_t longest = encode_list(L, b, t, special, length, ids, end);
  int64_t size[2] = {n, length > 0 ? length : longest};
  lt_frame frame = lt_begin(L, b, 2);
  lt_tensor *out[2] = {lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_I64, 2, size),
                       lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_BOOL, 2, size)};
  if (lt_ok(b->c)) {
    int64_t *to = lt_data(out[0]);
    uint8_t *mask = lt_data(out[1]);
    for (int64_t row = 0; row < n; begin = end[row++])
      for (int64_t k = 0; k < size[1]; k++) {
        bool inside = k < end[row] - begin;
        *to++ = inside ? ids->id[begin + k] : pad;
        *mask++ = inside;
      }
  }
  lt_ids_free(b->c, ids);
  return lt_end(L, b, frame, 2, out);
}

/* tokenizer:decode(ids, skip) -> text */
static int decode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tokenizer *t = lt_check_tokenizer(L, 1);
  lt_tensor *x = lt_check_tensor(L, b, 2, "decode");
  lt_dtype dtype;
  int64_t n = x->numel;
  const int64_t *ids = lt_push_elements(L, b, x, &dtype);
  if (dtype != LT_I64)
    lt_raise(L, b, LT_EARG, "decode: ids must be integers: got %s",
             lt_dtype_name((lt_dtype)x->dtype));
  lt_json *text = lt_push_text(L, b);
  lt_note_line(b);
  if (!lt_tokenizer_decode(b->c, t, ids, n, lua_toboolean(L, 3), text)) lt_raise_failure(L, b);
  lua_pushlstring(L, text->size > 0 ? text->data : "", text->size);
  lt_json_free(text);
  return 1;
}

/* tokenizer:id(token) -> number or nil */
static int id_of(lua_State *L) {
  lt_tokenizer *t = lt_check_tokenizer(L, 1);
  size_t n;
  const char *token = luaL_checklstring(L, 2, &n);
  int64_t id = lt_tokenizer_id(t, token, n);
  if (id >= 0)
    lua_pushinteger(L, id);
  else
    lua_pushnil(L);
  return 1;
}

/* tokenizer:name(id) -> token or nil */
static int name_of(lua_State *L) {
  lt_tokenizer *t = lt_check_tokenizer(L, 1);
  const lt_string_entry *name = lt_tokenizer_name(t, luaL_checkinteger(L, 2));
  if (name != NULL)
    lua_pushlstring(L, lt_string_text(&t->names, name), name->n);
  else
    lua_pushnil(L);
  return 1;
}

/* tokenizer:count() -> one more than the largest id */
static int count(lua_State *L) {
  lua_pushinteger(L, lt_check_tokenizer(L, 1)->n_ids);
  return 1;
}

void lt_bind_text(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", tokenizer_gc}, {NULL, NULL}};
  static const luaL_Reg ids_meta[] = {{"__gc", ids_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"encode", encode}, {"encode_batch", encode_batch},
                                     {"decode", decode}, {"id", id_of},
                                     {"name", name_of},  {"count", count},
                                     {NULL, NULL}};
  static const luaL_Reg functions[] = {{"read", text_read},
                                       {"trainer", lt_text_trainer},
                                       {NULL, NULL}};
  lt_new_type(L, b, TOKENIZER_NAME, meta, methods);
  lt_new_type(L, b, IDS_NAME, ids_meta, NULL);
  lt_bind_trainer(L, b);
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_pushstring(L, lt_pattern_gpt2);
  lua_setfield(L, -2, "gpt2_pattern");
  lua_pushstring(L, lt_pattern_llama3);
  lua_setfield(L, -2, "llama3_pattern");
  lua_setfield(L, 1, "text");
}
