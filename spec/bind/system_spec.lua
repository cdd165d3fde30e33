-- spec/bind/system_spec.lua: clocks, threads, cancelling, the process.
local lt = require "ltrain"
local raises = require "spec.bind.raises"

local runtime = require("ltrain.c").runtime

describe("clocks", function()
  it("run forward, in seconds", function()
    local a, t = runtime.clock(), runtime.time()
    assert.near(os.time(), t, 2)
    local x = 0
    for i = 1, 100000 do x = x + i end
    local passed = runtime.clock() - a
    assert.is_true(passed > 0 and passed < 5)
  end)
end)

describe("the process", function()
  it("describes itself", function()
    assert.equal(os.getenv("PATH"), runtime.getenv("PATH"))
    assert.is_nil(runtime.getenv("LTRAIN_NO_SUCH_VARIABLE"))
    assert.is_true(runtime.pid() > 0)
    assert.is_true(runtime.cpu_count() >= 1)
    assert.is_true(#runtime.hostname() > 0)
    assert.is_boolean(runtime.isatty("stderr"))
  end)

  it("has threads for operations", function()
    local n = runtime.get_threads()
    runtime.set_threads(3)
    assert.equal(3, runtime.get_threads())
    runtime.set_threads(n)
    raises("set_threads: must be 1 to 1024, got 0", function() runtime.set_threads(0) end)
  end)
end)

describe("cancelling", function()
  it("ends the next call, until it is taken back", function()
    runtime.cancel()
    assert.is_true(runtime.cancelled())
    local ok, message = pcall(function() return lt.ones(2) + 1 end)
    runtime.cancel(false)
    assert.is_false(ok)
    assert.matches("system_spec.lua:%d+: .*: cancelled", message)
    assert.same({2, 2}, (lt.ones(2) + 1):tolist())
  end)
end)

describe("memory", function()
  it("is reported in bytes", function()
    local x = lt.ones(1 << 18)
    local m = runtime.memory()
    assert.is_true(m.live_bytes >= 1 << 20)
    assert.is_true(m.peak_bytes >= m.live_bytes)
    assert.is_true(m.lua_bytes > 0)
    assert.is_true(m.struct_bytes > 0)
    assert.equal(1 << 18, x:numel())
  end)
end)
