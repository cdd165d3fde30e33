-- spec/cuda/copies_spec.lua: copies between host and GPU: what they wait for, as the fake runtime
-- counts it, and that nothing is read or written too early.
-- tags: threads
local child = require "spec.cli.child"
local counts = require "spec.cuda.counts"
local both = require "spec.cuda.both"
local lt = require "ltrain"

local function case(name, fn)
  if counts then return both.it(name, fn) end
  pending(name .. " (only the fake runtime counts)")
end

-- What fn() made the host wait, and copy.
local function cost(fn)
  counts()
  local result = fn()
  local c = counts()
  return c.waits, c.copies, result
end

local BESIDE <const> = { non_blocking = true }

describe("a copy", function()
  case("of pageable memory to the GPU waits for nothing", function()
    local x = lt.randn(40, 25)
    local busy = lt.ones({ 64, 64 }, { device = "cuda" })
    local waits, copies, y = cost(function()
      busy:matmul(busy)
      local y = x:to "cuda"
      x:fill_(7) -- it has been staged
      return y
    end)
    assert.equal(0, waits)
    assert.equal(1, copies)
    assert.is_true(y:to("cpu"):ne(7):all():item())
  end)

  case("to pageable memory waits once", function()
    local x = lt.arange(1000)
    local y = x:to "cuda"
    local waits, copies, back = cost(function() return y:to "cpu" end)
    assert.equal(1, waits)
    assert.equal(1, copies)
    both.same(back, x, "back")
  end)

  case("of more than a buffer goes in pieces", function()
    local x = lt.arange((3 << 20) + 5)
    local y = x:to "cuda"
    both.same(y, x, "pieces")
  end)

  case("of pinned memory waits only where it blocks, and not for what the GPU computes", function()
    local x = lt.randn(100):pin_memory()
    assert.is_true(x:is_pinned())
    local waits, copies, y = cost(function() return x:to("cuda", BESIDE) end)
    assert.equal(0, waits)
    assert.equal(1, copies)
    assert.equal(1, (cost(function() return x:to "cuda" end)))
    both.same(y, x, "pinned")
  end)

  case("keeps pinned memory of a tensor that is gone until it has run", function()
    local want, there = {}, {}
    for k = 1, 20 do
      local x = lt.full({ 600 }, k):pin_memory()
      there[k], want[k] = x:to("cuda", BESIDE), x:sum():item()
      x = nil -- luacheck: ignore
      collectgarbage()
    end
    for k = 1, 20 do assert.equal(want[k], there[k]:sum():item()) end
  end)

  case("beside the computation goes into memory that the computation is done with", function()
    local sum = lt.zeros({ 2000 }, { device = "cuda" })
    for k = 1, 12 do
      local x = lt.full({ 2000 }, k):to("cuda", BESIDE)
      sum = sum + x * 2
      x = nil -- luacheck: ignore
      collectgarbage()
    end
    assert.equal(156, sum:max():item())
    assert.equal(156, sum:min():item())
  end)
end)

-- What `dp` computes on two GPUs, and whether a copy went straight from one to the other.
local DP <const> = [[
local lt = require "ltrain"
local counts = package.loadlib((os.getenv("LTRAIN_BACKENDS"):gsub("/backends$", "/counts.so")),
  "luaopen_counts")()
lt.seed(1)
local Net = lt.Module:extend "Net"
function Net:init() self.w = lt.parameter(lt.ones(3)) end
function Net:training_step(batch) return (self.w * batch[1]):square():sum() end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end
local net = Net()
lt.Trainer {strategy = "dp", accelerator = "gpu", devices = 2, max_steps = 2, logger = false,
  enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
}:fit(net, lt.data.DataLoader(lt.data.TensorDataset(lt.randn(8, 3)), {batch_size = 4}))
print(("%a"):format(net.w:sum():item()), counts().direct > 0)
]]

describe("a copy between two GPUs of a process", function()
  case("goes straight from one to the other", function()
    local x = lt.arange(1000)
    local y = x:to "cuda:0"
    counts()
    local z = y:to "cuda:1":to "cuda:0"
    local c = counts()
    assert.same({ 2, 2 }, { c.copies, c.direct })
    both.same(z, x, "there and back")
  end)

  case("is so under dp, and goes through the host's memory where the driver cannot", function()
    local function run(peers)
      local folder = child.folder()
      child.write(folder .. "/script.lua", DP)
      local status, out, err = child.run({ "script.lua" },
        { dir = folder, env = { FAKERT_PEERS = peers } })
      child.remove(folder)
      assert.equal(0, status, err)
      return out:match "^(%S+)%s+(%S+)"
    end
    local wanted, direct = run "1"
    assert.equal("true", direct)
    assert.same({ wanted, "false" }, { run "0" })
  end)
end)

describe("a transposed copy", function()
  local DTYPES <const> = { "u8", "bool", "bf16", "f16", "f32", "i32", "f64", "i64" }

  both.it("has each element in its place, of any item size", function()
    local x = lt.randint(0, 200, { 3, 67, 5, 45 })
    for _, dtype in ipairs(DTYPES) do
      local host = x:to(dtype)
      local device = host:to "cuda"
      for _, order in ipairs { { 1, 4, 3, 2 }, { 4, 3, 2, 1 }, { 2, 4, 1, 3 }, { 4, 1, 2, 3 } } do
        both.same(device:permute(order):contiguous(), host:permute(order):contiguous(),
          dtype .. " " .. table.concat(order, ", "))
      end
    end
  end)

  both.it("writes and reads parts of larger tensors, and rows that are one", function()
    local x, y = lt.randn(40, 70), lt.randn(60, 50)
    local function part(t, u)
      u:narrow(1, 3, 33):narrow(2, 2, 32):copy_(t:narrow(1, 5, 32):narrow(2, 9, 33):transpose(1, 2))
      return u
    end
    both.same(part(x:to "cuda", y:to "cuda"), part(x, y:clone()), "parts")
    local row = lt.randn(1, 48):to "cuda"
    both.same(row:expand(40, 48):transpose(1, 2):contiguous(),
      row:to("cpu"):expand(40, 48):transpose(1, 2):contiguous(), "a row for all")
  end)
end)
