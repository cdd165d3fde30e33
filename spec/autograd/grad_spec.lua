-- spec/autograd/grad_spec.lua: lt.grad: gradients by what is named, and nothing else touched.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local function leaf(values) return lt.tensor(values, {dtype = "f64", requires_grad = true}) end

describe("lt.grad", function()
  it("gives what has the shape of xs and leaves .grad alone", function()
    local x, w = leaf{1.0, 2.0}, leaf{3.0, 5.0}
    assert.same({3.0, 5.0}, lt.grad((x * w):sum(), x):tolist())
    local list = lt.grad((x * w):sum(), {x, w})
    assert.same({{3.0, 5.0}, {1.0, 2.0}}, {list[1]:tolist(), list[2]:tolist()})
    local named = lt.grad((x * w):sum(), {weight = w, x = x})
    assert.same({1.0, 2.0}, named.weight:tolist())
    assert.same({3.0, 5.0}, named.x:tolist())
    assert.is_nil(x.grad)
    assert.is_nil(w.grad)
  end)

  it("goes by the parameters of a module", function()
    local net = lt.nn.Linear(2, 1)
    local grads = lt.grad(net(lt.tensor{{3.0, 5.0}}):sum(), net:parameters())
    assert.same({{{3.0, 5.0}}, {1.0}}, {grads[1]:tolist(), grads[2]:tolist()})
    assert.is_nil(grads.names)
  end)

  it("goes by inner tensors, and by what they come from too", function()
    local x = leaf{2.0}
    local y = x * x
    local z = (y * y * x):sum() -- x^5
    local g = lt.grad(z, {x, y}, {retain_graph = true})
    assert.same({80.0}, g[1]:tolist())
    assert.same({16.0}, g[2]:tolist())
    assert.same({1.0}, lt.grad(z, z):flatten():tolist())
  end)

  it("adds up over several results, each with its gradient", function()
    local x = leaf{1.0, 2.0}
    local seed = lt.tensor({10.0, 100.0}, {dtype = "f64"})
    local g = lt.grad({x * 2, (x * 3):sum()}, x, {grad_outputs = {seed}})
    assert.same({23.0, 203.0}, g:tolist())
  end)

  it("works out nothing beside the way to xs", function()
    local x, w = leaf{1.0}, leaf{2.0}
    local seen = 0
    local aside = w * 3
    aside:register_hook(function() seen = seen + 1 end)
    lt.grad((x * aside):sum(), x)
    assert.equal(0, seen)
  end)

  it("refuses what does not take part, unless that is allowed", function()
    local x, w = leaf{1.0}, leaf{2.0}
    local message = error_of(function() return (lt.grad((x * 2):sum(), {x, w})) end)
    assert.matches("grad_spec.lua:%d+: grad: y does not depend on xs, tensor 2 of shape %[1%]; "
      .. "pass {allow_unused = true}", message)
    local g = lt.grad((x * 2):sum(), {x, w}, {allow_unused = true})
    assert.same({2.0}, g[1]:tolist())
    assert.is_nil(g[2])
  end)

  it("names wrong arguments", function()
    local x = leaf{1.0}
    local y = (x * 2):sum()
    assert.matches("grad: y must be a tensor or a table of them", error_of(lt.grad, 1, x))
    assert.matches("grad: xs%[1%] must be a tensor, got 'x'", error_of(lt.grad, y, {"x"}))
    assert.matches("grad: xs%.w does not require grad",
      error_of(lt.grad, y, {w = lt.zeros(1)}))
    assert.matches("grad: unknown option 'creat_graph'; did you mean 'create_graph'",
      error_of(lt.grad, y, x, {creat_graph = true}))
    assert.matches("grad: retain_graph must be true or false, got 1",
      error_of(lt.grad, y, x, {retain_graph = 1}))
    assert.matches("has no history", error_of(lt.grad, lt.zeros(1), x))
  end)

  it("may be called in a hook of a backward", function()
    local x = leaf{3.0}
    local y = x * x
    local z, inner = (y * y + y):sum(), nil
    y:register_hook(function()
      local _ <close> = lt.enable_grad()
      inner = lt.grad((x * x * x):sum(), x):item()
    end)
    z:backward()
    assert.equal(27.0, inner)
    assert.same({114.0}, x.grad:tolist())
  end)

  it("runs the hooks of what it goes by", function()
    local x = leaf{1.0}
    x:register_hook(function(g) return g * 10 end)
    assert.same({20.0}, lt.grad((x * 2):sum(), x):tolist())
  end)
end)

describe("x:retain_grad", function()
  it("keeps the gradient of a tensor that is not a leaf", function()
    local x = leaf{1.0, 2.0}
    local y = x * 2
    y:retain_grad()
    x:retain_grad()
    y:square():sum():backward{retain_graph = true}
    assert.same({4.0, 8.0}, y.grad:tolist())
    y:sum():backward()
    assert.same({5.0, 9.0}, y.grad:tolist())
    assert.same({10.0, 18.0}, x.grad:tolist())
  end)

  it("does not keep the tensor itself", function()
    local weak = setmetatable({}, {__mode = "v"})
    do
      local y = leaf{1.0} * 2
      y:retain_grad()
      weak[1] = y
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak[1])
  end)

  it("needs one that requires grad", function()
    assert.matches("retain_grad: needs a tensor that requires grad: got a tensor",
      error_of(lt.retain_grad, lt.ones(1)))
  end)
end)
