-- spec/bind/devices_spec.lua: asynchronous devices, seen from Lua: what waits for them, and when
-- their errors come.
local lt = require "ltrain"
local error_of = require "spec.error_of"
local tiny = require "spec.trainer.tiny"

local runtime <const> = require("ltrain.c").runtime

-- What `fn` does to the counts of the fake devices.
local function counted(fn)
  local before, grown = runtime.fake_counts(), {}
  fn()
  for name, n in pairs(runtime.fake_counts()) do grown[name] = n - before[name] end
  return grown
end

-- `x` on the fake device, with a gradient.
local function leaf(x) return lt.parameter(x:to "fake") end

describe("tensors of the CPU beside those of a device", function()
  it("are numbers if they have no dims, with a gradient", function()
    local w, s = leaf(lt.tensor { 1.0, 2.0, 3.0 }), lt.parameter(lt.tensor(2.0))
    local y = s * w + lt.tensor(1) - w / s
    assert.equal("fake:0", y.device)
    assert.same({ 2.5, 4, 5.5 }, y:tolist())
    y:sum():backward()
    assert.equal("cpu", s.grad.device)
    assert.equal(6 + 6 / 4, s.grad:item())
    assert.same({ 1.5, 1.5, 1.5 }, w.grad:tolist())
    assert.same({ true, false, false }, w:lt(lt.tensor(2.0)):tolist())
    assert.same({ 1, 7, 7 }, lt.where(w:lt(1.5), w, lt.tensor(7.0)):tolist())
    assert.same({ 3, 4, 5 }, w:detach():clone():add_(lt.tensor(2.0)):tolist())
  end)

  it("are where each is to go in the message if they have dims", function()
    local x = lt.ones(3, { device = "fake:1" })
    assert.matches("devices_spec.lua:%d+: add: tensors are on different devices: fake:1 and cpu; "
      .. "make the one on the cpu with {device = self.device}, or move it with :to 'fake:1'",
      error_of(function() return x + lt.ones(3) end))
    assert.matches("mul: tensors are on different devices: fake:0 and fake:1; move one of them "
      .. "with :to 'fake:0'", error_of(function() return lt.tensor(2, { device = "fake" }) * x end))
    assert.matches("add_: the result is on fake:1, the tensor to write is on cpu",
      (error_of(function() lt.tensor(1.0):add_(lt.tensor(1, { device = "fake:1" })) end)
        :gsub(": add:", ": add_:")))
    assert.matches("matmul: tensors are on different devices",
      error_of(function() return lt.ones({ 1, 3 }):matmul(x) end))
  end)

  it("may be what a tensor is indexed by", function()
    local x = leaf(lt.arange(6, { dtype = "f32" }):view(3, 2))
    local rows, mask = lt.tensor({ 2, 0 }, { dtype = "i64" }), lt.tensor { true, false, true }
    assert.same({ { 4, 5 }, { 0, 1 } }, x[rows]:tolist())
    assert.same({ { 0, 1 }, { 4, 5 } }, x[mask]:tolist())
    x[{ rows, 1 }]:sum():backward()
    assert.same({ { 1, 0 }, { 0, 0 }, { 1, 0 } }, x.grad:tolist())
    local y = x:detach():clone()
    y[rows] = lt.tensor { 8, 9 }
    y[2] = lt.tensor { 6, 7 }
    assert.same({ { 8, 9 }, { 6, 7 }, { 8, 9 } }, y:tolist())
    assert.equal("fake:0", y.device)
  end)
end)

describe("a device", function()
  it("is where tensors are made without one, once it is the default", function()
    local usual = runtime.default_device()
    runtime.default_device("fake:2")
    local made = { lt.tensor { 1 }, lt.ones(2), lt.randn(2), lt.arange(3), lt.zeros(2),
      lt.ones(1, { device = "cpu" }) }
    runtime.default_device(usual)
    for i = 1, 5 do assert.equal("fake:2", made[i].device) end
    assert.equal("cpu", made[6].device)
    assert.equal(usual, lt.ones(1).device)
  end)

  it("is not waited for but where a value is read", function()
    local x = lt.ones(4, { device = "fake" })
    local n = counted(function()
      for _ = 1, 10 do x = x * 2 + 1 end
      local there = x:to("fake:3")
      assert.equal("fake:3", there.device)
    end)
    assert.equal(20, n.launches)
    assert.equal(0, n.waits)
    assert.equal(1, counted(function() assert.equal(2047, x[1]:item()) end).waits)
  end)

  it("is waited for to make shapes of values, and by no other operation", function()
    local x, ids = lt.ones({ 4, 4 }, { device = "fake" }), lt.tensor({ 0, 3 },
      { device = "fake", dtype = "i64" })
    local mask = x:gt(0)
    local function waits(fn) return counted(fn).waits end
    assert.equal(1, waits(function() return x:nonzero() end))
    assert.equal(1, waits(function() return x[mask] end))
    assert.equal(1, waits(function() return lt.one_hot(ids) end))
    assert.equal(0, waits(function() return lt.one_hot(ids, 4), x[ids], lt.embedding(x, ids) end))
    assert.equal(0, waits(function() return lt.multinomial(x, 2), lt.bernoulli(x) end))
    assert.equal(0, waits(function() return ids:remainder(ids + 1), x:masked_fill(mask, 2) end))
    local p = lt.parameter(lt.ones(3, { device = "fake" }))
    assert.equal(0, waits(function()
      (p * p):sum():backward()
      lt.nn.clip_grad_norm_({ p }, 1)
      lt.optim.Adam({ p }, { lr = 0.1 }):step()
    end))
  end)

  it("is waited for as often in a long fit as in a short one", function()
    local function waits(steps)
      local net = tiny.Line()
      local options = { log_every_n_steps = 1000, accelerator = { device = function()
        return "fake:1"
      end }, nonfinite = "allow" }
      local n = counted(function() tiny.trainer(options):fit(net, tiny.same(steps)) end)
      assert.equal("fake:1", net.w.device)
      assert.is_true(n.launches > 5 * steps)
      return n.waits
    end
    assert.equal(waits(5), waits(25))
  end)

  it("reports a value that it refuses with the line that issued the operation", function()
    local logits, labels = lt.zeros({ 2, 3 }, { device = "fake" }), lt.tensor({ 1, 7 },
      { device = "fake", dtype = "i64" })
    local loss
    local function issue()
      loss = lt.cross_entropy(logits, labels)
    end
    local line = debug.getinfo(issue, "S").linedefined + 1
    issue()
    local text = error_of(function() return loss:item() end)
    assert.equal(("spec/bind/devices_spec.lua:%d: cross_entropy: targets are ids 0..2; got 7 with "
      .. "C = 3"):format(line), text)
  end)

  it("has its late errors reported before a file is written", function()
    local path, x = os.tmpname(), lt.ones(2, { device = "fake" })
    os.remove(path)
    lt.one_hot(lt.tensor({ 5 }, { device = "fake", dtype = "i64" }), 3)
    local text = error_of(function() lt.save(path, { x = x }) end)
    assert.matches("one_hot: id 5 is out of 0..2", text, 1, true)
    assert.is_nil(io.open(path))
  end)
end)
