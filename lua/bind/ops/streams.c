/* lua/bind/ops/streams.c: streams of devices, positions of them, timers and ranges: for lt.cuda.

   A stream is a light userdata: it belongs to the process and is never freed.

   An event is a pair of a stream and a position in it, an integer that grows with what is issued:
   it has no handle to free, may be copied, and a position that was passed once is passed for
   good. */
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/types.h"
#include "device/stream.h"
#include "device/wait.h"

#define TIMER_NAME "ltrain.Timer"

typedef struct timer {
  const lt_device_ops *ops;
  void *native; /* NULL: not recorded yet */
} timer;

/* The device that argument 1 names, which has streams. */
static const lt_device_ops *check_streams(lua_State *L, lt_bind *b, lt_device *d) {
  if (!lt_device_parse(b->c, luaL_checkstring(L, 1), d) || !lt_device_open(b->c, *d))
    lt_raise_failure(L, b);
  const lt_device_ops *ops = lt_device_table(b->c, *d);
  if (ops->launch == NULL) lt_raise(L, b, LT_EDEVICE, "stream: %s has no streams", ops->name);
  return ops;
}

static lt_stream *check_stream(lua_State *L, int index) {
  luaL_checktype(L, index, LUA_TLIGHTUSERDATA);
  return lua_touserdata(L, index);
}

static int push_stream(lua_State *L, lt_bind *b, lt_stream *stream) {
  if (stream == NULL) lt_raise_failure(L, b);
  lua_pushlightuserdata(L, stream);
  return 1;
}

/* runtime.new_stream(device) -> one of a few that are there for scripts, in turn */
static int new_stream(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  check_streams(L, b, &d);
  return push_stream(L, b, lt_stream_next(b->c, d));
}

/* runtime.current_stream(device) -> that of operations */
static int current_stream(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  check_streams(L, b, &d);
  return push_stream(L, b, lt_stream_current(b->c, d));
}

/* runtime.set_stream(device, stream) */
static int set_stream(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  check_streams(L, b, &d);
  if (!lt_stream_set(b->c, d, check_stream(L, 2))) lt_raise_failure(L, b);
  return 0;
}

static lt_event check_event(lua_State *L, int index) {
  return (lt_event){check_stream(L, index), (uint64_t)luaL_checkinteger(L, index + 1)};
}

/* runtime.record_event(device, stream) -> its position now. On CUDA this calls nothing: native
   events are recorded when somebody waits (cuda/stream.cu). */
static int record_event(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  lt_event at;
  const lt_device_ops *ops = check_streams(L, b, &d);
  if (!ops->event_record(b->c, check_stream(L, 2), &at)) lt_raise_failure(L, b);
  lua_pushinteger(L, (lua_Integer)at.position);
  return 1;
}

/* runtime.stream_wait(device, stream, of, position): what follows on `stream` runs after it */
static int stream_wait(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  const lt_device_ops *ops = check_streams(L, b, &d);
  if (!ops->stream_wait(b->c, check_stream(L, 2), check_event(L, 3))) lt_raise_failure(L, b);
  return 0;
}

/* runtime.event_done(device, stream, position) */
static int event_done(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  const lt_device_ops *ops = check_streams(L, b, &d);
  /* A script that asks again and again waits. */
  if (!lt_wait_submit(b->c, d, check_event(L, 2))) lt_raise_failure(L, b);
  lua_pushboolean(L, ops->event_done(check_event(L, 2)) != LT_PENDING);
  return 1;
}

/* runtime.wait_event(device, stream, position): the host waits; late errors are raised */
static int wait_event(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  const lt_device_ops *ops = check_streams(L, b, &d);
  if (!ops->event_wait(b->c, check_event(L, 2)) || !lt_device_check(b->c, d))
    lt_raise_failure(L, b);
  return 0;
}

/* Timers. */

static int timer_free(lua_State *L) {
  timer *t = luaL_checkudata(L, 1, TIMER_NAME);
  if (t->native != NULL) t->ops->timer_free(t->native);
  t->native = NULL;
  return 0;
}

/* runtime.timer() -> one that was not recorded */
static int new_timer(lua_State *L) {
  lt_enter(L);
  timer *t = lua_newuserdatauv(L, sizeof *t, 0);
  *t = (timer){0};
  luaL_setmetatable(L, TIMER_NAME);
  return 1;
}

/* runtime.record_timer(device, stream, timer) */
static int record_timer(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  const lt_device_ops *ops = check_streams(L, b, &d);
  lt_stream *stream = check_stream(L, 2);
  if (ops->timer_record == NULL)
    lt_raise(L, b, LT_EDEVICE, "event: %s measures no time", ops->name);
  timer *t = luaL_checkudata(L, 3, TIMER_NAME);
  if (t->ops != NULL && t->ops != ops)
    lt_raise(L, b, LT_EDEVICE, "event: was recorded on %s before", t->ops->name);
  t->ops = ops;
  if (!ops->timer_record(b->c, stream, &t->native)) lt_raise_failure(L, b);
  return 0;
}

/* runtime.elapsed(from, to) -> milliseconds; nil while one of them has not come */
static int elapsed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const timer *from = luaL_checkudata(L, 1, TIMER_NAME), *to = luaL_checkudata(L, 2, TIMER_NAME);
  double milliseconds = 0;
  lt_progress at = LT_BROKEN;
  if (from->native != NULL && to->native != NULL && from->ops == to->ops)
    at = from->ops->timer_elapsed(from->native, to->native, &milliseconds);
  if (at == LT_BROKEN)
    lt_raise(L, b, LT_EDEVICE, "elapsed_time: these events cannot be compared: were both recorded "
             "on one device?");
  if (at == LT_PENDING) return 0;
  lua_pushnumber(L, milliseconds);
  return 1;
}

/* Names for a profiler: of the first kind of device that shows them to one. */

static const lt_device_ops *profiled(void) {
  for (int k = 0; k < lt_device_kind_count(); k++)
    if (lt_device_kinds[k]->range_push != NULL) return lt_device_kinds[k];
  return NULL;
}

/* runtime.range_push(name), runtime.range_pop(), runtime.range_mark(name): nothing without one */
static int range_push(lua_State *L) {
  const lt_device_ops *ops = profiled();
  const char *name = luaL_checkstring(L, 1);
  if (ops != NULL) ops->range_push(name);
  return 0;
}

static int range_pop(lua_State *L) {
  const lt_device_ops *ops = profiled();
  (void)L;
  if (ops != NULL) ops->range_pop();
  return 0;
}

static int range_mark(lua_State *L) {
  const lt_device_ops *ops = profiled();
  const char *name = luaL_checkstring(L, 1);
  if (ops != NULL) ops->mark(name);
  return 0;
}

void lt_bind_streams(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", timer_free}, {NULL, NULL}};
  static const luaL_Reg runtime[] = {{"new_stream", new_stream},
                                     {"current_stream", current_stream},
                                     {"set_stream", set_stream},
                                     {"record_event", record_event},
                                     {"stream_wait", stream_wait},
                                     {"event_done", event_done},
                                     {"wait_event", wait_event},
                                     {"timer", new_timer},
                                     {"record_timer", record_timer},
                                     {"elapsed", elapsed},
                                     {"range_push", range_push},
                                     {"range_pop", range_pop},
                                     {"range_mark", range_mark},
                                     {NULL, NULL}};
  lt_new_type(L, b, TIMER_NAME, meta, NULL);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
