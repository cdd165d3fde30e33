-- tools/lint_tree.lua: who includes whom, header guards, words that the library must not use;
-- beside it who requires whom (lint_requires.lua), which files of C use each other in a circle
-- (lint_circles.lua), and fields of the state of a run (lint_state.lua).
--
--   lua5.4 tools/lint_tree.lua         (from the root of the tree)
--
-- Fails on an #include or a require against the arrows, on a field that is not declared, on a
-- wrong header guard, on printing or exiting in the library, and on lines over 100 columns. Sizes
-- of files and functions only warn.

-- The direct arrows; what they imply is derived. `include` stands for runtime/include/ltrain.
local ARROWS <const> = {
  base = {}, tensor = { "base" }, device = { "tensor" }, ops = { "device" },
  autograd = { "ops" }, cpu = { "ops" }, cuda = { "ops" },
  comm = { "device" }, launch = { "comm" }, nccl = { "cuda" }, xla = { "ops" },
  io = { "device" }, image = { "io" }, data = { "image" }, text = { "io" },
  registry = { "autograd", "cpu", "cuda", "launch", "data", "text" },
  apps = { "io" }, net = { "base" }, -- nothing of runtime/ knows them
  ["bind/core"] = { "registry" },
  ["bind/ops"] = { "bind/core" }, ["bind/autograd"] = { "bind/core" },
  ["bind/io"] = { "bind/core" },
  ["bind/net"] = { "bind/io", "net" },
  ["bind/debugger"] = { "bind/core" }, ["bind/system"] = { "bind/core" },
  ["bind/dist"] = { "bind/debugger", "bind/io" }, ["bind/data"] = { "bind/dist", "bind/ops" },
  bind = { "bind/autograd", "bind/data", "bind/net", "bind/system" }, -- open.c
  ["host/state"] = { "bind" }, ["host/sandbox"] = { "host/state" },
  host = { "host/sandbox" },
  cli = { "host", "apps" },
  include = {},
}
-- Headers of lua/host that its sandbox may see: what a state consists of.
local HOST_STATE <const> = { ltrain = true, state = true, exports = true, host_tensors = true }
local COLUMNS <const> = 100
local FILE_LINES <const> = 600
local FUNCTION_LINES <const> = 80
local BANNED <const> = { "printf", "puts", "exit", "_exit", "abort", "fprintf", "vprintf" }
-- Files outside of launch/ that fork; the children end by _exit.
local FORK <const> = { ["lua/bind/system/probe_hosts.c"] = true, ["lua/bind/system/child.c"] = true,
  ["lua/bind/system/guard_process.c"] = true, ["lua/host/isolate/worker.c"] = true }

-- Lua's functions that trust their table; the registry is one (lua/bind/core/raw.h).
local RAW_READS <const> = { "lua_rawget", "lua_rawgeti", "lua_rawgetp", "lua_next" }
local RAW_WRITES <const> = { "lua_rawset", "lua_rawseti", "lua_rawsetp" }

local failures, warnings = 0, 0

local function fail(...)
  failures = failures + 1
  print(string.format(...))
end

local function warn_of(...)
  warnings = warnings + 1
  print("warning: " .. string.format(...))
end

-- Everything a room may include: itself, include, and what its arrows reach.
local function reach(room, seen)
  seen = seen or { include = true }
  if not seen[room] then
    seen[room] = true
    for _, below in ipairs(ARROWS[room]) do reach(below, seen) end
  end
  return seen
end

-- lua/apps is a part of the program, as lua/cli is.
local function room_of(path)
  if path:match("^lua/") then
    if HOST_STATE[path:match("^lua/host/([%w_]+)%.h$")] then return "host/state" end
    local room = path:match("^lua/(bind/%w+)/") or path:match("^lua/(host/sandbox)/")
      or path:match("^lua/(%w+)/")
    return room == "apps" and "cli" or room
  end
  if path:match("^runtime/include/") then return "include" end
  if path:match("^runtime/registry%.[ch]$") then return "registry" end
  return path:match("^runtime/([%w_]+)/")
end

-- The room that `#include "name"` points into.
local function room_of_include(name)
  for _, root in ipairs { "lua/", "runtime/", "runtime/include/" } do
    local file <close> = io.open(root .. name, "rb")
    if file then return room_of(root .. name) end
  end
  local folder = name:match("^([%w_]+)/") -- of a file that is generated, or of the specs
  if folder == "ltrain" then return "include" end
  return ARROWS[folder] and folder
end

local function check_include(path, number, room, form, name)
  if form == "<" then
    if not path:match("^lua/") and (name:match("^lua") or name == "lauxlib.h") then
      fail("%s:%d: <%s>: Lua headers are for lua/ alone", path, number, name)
    end
    return
  end
  local target = room_of_include(name)
  if not target then
    fail("%s:%d: \"%s\": name it by its folder", path, number, name)
  elseif not reach(room)[target] then
    fail("%s:%d: \"%s\": %s must not include %s", path, number, name, room, target)
  end
end

-- A template, included once per type, says so in its opening comment.
local function check_guard(path, text)
  if (text:match("^/%*.-%*/") or ""):match("No guard") then return end
  local name = path:match("^%w+/(.*)%.h$"):gsub("^include/ltrain/", "include/"):gsub("/", "_")
  local guard = ("LT_%s_H"):format(name):upper()
  if ("\n" .. text):match("\n#ifndef%s+([%w_]+)") ~= guard then
    fail("%s: header guard should be %s", path, guard)
  end
end

-- Drops comments and strings, keeps line breaks.
local function bare(text)
  local function blank(s) return (s:gsub("[^\n]", " ")) end
  return (text:gsub('"[^"\n]*"', blank):gsub("/%*.-%*/", blank):gsub("//[^\n]*", blank))
end

local function check_words(path, room, code)
  local number = 0
  for line in (code .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    for _, word in ipairs(BANNED) do
      local is_own_end = word == "_exit" and FORK[path]
      if line:match("%f[%w_]" .. word .. "%s*%(") and not is_own_end then
        fail("%s:%d: %s in the library", path, number, word)
      end
    end
    if room ~= "registry" and line:match("^%s*#%s*%l*if.*LT_WITH_") then
      fail("%s:%d: LT_WITH_ outside registry.c", path, number)
    end
  end
end

-- In the binding a table may be anything that a script has passed.
local function check_raw(path, code)
  if not path:match("^lua/bind/") or path == "lua/bind/core/raw.h" then return end
  local number = 0
  local function check(line, word, allowed)
    for index in line:gmatch("%f[%w_]" .. word .. "%([%w_>.-]+, *([^,)]+)") do
      if index ~= "LUA_REGISTRYINDEX" and not index:match(allowed) then
        fail("%s:%d: %s trusts its table: use lt_%s", path, number, word,
          (word:gsub("^lua_raw", "raw_"):gsub("^lua_", "raw_")))
      end
    end
  end
  for line in (code .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    for _, word in ipairs(RAW_READS) do check(line, word, "^$") end
    if line:match("luaL_len%(") then
      fail("%s:%d: luaL_len may be negative: use lt_length, or lt_raw_length", path, number)
    end
    for _, word in ipairs(RAW_WRITES) do check(line, word, "^%-%d+$") end
  end
end

-- A function of C ends at the first line that is a lone `}`; it begins at the last line before
-- that which starts at the margin and ends in `{`.
local function check_sizes(path, text)
  local number, start, name = 0, nil, nil
  for line in (text .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if line:match("^[%a].*%)%s*{$") then
      start, name = number, line:match("([%w_]+)%s*%(")
    elseif line == "}" and start then
      if number - start + 1 > FUNCTION_LINES then
        warn_of("%s:%d: %s has %d lines", path, start, name, number - start + 1)
      end
      start = nil
    end
  end
  if number - 1 > FILE_LINES then warn_of("%s: %d lines", path, number - 1) end
end

local function check_file(path)
  local file <close> = assert(io.open(path, "rb"))
  local text = file:read("a")
  local room = room_of(path)
  if not ARROWS[room] then
    fail("%s: no such room", path)
    return
  end
  local number = 0
  for line in (text .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    local form, name = line:match('^%s*#%s*include%s*([<"])([^>"]+)')
    if form then check_include(path, number, room, form, name) end
    if (utf8.len(line) or #line) > COLUMNS then
      fail("%s:%d: %d columns", path, number, utf8.len(line) or #line)
    end
  end
  if path:match("%.h$") then check_guard(path, text) end
  local is_program = path:match("^lua/cli/") or path:match("^lua/apps/")
  if not is_program and room ~= "launch" then check_words(path, room, bare(text)) end
  check_raw(path, bare(text))
  if path:match("%.[ch]$") then check_sizes(path, text) end
end

local pipe <close> = assert(io.popen(
  "find runtime lua -name '*.[ch]' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' | sort"))
for path in pipe:lines() do check_file(path) end
for _, part in ipairs { "lint_requires", "lint_circles", "lint_state", "lint_doors" } do
  dofile((arg[0]:gsub("lint_tree", part)))(fail)
end
print(("arrows and guards: %d faults, %d warnings"):format(failures, warnings))
os.exit(failures == 0, true)
