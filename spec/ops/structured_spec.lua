-- spec/ops/structured_spec.lua: every structured row of lt.ops(): gradients, dtypes, strides.
--
-- Each visible row has a case here (or a reason in ELSEWHERE): small inputs and options. From it
-- follow: gradients against central finite differences in f64 by every floating input, f32 against
-- f64, f16 and bf16 against f32, transposed and repeated inputs against contiguous ones, one thread
-- against two, bit for bit. Values against independent formulas are in spec/c/*_test.c.
local lt = require "ltrain"

-- Distinct values without symmetry, no two equal, none near a kink of max or abs.
local function values(...)
  local shape, n = {...}, 1
  for _, size in ipairs(shape) do n = n * size end
  local list = {}
  for i = 1, n do list[i] = 2 * ((i * 0.6180339887498949 + 0.137 * #shape) % 1) - 1 end
  return lt.tensor(list, {dtype = "f64"}):reshape(table.unpack(shape))
end
local function ids(list) return lt.tensor(list) end
local function positive(...) return values(...) * 0.4 + 0.6 end

local FIRST <const> = 1 -- only the first result is differentiable

local CASES <const> = {
  clone = {{values(3, 4)}}, clamp = {{values(3, 4)}, {min = -0.5, max = 0.7}},
  sum = {{values(3, 4, 2)}, {dims = {1, 3}}},
  mean = {{values(3, 4, 2)}, {dims = 2, keepdim = true}},
  prod = {{values(3, 4)}, {dims = 1}}, amax = {{values(3, 4)}, {dims = {1, 2}}},
  amin = {{values(3, 4)}, {dims = 2}}, any = {{values(3, 4):gt(0.9)}, {dims = 1}},
  all = {{values(3, 4):gt(-0.9)}, {dims = 1}}, logsumexp = {{values(3, 4)}, {dims = 2}},
  var = {{values(3, 4)}, {dims = 2}}, std = {{values(3, 4)}, {dims = 1, correction = 0}},
  norm = {{values(3, 4)}, {dims = 2}}, argmax = {{values(3, 4)}, {dim = 2}},
  argmin = {{values(3, 4)}, {dim = 1}}, max = {{values(3, 4)}, {dim = 2}},
  min = {{values(3, 4)}, {dim = 1}}, cumsum = {{values(3, 4)}, {dim = 1}},
  softmax = {{values(3, 5)}, {dim = -1}}, log_softmax = {{values(3, 5)}, {dim = 1}},
  cross_entropy = {{values(4, 5), ids{1, 0, 4, 2}}},
  mse_loss = {{values(3, 4), values(3, 4) * 0.5}},
  l1_loss = {{values(3, 4), values(3, 4) * 0.5}},
  binary_cross_entropy_with_logits = {{values(3, 4), positive(3, 4)}},
  layer_norm = {{values(3, 6), values(6), values(6)}, {normalized_shape = {6}}},
  batch_norm = {{values(4, 3, 2, 2), values(3), values(3)}, nil, FIRST},
  view = {{values(3, 4)}, {size = {2, 6}}}, reshape = {{values(3, 4)}, {size = {-1, 2}}},
  permute = {{values(2, 3, 4)}, {dims = {3, 1, 2}}}, expand = {{values(3, 1)}, {size = {2, 3, 4}}},
  transpose = {{values(3, 4)}, {dim0 = 1, dim1 = 2}}, t = {{values(3, 4)}},
  squeeze = {{values(3, 1, 2)}}, unsqueeze = {{values(3, 4)}, {dim = 2}},
  flatten = {{values(2, 3, 4)}, {start_dim = 2}}, flip = {{values(3, 4)}, {dims = 2}},
  movedim = {{values(2, 3, 4)}, {source = 1, destination = 3}},
  select = {{values(3, 4)}, {dim = 2, index = -1}},
  narrow = {{values(3, 4)}, {dim = 2, start = 2, length = 2}},
  slice = {{values(3, 7)}, {dim = 2, from = 2, to = 6, step = 2}},
  index_select = {{values(4, 3), ids{2, 0, 2}}, {dim = 1}},
  index_add = {{values(4, 3), ids{2, 0, 2}, values(3, 3)}, {dim = 1}},
  gather = {{values(3, 4), ids{{0, 3}, {1, 1}, {2, 0}}}, {dim = 2}},
  scatter_add = {{values(3, 4), ids{{0, 3}, {1, 1}, {2, 0}}, values(3, 2)}, {dim = 2}},
  embedding = {{values(5, 3), ids{{1, 4}, {1, 0}}}},
  masked_fill = {{values(3, 4), values(3, 4):gt(0)}, {value = 2}},
  where = {{values(3, 4):gt(0), values(3, 4), values(4)}},
  tril = {{values(4, 4)}}, triu = {{values(2, 3, 4)}, {diagonal = 1}},
  masked_select = {{values(3, 4), values(3, 4):gt(0)}},
  topk = {{values(3, 5)}, {k = 2}}, sort = {{values(3, 5)}, {dim = 2, descending = true}},
  argsort = {{values(3, 5)}}, one_hot = {{ids{1, 0, 3}}}, nonzero = {{values(3, 4):gt(0)}},
  matmul = {{values(2, 3, 4), values(4, 5)}}, linear = {{values(2, 3, 4), values(5, 4), values(5)}},
  outer = {{values(3), values(4)}}, addmm = {{values(5), values(3, 4), values(4, 5)}},
  conv2d = {{values(2, 2, 5, 5), values(4, 2, 3, 3), values(4)}, {stride = 2, padding = 1}},
  max_pool2d = {{values(2, 2, 6, 6)}, {kernel_size = 2}},
  scaled_dot_product_attention =
    {{values(2, 5, 4), values(2, 5, 4) * 0.7, values(2, 5, 4) * 0.9}, {causal = true}},
  cat = {{{values(2, 3), values(1, 3)}}, {dim = 1}}, stack = {{{values(2, 3), positive(2, 3)}}},
}

local ELSEWHERE <const> = {
  rand = "spec/c/random_test.c", randn = "spec/c/random_test.c", randint = "spec/c/random_test.c",
  randperm = "spec/c/random_test.c", multinomial = "spec/c/random_test.c",
  bernoulli = "spec/c/random_test.c", dropout = "spec/c/random_test.c",
  sgd_step = "spec/c/update_test.c", adam_step = "spec/c/update_test.c",
  grads_norm = "spec/c/update_test.c", grads_scale = "spec/c/update_test.c",
  clip_grad_norm = "spec/c/update_test.c", clip_grad_value = "spec/c/update_test.c",
  arange = "spec/bind/create_spec.lua",
}
local FLOAT <const> = {f32 = true, f64 = true, f16 = true, bf16 = true}

-- The inputs as a flat list; a list op gets them back as one table.
local function inputs_of(case)
  local first = case[1][1]
  if type(first) == "table" then return first, true end
  return case[1], false
end

local function run(op, inputs, is_list, options)
  if is_list then return {lt[op.name](inputs, options)} end
  local arguments = {table.unpack(inputs)}
  arguments[#arguments + 1] = options
  local method = inputs[1][op.name] -- lt.all is the index that means "all"; x:all() the reduction
  return {method(table.unpack(arguments))}
end

local function changed(inputs, f)
  local out = {}
  for i, x in ipairs(inputs) do out[i] = FLOAT[x.dtype] and f(x) or x end
  return out
end

local function weighted(results, last) -- a number that every floating result moves
  local total
  for k, y in ipairs(results) do
    if FLOAT[y.dtype] and k <= (last or k) then
      local weights = (lt.arange(1, y:numel() + 1):to("f64") * 0.37 + k):sin():reshape(y.shape)
      local part = (y:to("f64") * weights):sum()
      total = total and total + part or part
    end
  end
  return total
end

local function largest_difference(a, b)
  local worst = 0
  for k = 1, #a do
    assert.same(a[k].shape, b[k].shape)
    if a[k]:numel() > 0 then
      local d = (a[k]:to("f64") - b[k]:to("f64")):abs():amax():item()
      if d > worst or d ~= d then worst = d end
    end
  end
  return worst
end

local function strided(x) -- the same values behind other strides
  if x.ndim < 2 then return lt.stack({x, x * 0}, x.ndim + 1):select(-1, 1) end
  return x:transpose(1, x.ndim):contiguous():transpose(1, x.ndim)
end

local function gradient_by_differences(op, case, k, h)
  local inputs, is_list = inputs_of(case)
  local flat, out = inputs[k]:flatten():tolist(), {}
  for i = 1, #flat do
    local side = {}
    for s, step in ipairs{h, -h} do
      local list, shifted = {table.unpack(flat)}, {table.unpack(inputs)}
      list[i] = list[i] + step
      shifted[k] = lt.tensor(list, {dtype = "f64"}):reshape(inputs[k].shape)
      side[s] = weighted(run(op, shifted, is_list, case[2]), case[3]):item()
    end
    out[i] = (side[1] - side[2]) / (2 * h)
  end
  return out
end

describe("the list of cases", function()
  it("names only rows that exist", function()
    local known = {}
    for _, op in ipairs(lt.ops()) do known[op.name] = true end
    for name in pairs(CASES) do assert.is_true(known[name], name) end
  end)
end)

for _, op in ipairs(lt.ops()) do
  local elementwise = op.kind == "unary" or op.kind == "binary" or op.kind == "compare"
    or op.kind == "test"
  if not op.hidden and not elementwise and not ELSEWHERE[op.name] then
    describe("lt." .. op.name, function()
      local case = CASES[op.name]
      it("has a case here", function() assert.is_table(case) end)
      if not case then return end
      local inputs, is_list = inputs_of(case)
      local y = run(op, inputs, is_list, case[2])
      local float_out = FLOAT[y[1].dtype] and FLOAT[inputs[#inputs].dtype or "none"] ~= nil

      if (op.differentiable or op.composite) and FLOAT[y[1].dtype] then
        it("has the gradient that finite differences give", function()
          local leaves = changed(inputs, function(x) return x:detach():clone():requires_grad_() end)
          weighted(run(op, leaves, is_list, case[2]), case[3]):backward()
          for k, x in ipairs(leaves) do
            if FLOAT[x.dtype] then
              local want = gradient_by_differences(op, case, k, 1e-6)
              local got = x.grad and x.grad:flatten():tolist() or (x * 0):flatten():tolist()
              for i = 1, #want do
                assert.near(want[i], got[i], 1e-6 * math.max(1, math.abs(want[i])),
                  ("input %d element %d"):format(k, i))
              end
            end
          end
        end)
      end

      it("reads strided inputs like contiguous ones", function()
        local views = {}
        for i, x in ipairs(inputs) do views[i] = strided(x) end
        assert.near(0, largest_difference(y, run(op, views, is_list, case[2])), 1e-14)
      end)

      it("gives the same bits on two threads", function()
        local before = lt.runtime.get_threads()
        lt.runtime.set_threads(2)
        local again = run(op, inputs, is_list, case[2])
        lt.runtime.set_threads(before)
        assert.equal(0, largest_difference(y, again))
      end)

      if float_out or FLOAT[y[1].dtype] then
        it("agrees between f64, f32, f16 and bf16", function()
          for dtype, tolerance in pairs{f32 = 1e-5, f16 = 1e-2, bf16 = 8e-2} do
            local low = changed(inputs, function(x) return x:to(dtype) end)
            local exact = changed(low, function(x) return x:to("f64") end)
            local a, b = run(op, exact, is_list, case[2]), run(op, low, is_list, case[2])
            assert.near(0, largest_difference({a[1]}, {b[1]}), tolerance, dtype)
          end
        end)
      end
    end)
  end
end
