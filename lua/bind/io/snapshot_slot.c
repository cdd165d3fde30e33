/* lua/bind/io/snapshot_slot.c: slots for snapshots (io/snapshot_slot.h), by their descriptors. The
   bytes of a slot are loaded as those of a file, by c.io.load_safetensors. */
#include "io/snapshot_slot.h"

#include <fcntl.h>

#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/io/io.h"

static const char *const NUMBERS[LT_SLOT_NUMBERS] = {
    [LT_SLOT_FIT] = "fit",   [LT_SLOT_ROUND] = "round", [LT_SLOT_SERIAL] = "serial",
    [LT_SLOT_STEP] = "step", [LT_SLOT_PART] = "part",   [LT_SLOT_PARTS] = "parts",
    [LT_SLOT_BYTES] = "bytes"};

static int check_slot(lua_State *L, int arg) {
  lua_Integer fd = luaL_checkinteger(L, arg);
  luaL_argcheck(L, fd >= 0 && fd <= 0x7fffffff, arg, "a descriptor");
  return (int)fd;
}

/* The header at index `arg`, a table of its numbers and `hash`. */
static lt_slot_header check_header(lua_State *L, int arg) {
  lt_slot_header header = {.hash = 0};
  luaL_checktype(L, arg, LUA_TTABLE);
  for (int k = 0; k < LT_SLOT_NUMBERS; k++) {
    lua_getfield(L, arg, NUMBERS[k]);
    header.number[k] = (uint64_t)luaL_optinteger(L, -1, 0);
    lua_pop(L, 1);
  }
  lua_getfield(L, arg, "hash");
  header.hash = (uint64_t)luaL_optinteger(L, -1, 0);
  lua_pop(L, 1);
  return header;
}

/* io.new_slot() -> descriptor; nil and a reason */
int lt_slot_make(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int fd = lt_slot_new(b->c);
  if (fd < 0) return lt_refused(L, b);
  lua_pushinteger(L, fd);
  return 1;
}

/* io.read_slot(fd) -> {fit =, round =, serial =, step =, part =, parts =, bytes =, hash =}; nil
   where no snapshot is whole. From here on programs that this process runs do not inherit the
   descriptor. */
int lt_slot_read_header(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_slot_header header;
  int fd = check_slot(L, 1);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (!b->c->policy.read_files || !lt_slot_read(fd, &header)) return 0;
  lua_createtable(L, 0, LT_SLOT_NUMBERS + 1);
  for (int k = 0; k < LT_SLOT_NUMBERS; k++) {
    lua_pushinteger(L, (lua_Integer)header.number[k]);
    lua_setfield(L, -2, NUMBERS[k]);
  }
  lua_pushinteger(L, (lua_Integer)header.hash);
  lua_setfield(L, -2, "hash");
  return 1;
}

/* io.hash_slot(fd, header [, share, shares]) -> the summand of that share of the bytes (of the only
   one): of a slot that is not damaged those of all shares, from 0, add up to header.hash; nil where
   they cannot be read */
int lt_slot_hash_share(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int fd = check_slot(L, 1);
  lt_slot_header header = check_header(L, 2);
  lua_Integer share = luaL_optinteger(L, 3, 0), shares = luaL_optinteger(L, 4, 1);
  luaL_argcheck(L, share >= 0 && share < shares, 3, "one of the shares, from 0");
  uint64_t hash;
  if (!lt_slot_hash(b->c, fd, &header, (uint64_t)share, (uint64_t)shares, &hash)) return 0;
  lua_pushinteger(L, (lua_Integer)hash);
  return 1;
}

/* io.slot_bytes(fd, header) -> tensor u8 [bytes]; nil and a reason */
int lt_slot_read_bytes(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int fd = check_slot(L, 1);
  lt_slot_header header = check_header(L, 2);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_slot_bytes(b->c, fd, &header);
  if (t != NULL) return lt_end(L, b, frame, 1, &t);
  lt_frame_close(b->c, frame, 0, NULL);
  return lt_refused(L, b);
}

/* io.put_slot(fd, header, tensor u8 [bytes]) -> true */
int lt_slot_put_bytes(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int fd = check_slot(L, 1);
  lt_slot_header header = check_header(L, 2);
  lt_tensor *t = lt_check_tensor(L, b, 3, "put_slot");
  bool fits = t->dtype == LT_U8 && t->contiguous &&
              lt_device_table(b->c, t->storage->device)->host_memory &&
              (uint64_t)t->numel == header.number[LT_SLOT_BYTES];
  luaL_argcheck(L, fits, 3, "the bytes of the header's snapshot");
  lt_slot_put(b->c, fd, &header, lt_data(t));
  return lt_done(L, b);
}

#define SAVING_NAME "ltrain.SlotSaving"

static lt_slot_save **check_saving(lua_State *L) { return luaL_checkudata(L, 1, SAVING_NAME); }

/* saving:done() -> whether wait would not wait */
static int saving_done(lua_State *L) {
  lt_enter(L);
  lt_slot_save **l = check_saving(L);
  lua_pushboolean(L, *l == NULL || lt_slot_save_done(*l));
  return 1;
}

/* saving:wait() -> true when the slot is whole, or nil and why it is not */
static int saving_wait(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_slot_save **box = check_saving(L), *l = *box;
  *box = NULL;
  if (l != NULL) lt_slot_save_end(b->c, l);
  return lt_done(L, b);
}

/* The thread uses the state's ctx: it must be through before the state is. */
static int saving_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_slot_save **box = check_saving(L);
  lt_failure f;
  if (*box != NULL && b->c != NULL && !lt_slot_save_end(b->c, *box)) lt_take_failure(b->c, &f);
  *box = NULL;
  return 0;
}

/* io.save_slot(fd, tensors, metadata, aliases, header) -> saving: the file that save_safetensors
   would write, of the tensors as they are now; nil and a reason */
int lt_slot_save_later(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 5);
  if (!lua_isnil(L, 4)) luaL_checktype(L, 4, LUA_TTABLE);
  int fd = check_slot(L, 1);
  lt_slot_header header = check_header(L, 5);
  int64_t n, n_metadata;
  lt_named_tensor *tensors = lt_read_named_tensors(L, b, &n);
  lt_metadata *metadata = lt_read_file_metadata(L, b, &n_metadata);
  lt_slot_save **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, SAVING_NAME);
  lt_modes modes = b->c->modes;
  b->c->modes.grad = false;
  lt_note_line(b);
  *box = lt_slot_save_begin(b->c, fd, &header, n, tensors, n_metadata, metadata, lt_contiguous);
  b->c->modes = modes;
  if (*box == NULL) return lt_refused(L, b);
  return 1;
}

void lt_bind_slots(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", saving_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"done", saving_done}, {"wait", saving_wait}, {NULL, NULL}};
  lt_new_type(L, b, SAVING_NAME, meta, methods);
}
