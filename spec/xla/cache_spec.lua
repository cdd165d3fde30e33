-- spec/xla/cache_spec.lua: executables are kept in a folder for later runs.
-- tags: slow, unsanitized
local child = require "spec.cli.child"
local plugin = require "spec.xla.plugin"

local SCRIPT <const> = [[
local lt = require "ltrain"
local x = lt.ones(4):to "xla"
print((x * 3 + 1):sum():item())
local r = lt.xla.report()
print(r.compiled, r.loaded)
]]
local COMPILED <const>, LOADED <const> = "16.0\n1\t0\n", "16.0\n0\t1\n"

describe("the cache of executables", function()
  local folder, cache

  before_each(function()
    folder = child.folder()
    cache = folder .. "/cache"
    child.write(folder .. "/script.lua", SCRIPT)
  end)
  after_each(function() child.remove(folder) end)

  local test <const> = plugin.it

  local function run(more)
    local env = { LTRAIN_XLA_CACHE = cache }
    for key, value in pairs(more or {}) do env[key] = value end
    local status, out, err = child.run({ "run", "script.lua" }, { dir = folder, env = env })
    assert.equal(0, status, err)
    return out, err
  end

  local function entries()
    local list, pipe <close> = {}, io.popen("ls " .. cache)
    for name in pipe:lines() do list[#list + 1] = name end
    return list
  end

  local function shell(line) assert(os.execute(("cd %s && %s"):format(cache, line))) end

  test("saves a second run all compilation", function()
    assert.equal(COMPILED, (run()))
    assert.matches("^%x+%.xla$", entries()[1])
    assert.equal(1, #entries())
    local out, err = run()
    assert.equal(LOADED, out)
    assert.equal("", err)
  end)

  test("has nothing where it is switched off", function()
    run()
    assert.equal(COMPILED, (run { LTRAIN_XLA_CACHE = "" }))
  end)

  test("ignores damaged entries and writes them anew", function()
    run()
    for _, damage in ipairs { "truncate -s -9 *.xla", "truncate -s 3 *.xla", "chmod 666 *.xla",
      [[printf 'x' | dd of="$(ls *.xla)" bs=1 seek=5000 conv=notrunc 2>/dev/null]] } do
      shell(damage)
      assert.equal(COMPILED, (run()))
      assert.equal(LOADED, (run()))
    end
  end)

  test("that cannot be written is noted once, and the run goes on", function()
    child.write(folder .. "/file", "")
    child.write(folder .. "/script.lua", SCRIPT .. "print((x - 1):sum():item())\n")
    local out, err = run { LTRAIN_XLA_CACHE = folder .. "/file/cache" }
    assert.equal(COMPILED .. "0.0\n", out)
    assert.equal("ltrain: warning: xla: programs are not kept for the next run: "
      .. folder .. "/file/cache: Not a directory\n", err)
  end)

  test("without space is noted, and keeps no part of an entry", function()
    local status, out, err = child.shell("trap '' XFSZ; ulimit -f 16; ltrain run script.lua",
      { dir = folder, env = { LTRAIN_XLA_CACHE = cache } })
    assert.equal(0, status)
    assert.equal(COMPILED, out)
    assert.matches("programs are not kept for the next run: .*File too large", err)
    assert.same({}, entries())
  end)

  test("drops the entries used longest ago beyond its size", function()
    os.execute("mkdir " .. cache)
    for k = 1, 3 do
      shell(("head -c 400000 /dev/zero >%016x.xla; touch -d '-%d days' %016x.xla"):format(k, k, k))
    end
    shell "touch -d '-2 hours' 0000000000000004.xla.77" -- of a process that was killed
    assert.equal(COMPILED, (run { LTRAIN_XLA_CACHE_MB = "1" }))
    assert.same({ "0000000000000001.xla" }, { entries()[1] })
    assert.equal(2, #entries())
    assert.equal(LOADED, (run { LTRAIN_XLA_CACHE_MB = "1" }))
  end)
end)
