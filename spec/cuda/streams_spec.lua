-- spec/cuda/streams_spec.lua: lt.cuda.Stream and Event, the current GPU, and ranges.
local both = require "spec.cuda.both"
local child = require "spec.cli.child"
local lt = require "ltrain"

local cuda <const> = lt.cuda

describe("the current GPU", function()
  both.it("is what 'cuda' alone means", function()
    assert.equal(0, cuda.current_device())
    cuda.set_device(1)
    assert.equal("cuda:1", lt.zeros(1, { device = "cuda" }).device)
    assert.equal("cuda:1", lt.zeros(1):cuda().device)
    assert.equal("cuda:1", lt.zeros(1):to("gpu").device)
    assert.equal("cuda:0", lt.zeros(1):to("cuda:0").device)
    assert.matches("^cuda:1 ", cuda.memory_summary())
    cuda.set_device "cuda:0"
    assert.equal("cuda:0", lt.zeros(1, { device = "cuda" }).device)
  end)

  both.it("is another one within a scope, also after an error", function()
    assert.equal("cuda:2", cuda.device(2, function() return lt.zeros(1):cuda().device end))
    assert.equal(0, cuda.current_device())
    do
      local _ <close> = cuda.device "cuda:1"
      assert.equal(1, cuda.current_device())
    end
    assert.is_false(pcall(cuda.device, 1, error))
    assert.equal(0, cuda.current_device())
    assert.error_matches(function() cuda.set_device(99) end, "device: no cuda:99")
  end)

  both.it("is the rank's in the hooks of a Trainer", function()
    local Net, there = lt.Module:extend "Net", nil
    function Net:init() self.w = lt.parameter(lt.ones(1)) end
    function Net:training_step(x)
      there = lt.ones(1, { device = "cuda" }).device
      return (x * self.w * lt.ones(1, { device = self.device })):sum()
    end
    function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    lt.Trainer { accelerator = "gpu", devices = { 1 }, max_epochs = 1, logger = false,
      enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
    }:fit(Net(), { lt.ones(1) })
    cuda.set_device(0)
    assert.equal("cuda:1", there)
  end)
end)

describe("lt.cuda.Stream", function()
  both.it("is where operations are issued in its scope; results are the same", function()
    local s, main = cuda.Stream(), cuda.current_stream()
    assert.equal("cuda:0", s.device)
    assert.is_false(s == main)
    local x = lt.arange(1000, { device = "cuda", dtype = "f32" })
    local y = cuda.stream(s, function()
      assert.equal(s, cuda.current_stream())
      return x * 2
    end)
    assert.equal(main, cuda.current_stream())
    do
      local _ <close> = cuda.stream(s)
      y = y + 1
    end
    assert.equal(main, cuda.current_stream())
    assert.equal(2 * 499500 + 1000, (y + 0):sum():item()) -- of the other stream, in order
    s:synchronize()
    assert.is_true(s:query())
  end)

  both.it("of another GPU leaves this one's alone", function()
    local s, main = cuda.Stream(1), cuda.current_stream(0)
    cuda.stream(s, function()
      assert.equal(main, cuda.current_stream(0))
      assert.equal(s, cuda.current_stream(1))
    end)
    assert.error_matches(function() cuda.stream(3) end, "cuda.stream: needs a Stream: got 3")
  end)

  both.it("waits for events and streams", function()
    local s, main = cuda.Stream(), cuda.current_stream()
    s:wait_stream(main)
    local e = main:record_event()
    s:wait_event(e)
    e:wait(s)
    main:wait_event(cuda.Event()) -- not recorded: nothing to wait for
    assert.error_matches(function() s:wait_event(s) end, "wait_event: needs a Event: got")
  end)
end)

describe("lt.cuda.Event", function()
  both.it("has come when the work before it has run", function()
    local e = cuda.Event()
    assert.is_true(e:query())
    local x = lt.ones(4, { device = "cuda" }) * 3
    e:record()
    e:synchronize()
    assert.is_true(e:query())
    assert.equal(3, x[1]:item())
  end)

  both.it("measures time if it is to", function()
    local a, b = cuda.Event { enable_timing = true }, cuda.Event { enable_timing = true }
    assert.error_matches(function() a:elapsed_time(b) end, "an event was not recorded")
    a:record()
    local x = lt.ones({ 64, 64 }, { device = "cuda" })
    for _ = 1, 3 do x = x:matmul(x) / 64 end
    b:record()
    b:synchronize()
    local took = a:elapsed_time(b)
    assert.is_true(took >= 0 and took < 60000, took)
    assert.equal(1, x[1][1]:item())
    assert.error_matches(function() a:elapsed_time(cuda.Event()) end,
      "elapsed_time: this event measures no time: write Event{enable_timing = true}")
    assert.error_matches(function() cuda.Event { timing = true } end,
      "cuda.Event: unknown option 'timing'")
  end)
end)

-- A tool as NVIDIA's profilers are to NVTX: it prints what it is told.
local SCRIPT <const> = [[
local lt = require "ltrain"
local nvtx = lt.cuda.nvtx
print(lt.cuda.is_available())
nvtx.range_push "outer"
nvtx.mark "here"
nvtx.hook_ranges(true)
local Net = lt.Module:extend "Net"
function Net:init() self.w = lt.parameter(lt.ones(1)) end
function Net:training_step(x) return (x * self.w):sum() end
function Net:on_train_epoch_end() error "no" end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
pcall(function()
  lt.Trainer { devices = 1, max_epochs = 1, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false }:fit(Net(), { lt.ones(1) })
end)
nvtx.hook_ranges(false)
print(nvtx.range_pop())
]]

describe("lt.cuda.nvtx", function()
  it("does nothing without a tool, and checks what it gets", function()
    local nvtx = cuda.nvtx
    assert.equal(0, nvtx.range_push "a")
    assert.equal(1, nvtx.range_push "b")
    nvtx.mark "c"
    assert.equal(1, nvtx.range_pop())
    assert.equal(0, nvtx.range_pop())
    assert.error_matches(function() nvtx.range_pop() end, "nvtx.range_pop: no range is open")
    assert.error_matches(function() nvtx.mark(nil) end, "nvtx.mark: the name must be a string")
    assert.error_matches(function() nvtx.hook_ranges() end, "needs true or false")
  end)

  both.it("tells a tool of ranges, one a hook, also when a hook fails", function()
    local backends = os.getenv "LTRAIN_BACKENDS"
    local tool = backends and backends:gsub("/backends$", "") .. "/nvtx_tool.so"
    local file <close> = tool and io.open(tool)
    if not file then return pending "no tool of NVTX here" end
    local folder = child.folder()
    child.write(folder .. "/script.lua", SCRIPT)
    local status, out, err = child.run({ "script.lua" }, { dir = folder,
      env = { NVTX_INJECTION64_PATH = tool, LTRAIN_BACKENDS = backends } })
    child.remove(folder)
    assert.equal(0, status, err)
    assert.matches("^true\npush outer\nmark here\npush .*push training_step\npop\n", out)
    assert.matches("push on_train_epoch_end\npop\n.*pop\n0\n$", out)
    local _, pushes = out:gsub("push", "")
    local _, pops = out:gsub("pop", "")
    assert.equal(pushes, pops)
  end)
end)
