-- spec/cuda/memory_spec.lua: where a GPU has no more memory, and who has it.
local both = require "spec.cuda.both"
local lt = require "ltrain"

describe("memory of a GPU", function()
  both.it("that is not there is an error with the largest tensors, by op and line", function()
    local runtime, keep = require("ltrain.c").runtime, {}
    local x = lt.ones({ 512, 1024 }, { device = "cuda" }) -- 2 MiB
    runtime.collect_fully()
    runtime.empty_cache()
    runtime.set_memory_limit(runtime.memory "cuda".live_bytes + runtime.memory().live_bytes
      + (9 << 20))
    local ok, message = pcall(function()
      for k = 1, 10 do keep[k] = x * k end
    end)
    runtime.set_memory_limit(0)
    assert.is_false(ok)
    assert.equal(3, #keep)
    assert.matches("memory_spec.lua:14: mul: out of memory on cuda:0: 2097152 bytes requested, ",
      message)
    assert.matches("\nthe largest tensors in use:\n +%d+%.0 MiB  %d of mul %[512, 1024%] f32 at "
      .. "spec/cuda/memory_spec.lua:14\n", message)
    assert.matches("\n +2%.0 MiB  1 of [%w_]+ %[512, 1024%] f32 at spec/cuda/memory_spec.lua:8\n",
      message)
    assert.matches("\nwhat helps: smaller batches, with accumulate_grad_batches for the same "
      .. "steps; precision = 'bf16-mixed'; nn.utils.checkpoint;", message, 1, true)
    assert.matches("MiB  %d of mul .* at spec/cuda/memory_spec.lua:14", lt.cuda.memory_summary())
    assert.equal(2, (lt.ones(1, { device = "cuda" }) * 2):item())
  end)
end)

-- Garbage of 16 MiB, whose finalizer multiplies: returns a table that keeps it, and one that gets
-- the product.
local function garbage_that_multiplies()
  local a, found = lt.ones({ 16, 16 }, { device = "cuda" }), {}
  local kept = { lt.ones({ 4 << 20 }, { device = "cuda" }) }
  return setmetatable(kept, { __gc = function() found.product = a:matmul(a) end }), found
end

-- Allows so many bytes beyond those that are in use.
local function allow(bytes)
  local runtime = require("ltrain.c").runtime
  runtime.collect_fully()
  runtime.empty_cache()
  runtime.set_memory_limit(runtime.memory "cuda".live_bytes + runtime.memory().live_bytes + bytes)
  return setmetatable({}, { __close = function() runtime.set_memory_limit(0) end })
end

describe("a finalizer that multiplies where memory runs out within a launch", function()
  both.it("leaves the product that was being issued as it was", function()
    local x = lt.arange(0, 1 << 20):float():view(512, 2048):to "cuda"
    local every = x[{ lt.all, { 1, -1, 2 } }]:transpose(1, 2) -- no stride of 1: it is copied, 2 MiB
    local w = lt.ones({ 512, 2 }, { device = "cuda", dtype = "f16" }) -- so is this, to f32
    local want = every:matmul(w)
    local kept, found = garbage_that_multiplies() -- luacheck: ignore
    local result
    do
      local _ <close> = allow(1 << 20)
      kept = nil -- luacheck: ignore
      result = every:matmul(w)
    end
    assert.equal(16 * 16 * 16, found.product:sum():item())
    both.same(result, want, "product")
  end)

  both.it("may use the library that waits for its workspace", function()
    local x, blocks = lt.ones({ 64, 64 }, { device = "cuda" }), {} -- luacheck: ignore
    local kept, found = garbage_that_multiplies() -- luacheck: ignore
    local result
    do
      local _ <close> = allow(0)
      repeat -- until there is no block of that size
        local ok, block = pcall(lt.empty, { 65792 // 4 }, { device = "cuda" })
        blocks[#blocks + 1] = ok and block or nil
      until not ok
      assert.is_nil(found.product)
      kept = nil -- luacheck: ignore
      result = x:matmul(x)
    end
    assert.equal(16 * 16 * 16, found.product:sum():item())
    assert.equal(64 * 64 * 64, result:sum():item())
  end)
end)

local Net <const> = lt.Module:extend "Net"
function Net:init() self.layer, self.seen = lt.nn.Linear(2, 1), {} end
function Net:training_step(batch)
  self.seen = { batch.x.device, batch.deep[1].y.device, batch.name, batch.deep[1].n }
  local loss = (self.layer(batch.x) - batch.deep[1].y):pow(2):mean()
  return loss
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.1 }) end

local function trainer(accelerator, devices)
  return lt.Trainer { accelerator = accelerator, devices = devices, max_epochs = 2, logger = false,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false }
end

local function data()
  local list = {}
  for k = 1, 3 do
    list[k] = { x = lt.ones(2, 2) * k, deep = { { y = lt.ones(2, 1), n = k } }, name = "row" .. k }
  end
  return list
end

describe("a Trainer on a GPU", function()
  both.it("moves tensors in tables of tables, and leaves the rest alone", function()
    local net = Net()
    trainer("gpu", { 1 }):fit(net, data())
    assert.same({ "cuda:1", "cuda:1", "row3", 3 }, net.seen)
    lt.cuda.set_device(0)
  end)

  for _, way in ipairs { { "gpu", { 0 }, "cpu", 1 }, { "cpu", 1, "gpu", { 0 } },
    { "gpu", { 0 }, "gpu", { 1 } } } do
    local from, to = way[1] == "cpu" and "cpu" or "cuda:0", way[3] == "cpu" and "cpu"
      or ("cuda:%d"):format(way[4][1])
    both.it(("resumes from a checkpoint of %s on %s"):format(from, to), function()
      local path = os.tmpname()
      local first, second = Net(), Net()
      local one = trainer(way[1], way[2])
      one:fit(first, data())
      assert.equal(from, first.device)
      one:save_checkpoint(path)
      local other = trainer(way[3], way[4])
      other:fit(second, data(), { ckpt_path = path }) -- at its end: what was saved
      os.remove(path)
      lt.cuda.set_device(0)
      assert.equal(to, second.device)
      assert.equal(one.global_step, other.global_step)
      both.same(second.layer.weight, first.layer.weight, "weight")
    end)
  end
end)
