/* lua/bind/io/io.c: files and folders for the library's own Lua (`c.io`): its chunks have no io of
 * Lua. */
#include "bind/io/io.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/types.h"
#include "bind/io/json.h"
#include "io/events.h"
#include "io/file.h"
#include "io/idx.h"

/* io.read_head(path, n) -> the first bytes of a plain file, at most n; its size */
static int read_head(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "load");
  int64_t size, n = luaL_checkinteger(L, 2);
  luaL_argcheck(L, n >= 0, 2, "a count of bytes");
  lt_json *text = lt_push_text(L, b);
  int fd = lt_file_open(b->c, "load", path, &size);
  if (fd < 0) return lt_refused(L, b);
  if (size < n) n = size;
  text->capacity = (size_t)n + 1;
  text->data = lt_alloc(b->c, text->capacity);
  bool ok = text->data != NULL && lt_file_read_at(b->c, "load", path, fd, text->data, (size_t)n, 0);
  lt_file_close(b->c, fd);
  if (!ok) return lt_refused(L, b);
  lua_pushlstring(L, text->data, (size_t)n);
  lt_json_free(text);
  lua_pushinteger(L, size);
  return 2;
}

/* io.read_file(path [, most [, who]]) -> text, of at most so many bytes (2^31); messages begin
 * with `who` ("read") */
static int read_file(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *who = luaL_optstring(L, 3, "read"), *path = lt_check_path(L, b, who);
  int64_t most = luaL_optinteger(L, 2, (lua_Integer)1 << 31);
  luaL_argcheck(L, most >= 0, 2, "0 bytes or more");
  lt_json *text = lt_push_text(L, b);
  text->data = lt_file_load(b->c, who, path, (size_t)most, &text->size);
  if (text->data == NULL) return lt_refused(L, b);
  text->capacity = text->size + 1;
  lua_pushlstring(L, text->data, text->size);
  lt_json_free(text);
  return 1;
}

static int write_by(lua_State *L,
                    bool (*write)(lt_ctx *, const char *, const char *, const void *, size_t)) {
  lt_bind *b = lt_enter(L);
  size_t n;
  const char *who = luaL_optstring(L, 3, "write");
  const char *path = lt_check_path(L, b, who), *text = luaL_checklstring(L, 2, &n);
  write(b->c, who, path, text, n);
  return lt_done(L, b);
}

/* io.write_file(path, text [, who]) -> true: replaces a file atomically; messages begin with `who`
 * ("write") */
static int write_file(lua_State *L) { return write_by(L, lt_file_save); }

/* io.create_file(path, text) -> true; false when it was there, nil and a reason */
static int create_file(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n;
  bool made;
  const char *path = lt_check_path(L, b, "create"), *text = luaL_checklstring(L, 2, &n);
  if (!lt_file_create(b->c, "create", path, text, n, &made)) return lt_refused(L, b);
  lua_pushboolean(L, made);
  return 1;
}

/* io.append_file(path, text [, who]) -> true */
static int append_file(lua_State *L) { return write_by(L, lt_file_append); }

/* io.remove(path) -> true: a file or an empty folder; true when nothing is there */
static int remove_path(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_file_remove(b->c, "remove", lt_check_path(L, b, "remove"));
  return lt_done(L, b);
}

/* io.link(target, path) -> true: path is a symbolic link to target, relative to its folder */
static int link_path(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *target = lt_check_path(L, b, "link");
  lt_file_link(b->c, "link", target, luaL_checkstring(L, 2));
  return lt_done(L, b);
}

/* io.follow(path) -> the path of the file that a symbolic link leads to; of others the path */
static int follow(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "follow");
  char target[LT_PATH_MAX];
  lua_pushstring(L, lt_file_follow(b->c, path, target, sizeof target) ? target : path);
  return 1;
}

/* io.remove_stale(folder) -> true: files in it that processes were writing when they died */
static int remove_stale(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_saving_remove_stale(b->c, "remove", lt_check_path(L, b, "remove"));
  return lt_done(L, b);
}

/* io.make_folder(path) -> true: with those above it */
static int make_folder(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_folder_make(b->c, "make_folder", lt_check_path(L, b, "make_folder"));
  return lt_done(L, b);
}

/* io.claim_folder(path) -> whether it was made now; false when it was there */
static int claim_folder(lua_State *L) {
  lt_bind *b = lt_enter(L);
  bool made;
  if (!lt_folder_claim(b->c, "make_folder", lt_check_path(L, b, "claim_folder"), &made))
    return lt_refused(L, b);
  lua_pushboolean(L, made);
  return 1;
}

/* io.begin_folder(path) -> the path of a temporary folder beside it, made now */
static int begin_folder(lua_State *L) {
  lt_bind *b = lt_enter(L);
  char temporary[LT_PATH_MAX];
  if (!lt_folder_begin(b->c, "save", lt_check_path(L, b, "save"), temporary, sizeof temporary))
    return lt_refused(L, b);
  lua_pushstring(L, temporary);
  return 1;
}

/* io.commit_folder(temporary, path) -> true: it gets its name, in place of what has it */
static int commit_folder(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *temporary = lt_check_path(L, b, "save");
  lt_folder_commit(b->c, "save", temporary, luaL_checkstring(L, 2));
  return lt_done(L, b);
}

/* io.discard_folder(path) -> true: with the files in it */
static int discard_folder(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_folder_discard(b->c, "remove", lt_check_path(L, b, "remove"));
  return lt_done(L, b);
}

/* io.can_write(path) -> true: whether entries can be made in a folder, there or yet to be made */
static int can_write(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_folder_writable(b->c, "write", lt_check_path(L, b, "can_write"));
  return lt_done(L, b);
}

/* io.kind(path) -> "file", "folder", "other" or nil */
static int kind(lua_State *L) {
  static const char *const names[] = {NULL, "file", "folder", "other"};
  lt_bind *b = lt_enter(L);
  lua_pushstring(L, names[lt_file_kind_of(b->c, lt_check_path(L, b, "kind"))]);
  return 1;
}

/* io.wait_for(path, seconds) -> whether something is there, or came within so many seconds. For
   files that another process makes (a shared folder of ranks): polling each millisecond, since
   inotify sees nothing of what other machines write to a shared file system. */
static int wait_for(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "wait_for");
  const struct timespec nap = {.tv_nsec = 1000000};
  lua_Number left = luaL_checknumber(L, 2) * 1000;
  bool there;
  for (; !(there = lt_file_kind_of(b->c, path) != LT_NO_FILE) && left > 0; left--)
    nanosleep(&nap, NULL);
  lua_pushboolean(L, there);
  return 1;
}

/* io.modified(path) -> seconds since 1970, or nil */
static int modified(lua_State *L) {
  lt_bind *b = lt_enter(L);
  double when;
  if (lt_file_modified(b->c, lt_check_path(L, b, "modified"), &when))
    lua_pushnumber(L, when);
  else
    lua_pushnil(L);
  return 1;
}

/* io.same(path, path) -> whether both lead to one file */
static int same(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "same");
  lua_pushboolean(L, lt_file_same(b->c, path, luaL_checkstring(L, 2)));
  return 1;
}

/* Adds a name and its zero byte to a text. */
static bool find_one(void *ud, const char *name) {
  lt_json *names = ud;
  lt_json_raw(names, name, strlen(name) + 1);
  return lt_ok(names->c);
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* io.list_folder(path) -> names, sorted. Sorted by bytes: readdir's order differs between file
   systems, and with it would the order of a dataset's files. */
static int list_folder(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "list_folder");
  lt_json *text = lt_push_text(L, b);
  if (!lt_folder_list(b->c, "list_folder", path, find_one, text) || !lt_ok(b->c))
    return lt_refused(L, b);
  lua_Integer n = 0;
  for (size_t i = 0; i < text->size; i++) n += text->data[i] == 0;
  const char **names = lua_newuserdatauv(L, (size_t)n * sizeof *names + 1, 0);
  const char *at = text->data;
  for (lua_Integer i = 0; i < n; at += strlen(at) + 1) names[i++] = at;
  if (n > 1) qsort(names, (size_t)n, sizeof *names, by_text);
  lua_createtable(L, (int)n, 0);
  for (lua_Integer i = 0; i < n; i++) {
    lua_pushstring(L, names[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* io.read_idx(path) -> tensor */
static int read_idx(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "read_idx");
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_idx_read(b->c, "read_idx", path);
  if (t != NULL) return lt_end(L, b, frame, 1, &t);
  lt_frame_close(b->c, frame, 0, NULL);
  return lt_refused(L, b);
}

/* io.event_record(data) -> the record of an event file that holds it. TensorBoard's format,
   TFRecord: length, its masked CRC-32C, data, theirs (io/events.h). */
static int event_record(lua_State *L) {
  size_t n;
  const char *data = luaL_checklstring(L, 1, &n);
  unsigned char head[LT_RECORD_HEAD], tail[LT_RECORD_TAIL];
  lt_record_head(n, head);
  lt_record_tail(data, n, tail);
  lua_pushlstring(L, (const char *)head, sizeof head);
  lua_pushvalue(L, 1);
  lua_pushlstring(L, (const char *)tail, sizeof tail);
  lua_concat(L, 3);
  return 1;
}

void lt_bind_io(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"read_head", read_head},
                                       {"read_file", read_file},
                                       {"write_file", write_file},
                                       {"create_file", create_file},
                                       {"append_file", append_file},
                                       {"remove", remove_path},
                                       {"link", link_path},
                                       {"follow", follow},
                                       {"remove_stale", remove_stale},
                                       {"make_folder", make_folder},
                                       {"claim_folder", claim_folder},
                                       {"begin_folder", begin_folder},
                                       {"commit_folder", commit_folder},
                                       {"discard_folder", discard_folder},
                                       {"can_write", can_write},
                                       {"list_folder", list_folder},
                                       {"kind", kind},
                                       {"wait_for", wait_for},
                                       {"modified", modified},
                                       {"same", same},
                                       {"save_safetensors", lt_save_safetensors},
                                       {"save_later", lt_async_safetensors_save},
                                       {"load_safetensors", lt_load_safetensors},
                                       {"open_safetensors", lt_open_safetensors},
                                       {"stream_safetensors", lt_stream_safetensors},
                                       {"crc32", lt_crc32_of},
                                       {"crc32_join", lt_crc32_join},
                                       {"open_zip", lt_open_zip},
                                       {"strided", lt_io_strided},
                                       {"storage", lt_io_storage},
                                       {"span", lt_io_span},
                                       {"zip_save", lt_io_zip_save},
                                       {"csv_read", lt_csv_to_lua},
                                       {"npy_load", lt_npy_load},
                                       {"npy_save", lt_npy_save},
                                       {"npz_save", lt_npz_save},
                                       {"memmap", lt_memmap},
                                       {"file_memory", lt_io_file_memory},
                                       {"new_slot", lt_slot_make},
                                       {"read_slot", lt_slot_read_header},
                                       {"hash_slot", lt_slot_hash_share},
                                       {"save_slot", lt_slot_save_later},
                                       {"slot_bytes", lt_slot_read_bytes},
                                       {"put_slot", lt_slot_put_bytes},
                                       {"read_idx", read_idx},
                                       {"event_record", event_record},
                                       {"curves", lt_io_curves},
                                       {"stat_below", lt_stat_below},
                                       {"read_below", lt_read_below},
                                       {"json_encode", lt_json_encode},
                                       {"json_decode", lt_json_decode},
                                       {"yaml_events", lt_yaml_events},
                                       {NULL, NULL}};
  lt_bind_json(L, b);
  lt_bind_safetensors(L, b);
  lt_bind_csv(L, b);
  lt_bind_curves(L, b);
  lt_bind_file_memory(L, b);
  lt_bind_slots(L, b);
  lt_bind_zip(L, b);
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_setfield(L, 1, "io");
}
