-- spec/bind/collector_spec.lua: memory stays at what one step needs.
-- tags: slow
local lt = require "ltrain"

local runtime = require("ltrain.c").runtime
local ELEMENTS <const> = 1024 -- 4 KiB a tensor

-- One step of n tensors that the tape keeps until backward, and what a loop holds: a weight.
local function step(w, n)
  local x = w
  for _ = 1, n // 2 do x = x * w end
  x:sum():backward()
  w.grad = nil
end

local function peak_of(fn)
  runtime.collect_fully()
  runtime.collect_fully()
  runtime.reset_peak_memory()
  local before = runtime.memory().live_bytes
  fn()
  return runtime.memory().peak_bytes - before
end

local function weight() return lt.ones(ELEMENTS, {requires_grad = true}) end

describe("peak memory of many steps", function()
  for _, n in ipairs { 100, 1000, 5000 } do
    local steps = math.max(5, 20000 // n)

    it(("is that of one in a loop of ours: %d objects a step"):format(n), function()
      local w = weight()
      local one = peak_of(function() step(w, n) end)
      assert.is_true(one > n // 2 * ELEMENTS * 4)
      local many = peak_of(function()
        runtime.collect_begin()
        runtime.collect_by_batch()
        for _ = 1, steps do
          step(w, n)
          runtime.collect_boundary()
        end
        runtime.collect_end()
      end)
      assert.is_true(many <= 1.2 * one, ("%d bytes for one, %d for many"):format(one, many))
    end)

    it(("is that of one in a script's own loop: %d objects a step"):format(n), function()
      local w = weight()
      local one = peak_of(function() step(w, n) end)
      local many = peak_of(function()
        for _ = 1, steps do
          step(w, n)
          runtime.batch_done()
        end
      end)
      assert.is_true(many <= 1.2 * one, ("%d bytes for one, %d for many"):format(one, many))
    end)
  end

  it("does not grow over 2000 small steps", function()
    local w = weight()
    local one = peak_of(function() step(w, 20) end)
    local many = peak_of(function()
      for _ = 1, 2000 do
        step(w, 20)
        runtime.batch_done()
      end
    end)
    assert.is_true(many <= 1.2 * one, ("%d bytes for one, %d for many"):format(one, many))
  end)
end)

describe("a script without steps", function()
  it("keeps within 128 MiB while it makes a gigabyte of temporaries", function()
    local x = lt.ones(1024, 1024)
    local peak = peak_of(function()
      for _ = 1, 256 do x = x * 1 end
    end)
    assert.is_true(peak < 128 << 20, ("%d MiB"):format(peak >> 20))
  end)

  it("lets go of the batches that it has read #slow", function()
    local rows = lt.data.TensorDataset(lt.ones(1, 1024):expand(65536, 1024))
    local seen, most = setmetatable({}, {__mode = "k"}), 0
    for batch in lt.data.DataLoader(rows, {batch_size = 1024}):batches() do -- 4 MiB each
      seen[batch] = true
      local alive = 0
      for _ in pairs(seen) do alive = alive + 1 end
      most = math.max(most, alive)
    end
    assert.is_true(most <= 40, most .. " of 64 batches")
  end)
end)

-- Lua's heap and structs at most, while fn(i) runs `count` times.
local function held_at_most(count, fn)
  runtime.collect_fully()
  runtime.collect_fully()
  local before, most = nil, 0
  for i = 0, count do
    fn(i)
    local m = runtime.memory()
    most = math.max(most, m.lua_bytes + m.struct_bytes)
    before = before or most
  end
  return most, before
end

-- What two batches hold grows old: only a full collection frees it.
describe("what grows old", function()
  it("is freed in a script's own loop: Lua's heap", function()
    local w, last, one_before = weight(), nil, nil -- luacheck: ignore one_before
    local most, before = held_at_most(500, function(i)
      one_before, last = last, {("x"):rep(100000 + i), {}, {}}
      step(w, 4)
      runtime.batch_done()
    end)
    assert.is_true(most <= 2 * before + (5 << 20), ("%d, then %d bytes"):format(before, most))
  end)

  it("is freed in a script's own loop: orders of a loader", function()
    local rows = lt.data.TensorDataset(lt.ones(20000, 1))
    local loader = lt.data.DataLoader(rows, {batch_size = 5000, shuffle = true})
    local w = weight()
    local most, before = held_at_most(100, function() -- 16 MB
      for _ in loader:batches() do
        step(w, 4)
        runtime.batch_done()
      end
    end)
    assert.is_true(most <= 2 * before + (5 << 20), ("%d, then %d bytes"):format(before, most))
  end)

  it("is freed in a script without steps: 64 MiB of orders at most", function()
    local rows = lt.data.TensorDataset(lt.ones(1000000, 1))
    local loader = lt.data.DataLoader(rows, {batch_size = 10, shuffle = true})
    local most, before = held_at_most(10, function() -- 88 MB
      for _ in loader:batches() do break end -- luacheck: ignore 512
    end)
    assert.is_true(most <= before + (73 << 20), ("%d, then %d bytes"):format(before, most))
  end)
end)

describe("a run that is being set up", function()
  it("leaves the collector to Lua until its batches begin", function()
    local function garbage()
      collectgarbage()
      local most = 0
      for i = 1, 2000 do
        local _ = ("x"):rep(4000 + i)
        most = math.max(most, collectgarbage "count")
      end
      return most
    end
    runtime.collect_begin()
    local free = garbage()
    runtime.collect_by_batch()
    local stopped = garbage()
    runtime.collect_end()
    assert.is_true(free < 5000, free)
    assert.is_true(stopped > 8000, stopped)
  end)
end)

describe("when the device is out of memory", function()
  it("garbage is collected and the call succeeds", function()
    local x = lt.ones(1024, 1024)
    runtime.collect_fully()
    runtime.empty_cache()
    runtime.set_memory_limit(runtime.memory().live_bytes + (24 << 20))
    local ok, message = pcall(function()
      runtime.collect_begin()
      runtime.collect_by_batch() -- no collection of its own
      for _ = 1, 40 do x = x * 1 end
      runtime.collect_end()
    end)
    runtime.set_memory_limit(0)
    assert.is_true(ok, message)
  end)

  it("and nothing can be collected, the error names the op and the bytes", function()
    local keep = {}
    runtime.collect_fully()
    runtime.empty_cache()
    local column, row = lt.ones(1024, 1), lt.ones(1, 1024)
    runtime.set_memory_limit(runtime.memory().live_bytes + (16 << 20))
    local ok, message = pcall(function()
      for i = 1, 10 do keep[i] = lt.matmul(column, row) end
    end)
    runtime.set_memory_limit(0)
    assert.is_false(ok)
    assert.is_true(#keep < 10)
    assert.matches("collector_spec.lua:%d+: matmul: out of memory on cpu: 4194304 bytes requested, "
      .. "%d+ bytes in use, %d+ bytes cached", message)
    assert.matches("\nthe largest tensors in use:\n +[%d.]+ MiB  %d of matmul %[1024, 1024%] f32 "
      .. "at spec/bind/collector_spec.lua:%d+\n", message)
    assert.matches("\nwhat helps: smaller batches", message)
    assert.same({2, 2}, (lt.ones(2) * 2):tolist())
  end)
end)

describe("collectgarbage 'incremental'", function()
  it("holds outside of runs, whose loops need the other mode", function()
    local inside = {}
    collectgarbage "incremental"
    runtime.collect_begin()
    runtime.collect_by_batch()
    for k = 1, 2 do
      inside[k] = collectgarbage "incremental"
      runtime.collect_boundary()
    end
    runtime.collect_end()
    assert.same({ "generational", "generational" }, inside)
    assert.equal("incremental", (collectgarbage "generational"))
  end)
end)
