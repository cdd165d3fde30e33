/* lua/bind/ops/devices.c: lists devices, their memory and cores; gets and sets the default
   device. */
#include "base/cores.h"
#include "base/script_lines.h"
#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "device/ctx_devices.h"
#include "device/fake.h"
#include "device/memory_map.h"
#include "ops/fallback.h"

/* runtime.default_device([name]) -> name: where tensors are made without a device argument; sets it
   when it has one. */
static int default_device(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (!lua_isnoneornil(L, 1) &&
      !lt_device_set_default(b->c, lt_check_device(L, b, 1, "default_device")))
    lt_raise_failure(L, b);
  char text[64];
  lua_pushstring(L, lt_device_text(b->c, lt_device_default(b->c), text, sizeof text));
  return 1;
}

/* runtime.devices(kind) -> how many there are, the kind's own name, whether one is taken where
   nobody said how many: at a prompt and in hosts, which cannot have ranks on devices that do not
   survive a fork, and whether the one stands for all of a process (runtime.partition); or nil and
   why there are none. */
static int devices(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *kind = luaL_checkstring(L, 1);
  lt_device d;
  lt_failure f;
  if (lt_device_parse(b->c, kind, &d)) {
    const lt_device_ops *ops = lt_device_table(b->c, d);
    lua_pushinteger(L, lt_device_count(ops));
    lua_pushstring(L, ops->name);
    lua_pushboolean(L, ops->for_specs || (!ops->forks && !b->owns_process));
    lua_pushboolean(L, ops->partition != NULL);
    return 4;
  }
  lua_pushnil(L);
  lua_pushstring(L, lt_take_failure(b->c, &f) ? f.text : "");
  return 2;
}

static const lt_device_ops *check_device(lua_State *L, lt_bind *b, lt_device *d) {
  if (!lt_device_parse(b->c, luaL_checkstring(L, 1), d) || !lt_device_open(b->c, *d))
    lt_raise_failure(L, b);
  return lt_device_table(b->c, *d);
}

/* runtime.partition(device, n, first) -> n: from now on the device stands for n of its library's,
   from number `first` on; 0: for all, and the result says how many. A device that cannot is one. */
static int partition(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  const lt_device_ops *ops = check_device(L, b, &d);
  int n = (int)luaL_checkinteger(L, 2);
  if (ops->partition == NULL) n = 1;
  else if (!ops->partition(b->c, d.index, (int)luaL_checkinteger(L, 3), &n))
    lt_raise_failure(L, b);
  lua_pushinteger(L, n);
  return 1;
}

/* runtime.shard(tensor): values of its storage are divided among what its device stands for */
static int shard(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_storage *s = lt_check_tensor(L, b, 1, "shard")->storage;
  const lt_device_ops *ops = lt_device_table(b->c, s->device);
  if (ops->shard != NULL && !ops->shard(b->c, s->device.index, s->data)) lt_raise_failure(L, b);
  return 0;
}

/* runtime.check_dtype(tensor) -> the tensor; raises where its device lacks the dtype */
static int check_dtype(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *t = lt_check_tensor(L, b, 1, "check_dtype");
  char text[LT_LACKING];
  if (lt_device_lacks(t->storage->device, (lt_dtype)t->dtype)) {
    lt_lacking_text(b, t, text);
    lt_raise(L, b, LT_EDEVICE, "%s", text);
  }
  lua_settop(L, 1);
  return 1;
}

/* runtime.records(device) -> whether it records its work and runs it as a whole */
static int records(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  lua_pushboolean(L, check_device(L, b, &d)->whole_storages);
  return 1;
}

/* runtime.device_name(device) -> what it is called; its kind's name where it does not say */
static int device_name(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  char text[128];
  const lt_device_ops *ops = check_device(L, b, &d);
  bool said = ops->describe != NULL && ops->describe(d.index, text, sizeof text);
  lua_pushstring(L, said ? text : ops->name);
  return 1;
}

/* runtime.device_memory(device) -> bytes that are free, and all; 0, 0 where it does not say */
static int device_memory(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  int64_t left = 0, total = 0;
  const lt_device_ops *ops = check_device(L, b, &d);
  if (ops->memory_info != NULL && !ops->memory_info(d.index, &left, &total)) left = total = 0;
  lua_pushinteger(L, left);
  lua_pushinteger(L, total);
  return 2;
}

/* runtime.bus_address(device) -> its PCI address; nil where it does not say */
static int bus_address(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  char text[64];
  const lt_device_ops *ops = check_device(L, b, &d);
  if (ops->bus_address == NULL || !ops->bus_address(d.index, text, sizeof text)) return 0;
  lua_pushstring(L, text);
  return 1;
}

/* runtime.cores() -> the cores that this process may run on, as "0-3,8" */
static int cores(lua_State *L) {
  char text[4096];
  lua_pushstring(L, lt_cores_list(text, sizeof text) ? text : "");
  return 1;
}

/* runtime.keep_cores(list) -> whether it runs on those of its cores alone that are in the list;
   runtime.set_cores(list): on those in the list */
static int keep_cores(lua_State *L) {
  lua_pushboolean(L, lt_cores_keep(luaL_checkstring(L, 1)));
  return 1;
}

static int set_cores(lua_State *L) {
  lua_pushboolean(L, lt_cores_set(luaL_checkstring(L, 1)));
  return 1;
}

/* runtime.pins() -> whether a device is in use that copies from pinned memory */
static int pins(lua_State *L) {
  lua_pushboolean(L, lt_pinned_device(lt_enter(L)->c).kind != 0);
  return 1;
}

/* runtime.synchronize([device]): waits for what it, or all, have to do. */
static int synchronize(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  if (!lua_isnoneornil(L, 1)) check_device(L, b, &d);
  if (lua_isnoneornil(L, 1) ? !lt_device_synchronize_all(b->c) : !lt_device_synchronize(b->c, d))
    lt_raise_failure(L, b);
  return 0;
}

/* runtime.current_device(kind [, device]) -> the number of the one that the kind's name alone is;
   sets it when it has a device */
static int current_device(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  if (!lt_device_parse(b->c, luaL_checkstring(L, lua_isnoneornil(L, 2) ? 1 : 2), &d) ||
      (!lua_isnoneornil(L, 2) && !lt_device_set_current(b->c, d)))
    lt_raise_failure(L, b);
  lua_pushinteger(L, lt_device_current(b->c, d.kind));
  return 1;
}

/* runtime.device_faulted() -> whether one of this state's devices cannot be used any more */
static int device_faulted(lua_State *L) {
  lua_pushboolean(L, lt_device_faulted(lt_enter(L)->c));
  return 1;
}

/* runtime.largest_tensors(device) -> a text of lines, each with its newline before it */
static int largest_tensors(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  char text[1024];
  check_device(L, b, &d);
  lt_device_list_largest(b->c, d, text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

/* runtime.devices_in_use() -> names of the devices that have, or had, tensors */
static int devices_in_use(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_device_state *st = lt_device_state_of(b->c);
  if (st == NULL) lt_raise_failure(L, b);
  lua_createtable(L, st->n_open, 0);
  for (int k = 0; k < st->n_open; k++) {
    char name[32];
    lua_pushstring(L, lt_device_text(b->c, st->open[k]->device, name, sizeof name));
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

static void set_text(lua_State *L, const char *field, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

static void set_size(lua_State *L, const char *field, uint64_t n) {
  lua_pushinteger(L, (lua_Integer)n);
  lua_setfield(L, -2, field);
}

/* Fields of a tensor: the op that made it, the script's line, and shape and dtype. */
static void set_origin(lua_State *L, lt_ctx *c, const lt_live *t) {
  char line[128];
  set_text(L, "op", t->op);
  if (t->line != 0) set_text(L, "line", lt_line_text(c, t->line, line, sizeof line));
  if (t->shape.ndim < 0) return;
  set_text(L, "shape", LT_SHAPE_STR(t->shape));
  set_text(L, "dtype", lt_dtype_name(t->dtype));
}

/* runtime.live_tensors(device) -> a list of {bytes =, id =, op =, line =, shape =, dtype =}, the
   newest first: lt_device_live. `id` is the first number of runtime.identity. */
static int live_tensors(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  check_device(L, b, &d);
  int64_t n = lt_device_live(b->c, d, NULL, 0);
  lt_live *list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  int64_t now = lt_device_live(b->c, d, list, n); /* some went when the list was made */
  if (now < n) n = now;
  lua_createtable(L, (int)n, 0);
  for (int64_t k = 0; k < n; k++) {
    lua_createtable(L, 0, 6);
    set_size(L, "bytes", (uint64_t)list[k].bytes);
    set_size(L, "id", list[k].id);
    set_origin(L, b->c, &list[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

static void push_memory_row(lua_State *L, lt_ctx *c, const lt_memory_row *r) {
  static const char *const uses[] = {"segment", "free", "pending", "used"};
  lua_createtable(L, 0, 12);
  set_size(L, "segment", (uintptr_t)r->segment);
  set_size(L, "segment_size", r->segment_bytes);
  lua_pushboolean(L, r->is_arena);
  lua_setfield(L, -2, "is_arena");
  set_text(L, "use", uses[r->use]);
  set_size(L, "address", (uintptr_t)r->data);
  set_size(L, "size", r->bytes);
  if (r->stream != NULL) set_size(L, "stream", (uintptr_t)r->stream);
  if (r->use != LT_MEMORY_USED) return;
  set_size(L, "requested", (uint64_t)r->tensor.bytes);
  set_origin(L, c, &r->tensor);
}

/* runtime.memory_map(device) -> a list of {segment =, segment_size =, is_arena =, use =, address =,
   size =, stream =, requested =, op =, line =, shape =, dtype =}: lt_device_memory_map. Addresses
   are integers. */
static int memory_map(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  check_device(L, b, &d);
  int64_t n = lt_device_memory_map(b->c, d, NULL, 0);
  lt_memory_row *list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  int64_t now = lt_device_memory_map(b->c, d, list, n); /* lt_device_live's rule */
  if (now < n) n = now;
  lua_createtable(L, (int)n, 0);
  for (int64_t k = 0; k < n; k++) {
    push_memory_row(L, b->c, &list[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* runtime.limit_device(device, bytes): what this state reserves of it; 0: no limit */
static int limit_device(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  check_device(L, b, &d);
  lt_device_limit_one(b->c, d, luaL_checkinteger(L, 2));
  return 0;
}

/* runtime.note_allocations(on): from now on tensors of any size are among them */
static int note_allocations(lua_State *L) {
  lt_device_note_all(lt_enter(L)->c, lua_toboolean(L, 1));
  return 0;
}

/* runtime.device_report(kind) -> the JSON of what its devices have done; nil where they do not
   count it */
static int device_report(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  if (!lt_device_parse(b->c, luaL_checkstring(L, 1), &d)) lt_raise_failure(L, b);
  const lt_device_ops *ops = lt_device_table(b->c, d);
  size_t capacity = ops->report != NULL ? ops->report(NULL, 0) + 4096 : 0; /* it may grow */
  if (capacity == 0) return 0;
  char *text = lua_newuserdatauv(L, capacity, 0);
  size_t n = ops->report(text, capacity);
  lua_pushlstring(L, text, n < capacity ? n : 0);
  return 1;
}

/* runtime.fallbacks(kind) -> {[op] = how often it ran on the CPU instead} */
static int fallbacks(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  if (!lt_device_parse(b->c, luaL_checkstring(L, 1), &d)) lt_raise_failure(L, b);
  lua_newtable(L);
  for (int op = 0; op < LT_OP_COUNT; op++) {
    int64_t n = lt_fallback_count(b->c, d.kind, op);
    if (n == 0) continue;
    lua_pushinteger(L, n);
    lua_setfield(L, -2, lt_ops[op].name);
  }
  return 1;
}

/* runtime.fake_counts() -> {launches, copies, waits, allocations, pending, cuts} of the device kind
   for specs, since the process began. */
static int fake_counts(lua_State *L) {
  lt_enter(L);
  const lt_fake_counts n = lt_fake_count();
  const struct {
    const char *name;
    int64_t value;
  } rows[] = {{"launches", n.launches},
              {"copies", n.copies},
              {"waits", n.waits},
              {"allocations", n.allocations},
              {"pending", n.pending},
              {"cuts", n.cuts}};
  lua_createtable(L, 0, 6);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    lua_pushinteger(L, rows[k].value);
    lua_setfield(L, -2, rows[k].name);
  }
  return 1;
}

/* runtime.watched_waits() -> how often one of several ranks has waited for its device */
static int watched_waits(lua_State *L) {
  lua_pushinteger(L, lt_wait_count(lt_enter(L)->c));
  return 1;
}

void lt_bind_devices(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {{"default_device", default_device},
                                     {"devices", devices},
                                     {"partition", partition},
                                     {"shard", shard},
                                     {"check_dtype", check_dtype},
                                     {"records", records},
                                     {"device_name", device_name},
                                     {"device_memory", device_memory},
                                     {"bus_address", bus_address},
                                     {"cores", cores},
                                     {"keep_cores", keep_cores},
                                     {"set_cores", set_cores},
                                     {"pins", pins},
                                     {"synchronize", synchronize},
                                     {"current_device", current_device},
                                     {"device_faulted", device_faulted},
                                     {"devices_in_use", devices_in_use},
                                     {"live_tensors", live_tensors},
                                     {"memory_map", memory_map},
                                     {"limit_device", limit_device},
                                     {"note_allocations", note_allocations},
                                     {"largest_tensors", largest_tensors},
                                     {"fake_counts", fake_counts},
                                     {"device_report", device_report},
                                     {"fallbacks", fallbacks},
                                     {"watched_waits", watched_waits},
                                     {NULL, NULL}};
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
