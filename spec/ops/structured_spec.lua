-- spec/ops/structured_spec.lua: every structured row of lt.ops(): gradients, dtypes, strides.
--
-- Each visible row has a case in spec/ops/cases.lua (or a reason in ELSEWHERE). From it follow:
-- gradients against central finite differences in f64 by every floating input (on another device
-- than the CPU: against the CPU's, which these have been compared with), f32 against f64, f16
-- and bf16 against f32, transposed and repeated inputs against contiguous ones, one thread against
-- two, bit for bit. Values against independent formulas are in spec/c/*_test.c, second derivatives
-- in spec/autograd/second_derivatives_spec.lua. Updates: spec/optim/torch_steps_spec.lua.
local c = require "ltrain.c"
local cases = require "spec.ops.cases"
local lt = require "ltrain"

local CASES <const>, FLOAT <const> = cases.structured, cases.float
local inputs_of, run, changed, weighted = cases.inputs_of, cases.run, cases.changed, cases.weighted

local ELSEWHERE <const> = {
  rand = "spec/c/random_test.c", randn = "spec/c/random_test.c", randint = "spec/c/random_test.c",
  randperm = "spec/c/random_test.c", multinomial = "spec/c/random_test.c",
  bernoulli = "spec/c/random_test.c", dropout = "spec/c/random_test.c",
  sgd_step = "spec/c/update_test.c", adam_step = "spec/c/update_test.c",
  grads_norm = "spec/c/update_test.c", grads_scale = "spec/c/update_test.c",
  clip_grad_norm = "spec/c/update_test.c", clip_grad_value = "spec/c/update_test.c",
  quantize_float8 = "spec/ops/float8_spec.lua", dequantize_float8 = "spec/ops/float8_spec.lua",
  scaled_mm = "spec/ops/float8_spec.lua",
  ctc_loss = "spec/nn/ctc_loss_spec.lua", -- its derivative is by what log_softmax is made of
  arange = "spec/bind/create_spec.lua", linspace = "spec/ops/composites_spec.lua",
  eye = "spec/ops/composites_spec.lua", histc = "spec/ops/composites_spec.lua",
}

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

-- Of each floating input its gradient, a list of numbers; false of others.
local function gradients(op, case, inputs, is_list)
  local leaves = changed(inputs, function(x) return x:detach():clone():requires_grad_() end)
  weighted(run(op, leaves, is_list, case[2]), case[3]):backward()
  for k, x in ipairs(leaves) do
    leaves[k] = FLOAT[x.dtype] and (x.grad or x:detach() * 0):flatten():tolist()
  end
  return leaves
end

-- The same in another way.
local function expected_gradients(op, case, inputs, is_list)
  if cases.device then
    return cases.on_cpu(inputs, function(list) return gradients(op, case, list, is_list) end)
  end
  local list = {}
  for k, x in ipairs(inputs) do
    list[k] = FLOAT[x.dtype] and gradient_by_differences(op, case, k, 1e-6)
  end
  return list
end

describe("the list of cases", function()
  it("names only rows that exist", function()
    local known = {}
    for _, op in ipairs(lt.ops()) do known[op.name] = true end
    for name in pairs(CASES) do assert.is_true(known[name], name) end
  end)
end)

for _, op in ipairs(lt.ops()) do
  local elementwise = op.kind:find "^unary" or op.kind == "binary" or op.kind == "compare"
    or op.kind == "test"
  if not op.hidden and not elementwise and op.kind ~= "update" and not ELSEWHERE[op.name] then
    describe("lt." .. op.name, function()
      local case = CASES[op.name]
      it("has a case", function() assert.is_table(case) end)
      if not case then return end
      local inputs, is_list = inputs_of(case)
      local y = run(op, inputs, is_list, case[2])
      local float_out = FLOAT[y[1].dtype] and FLOAT[inputs[#inputs].dtype or "none"] ~= nil

      if (op.differentiable or op.composite) and FLOAT[y[1].dtype] then
        it("has the gradient that finite differences give", function()
          local expected = expected_gradients(op, case, inputs, is_list)
          for k, got in ipairs(gradients(op, case, inputs, is_list)) do
            local want = expected[k]
            for i = 1, want and #want or 0 do
              assert.near(want[i], got[i], 1e-6 * math.max(1, math.abs(want[i])),
                ("input %d element %d"):format(k, i))
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
        local before = c.runtime.get_threads()
        c.runtime.set_threads(2)
        local again = run(op, inputs, is_list, case[2])
        c.runtime.set_threads(before)
        assert.equal(0, largest_difference(y, again))
      end)

      it("takes integers of every width as it takes i64", function()
        local function whole(dtype)
          return changed(inputs, function(x) return (x:abs() * 3):floor():to(dtype) end)
        end
        local taken, wide = pcall(run, op, whole "i64", is_list, case[2])
        for _, dtype in ipairs(lt.dtypes()) do
          if dtype.category == "integer" then
            local ok, got = pcall(run, op, whole(dtype.name), is_list, case[2])
            assert.equal(taken, ok, tostring(got))
            assert.equal(0, taken and largest_difference(wide, got) or 0, dtype.name)
            for k = 1, taken and #got or 0 do
              local narrow = wide[k].dtype == "i64" and got[k].dtype == dtype.name
              assert.is_true(narrow or got[k].dtype == wide[k].dtype, dtype.name)
            end
          end
        end
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
