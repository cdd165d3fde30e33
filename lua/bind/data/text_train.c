/* lua/bind/data/text_train.c: training of tokenizers: words are counted, and merged (text.h). */
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "text/train.h"

#include "bind/data/text.h"
#include "bind/io/io.h"
#include "bind/io/json.h"

#define TRAINER_NAME "ltrain.TokenizerTrainer"

typedef struct trainer_box {
  lt_trainer *t;
  lt_trained trained;
  lt_ctx *c;
} trainer_box;

static int trainer_gc(lua_State *L) {
  trainer_box *h = luaL_checkudata(L, 1, TRAINER_NAME);
  if (h->t != NULL) lt_trainer_free(h->c, h->t);
  lt_trained_free(h->c, &h->trained);
  h->t = NULL;
  return 0;
}

static trainer_box *check(lua_State *L) {
  trainer_box *h = luaL_checkudata(L, 1, TRAINER_NAME);
  luaL_argcheck(L, h->t != NULL, 1, "a trainer that was freed");
  return h;
}

int lt_text_trainer(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n;
  const char *pattern = luaL_checklstring(L, 1, &n);
  trainer_box *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (trainer_box){.c = b->c};
  luaL_setmetatable(L, TRAINER_NAME);
  lt_note_line(b);
  h->t = lt_trainer_new(b->c, pattern, n, lua_toboolean(L, 2));
  return h->t != NULL ? 1 : lt_refused(L, b);
}

/* trainer:add(text) */
static int add(lua_State *L) {
  lt_bind *b = lt_enter(L);
  trainer_box *h = check(L);
  size_t n;
  const char *text = luaL_checklstring(L, 2, &n);
  lt_note_line(b);
  if (!lt_trainer_add(b->c, h->t, text, n)) lt_raise_failure(L, b);
  return 0;
}

/* trainer:words() -> words, how often each occurs; in the order in which they first came. For
   vocabularies of words or characters, which Lua makes of the counts: the C side counts, as texts
   may be many gigabytes. */
static int words(lua_State *L) {
  trainer_box *h = check(L);
  const lt_string_table *w = &h->t->words;
  int n = w->count < INT32_MAX ? (int)w->count : 0;
  lua_createtable(L, n, 0);
  lua_createtable(L, n, 0);
  for (int64_t k = 0; k < w->count; k++) {
    lua_pushlstring(L, lt_string_text(w, &w->word[k]), w->word[k].n);
    lua_rawseti(L, -3, k + 1);
    lua_pushinteger(L, w->word[k].value);
    lua_rawseti(L, -2, k + 1);
  }
  return 2;
}

/* trainer:merge(n_tokens, min_frequency, first) -> the members of `vocab`, whose ids begin at
   `first`, and of `merges`, as JSON */
/* vocab and merges come as JSON text and not as tables: a vocabulary of 10^5 entries goes into the
   file as it is. */
static int merge(lua_State *L) {
  lt_bind *b = lt_enter(L);
  trainer_box *h = check(L);
  int64_t n = luaL_checkinteger(L, 2), least = luaL_checkinteger(L, 3);
  int64_t first = luaL_checkinteger(L, 4);
  lt_json *vocab = lt_push_text(L, b), *merges = lt_push_text(L, b);
  lt_note_line(b);
  lt_trained_free(b->c, &h->trained);
  if (!lt_trainer_merge(b->c, h->t, n, least, &h->trained)) lt_raise_failure(L, b);
  lt_trained_write(&h->trained, first, vocab, merges);
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
  lua_pushlstring(L, vocab->data, vocab->size);
  lua_pushlstring(L, merges->size > 0 ? merges->data : "", merges->size);
  lt_trained_free(b->c, &h->trained);
  lt_json_free(vocab);
  lt_json_free(merges);
  return 2;
}

void lt_bind_trainer(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", trainer_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"add", add}, {"words", words}, {"merge", merge}, {NULL, NULL}};
  lt_new_type(L, b, TRAINER_NAME, meta, methods);
}
