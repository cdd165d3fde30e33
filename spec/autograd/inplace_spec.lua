-- spec/autograd/inplace_spec.lua: views, versions and in-place writes: nothing silently wrong.
local lt = require "ltrain"

local function leaf(values) return lt.tensor(values, {dtype = "f64", requires_grad = true}) end
local function refused(pattern, fn)
  local ok, message = pcall(fn)
  assert.is_false(ok, "should have been refused")
  assert.matches(pattern, message)
  assert.matches("inplace_spec.lua:%d+", message)
end

describe("a view", function()
  it("shares memory with its base, both ways", function()
    local x = lt.zeros(2, 3)
    local row = x[1]
    row:fill_(5)
    assert.same({{5, 5, 5}, {0, 0, 0}}, x:tolist())
    x:add_(1)
    assert.same({6, 6, 6}, row:tolist())
  end)

  it("that had to copy cannot be written in place", function()
    local x = lt.zeros(2, 3):transpose(1, 2):view(6)
    refused("view copied here: write x:reshape%(%)", function() x:add_(1) end)
    lt.zeros(2, 3):transpose(1, 2):reshape(6):add_(1)
  end)

  it("with history hands a write on to its base", function()
    local x, w = leaf{1.0, 2.0}, leaf{5.0}
    local y = x * 2
    local v = y[{{2, 2}}]
    v:mul_(w)
    assert.same({2.0, 20.0}, y:tolist())
    ;(y * y):sum():backward() -- 4 x1^2 + 4 x2^2 w^2
    assert.same({8.0, 400.0}, x.grad:tolist())
    assert.same({160.0}, w.grad:tolist())
  end)

  it("of a tensor without history gives it one", function()
    local buffer, w = lt.zeros(2, 2, {dtype = "f64"}), leaf{3.0, 4.0}
    for i = 1, 2 do buffer[i]:copy_(w * i) end
    buffer:sum():backward()
    assert.same({3.0, 3.0}, w.grad:tolist())
  end)

  it("takes the history of its base after a write into that, or into another view", function()
    local x = leaf{1.0, 2.0, 3.0}
    local y = x * 2
    local v, other = y[{{1, 2}}], y[{{2, 3}}]
    y:mul_(3)
    other:square_()
    v:sum():backward() -- 6 x1 + 36 x2^2
    assert.same({6.0, 144.0, 0.0}, x.grad:tolist())
  end)

  it("of a leaf may not be written in grad mode, and follows the leaf after an update", function()
    local x = leaf{1.0, 2.0}
    local v = x[{{1, 1}}]
    refused("in%-place write into a view of something with history", function() v:add_(1) end)
    lt.no_grad(function() x:mul_(10) end)
    ;(v * v):sum():backward()
    assert.same({20.0, 0.0}, x.grad:tolist())
  end)

  it("whose history cannot be taken exactly is refused, with both lines", function()
    local y = leaf{1.0, 2.0} * 2
    local wide = y:expand(3, 2)
    local turned = (leaf{1.0, 2.0}:view(1, 2) * 2):t():expand(2, 2)
    y:mul_(3)
    refused("this view of %[3, 2%] was made at .*inplace_spec.lua:%d+, and its memory was written "
      .. "in place since by mul at .*inplace_spec.lua:%d+", function() return wide + 1 end)
    refused("is repeated without memory of its own", function() turned:add_(1) end)
    local hidden = lt.no_grad(function() return y[{{1, 1}}] end)
    refused("into a view that was made under no_grad of something with history", function()
      hidden:add_(y[{{2, 2}}])
    end)
  end)

  it("made under no_grad of something with history is written under no_grad only", function()
    local x = leaf{1.0, 1.0, 1.0, 1.0}
    for _, base in ipairs{x, x * 2} do
      local view
      do
        local _ <close> = lt.no_grad()
        view = base:narrow(1, 1, 2)
      end
      for _, v in ipairs{view, view:narrow(1, 1, 1)} do
        refused("mul_: in%-place write, in grad mode, into a view that was made under no_grad of "
          .. "something with history: do both in the same mode, or write into x:detach%(%)",
          function() v:mul_(3) end)
        refused("fill_?: in%-place write, in grad mode, into a view", function() v:fill_(3) end)
        refused("in%-place write, in grad mode, into a view", function() v[1] = 3 end)
      end
      local _ <close> = lt.no_grad()
      view:fill_(5)
      assert.same({5.0, 5.0}, base:narrow(1, 1, 2):tolist())
    end
    x:detach():narrow(1, 1, 1):fill_(7)
    assert.equal(7.0, x[1]:item())
  end)

  it("that a saved value needs still stops the backward when it is written", function()
    local x = leaf{1.0, 2.0}
    local y = x * 2
    local z = (y * y):sum()
    y[{{1, 1}}]:mul_(3)
    refused("backward of mul .* written in place since by mul", function() z:backward() end)
  end)

  it("without memory of its own cannot be written", function()
    refused("dim 1 is repeated", function() lt.zeros(1, 3):expand(2, 3):add_(1) end)
  end)
end)

describe("an in-place write", function()
  it("is refused on a leaf that requires grad, except under no_grad", function()
    local x = leaf{1.0}
    refused("leaf that requires grad", function() x:add_(1) end)
    lt.no_grad(function() x:add_(1) end)
    assert.same({2.0}, x:tolist())
  end)

  it("is noticed by a backward that saved the value, naming both ops and lines", function()
    local x = leaf{1.0, 2.0}
    local y = x * 1
    local z = (y * y):sum()
    lt.no_grad(function() y:add_(1) end)
    refused("backward of mul %(.*inplace_spec.lua:%d+%).*written in place since by add "
      .. "at .*inplace_spec.lua:%d+", function() z:backward() end)
  end)

  it("is part of the history otherwise", function()
    local x = leaf{1.0, 2.0}
    local y = x * 2
    y:add_(1)
    y:mul_(lt.tensor({3.0, 4.0}, {dtype = "f64"}))
    y:sum():backward()
    assert.same({6.0, 8.0}, x.grad:tolist())
  end)

  -- dy/dx of f(2 x) in place against f(2 x) apart.
  for name, form in pairs {
    silu = function(y, f) return f(y) end, square = function(y, f) return f(y) end,
    clamp = function(y, f) return f(y, 0.5, 3.0) end, log = function(y, f) return f(y) end,
    abs = function(y, f) return f(y) end, pow = function(y, f) return f(y, 3) end,
    mul = function(y, f, w) return f(y, w) end, div = function(y, f, w) return f(y, w) end,
    maximum = function(y, f, w) return f(y, w) end, exp = function(y, f) return f(y) end,
  } do
    it(("keeps the input that its derivative reads: %s_"):format(name), function()
      local grads = {}
      for _, method in ipairs { name, name .. "_" } do
        local x, w = leaf{0.4, 1.2}, leaf{1.5, 0.5}
        local y = x * 2
        y = form(y, y[method], w)
        ;(y * y):sum():backward()
        table.insert(grads, {x.grad:tolist(), w.grad and w.grad:tolist()})
      end
      assert.same(grads[1], grads[2])
    end)
  end

  it("reads both sides of itself: y:mul_(y)", function()
    local x = leaf{1.0, 2.0}
    local y = x * 2
    y:mul_(y):sum():backward()
    assert.same({8.0, 16.0}, x.grad:tolist())
  end)

  it("keeps the dtype of its target or says that it cannot", function()
    local x = lt.tensor({1.0}, {dtype = "bf16"})
    assert.equal("bf16", x:add_(lt.ones(1)).dtype)
    refused("a result of f32 does not fit into a tensor of i64", function()
      lt.tensor{1}:add_(0.5)
    end)
  end)

  it("reads what it overwrites before it writes", function()
    local x = lt.arange(0, 6)
    x[{{2, 6}}]:add_(x[{{1, 5}}])
    assert.same({0, 1, 3, 5, 7, 9}, x:tolist())
  end)
end)

describe("assignment by index", function()
  it("writes through and is differentiable on both sides", function()
    local x, v = leaf{1.0, 2.0, 3.0}, leaf{10.0}
    local y = x * 2
    y[{{2, 2}}] = v
    assert.same({2.0, 10.0, 6.0}, y:tolist())
    ;(y * y):sum():backward()
    assert.same({8.0, 0.0, 24.0}, x.grad:tolist())
    assert.same({20.0}, v.grad:tolist())
  end)

  it("is refused on a leaf that requires grad", function()
    local x = leaf{1.0}
    refused("leaf that requires grad", function() x[1] = 5 end)
  end)
end)
