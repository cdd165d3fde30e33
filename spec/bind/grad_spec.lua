-- spec/bind/grad_spec.lua: backward, hooks, and what happens when they fail or yield.
local lt = require "ltrain"
local raises = require "spec.bind.raises"

local function leaf(values) return lt.tensor(values, {requires_grad = true}) end

describe("backward", function()
  it("adds to the gradients of leaves", function()
    local x = leaf {2., 3.};
    (x * x):sum():backward()
    assert.same({4, 6}, x.grad:tolist());
    (x * x):sum():backward()
    assert.same({8, 12}, x.grad:tolist())
  end)

  it("takes a gradient to start with", function()
    local x = leaf {2., 3.};
    (x * x):backward(lt.tensor {1., 10.})
    assert.same({4, 60}, x.grad:tolist())
    local z = leaf {2., 3.};
    (z * z):backward({gradient = lt.tensor {1., 10.}})
    assert.same({4, 60}, z.grad:tolist())
  end)

  it("can be repeated when the graph is retained", function()
    local x = leaf {2.}
    local y = (x * x):sum()
    y:backward({retain_graph = true})
    y:backward()
    assert.same({8}, x.grad:tolist())
    assert.is_false(pcall(y.backward, y))
  end)

  it("takes options after the gradient", function()
    local x = leaf {2., 3.}
    local y = x * x
    local seed = lt.tensor {1., 10.}
    y:backward(seed, {retain_graph = true})
    y:backward(nil, {gradient = seed})
    assert.same({8, 120}, x.grad:tolist())
    raises("backward: unknown option 'retain' (there are gradient, retain_graph, create_graph)",
      function() (x * 2):backward(seed, {retain = true}) end)
    raises("backward: argument 'gradient' is given twice",
      function() (x * 2):backward(seed, {gradient = seed}) end)
    raises("backward: argument 'retain_graph' must be true or false, got 1",
      function() (x * 2):backward(seed, {retain_graph = 1}) end)
    raises("backward: argument 'retain_graph' must be true or false, got table",
      function() (x * 2):backward(seed, {}, {}) end)
    raises("backward: one argument too many: 1",
      function() (x * 2):backward(seed, true, false, 1) end)
  end)

  it("checks its options", function()
    local x = leaf {2.}
    raises("backward: unknown option 'retain' (there are gradient, retain_graph, create_graph)",
      function() x:sum():backward({retain = true}) end)
    raises("backward: argument 'gradient' must be a tensor, got true", function()
      x:sum():backward(true)
    end)
  end)
end)

describe("a hook", function()
  it("of a leaf sees its gradient and may replace it", function()
    local x, seen = leaf {2.}, nil
    x:register_hook(function(g)
      seen = g:item()
      return g * 10
    end);
    (x * 3):sum():backward()
    assert.equal(3, seen)
    assert.same({30}, x.grad:tolist())
  end)

  it("of an inner tensor works after that was forgotten", function()
    local x, seen = leaf {2.}, nil
    local y
    do
      local h = x * 3
      h:register_hook(function(g) seen = g:item() end)
      y = (h * 5):sum()
    end
    collectgarbage()
    y:backward()
    assert.equal(5, seen)
    assert.same({15}, x.grad:tolist())
  end)

  it("can be removed", function()
    local x, count = leaf {2.}, 0
    local remove = x:register_hook(function() count = count + 1 end);
    (x * 3):sum():backward()
    remove();
    (x * 3):sum():backward()
    remove()
    assert.equal(1, count)
  end)

  it("of a forgotten leaf still runs", function()
    local count = 0
    local y
    do
      local x = leaf {2.}
      x:register_hook(function() count = count + 1 end)
      y = (x * 3):sum()
    end
    collectgarbage()
    collectgarbage()
    y:backward()
    assert.equal(1, count)
  end)

  it("that names its own tensor does not keep it for ever", function()
    local alive = setmetatable({}, {__mode = "v"})
    do
      local x = leaf {2.}
      local h = x * 3
      x:register_hook(function() return x and nil end)
      h:register_hook(function() return h and nil end)
      alive.x, alive.h = x, h
      h:sum():backward()
    end
    for _ = 1, 4 do collectgarbage() end
    leaf {1.}:register_hook(function() end)
    for _ = 1, 4 do collectgarbage() end
    assert.is_nil(alive.x)
    assert.is_nil(alive.h)
  end)

  it("must return a tensor or nothing", function()
    local x = leaf {2.}
    x:register_hook(function() return 3 end)
    local ok, message = pcall(function() (x * 3):sum():backward() end)
    assert.is_false(ok)
    assert.matches("hook: must return a tensor or nothing, returned 3", message)
  end)

  it("that raises ends backward with the very same value", function()
    local x, oops = leaf {2.}, {}
    x:register_hook(function() error(oops) end)
    local ok, value = pcall(function() (x * 3):sum():backward() end)
    assert.is_false(ok)
    assert.equal(oops, value)
    local y = x:detach() + 1
    assert.same({3}, y:tolist())
  end)

  it("may use tensors and even walk back itself", function()
    local x = leaf {2.}
    x:register_hook(function(g)
      local z = leaf {3.}
      lt.enable_grad(function() (z * z):sum():backward() end)
      return g + z.grad
    end);
    (x * 3):sum():backward()
    assert.same({9}, x.grad:tolist())
  end)

  it("cannot yield", function()
    local x = leaf {2.}
    x:register_hook(function() coroutine.yield() end)
    local co = coroutine.create(function() (x * 3):sum():backward() end)
    local ok, message = coroutine.resume(co)
    assert.is_false(ok)
    assert.matches("hook: a function called from here must not yield", message)
  end)

  it("is only for tensors that require grad, and functions", function()
    raises("register_hook: this tensor does not require grad", function()
      lt.ones(1):register_hook(print)
    end)
    raises("register_hook: needs a function, got nothing", function()
      leaf {1.}:register_hook()
    end)
  end)
end)
