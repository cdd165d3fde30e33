-- spec/bind/tensor_spec.lua: tensors as Lua values: properties, identity, operators, life.
local lt = require "ltrain"
local raises = require "spec.bind.raises"

describe("a tensor's properties", function()
  it("report shape, dtype, device and dims", function()
    local x = lt.zeros(2, 3)
    assert.same({2, 3}, x.shape)
    assert.equal("f32", x.dtype)
    assert.equal("cpu", x.device)
    assert.equal(2, x.ndim)
    assert.equal(2, #x)
    assert.equal(6, x:numel())
    assert.equal(3, x:size(2))
    assert.equal(3, x:size(-1))
    assert.same({3, 1}, x:stride())
  end)

  it("report gradients", function()
    local x = lt.ones(2)
    assert.is_false(x.requires_grad)
    assert.is_true(x.is_leaf)
    x.requires_grad = true
    assert.is_true(x.requires_grad)
    local y = x * 2
    assert.is_true(y.requires_grad)
    assert.is_false(y.is_leaf)
    assert.is_nil(x.grad)
  end)

  it("take a gradient of the same shape, or nil", function()
    local x = lt.ones(2)
    x.grad = lt.tensor { 5., 6. }
    assert.same({5, 6}, x.grad:tolist())
    x.grad = nil
    assert.is_nil(x.grad)
    raises("grad: must have the tensor's shape [2], got [3]", function()
      x.grad = lt.ones(3)
    end)
  end)

  it("cannot all be set", function()
    local x = lt.ones(2)
    raises("shape: this property of a tensor cannot be set", function() x.shape = {1} end)
    raises("tensor: no field or method 'requires_grads'; did you mean 'requires_grad'?", function()
      x.requires_grads = true
    end)
  end)

  it("refuse gradients of integers", function()
    local x = lt.tensor { 1, 2 }
    raises("requires_grad: only floating tensors have gradients, this is i64", function()
      x.requires_grad = true
    end)
  end)
end)

describe("a tensor's identity", function()
  it("is that of its one userdata for parameters and gradients", function()
    local w = lt.parameter(lt.ones(2))
    w:sum():backward()
    local seen = {[w.grad] = true}
    assert.is_true(seen[w.grad])
    assert.is_true(w.grad == w.grad)
  end)

  it("is not equality of elements", function()
    assert.is_false(lt.ones(2) == lt.ones(2))
    local x = lt.ones(2)
    assert.is_false(x == x:detach())
  end)

  it("survives calls that have nothing to do", function()
    local x = lt.ones(2)
    assert.is_true(rawequal(x, x:to("f32")))
    assert.is_true(rawequal(x, x:contiguous()))
    assert.is_true(rawequal(x, x:add_(1)))
  end)
end)

describe("a mark", function()
  it("makes a parameter that requires grad, and is not carried by ops", function()
    local w = lt.parameter(lt.ones(2))
    assert.is_true(lt.is_parameter(w))
    assert.is_true(w.requires_grad)
    assert.is_false(lt.is_parameter(w * 1))
    assert.is_false(lt.is_parameter(w:detach()))
    assert.is_false(lt.is_parameter(3))
  end)

  it("makes a frozen parameter, and one of integers", function()
    assert.is_false(lt.parameter(lt.ones(2), {requires_grad = false}).requires_grad)
    local ids = lt.parameter(lt.tensor {1, 2}, {requires_grad = false})
    assert.is_true(lt.is_parameter(ids))
    assert.is_false(ids.requires_grad)
  end)

  it("detaches a tensor with history", function()
    local x = lt.ones(2, {requires_grad = true})
    local w = lt.parameter(x * 2)
    assert.is_true(w.is_leaf)
    assert.same({2, 2}, w:tolist())
  end)
end)

describe("operators", function()
  local a, b = lt.tensor {7., -7.}, lt.tensor {2., 2.}

  it("work elementwise with tensors and numbers", function()
    assert.same({9, -5}, (a + b):tolist())
    assert.same({6, -8}, (a - 1):tolist())
    assert.same({-6, 8}, (1 - a):tolist())
    assert.same({3.5, -3.5}, (a / b):tolist())
    assert.same({3, -4}, (a // b):tolist())
    assert.same({1, 1}, (a % b):tolist())
    assert.same({49, 49}, (a ^ 2):tolist())
    assert.same({-7, 7}, (-a):tolist())
  end)

  it("are logical for bools, of bits for integers, and for nothing else", function()
    local p, q = lt.tensor {true, true}, lt.tensor {true, false}
    assert.same({true, false}, (p & q):tolist())
    assert.same({true, true}, (p | q):tolist())
    assert.same({false, true}, (p ~ q):tolist())
    assert.same({false, false}, (~p):tolist())
    assert.same({2, 1}, (lt.tensor {6, 1} & lt.tensor {3, 5}):tolist())
    raises("bitwise_and: needs integers or bools, got f32", function() return a & b end)
  end)

  it("that Lua turns into one boolean raise with the method to use", function()
    raises("<: Lua converts the result to one boolean: write a:lt(b) (or a:gt(b)) "
      .. "to compare elements",
      function() return a < b end)
    raises("<=: Lua converts the result to one boolean: write a:le(b) (or a:ge(b)) "
      .. "to compare elements",
      function() return a >= b end)
    raises("..: a tensor is not a string: write tostring(x), or lt.cat({a, b}, dim) to concatenate "
      .. "tensors",
      function() return a .. "" end)
  end)

  it("name both operands when one is not a tensor", function()
    raises("add: operands must be tensors or numbers, got a tensor and table", function()
      return a + {}
    end)
    raises("add: operands must be tensors or numbers, got nil and a tensor", function()
      return nil + a
    end)
  end)

  it("name both shapes when they do not broadcast", function()
    raises("add: shapes do not broadcast: [2] and [3]", function()
      return a + lt.ones(3)
    end)
  end)
end)

describe("a tensor's methods", function()
  it("are named when one is misspelt", function()
    local x = lt.ones(2)
    raises("tensor: no field or method 'sgmoid'; did you mean 'sigmoid'?", function()
      return x:sgmoid()
    end)
    raises("tensor: no field or method 'frobnicate'", function()
      return x:frobnicate()
    end)
  end)

  it("are not those of tables", function()
    local x = lt.ones(2, 2)
    raises("pairs: a tensor is not a table: write x:rows() to walk dim 1", function()
      pairs(x)
    end)
    raises("index: a tensor is not a table: write `for i, row in x:rows() do` instead of ipairs(x)",
      function() for _ in ipairs(x) do print() end end)
    raises("#: a tensor of shape [] has no length", function()
      return #lt.tensor(1)
    end)
  end)

  it("protect the metatable", function()
    assert.equal("ltrain.Tensor", getmetatable(lt.ones(1)))
    assert.is_false(pcall(setmetatable, lt.ones(1), {}))
  end)

  it("walk rows", function()
    local seen = {}
    for i, row in lt.tensor({{1, 2}, {3, 4}}):rows() do seen[i] = row:tolist() end
    assert.same({{1, 2}, {3, 4}}, seen)
  end)
end)

describe("a closed tensor", function()
  it("gives its memory back at once and says so when used", function()
    local kept
    do
      local x <close> = lt.ones(2)
      kept = x
    end
    raises("add: argument 1 is a tensor that was closed", function() return kept + 1 end)
    assert.equal("tensor(closed)", tostring(kept))
  end)
end)
