-- spec/autograd/second_derivatives_spec.lua: derivatives of derivatives, for every op that has one.
-- tags: slow
--
-- Derived from lt.ops(): elementwise rows in their own domain, to the third order; structured rows
-- by spec/ops/cases.lua. In f64, against central finite differences of the derivative one order
-- below, which a backward that records nothing gives: so that also checks that both agree. On
-- another device than the CPU: against the CPU's.
local cases = require "spec.ops.cases"
local lt = require "ltrain"

local FLOAT <const> = cases.float

-- Numbers of rows that have no defaults.
local NUMBERS <const> = {threshold = {threshold = 0.4, value = 2}}

-- Ops whose case cannot be differentiated here, with the reason.
local EXCEPT <const> = {
  dropout = "draws: its own case is below",
  airy_ai = "has no derivative",
  igamma = "has no derivative by its first input",
  igammac = "has no derivative by its first input",
  zeta = "has no derivative by its first input",
}

local function leaves_of(inputs)
  return cases.changed(inputs, function(x) return x:detach():clone():requires_grad_() end)
end

-- A number of the results that is not linear in them: then an op that is linear counts as well.
local function bent(results, last)
  return cases.weighted(cases.changed(results, function(y) return y * y * y + y end), last)
end

local function only_floats(inputs)
  local list = {}
  for _, x in ipairs(inputs) do
    if FLOAT[x.dtype] then list[#list + 1] = x end
  end
  return list
end

-- Numbers between -1 and 1 without a pattern, in the shape of x.
local function direction(x, k)
  return (lt.arange(1, x:numel() + 1):to("f64") * 1.7 + k * k):sin():reshape(x.shape)
end

-- The derivative of f by `inputs` along a direction, as a number; `order` times.
local function along(f, inputs, order, options)
  local y = f(inputs)
  for _ = 1, order do
    if not y.requires_grad then return nil end -- constant: the next derivative is zero
    local wanted, slope = only_floats(inputs), nil
    local grads = lt.grad(y, wanted, options)
    for k, x in ipairs(wanted) do
      if grads[k] then
        local part = (grads[k] * direction(x, k)):sum()
        slope = slope and slope + part or part
      end
    end
    if not slope then return nil end
    y = slope
  end
  return y
end

local RECORDED <const> = {create_graph = true, allow_unused = true}
local function derivative(f, inputs, order) -- the last one unrecorded
  local g = f
  if order > 1 then
    g = function(list) return along(f, list, order - 1, RECORDED) or lt.zeros({}) end
  end
  local y = along(g, inputs, 1, {allow_unused = true})
  return y and y:item() or 0
end

local function shifted(inputs, h)
  local list, k = {}, 0
  for i, x in ipairs(inputs) do
    if FLOAT[x.dtype] then
      k = k + 1
      list[i] = (x:detach() + direction(x, k) * h):requires_grad_()
    else
      list[i] = x
    end
  end
  return list
end

-- Holds the derivative of `order` against differences of the one below.
local function check(f, inputs, order)
  local h = 1e-5
  local got = derivative(f, leaves_of(inputs), order)
  local up, down = derivative(f, shifted(inputs, h), order - 1),
    derivative(f, shifted(inputs, -h), order - 1)
  local want = (up - down) / (2 * h)
  assert.near(want, got, 2e-6 * math.max(1, math.abs(want)), "order " .. order)
end

-- The same of an f of its arguments alone.
local function check_here(f, inputs, order)
  if not cases.device then return check(f, inputs, order) end
  local got = derivative(f, leaves_of(inputs), order)
  local want = cases.on_cpu(inputs, function(list) return derivative(f, leaves_of(list), order) end)
  assert.near(want, got, 1e-9 * math.max(1, math.abs(want)), "order " .. order)
end

local function points(op, n, seed)
  local list = {}
  for i = 1, n do list[i] = op.lo + (op.hi - op.lo) * ((i * 0.6180339887498949 + seed) % 1) end
  return lt.tensor(list, {dtype = "f64"})
end

local function shows_float(op, case)
  local inputs, is_list = cases.inputs_of(case)
  local y = cases.run(op, inputs, is_list, case[2])
  return FLOAT[y[1].dtype] and #only_floats(inputs) > 0
end

for _, op in ipairs(lt.ops()) do
  local case = cases.structured[op.name]
  -- Others have no derivative, or one that is checked elsewhere.
  local checked = not op.hidden and not EXCEPT[op.name] and (op.differentiable or op.composite)
  if checked and (op.kind:find "^unary" or op.kind == "binary") then
    describe("lt." .. op.name, function()
      local pair = op.kind == "binary"
      local inputs = {points(op, 7, 0.2), pair and points(op, 7, 0.6) or nil}
      local function f(list)
        local arguments = table.move(list, 1, #list, 1, {})
        arguments[#arguments + 1] = NUMBERS[op.name]
        return bent{lt[op.name](table.unpack(arguments))}
      end
      for order = 2, 3 do
        it("has derivatives of order " .. order, function() check_here(f, inputs, order) end)
      end
      if pair then
        it("has them with a number on either side, and broadcast", function()
          for order = 2, 3 do
            check_here(function(list) return bent{lt[op.name](list[1], 1.7)} end,
              {inputs[1]}, order)
            check_here(function(list) return bent{lt[op.name](1.7, list[1])} end,
              {inputs[1]}, order)
            check_here(f, {inputs[1], points(op, 3, 0.6):reshape(3, 1)}, order)
          end
        end)
      end
    end)
  elseif checked and case and shows_float(op, case) then
    describe("lt." .. op.name, function()
      it("has a second derivative", function()
        local inputs, is_list = cases.inputs_of(case)
        check_here(function(list)
          return bent(cases.run(op, list, is_list, case[2]), case[3])
        end, inputs, 2)
      end)
    end)
  end
end

describe("a second derivative", function()
  it("is checked of every op that has a first", function()
    local missing = {}
    for _, op in ipairs(lt.ops()) do
      local row = op.kind:find "^unary" or op.kind == "binary"
      if op.differentiable and not op.hidden and not EXCEPT[op.name] and not row
        and not cases.structured[op.name] then
        missing[#missing + 1] = op.name
      end
    end
    assert.same({}, missing)
  end)
end)

describe("ops with more than one way", function()
  local function values(...) return cases.values(...) end
  local function second(name, inputs, options)
    check(function(list)
      local arguments = table.move(list, 1, #list, 1, {})
      arguments[#arguments + 1] = options
      return bent({lt[name](table.unpack(arguments))}, 1)
    end, inputs, 2)
  end

  it("are checked in each of them", function()
    local x, ids = values(4, 5), lt.tensor{1, 0, -100, 2}
    local function cross(inputs, options)
      check(function(list)
        local arguments = {table.unpack(list)}
        arguments[#arguments + 1] = options
        return bent{lt.cross_entropy(table.unpack(arguments))}
      end, inputs, 2)
    end
    cross({x, ids}, {label_smoothing = 0.2})
    cross({x, ids}, {reduction = "none"})
    cross({values(2, 5, 3), lt.tensor{{0, 4, 1}, {2, 2, -100}}}, {reduction = "sum"})
    local shares = lt.softmax(values(4, 5):flip{2}, {dim = 2})
    cross({x, shares}, {label_smoothing = 0.1})
    for _, reduction in ipairs{"mean", "sum"} do
      local weight = values(5):abs() + 0.1
      check(function(list)
        return lt.cross_entropy(list[1], ids, weight, {reduction = reduction,
          label_smoothing = 0.3})
      end, {x}, 2)
    end
  end)

  it("pow by numbers is right at zero", function()
    local x = lt.tensor({0.0, 2.0}, {dtype = "f64", requires_grad = true})
    local g = lt.grad((x ^ 3):sum(), x, {create_graph = true})
    g = lt.grad(g:sum(), x, {create_graph = true})
    assert.same({0.0, 12.0}, g:tolist())
    assert.same({6.0, 6.0}, lt.grad(g:sum(), x):tolist())
  end)

  it("prod is right where elements are zero", function()
    local x = lt.tensor({{0.0, 2.0, 3.0}, {0.0, 0.0, 5.0}}, {dtype = "f64", requires_grad = true})
    local g = lt.grad(x:prod{dims = 2}:sum(), x, {create_graph = true})
    assert.same({{6.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}, g:tolist())
    -- the second derivative by elements i and j is the product of the rest
    assert.same({{0.0, 3.0, 2.0}, {5.0, 5.0, 0.0}},
      lt.grad((g * lt.tensor({{1.0, 0.0, 0.0}, {1.0, 1.0, 0.0}}, {dtype = "f64"})):sum(),
        x):tolist())
  end)

  it("activations with other numbers", function()
    for name, options in pairs{softplus = {beta = 3, threshold = 0.5}, elu = {alpha = 0.4},
      celu = {alpha = 0.4}, leaky_relu = {negative_slope = 2}, softshrink = {lambd = 0.2},
      hardshrink = {lambd = 0.2}, hardtanh = {min_val = -0.4, max_val = 0.3}} do
      second(name, {values(7)}, options)
    end
    second("prelu", {values(3, 1, 2), values(1)})
    second("prelu", {values(5), values(1):reshape{}})
    second("swiglu", {values(4, 3)}, {dim = 1})
  end)

  it("activations far out", function()
    local x = lt.tensor({-800.0, -90.0, 90.0, 800.0}, {requires_grad = true})
    local last = {elu = 0, selu = 0, celu = 0, softplus = 0, logsigmoid = 0, mish = 0}
    for name, want in pairs(last) do
      local g = lt.grad(lt[name](x):sum(), x, {create_graph = true})
      for _, value in ipairs(lt.grad(g:sum(), x):tolist()) do
        assert.near(want, value, 1e-30, name)
      end
    end
  end)

  it("pooling with padding and overlapping windows", function()
    second("max_pool2d", {values(2, 3, 5, 6)}, {kernel_size = 3, stride = {2, 1}, padding = 1})
  end)

  it("batch norm with given statistics, norms without weights, masks", function()
    local x, c = values(4, 3, 2, 2), values(3)
    local mean, variance = c * 0.1, c:abs() + 0.5
    check(function(list)
      return bent({lt.batch_norm(list[1], mean, variance, list[2], list[3])}, 1)
    end, {x, c, c * 0.5}, 2)
    check(function(list) return bent({lt.batch_norm(list[1])}) end, {x}, 2)
    second("layer_norm", {values(3, 6)}, {normalized_shape = {6}})
    local q, mask = values(2, 4, 3), values(4, 4):gt(-0.3)
    check(function(list)
      return bent({lt.scaled_dot_product_attention(list[1], list[2], list[3], mask)}, 1)
    end, {q, q * 0.7, q:flip{2}}, 2)
  end)

  it("attention by a floating mask, with heads that are shared, in two dims", function()
    local q, k = values(2, 4, 3, 2), values(2, 2, 5, 2)
    check(function(list)
      return bent({lt.scaled_dot_product_attention(list[1], list[2], list[3], list[4],
        {enable_gqa = true})}, 1)
    end, {q, k, k * 0.8, values(3, 5)}, 2)
    check(function(list)
      return bent({lt.scaled_dot_product_attention(list[1], list[2], list[3])}, 1)
    end, {values(4, 3), values(5, 3), values(5, 2)}, 2)
  end)

  it("attention of some heads drops the same elements as recorded", function()
    local q = values(2, 2, 3, 4)
    local function gradient(options)
      lt.seed(3)
      local x = q:detach():requires_grad_()
      local y = lt.scaled_dot_product_attention(x, x * 0.7, x,
        {dropout_p = 0.4, first_head = 1, all_heads = 5})
      return lt.grad(y:square():sum(), x, options)
    end
    local wanted, got = gradient(), gradient {create_graph = true}
    assert.near(0, (wanted - got):abs():amax():item(), 1e-12)
  end)

  it("dropout drops the same elements", function()
    local x = values(6, 4):requires_grad_()
    local y = lt.dropout(x, {p = 0.5})
    local g = lt.grad((y ^ 3):sum(), x, {create_graph = true})
    local h = lt.grad(g:sum(), x)
    local scale = lt.where(y:ne(0), lt.full_like(y, 8.0), lt.zeros_like(y)):detach()
    assert.near(0, (h - scale * x.detach(x) * 6):abs():amax():item(), 1e-12)
  end)
end)

describe("create_graph", function()
  it("gives the gradients that an unrecorded backward gives, in f16 and bf16 too", function()
    for dtype, tolerance in pairs{f32 = 1e-6, f16 = 2e-3, bf16 = 2e-2} do
      local x = cases.values(3, 8):to(dtype):requires_grad_()
      local w = cases.values(8):to(dtype):requires_grad_()
      local function f()
        local y = lt.layer_norm(lt.gelu(x) * x:sigmoid(), {8}, w)
        return lt.softmax(y, {dim = 2}):square():sum()
      end
      local plain, recorded = lt.grad(f(), {x, w}), lt.grad(f(), {x, w}, {create_graph = true})
      for k = 1, 2 do
        assert.equal(dtype, recorded[k].dtype)
        local d = (plain[k]:to("f64") - recorded[k]:detach():to("f64")):abs():amax():item()
        assert.near(0, d, tolerance, dtype)
      end
    end
  end)

  it("leaves nothing behind", function()
    local x = cases.values(4):requires_grad_()
    local function once()
      local g = lt.grad((x:sigmoid() * x):sum(), x, {create_graph = true})
      lt.grad(g:square():sum(), x)
    end
    local function held()
      collectgarbage()
      collectgarbage()
      return require("ltrain.c").runtime.memory().live_bytes
    end
    once()
    local before = held()
    for _ = 1, 50 do once() end
    assert.equal(before, held())
    assert.is_nil(x.grad)
  end)
end)
