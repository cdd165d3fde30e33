/* spec/c/host_permissions_test.c: what scripts of a host reach, with and without its permission. */
#include <stdlib.h>

#include "host_internals.h"

static void lua_functions_name_the_permission_they_need(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must(l,
       ltrain_dostring(l,
                       "local function refused(f, ...)\n"
                       "  local ok, why = pcall(f, ...)\n"
                       "  assert(not ok, why)\n"
                       "  return why\n"
                       "end\n"
                       "assert(io == nil and debug == nil and string.dump == nil and os.time())\n"
                       "local f, why = loadfile('/etc/passwd')\n"
                       "assert(f == nil and why == 'loadfile: the host of this state does not '\n"
                       "  .. 'allow it (LTRAIN_READ_FILES)', why)\n"
                       "for name, needs in pairs{dofile = 'READ_FILES',\n"
                       "    collectgarbage = 'LUA_LIBRARIES'} do\n"
                       "  why = refused(_G[name], '/etc/passwd')\n"
                       "  assert(why:find(name .. ': ', 1, true) and why:find(needs), why)\n"
                       "end\n"
                       "for name, needs in pairs{getenv = 'LTRAIN_ENVIRONMENT',\n"
                       "    execute = 'LTRAIN_LUA_LIBRARIES', remove = 'LTRAIN_LUA_LIBRARIES',\n"
                       "    rename = 'LTRAIN_LUA_LIBRARIES', tmpname = 'LTRAIN_LUA_LIBRARIES',\n"
                       "    setlocale = 'LTRAIN_LUA_LIBRARIES'} do\n"
                       "  why = refused(os[name], 'HOME')\n"
                       "  assert(why:find('os.' .. name .. ': ', 1, true), why)\n"
                       "  assert(why:find(needs, 1, true), why)\n"
                       "end\n"
                       "assert(refused(package.searchpath, 'x', '/?'):find 'LTRAIN_READ_FILES')\n"
                       "assert(refused(package.loadlib, 'x', '*'):find 'LTRAIN_LOAD_LIBRARIES')\n"
                       "why = refused(require, 'io')\n"
                       "assert(why:find('does not allow LTRAIN_LUA_LIBRARIES'), why)\n"
                       "package.path = '/usr/share/lua/5.4/?.lua'\n"
                       "why = refused(require, 'pl.pretty')\n"
                       "assert(why:find('not allow LTRAIN_READ_FILES LTRAIN_LOAD_LIB'), why)\n"
                       "assert(getmetatable('') == false)\n"
                       "assert(not load('\\27Lua', 'x', 'b'))\n"
                       "assert(load('return ...', 'x')(5) == 5)\n"
                       "assert(load('return y', 'x', 'bt', {y = 6})() == 6)\n",
                       "r.lua"));
  must_say(l, ltrain_dostring(l, "os.exit(3)", "r.lua"), "os.exit: the host owns the process");
  ltrain_close(l);
}

/* Every function of the library's own that touches the world, called as a script can. */
static void the_library_asks_for_the_same_permissions(void **state) {
  (void)state;
  ltrain *l = open_inside(NULL);
  must(l, ltrain_dostring(
              l,
              "local lt, c = require 'ltrain', internals\n"
              "local path = '/tmp/ltrain_host_permissions'\n"
              "local seen = 0\n"
              "local arguments = {write_file = 'x', append_file = 'x', same = path,\n"
              "  save_safetensors = {x = lt.ones(1)}, save_later = {x = lt.ones(1)},\n"
              "  read_head = 4, csv_read = {delimiter = ',', missing = {}},\n"
              "  npy_save = lt.ones(1), npz_save = {'x'}, zip_save = {'x'}, link = 'x',\n"
              "  memmap = 'f32', stat_below = 'x', read_below = 'x', commit_folder = 'x',\n"
              "  wait_for = 0, stream_safetensors = {x = lt.ones(1)}, create_file = 'x'}\n"
              "local more = {save_later = {nil, nil, 'mark'}, memmap = {0},\n"
              "  stream_safetensors = {nil, nil, print},\n"
              "  npz_save = {{lt.ones(1)}},\n"
              "  zip_save = {{'a'}}, read_below = {0, 4}}\n"
              "local pure = {crc32 = true, crc32_join = true, json_encode = true,\n"
              "  json_decode = true, follow = true,\n"
              "  event_record = true, strided = true, curves = true,\n"
              "  span = true, storage = true, yaml_events = true,\n"
              "  new_slot = true, read_slot = true, save_slot = true, slot_bytes = true,\n"
              "  hash_slot = true, put_slot = true} -- memory by descriptors, not files\n"
              "for name, f in pairs(c.io) do\n"
              "  if not pure[name] then\n"
              "    local result, why = f(path, arguments[name],\n"
              "      table.unpack(more[name] or {}, 1, 3))\n"
              "    assert(not result, name)\n"
              "    assert(result == false or why == nil or why:find 'may not', why)\n"
              "    seen = seen + 1\n"
              "  end\n"
              "end\n"
              "assert(seen >= 17, seen)\n"
              "local _, text = c.text.read_tokens(path, 'u16')\n"
              "assert(text:find 'LTRAIN_READ_FILES', text)\n"
              "_, text = lt.image.read(path)\n"
              "assert(text:find 'LTRAIN_READ_FILES', text)\n"
              "_, text = lt.image.write(path .. '.png', lt.ones(3, 2, 2))\n"
              "assert(text:find 'LTRAIN_WRITE_FILES', text)\n"
              "local r, p = c.runtime, c.runtime.process\n"
              "local function refused(permission, found, why)\n"
              "  assert(found == nil and why:find(permission, 1, true), why or found)\n"
              "end\n"
              "refused('LTRAIN_ENVIRONMENT', r.getenv('PATH'))\n"
              "refused('LTRAIN_ENVIRONMENT', r.hostname())\n"
              "refused('LTRAIN_FORK', p.find('sh'))\n"
              "refused('LTRAIN_FORK', p.executable())\n"
              "refused('LTRAIN_FORK', p.capture({'true'}, 1))\n"
              "refused('LTRAIN_FORK', p.supervise({'true'}))\n"
              "refused('LTRAIN_FORK', p.start({'true'}))\n"
              "refused('LTRAIN_FORK', p.lock(path))\n"
              "refused('LTRAIN_FORK', p.probe({{'localhost', 22}}, 0.1))\n"
              "refused('LTRAIN_NETWORK', r.http.open{port = 0, connections = 1,\n"
              "  ask_seconds = 1, read_seconds = 1, head_bytes = 1,\n"
              "  stream_bytes = 1})\n"
              "refused('LTRAIN_NETWORK', r.inbox.open(path))\n"
              "refused('LTRAIN_NETWORK', r.inbox.send('/', 'tmp'))\n"
              "refused('LTRAIN_LOAD_LIBRARIES', c.dist.join{comm = 'mpi'})\n"
              "local ok, why = pcall(lt.dist.launch, 2, function() end)\n"
              "assert(not ok and tostring(why):find 'LTRAIN_FORK', why)\n"
              "ok, why = pcall(lt.data.mnist, '/etc')\n"
              "assert(why:find('data.mnist: this state may not read files'), why)\n"
              "ok, why = lt.load('/etc/passwd')\n"
              "assert(ok == nil and why:find 'LTRAIN_READ_FILES', why)\n"
              "ok, why = lt.save('/tmp/ltrain_host_permissions', {x = 1})\n"
              "assert(ok == nil and why:find 'LTRAIN_WRITE_FILES', why)\n",
              "io.lua"));
  ltrain_close(l);
}

/* Tables, metatables and what `pairs` finds, from the globals and all of `lt` on: no function that
   C gives the library alone. */
static void scripts_do_not_find_the_internals(void **state) {
  (void)state;
  ltrain *l = open_inside(NULL);
  must(l, ltrain_dostring(l,
                          "local own, c = {}, internals\n"
                          "internals = nil\n"
                          "local function add(t)\n"
                          "  for key, value in next, t do\n"
                          "    if type(value) == 'function' then own[value] = key end\n"
                          "    local inner = type(value) == 'table' and key ~= 'methods'\n"
                          "    if inner then add(value) end\n"
                          "  end\n"
                          "end\n"
                          "own[c], own[c.io], own[c.runtime] = 'c', 'io', 'runtime'\n"
                          "add(c.io) add(c.runtime)\n"
                          "lt = require 'ltrain'\n"
                          "for _, name in ipairs{'Trainer', 'Module', 'Callback', 'Function',\n"
                          "  'nn', 'data', 'optim', 'save', 'load', 'numpy', 'json', 'csv',\n"
                          "  'dist', 'cuda', 'callbacks', 'loggers', 'metrics', 'onnx', 'text',\n"
                          "  'image', 'hash', 'runs', 'strategies', 'models'} do local _ = lt[name] end\n"
                          "local seen, queue = {}, {}\n"
                          "local function push(value, from)\n"
                          "  local kind = type(value)\n"
                          "  if kind ~= 'table' and kind ~= 'function' then return end\n"
                          "  if seen[value] then return end\n"
                          "  assert(not own[value], from)\n"
                          "  seen[value] = from\n"
                          "  queue[#queue + 1] = value\n"
                          "end\n"
                          "push(_G, '_G')\n"
                          "for k = 1, math.huge do\n"
                          "  local t = queue[k]\n"
                          "  if t == nil then break end\n"
                          "  push(getmetatable(t), seen[t] .. '.meta')\n"
                          "  if type(t) == 'table' then\n"
                          "    for key, value in next, t do\n"
                          "      push(key, seen[t] .. '.key')\n"
                          "      push(value, seen[t] .. '.' .. tostring(key))\n"
                          "    end\n"
                          "    pcall(function()\n"
                          "      for k, value in pairs(t) do push(value, seen[t] .. '.' .. k) end\n"
                          "    end)\n"
                          "  end\n"
                          "end\n"
                          "assert(#queue > 500, #queue)",
                          "walk.lua"));
  must_say(l, ltrain_dostring(l, "require 'ltrain.c'", "r.lua"),
           "'ltrain.c' is not for scripts of a host: use require \"ltrain\"");
  must(l, ltrain_dostring(l,
                          "for _, name in ipairs{'ltrain.c', 'ltrain.runtime',\n"
                          "  'ltrain.files.numpy', 'ltrain.core.errors'} do\n"
                          "  assert(not pcall(require, name), name)\n"
                          "  assert(type(package.searchers[2](name)) == 'string', name)\n"
                          "  assert(not pcall(package.searchers[2]('ltrain'), name), name)\n"
                          "end\n"
                          "assert(package.loaded['ltrain.c'] == nil)\n"
                          "assert(not pcall(function() return lt.io end))\n"
                          "assert(not pcall(function() return lt.runtime end))",
                          "r.lua"));
  ltrain_close(l);
}

static void what_is_allowed_is_there(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.allow = LTRAIN_EVERYTHING;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l, "assert(io.open('/etc/passwd')):close() require 'os'", "r.lua"));
  must(l, ltrain_dostring(l, "assert(os.getenv 'PATH' and loadfile and collectgarbage 'count')",
                          "r.lua"));
  must_say(l, ltrain_dostring(l, "os.exit(3)", "r.lua"), "the host owns the process");
  ltrain_close(l);
  assert_int_equal(setenv("LT_PERMISSION", "yes", 1), 0);
  config.allow = LTRAIN_ENVIRONMENT;
  l = open_inside(&config);
  must(l,
       ltrain_dostring(l,
                       "assert(os.getenv 'LT_PERMISSION' == 'yes' and not pcall(os.remove, ''))\n"
                       "assert(internals.runtime.getenv 'LT_PERMISSION' == 'yes')",
                       "e.lua"));
  ltrain_close(l);
  config.allow = LTRAIN_FORK;
  l = open_inside(&config);
  must(l, ltrain_dostring(l, "assert(internals.runtime.process.find 'sh')", "f.lua"));
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lua_functions_name_the_permission_they_need),
      cmocka_unit_test(the_library_asks_for_the_same_permissions),
      cmocka_unit_test(scripts_do_not_find_the_internals),
      cmocka_unit_test(what_is_allowed_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
