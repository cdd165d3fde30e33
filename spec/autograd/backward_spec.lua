-- spec/autograd/backward_spec.lua: the walk: accumulation, modes, hooks, long chains, freed values.
-- tags: slow
local lt = require "ltrain"

local memory <const> = require "ltrain.c".runtime.memory

local function leaf(values) return lt.tensor(values, {dtype = "f64", requires_grad = true}) end

describe("backward", function()
  it("adds up where a value is used twice", function()
    local x = leaf{2.0, 3.0}
    ;(x * x + x):sum():backward()
    assert.same({5.0, 7.0}, x.grad:tolist())
  end)

  it("accumulates over calls until the gradient is set to nil", function()
    local x = leaf{1.0}
    for _ = 1, 3 do (x * 2):sum():backward() end
    assert.same({6.0}, x.grad:tolist())
    x.grad = nil
    assert.is_nil(x.grad)
    ;(x * 2):sum():backward()
    assert.same({2.0}, x.grad:tolist())
  end)

  it("needs one element or a gradient of the same shape", function()
    local x = leaf{1.0, 2.0}
    local y = x * 3
    local ok, message = pcall(y.backward, y)
    assert.is_false(ok)
    assert.matches("backward: needs a tensor of one element, got %[2%]", message)
    y:backward(lt.tensor({1.0, 10.0}, {dtype = "f64"}))
    assert.same({3.0, 30.0}, x.grad:tolist())
  end)

  it("runs twice only with retain_graph", function()
    local x = leaf{2.0}
    local y = (x * x):sum()
    y:backward({retain_graph = true})
    y:backward()
    assert.same({8.0}, x.grad:tolist())
    local ok, message = pcall(y.backward, y)
    assert.is_false(ok)
    assert.matches("freed by an earlier backward", message)
  end)

  it("says so when there is no history", function()
    local y = lt.no_grad(function() return leaf{1.0} * 2 end)
    assert.is_false(y.requires_grad)
    local ok, message = pcall(y.backward, y)
    assert.is_false(ok)
    assert.matches("has no history", message)
  end)

  it("gives leaves of another dtype their own dtype", function()
    local x = lt.tensor({1.0, 2.0}, {requires_grad = true}) -- f32
    ;(x:to("f64") * 0.5):sum():backward()
    assert.equal("f32", x.grad.dtype)
    assert.same({0.5, 0.5}, x.grad:tolist())
  end)

  it("walks and frees far more chained nodes than a stack holds", function()
    local x = lt.tensor({1.0}, {requires_grad = true})
    local y = x
    for _ = 1, 200000 do y = y + 1 end
    y:sum():backward()
    assert.same({1.0}, x.grad:tolist())
  end)

  it("lets a coroutine hold no_grad without switching it off for others", function()
    local x = leaf{1.0}
    local co = coroutine.wrap(function()
      local _ <close> = lt.no_grad()
      coroutine.yield()
    end)
    co()
    assert.is_true((x * 2).requires_grad)
    co()
  end)
end)

describe("register_hook", function()
  it("sees and may replace the gradient of a leaf and of an inner tensor", function()
    local x, seen = leaf{1.0, 2.0}, {}
    local y = x * 3
    x:register_hook(function(g) seen.leaf = g:tolist() end)
    y:register_hook(function(g) return g * 10 end)
    y:sum():backward()
    assert.same({30.0, 30.0}, seen.leaf)
    assert.same({30.0, 30.0}, x.grad:tolist())
  end)

  it("can be removed", function()
    local x = leaf{1.0}
    local remove = x:register_hook(function(g) return g * 100 end)
    remove()
    ;(x * 1.0):sum():backward()
    assert.same({1.0}, x.grad:tolist())
  end)

  it("keeps no gradient of a function without parameters until the next collection", function()
    local function left(hook)
      local x = lt.ones(1000)
      x.requires_grad = true
      local y = x * 2
      y:register_hook(hook)
      collectgarbage()
      collectgarbage "stop"
      local before = memory(x.device).live_bytes
      y:square():sum():backward()
      collectgarbage "restart"
      return memory(x.device).live_bytes - before
    end
    assert.is_true(left(function(_) end) >= left(function() end) + 4000)
  end)

  it("hands its error to the caller of backward", function()
    local x = leaf{1.0}
    x:register_hook(function() error({code = 42}) end)
    local ok, err = pcall(function() (x * 2):sum():backward() end)
    assert.is_false(ok)
    assert.same({code = 42}, err)
  end)
end)
