/* lua/bind/ops/graphs.c: graphs of devices, for stdlib/core/cuda_graph.lua.

   A graph is a userdata; its segments are numbered from 1, in the order in which they were
   captured. */
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "device/graph.h"

#define GRAPH_NAME "ltrain.Graph"

static lt_graph *check_graph(lua_State *L) {
  lt_graph **g = luaL_checkudata(L, 1, GRAPH_NAME);
  if (*g == NULL) luaL_error(L, "graph: it has no segments");
  return *g;
}

static int check_segment(lua_State *L, const lt_graph *g) {
  lua_Integer k = luaL_checkinteger(L, 2);
  luaL_argcheck(L, k >= 1 && k <= g->n, 2, "no such segment");
  return (int)k - 1;
}

/* runtime.graph() -> a graph without segments */
static int graph_new(lua_State *L) {
  lt_graph **g = lua_newuserdatauv(L, sizeof *g, 0);
  *g = NULL;
  luaL_setmetatable(L, GRAPH_NAME);
  return 1;
}

/* graph:begin(device): what is issued from here on is captured; the device is that of its first
   segment */
static int graph_begin(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_graph **g = luaL_checkudata(L, 1, GRAPH_NAME);
  lt_device d = lt_check_device(L, b, 2, "cuda.graph");
  if (*g == NULL && lt_device_open(b->c, d)) *g = lt_graph_new(b->c, d);
  if (*g == NULL || !lt_graph_begin(b->c, *g)) lt_raise_failure(L, b);
  return 0;
}

/* graph:finish(keep): up to here; it is launched, or forgotten */
static int graph_finish(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (!lt_graph_end(b->c, check_graph(L), lua_toboolean(L, 2))) lt_raise_failure(L, b);
  return 0;
}

/* graph:suits(segment) -> whether the gradients that it adds to are those of its capture */
static int graph_suits(lua_State *L) {
  const lt_graph *g = check_graph(L);
  lua_pushboolean(L, lt_graph_suits(g, check_segment(L, g)));
  return 1;
}

/* graph:adds(segment) -> whether it adds to gradients that were there when it was captured */
static int graph_adds(lua_State *L) {
  const lt_graph *g = check_graph(L);
  lua_pushboolean(L, lt_graph_adds(g, check_segment(L, g)));
  return 1;
}

static int graph_launch(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_graph *g = check_graph(L);
  if (!lt_graph_launch(b->c, g, check_segment(L, g))) lt_raise_failure(L, b);
  return 0;
}

/* graph:feed(segment): optimizers' updates are for its next launch; graph:feed_end(complete): up to
   here, and that were all */
static int graph_feed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_graph *g = check_graph(L);
  if (!lt_graph_feed(b->c, g, check_segment(L, g))) lt_raise_failure(L, b);
  return 0;
}

static int graph_feed_end(lua_State *L) {
  lt_bind *b = lt_enter(L);
  check_graph(L);
  if (!lt_graph_feed_end(b->c, lua_toboolean(L, 2))) lt_raise_failure(L, b);
  return 0;
}

static int graph_free(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_graph **g = luaL_checkudata(L, 1, GRAPH_NAME);
  if (*g != NULL && b->c != NULL) lt_graph_free(b->c, *g);
  *g = NULL;
  return 0;
}

/* runtime.captures([leaf]) -> whether what is issued is captured by a graph, which has changed the
   gradient of the leaf */
static int captures(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_graph *g = lt_graph_captures(b->c);
  const lt_tensor *leaf = lua_isnoneornil(L, 1) ? NULL : lt_check_tensor(L, b, 1, "captures");
  lua_pushboolean(L, g != NULL && (leaf == NULL || lt_graph_has_leaf(g, leaf)));
  return 1;
}

void lt_bind_graphs(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", graph_free}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"begin", graph_begin}, {"finish", graph_finish},
                                     {"suits", graph_suits}, {"adds", graph_adds},
                                     {"launch", graph_launch}, {"feed", graph_feed},
                                     {"feed_end", graph_feed_end}, {NULL, NULL}};
  static const luaL_Reg runtime[] = {{"graph", graph_new}, {"captures", captures}, {NULL, NULL}};
  lt_new_type(L, b, GRAPH_NAME, meta, methods);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
