/* lua/host/functions.c: C functions of the host program, registered for scripts to call. */
#include <string.h>

#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "host/isolate/isolate.h"
#include "host/protected_calls.h"
#include "host/sandbox/budget.h"

enum { MOST_VALUES = 16 }; /* of arguments, and of results */

/* The userdata behind a function of the script's. */
typedef struct host_function {
  ltrain_function *call;
  void *ud;
  int n_in, n_out;
  char in[MOST_VALUES + 1], out[MOST_VALUES + 1]; /* letters */
  char name[];
} host_function;

static ltrain_value read_value(lua_State *L, lt_bind *b, const host_function *f, int index) {
  ltrain_value v = {0};
  int type = lua_type(L, index), fits = 0;
  const char *wanted = NULL;
  switch (f->in[index - 1]) {
  case 'i':
    v.i = type == LUA_TNUMBER ? lua_tointegerx(L, index, &fits) : 0;
    if (!fits) wanted = "an integer";
    break;
  case 'd':
    v.d = lua_tonumber(L, index);
    if (type != LUA_TNUMBER) wanted = "a number";
    break;
  case 'b':
    v.b = lua_toboolean(L, index);
    break;
  case 's':
    if (type == LUA_TSTRING) v.s = lua_tostring(L, index);
    if (type != LUA_TSTRING && type > LUA_TNIL) wanted = "a string or nil";
    break;
  default:
    v.T = lt_to_tensor(L, b, index);
    if (v.T == NULL) wanted = "a tensor";
  }
  if (wanted != NULL)
    lt_raise(L, b, LT_EARG, "%s: argument %d must be %s, got %s", f->name, index, wanted,
             luaL_typename(L, index));
  return v;
}

/* Which of the arguments the tensor is, from 1; 0: none. */
static int place_among(const host_function *f, const ltrain_value *in, const lt_tensor *t) {
  for (int k = 0; k < f->n_in; k++)
    if (f->in[k] == 'T' && in[k].T == t) return k + 1;
  return 0;
}

/* `argument`: of the tensor, if it is one. */
static void push_value(lua_State *L, lt_bind *b, char letter, const ltrain_value *v, int argument) {
  if (letter == 'i')
    lua_pushinteger(L, v->i);
  else if (letter == 'd')
    lua_pushnumber(L, v->d);
  else if (letter == 'b')
    lua_pushboolean(L, v->b);
  else if (letter == 's')
    lua_pushstring(L, v->s);
  else if (v->T == NULL)
    lua_pushnil(L);
  else if (argument > 0)
    lua_pushvalue(L, argument);
  else
    lt_push_unique(L, b, v->T);
}

/* What owns the tensors of `out` until they are pushed, whatever raises meanwhile: userdata of
   tensors on the stack, made before the call. */
static void push_owners(lua_State *L, lt_bind *b, const host_function *f) {
  luaL_checkstack(L, 3 * MOST_VALUES, f->name);
  for (int k = 0; k < f->n_out; k++)
    if (f->out[k] == 'T') lt_push_empty(L, b);
}

/* Give the references that the host has handed over to the userdata from `at` on; what is wrong
   with one that it did not have. */
static const char *own_results(lua_State *L, const host_function *f, const ltrain_value *in,
                               const ltrain_value *out, int at) {
  ltrain *l = lt_host_of(L);
  const char *fault = NULL;
  for (int k = 0; k < f->n_out; k++) {
    if (f->out[k] != 'T') continue;
    lt_tensor *t = out[k].T;
    for (int j = 0; j < k && t != NULL; j++)
      if (f->out[j] == 'T' && out[j].T == t) t = NULL; /* handed over once */
    bool given = t != NULL && place_among(f, in, t) == 0;
    if (given && lt_host_tensors_remove(l, t, LT_OWNED))
      ((lt_boxed *)lua_touserdata(L, at))->t = t;
    else if (given)
      fault = lt_host_tensors_fault(l, t);
    at++;
  }
  return fault;
}

/* The arguments are the function's to read until it returns. */
static void lend_arguments(ltrain *l, const host_function *f, const ltrain_value *in) {
  for (int k = 0; k < f->n_in; k++)
    if (f->in[k] == 'T') lt_host_tensors_add(l, in[k].T, LT_BORROWED);
}

static void take_arguments_back(ltrain *l, const host_function *f, const ltrain_value *in) {
  for (int k = 0; k < f->n_in; k++)
    if (f->in[k] == 'T') lt_host_tensors_remove(l, in[k].T, LT_BORROWED);
}

/* Upvalues: the binding, the function. What may raise is done before the call (arguments, owners,
   memory of the list) or after all references have an owner: an error of Lua in between would jump
   over the release of what the host has handed over. */
static int call_host(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const host_function *f = lua_touserdata(L, lua_upvalueindex(2));
  ltrain *l = lt_host_of(L);
  lt_check_count(L, b, f->name, f->n_in);
  ltrain_value in[MOST_VALUES] = {{0}}, out[MOST_VALUES] = {{0}};
  for (int k = 0; k < f->n_in; k++) in[k] = read_value(L, b, f, k + 1);
  lua_settop(L, f->n_in);
  push_owners(L, b, f);
  if (!lt_host_tensors_reserve(l, f->n_in)) luaL_error(L, "%s: not enough memory", f->name);
  lend_arguments(l, f, in);
  lua_State *before = lt_host_call_out(l, L);
  l->message[0] = 0;
  bool ok = f->call(l, f->ud, in, out);
  lt_host_call_out(l, before);
  take_arguments_back(l, f, in);
  const char *fault = own_results(L, f, in, out, f->n_in + 1);
  lt_host_check(L);
  if (!ok)
    lt_raise(L, b, LT_EARG, "%s: %s", f->name, l->message[0] != 0 ? l->message : "it has failed");
  if (fault != NULL) lt_raise(L, b, LT_EARG, "%s: a tensor that it gave is %s", f->name, fault);
  l->message[0] = 0;
  for (int k = 0; k < f->n_out; k++)
    push_value(L, b, f->out[k], &out[k], f->out[k] == 'T' ? place_among(f, in, out[k].T) : 0);
  return f->n_out;
}

/* Copy the letters up to `end` of a format; how many. */
static int read_letters(lua_State *L, const char *format, size_t length, char *to) {
  if (length > MOST_VALUES)
    luaL_error(L, "register: at most %d arguments and %d results", MOST_VALUES, MOST_VALUES);
  memcpy(to, format, length);
  return (int)length;
}

typedef struct registration {
  lt_request request;
  ltrain_function *call;
  void *ud;
} registration;

/* The function's description is userdata, an upvalue of its closure: it is collected with the last
   use by a script, and may be replaced under the same name while it runs. */
static int register_named(lua_State *L) {
  registration *r = lua_touserdata(L, 1);
  const char *name = r->request.name, *format = r->request.format, *end = strchr(format, '>');
  size_t n = strlen(name) + 1, n_in = end == NULL ? strlen(format) : (size_t)(end - format);
  lua_pushlightuserdata(L, r->request.l->b);
  host_function *f = lua_newuserdatauv(L, sizeof *f + n, 0);
  *f = (host_function){.call = r->call, .ud = r->ud};
  memcpy(f->name, name, n);
  f->n_in = read_letters(L, format, n_in, f->in);
  f->n_out = end == NULL ? 0 : read_letters(L, end + 1, strlen(end + 1), f->out);
  lua_pushcclosure(L, call_host, 2);
  lt_store_named(L, name);
  return 0;
}

bool ltrain_register(ltrain *l, const char *name, const char *format, ltrain_function *call,
                     void *ud) {
  if (!lt_host_named(l, "register", name, format)) return false;
  if (!lt_isolate_permits(l, "register")) return false;
  if (!lt_host_check_pointer(l, "register", "the function", (const void *)(uintptr_t)call))
    return false;
  registration r = {{.l = l, .name = name, .format = format}, call, ud};
  return lt_request_run(l, register_named, &r.request);
}

bool ltrain_fail(ltrain *l, const char *message) {
  if (l != NULL) lt_host_keep_message(l, message);
  return false;
}
