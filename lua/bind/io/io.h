/* lua/bind/io/io.h: declarations that the files of `c.io` share.

   What the world may spoil gives nil and the reason; wrong use raises. */
#ifndef LT_BIND_IO_IO_H
#define LT_BIND_IO_IO_H

#include "bind/core/state.h"
#include "io/safetensors.h"

/* The path at index 1; raises when it is none. */
const char *lt_check_path(lua_State *L, lt_bind *b, const char *who);

/* The results of a call that has failed: nil and the reason when it is the world's fault (LT_EIO),
   else raises. */
int lt_refused(lua_State *L, lt_bind *b);

/* The results of a call by a state that may not use the network. */
int lt_refuse_network(lua_State *L, const char *who);

/* The results of a call as of lt_refused, or true. */
int lt_done(lua_State *L, lt_bind *b);

/* io.save_safetensors(path, {name = tensor} [, {key = text} [, {alias = true}]]) -> true
   Of names that share a tensor the first that is not an alias gets the bytes.
   io.load_safetensors(path [, {name = true} [, start, size]]) -> {name = tensor}, {key = text}
   io.open_safetensors(path [, start, size])
     -> file with tensors(), metadata(), read(index, from, n or a tensor), close()
   Of `size` bytes from `start` on of a larger file tensors are read, never mapped.
   io.crc32(tensor) -> integer: CRC-32 of its bytes in row-major order
   io.crc32_join(crc, crc of what follows, its bytes) -> that of both */
int lt_save_safetensors(lua_State *L);
int lt_async_safetensors_save(lua_State *L);
int lt_load_safetensors(lua_State *L);
int lt_open_safetensors(lua_State *L);
int lt_stream_safetensors(lua_State *L);
int lt_crc32_of(lua_State *L);
int lt_crc32_join(lua_State *L);

/* The tensors of the table at index 2, those in the table at index 4 last, and the texts of that at
   index 3 (nil: none), in memory of Lua's that is pushed; raises what is wrong with them. */
lt_named_tensor *lt_read_named_tensors(lua_State *L, lt_bind *b, int64_t *n);
lt_metadata *lt_read_file_metadata(lua_State *L, lt_bind *b, int64_t *n);

/* io.new_slot() -> the descriptor of a slot for snapshots, and the others of snapshot_slot.c */
int lt_slot_make(lua_State *L);
int lt_slot_read_header(lua_State *L);
int lt_slot_hash_share(lua_State *L);
int lt_slot_save_later(lua_State *L);
int lt_slot_read_bytes(lua_State *L);
int lt_slot_put_bytes(lua_State *L);

/* io.open_zip(path) -> zip, a file of stored members, with names(), size(name), read(name) and
   tensor(name, dtype); io.strided(flat, offset, sizes, strides) -> tensor (zip.c) */
int lt_open_zip(lua_State *L);
int lt_io_strided(lua_State *L);
int lt_io_storage(lua_State *L);
int lt_io_span(lua_State *L);
int lt_io_zip_save(lua_State *L);

/* How many members lists of names at 2 and of contents at 3 are, tensors or, with `texts`, strings
   or contiguous tensors on the host. Raises what is wrong, before a file is open. */
lua_Integer lt_check_members(lua_State *L, lt_bind *b, const char *who, bool texts);

/* io.csv_read(path, {delimiter =, header =, missing = {text, ...}, types = {name = kind}})
     -> {names, kinds, words (of columns of text, by id), values (tensors)}; kinds are "integer",
        "number", "text" */
int lt_csv_to_lua(lua_State *L);

/* io.npy_load(path), npy_save(path, tensor), npz_save(path, names, tensors, deflated),
   memmap(path, dtype, offset [, sizes]): arrays in NumPy's formats, and bare ones (npy.c) */
int lt_npy_load(lua_State *L);
int lt_npy_save(lua_State *L);
int lt_npz_save(lua_State *L);
int lt_memmap(lua_State *L);

/* Files below a folder that others have written (confined_files.c), and metrics as they grow
   (curves.c). */
int lt_stat_below(lua_State *L);
int lt_read_below(lua_State *L);
int lt_io_curves(lua_State *L);

/* io.file_memory(folder) -> scope: tensors whose memory is in files (file_memory.c) */
int lt_io_file_memory(lua_State *L);

/* io.yaml_events(text) -> a list of {kind =, line =, anchor =, tag =, text =, plain =}, or nil and
   what is wrong (yaml.c) */
int lt_yaml_events(lua_State *L);

/* Make the kinds of userdata that own a file while it is read or saved, and that of file_memory. */
void lt_bind_csv(lua_State *L, lt_bind *b);
void lt_bind_curves(lua_State *L, lt_bind *b);
void lt_bind_file_memory(lua_State *L, lt_bind *b);
void lt_bind_safetensors(lua_State *L, lt_bind *b);
void lt_bind_slots(lua_State *L, lt_bind *b);
void lt_bind_zip(lua_State *L, lt_bind *b);

#endif
