-- spec/bind/arguments_spec.lua: how the arguments of ops are read from Lua.
local lt = require "ltrain"
local raises = require "spec.bind.raises"

local x = lt.tensor({{1., 2.}, {3., 4.}})

describe("dims", function()
  it("are 1-based, and negative ones count from the end", function()
    assert.same({4, 6}, x:sum(1):tolist())
    assert.same({3, 7}, x:sum(2):tolist())
    assert.same({3, 7}, x:sum(-1):tolist())
    assert.equal(10, x:sum():item())
    assert.equal(10, x:sum({1, 2}):item())
    assert.equal(10, x:sum(1, 2):item())
  end)

  it("do not start at 0", function()
    raises("sum: argument 'dims': dims start at 1, got 0", function() x:sum(0) end)
  end)

  it("out of range name the shape", function()
    raises("sum: dim 3 is out of range for shape [2, 2] (1..2 or -1..-2)", function() x:sum(3) end)
  end)

  it("are read as a list or one by one", function()
    assert.same({{1, 3}, {2, 4}}, x:permute(2, 1):tolist())
    assert.same({{1, 3}, {2, 4}}, x:permute({2, 1}):tolist())
  end)
end)

describe("sizes", function()
  it("are numbers or a table", function()
    assert.same({1, 2, 3, 4}, x:view(4):tolist())
    assert.same({{1, 2, 3, 4}}, x:view(1, -1):tolist())
    assert.same({{1, 2, 3, 4}}, x:view { 1, -1 }:tolist())
  end)

  it("must be whole numbers", function()
    raises("view: argument 'size' must be an integer, got 1.5", function() x:view(1.5) end)
    raises("view: argument 'size' must be an integer, got '4'", function() x:view("4") end)
  end)

  it("that do not fit name both shapes", function()
    raises("view: shape [3] does not hold the 4 elements of [2, 2]", function() x:view(3) end)
  end)
end)

describe("options", function()
  it("follow in one table", function()
    assert.same({{4, 6}}, x:sum(1, {keepdim = true}):tolist())
    assert.same({{4, 6}}, x:sum({dims = 1, keepdim = true}):tolist())
    assert.same({{4, 6}}, x:sum(1, true):tolist())
    assert.same({{1, 2}, {2, 2}}, x:clamp({max = 2}):tolist())
  end)

  it("may name the tensors that are optional", function()
    local logits, target = lt.tensor({{1., 2., 0.}, {0., 3., 1.}}), lt.tensor({2, 1})
    local weight = lt.tensor({1., 2., 4.})
    assert.equal(lt.cross_entropy(logits, target, weight):item(),
      lt.cross_entropy(logits, target, {weight = weight}):item())
    -- -4 log p(2) - 2 log p(1) over the sum of weights 6, by hand
    local function nll(row, id)
      local total = 0
      for _, v in ipairs(row) do total = total + math.exp(v) end
      return math.log(total) - row[id + 1]
    end
    assert.near((4 * nll({1, 2, 0}, 2) + 2 * nll({0, 3, 1}, 1)) / 6,
      lt.cross_entropy(logits, target, {weight = weight, reduction = "mean"}):item(), 1e-6)
    local q = lt.randn(1, 3, 2)
    local mask = lt.ones(3, 3):tril():to("bool")
    assert.same(lt.scaled_dot_product_attention(q, q, q, {causal = true}):tolist(),
      lt.scaled_dot_product_attention(q, q, q, {mask = mask}):tolist())
    -- One in the middle may stay away.
    assert.same({{-1 + 10, 1 + 20}}, lt.layer_norm(lt.tensor({{0., 2.}}), {2},
      {bias = lt.tensor({10., 20.}), eps = 0}):tolist())
  end)

  it("name an optional tensor once, and a tensor", function()
    local logits, target, weight = lt.zeros(2, 3), lt.tensor({2, 1}), lt.ones(3)
    raises("cross_entropy: argument 'weight' is given twice", function()
      lt.cross_entropy(logits, target, weight, {weight = weight})
    end)
    raises("cross_entropy: argument 'weight' must be a tensor, got 2", function()
      lt.cross_entropy(logits, target, {weight = 2})
    end)
    raises("cross_entropy: unknown option 'weigth'; did you mean 'weight'?", function()
      lt.cross_entropy(logits, target, {weigth = weight})
    end)
    raises("cross_entropy: unknown option 'logits'; there is: ignore_index, reduction, "
      .. "label_smoothing", function()
      lt.cross_entropy(logits, target, {logits = logits})
    end)
  end)

  it("are checked by name", function()
    raises("sum: unknown option 'keepdims'; did you mean 'keepdim'?", function()
      x:sum { keepdims = true }
    end)
    raises("sum: unknown option 'frobnicate'; there is: dims, keepdim",
      function() x:sum { frobnicate = 1 } end)
    raises("sum: argument 'dims' is given twice", function() x:sum(1, {dims = 2}) end)
  end)

  it("are checked by type", function()
    raises("sum: argument 'keepdim' must be true or false, got 1", function()
      x:sum { keepdim = 1 }
    end)
    raises("clamp: argument 'min' must be a number, got '0'", function() x:clamp("0") end)
  end)

  it("that are required are missed by name", function()
    raises("permute: argument 'dims' is missing; it is permute(x, dims)",
      function() x:permute() end)
  end)

  it("end", function()
    raises("sum: one argument too many: 3; it is sum(x, dims, keepdim)",
      function() x:sum(1, true, 3) end)
    raises("sigmoid: one argument too many: 3; it is sigmoid(x)",
      function() x:sigmoid(3) end)
  end)
end)

describe("tensors", function()
  it("come first, as a function's or a method's", function()
    assert.same({{2, 4}, {6, 8}}, lt.add(x, x):tolist())
    assert.same({{2, 4}, {6, 8}}, x:add(x):tolist())
    assert.same({{0, -1}, {-2, -3}}, lt.sub(1, x):tolist())
  end)

  it("that are missing are reported", function()
    local hint <const> = "; a method is called with a colon: x:sigmoid(...)"
    raises("sigmoid: argument 1 must be a tensor, got 1" .. hint,
      function() lt.sigmoid(1) end)
    raises("sigmoid: argument 1 must be a tensor, got nothing" .. hint,
      function() lt.sigmoid() end)
    raises("matmul: argument 2 must be a tensor, got table", function() x:matmul({}) end)
  end)

  it("in lists are a table", function()
    assert.same({{1, 2}, {3, 4}, {1, 2}, {3, 4}}, lt.cat({x, x}, 1):tolist())
    assert.same({{1, 2, 1, 2}, {3, 4, 3, 4}}, lt.cat({x, x}, {dim = 2}):tolist())
    raises("cat: needs a table of tensors, got a tensor", function() lt.cat(x, x) end)
    raises("cat: element 2 of the list must be a tensor, got 3", function() lt.cat({x, 3}) end)
  end)

  it("in long lists work as well", function()
    local list = {}
    for i = 1, 100 do list[i] = lt.full({1}, i) end
    assert.equal(5050, lt.cat(list, 1):sum():item())
  end)
end)

describe("x:to", function()
  it("reports a name that is neither a dtype nor a device", function()
    raises("to: 'f31' is neither a dtype nor a device; did you mean 'f32'?",
      function() x:to("f31") end)
    raises("to: 'cudaa' is neither a dtype nor a device; did you mean 'cuda'?",
      function() x:to("cudaa") end)
    local names = {}
    for i, row in ipairs(lt.dtypes()) do names[i] = row.name end
    raises(("to: 'vpu' is neither a dtype (%s) nor a device (cpu, meta, cuda, xla)"):format(
      table.concat(names, " ")), function() x:to("vpu") end)
    raises("device: no cpu:7 (cpu has 1)", function() x:to("cpu:7") end)
  end)
end)

describe("bools", function()
  local a, b = lt.tensor({true, true, false, false}), lt.tensor({true, false, true, false})

  it("are joined by + as or, by * as and", function()
    assert.same({true, true, true, false}, (a + b):tolist())
    assert.same({true, false, false, false}, (a * b):tolist())
    assert.equal("bool", (a + b).dtype)
    assert.same({true, true, false, false}, (a * true):tolist())
    assert.same({true, true, true, false}, a:clone():add_(b):tolist())
    assert.same({2, 1, 1, 0}, (a:to("i64") + b):tolist())
  end)

  it("are not subtracted", function()
    raises("sub: not defined for two bools; use the logical ops or :to('i64')",
      function() return a - b end)
  end)
end)

describe("forms in place", function()
  it("write into the tensor and give it back", function()
    local y = lt.tensor {1., 4.}
    local z = y
    y:sqrt_():mul_(2):add_(z):clamp_(0, 5)
    assert.same({4, 5}, y:tolist())
    assert.same({7, 7}, y:fill_(7):tolist())
    assert.same({0, 0}, y:zero_():tolist())
    assert.same({1, 2}, y:copy_(lt.tensor {1, 2}):tolist())
  end)

  it("fill where a mask is", function()
    local y = lt.tensor({{1., 2.}, {3., 4.}})
    assert.is_true(rawequal(y, y:masked_fill_(y:gt(2), -1)))
    assert.same({{1, 2}, {-1, -1}}, y:tolist())
    assert.same({{1, 0}, {-1, 0}}, y:masked_fill_(lt.tensor({false, true}), 0):tolist())
    local three = lt.tensor({false, true, true})
    raises("masked_fill_: shapes do not broadcast: [2, 2] and [3]",
      function() y:masked_fill_(three, 0) end)
  end)

  it("are named as they were called", function()
    raises("add_: shapes do not broadcast: [2, 2] and [3]", function() x:add_(lt.ones(3)) end)
    raises("add_: operands must be tensors or numbers, got a tensor and '3'",
      function() x:add_("3") end)
    raises("zeros: impossible shape [1000000000000000000] (too many elements)",
      function() lt.zeros(1e18) end)
    assert.equal("zeros", lt.last_error().op)
    raises("ones_like: unknown option 'shape'", function() x:ones_like{shape = 3} end)
  end)

  it("fill where a mask is, and pass no gradient there", function()
    local leaf = lt.tensor({1., 2., 3.}, {requires_grad = true})
    local y = leaf * 2
    y:masked_fill_(lt.tensor({false, true, false}), 9)
    assert.same({2, 9, 6}, y:tolist())
    y:sum():backward()
    assert.same({2, 0, 2}, leaf.grad:tolist())
  end)
end)

describe("lt.ops", function()
  local rows = {}
  for _, row in ipairs(lt.ops()) do rows[row.name] = row end

  it("names the inputs of every row", function()
    assert.same({"logits", "target", "weight"}, rows.cross_entropy.inputs)
    assert.same({"list"}, rows.cat.inputs)
    for name, row in pairs(rows) do
      assert.equal(row.list and 1 or row.max_in, #row.inputs, name)
    end
  end)

  it("describes every row", function()
    assert.equal("unary", rows.sigmoid.kind)
    assert.is_true(rows.sigmoid.differentiable)
    assert.is_true(rows.sigmoid.in_place)
    assert.is_false(rows.sigmoid.hidden)
    assert.is_true(rows.sigmoid_backward.hidden)
    assert.equal("float", rows.sigmoid.dtype)
    assert.same({name = "dims", type = "dims", required = false, default = "LT_NO_DIMS"},
      rows.sum.args[1])
  end)

  it("names what is there as a function", function()
    for name, row in pairs(rows) do
      if not row.hidden and name ~= "all" then assert.is_function(rawget(lt, name), name) end
      if row.hidden and name ~= "empty" and name ~= "full" then
        assert.is_nil(rawget(lt, name), name)
      end
    end
  end)
end)
