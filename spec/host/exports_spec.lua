-- spec/host/exports_spec.lua: the names that products give to the linker.
local BUILD <const> = os.getenv("LT_BUILD")
local RACES <const> = (os.getenv("LT_SANITIZE") or ""):find("thread", 1, true) ~= nil

local function lines_of(command, ...)
  local list = {}
  local pipe <close> = assert(io.popen(command:format(...)))
  for line in pipe:lines() do list[#list + 1] = line end
  return list
end

-- Names of defined symbols that other objects see; not those of the sanitizers, nor what
-- tools/tsan_openmp.c has in place of libgomp's.
local function symbols(flags, path)
  local list = {}
  for _, name in ipairs(lines_of("nm %s --defined-only '%s/%s' | awk 'NF == 3 { print $3 }'", flags,
    BUILD, path)) do
    if not (name:find "^__?[at]san" or name:find "^__?ubsan" or name:find "^__odr_asan"
        or RACES and name:find "^GOMP_") then
      list[#list + 1] = name
    end
  end
  assert(#list > 0, path .. " has no symbols")
  return list
end

local function is_ours(name)
  return name:find "^ltrain_" or name:find "^lt_" or name:find "^luaopen_"
end

-- What the installed headers for hosts declare.
local function declared()
  local names = { luaopen_ltrain = true }
  for _, path in ipairs { "lua/host/ltrain.h", "runtime/include/ltrain/tensor.h" } do
    local file <close> = assert(io.open(path))
    for name in file:read("a"):gmatch "\nLT_API [^;(]-([%w_]+)%(" do names[name] = true end
  end
  return names
end

describe("libltrain", function()
  local function needs_build()
    if not BUILD then pending("LT_BUILD names no build folder") end
  end

  it("exports what the headers declare and nothing else", function()
    needs_build()
    local wanted, seen = declared(), {}
    for _, name in ipairs(symbols("-D", "libltrain.so")) do
      assert(wanted[name], "libltrain.so exports " .. name)
      seen[name] = true
    end
    for name in pairs(wanted) do assert(seen[name], "libltrain.so does not export " .. name) end
  end)

  it("as a module exports its entry alone", function()
    needs_build()
    assert.same({ "luaopen_ltrain" }, symbols("-D", "lua/5.4/ltrain.so"))
  end)

  it("as an archive has names that collide with nobody's", function()
    needs_build()
    for _, name in ipairs(symbols("-g", "libltrain.a")) do
      assert(is_ours(name), "libltrain.a has the global name " .. name)
    end
  end)

  it("has backends that export their entry alone", function()
    needs_build()
    for _, path in ipairs(lines_of("ls '%s'/backends/ltrain_*.so 2>/dev/null", BUILD)) do
      assert.same({ "lt_backend_open" }, symbols("-D", path:sub(#BUILD + 2)), path)
    end
  end)
end)
