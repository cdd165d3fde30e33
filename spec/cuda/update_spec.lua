-- spec/cuda/update_spec.lua: optimizer steps and gradient clipping of a GPU against the CPU's.
--
-- Bits are those of the CPU's levels with FMA. Norms are sums in another order.
local both = require "spec.cuda.both"
local c = require "ltrain.c"
local lt = require "ltrain"

-- Around vectors, warps, blocks and chunks.
local SIZES <const> = { { 0 }, {}, { 1 }, { 3 }, { 33 }, { 2047 }, { 2049 }, { 65, 33 } }
local DTYPES <const> = { "f32", "f64", "f16", "bf16" }

local function state_dtype(dtype) return dtype == "f64" and "f64" or "f32" end

-- `times` tensors of each size; "mixed" takes each dtype in turn.
local function tensors(dtype, times, of_state)
  local list = {}
  for _ = 1, times do
    for _, size in ipairs(SIZES) do
      local own = dtype == "mixed" and DTYPES[#list % 4 + 1] or dtype
      list[#list + 1] = lt.randn(size, { dtype = of_state and state_dtype(own) or own })
    end
  end
  return list
end

local function moved(list, device)
  local result = {}
  for k, t in ipairs(list) do result[k] = device == "cpu" and t:clone() or t:to(device) end
  return result
end

local function joined(groups)
  local list = {}
  for _, group in ipairs(groups) do table.move(group, 1, #group, #list + 1, list) end
  return list
end

-- Steps on both devices; all tensors must come out the same.
local function step(op, groups, options, found)
  both.same_on_both(op, function(device)
    local own = {}
    for g, group in ipairs(groups) do own[g] = moved(group, device) end
    local list = joined(own)
    local all = table.move(list, 1, #list, 1, {})
    if found then list[#list + 1] = lt.tensor({ found }):to(device) end
    c[op](list, options)
    return all
  end)
end

-- 4 groups of a list of `dtype`: parameters, gradients, first and second moments.
local function adam_groups(dtype, times)
  local second = tensors(dtype, times, true)
  for k, t in ipairs(second) do second[k] = t:abs() end
  return { tensors(dtype, times), tensors(dtype, times), tensors(dtype, times, true), second }
end

describe("adam_step on cuda", function()
  for _, dtype in ipairs(DTYPES) do
    both.it("gives the CPU's parameters and moments in " .. dtype, function()
      local groups = adam_groups(dtype, 1)
      step("adam_step", groups, { lr = 0.01, step = 1 })
      step("adam_step", groups, { lr = 0.1, step = 7, weight_decay = 0.1 })
      step("adam_step", groups, { lr = 1e-3, step = 1000, weight_decay = 0.01, decoupled = true,
                                  beta1 = 0.8, beta2 = 0.95 })
    end)
  end

  both.it("takes more tensors than one launch", function()
    step("adam_step", adam_groups("mixed", 22), { lr = 0.01, step = 3 })
  end)

  both.it("changes nothing where the step is refused", function()
    local groups = adam_groups("mixed", 1)
    for _, found in ipairs { 0, 1, 0 / 0 } do
      step("adam_step", groups, { lr = 0.01, step = 3, checked = true }, found)
    end
  end)

  both.it("puts zeros in the place of denormals, and lets nan through", function()
    local odd = { lt.tensor { 0 / 0, 1 / 0, -1 / 0, -0.0, 1e-40, -1e-39, 1e30, 5 } }
    step("adam_step", { odd, odd, odd, odd }, { lr = 0.1, step = 1 })
    step("sgd_step", { odd, odd, odd }, { lr = 0.1, momentum = 0.5 })
  end)

  both.it("takes gradients and states that are views", function()
    for _, dtype in ipairs { "f32", "bf16", "f64" } do
      both.same_on_both(dtype, function(device)
        local function random(size, own) return lt.randn(size, { dtype = own }):to(device) end
        local p, g = random({ 33, 65 }, dtype), random({ 65, 33 }, dtype):t()
        local m = random({ 33, 65 }, state_dtype(dtype))
        local v = random({ 65, 33 }, state_dtype(dtype)):abs()
        c.adam_step({ p, g, m, v:t() }, { lr = 0.1, step = 1 })
        c.adam_step({ p, random({ 1, 65 }, dtype):expand { 33, 65 }, m, v:t() },
          { lr = 0.1, step = 2 })
        c.grads_scale { lt.tensor(3.0):to(device), p:t(), v:narrow(2, 3, 7) }
        return { p, m, v }
      end)
    end
  end)
end)

describe("sgd_step on cuda", function()
  for _, dtype in ipairs(DTYPES) do
    both.it("gives the CPU's parameters and momenta in " .. dtype, function()
      local p, g, m = tensors(dtype, 1), tensors(dtype, 1), tensors(dtype, 1, true)
      step("sgd_step", { p, g }, { lr = 0.1 })
      step("sgd_step", { p, g }, { lr = 0.1, weight_decay = 0.3 })
      step("sgd_step", { p, g, m }, { lr = 0.1, momentum = 0.9, first = true })
      step("sgd_step", { p, g, m }, { lr = 0.1, momentum = 0.9, nesterov = true, first = true })
      step("sgd_step", { p, g, m }, { lr = 0.1, momentum = 0.9, nesterov = true,
                                      weight_decay = 0.1 })
      step("sgd_step", { p, g, m }, { lr = 0.1, momentum = 0.9, dampening = 0.3 })
    end)
  end
end)

-- Rows of updates.def: contracted products may round elsewhere on a GPU.
local ROWS <const> = { amsgrad = 3, nadam = 2, radam = 2, adamax = 2, rmsprop = 2,
                       centered_rmsprop = 3, adagrad = 1, adadelta = 2, lion = 1 }
local TOLERANCE <const> = { f32 = 1e-6, f64 = 1e-14, f16 = 2e-3, bf16 = 2e-2 }

-- As step, for a row with n kinds of state.
local function row_step(name, groups, options, found)
  local sides = {}
  for side, device in ipairs { "cpu", "cuda" } do
    local own = {}
    for g, group in ipairs(groups) do own[g] = moved(group, device) end
    sides[side] = joined(own)
    local list = table.move(sides[side], 1, #sides[side], 1, {})
    if found then list[#list + 1] = lt.tensor({ found }):to(device) end
    c[name .. "_step"](list, options)
  end
  for k, want in ipairs(sides[1]) do
    if want:numel() > 0 then
      local got = sides[2][k]:to "cpu":to "f64"
      local limit = (want:to "f64":abs() + 1) * TOLERANCE[want.dtype]
      assert.is_true(((got - want:to "f64"):abs():le(limit)):all():item(), name .. " " .. k)
    end
  end
end

for name, states in pairs(ROWS) do
  describe(name .. "_step on cuda", function()
    local options = { lr = 0.1, beta1 = 0.9, beta2 = 0.95, eps = 0.01, root = 1.5, momentum = 0.5,
                      by_grad = 0.1, by_mean = 0.2, weight_decay = 0.1, shrink = 0.9,
                      maximize = true, states = states }
    for _, dtype in ipairs { "f32", "f64", "f16", "bf16", "mixed" } do
      both.it("gives the CPU's parameters and states in " .. dtype, function()
        local groups = { tensors(dtype, 1), tensors(dtype, 1) }
        for k = 1, states do
          groups[2 + k] = tensors(dtype, 1, true)
          for i, t in ipairs(groups[2 + k]) do
            groups[2 + k][i] = t:sigmoid() + (k == 1 and 1 or 0)
          end
        end
        row_step(name, groups, options)
        options.checked = true
        for _, found in ipairs { 0, 1 } do row_step(name, groups, options, found) end
        options.checked = nil
      end)
    end
  end)
end

-- A view of `t` in memory that ends in 8 elements of 7, and all of that memory.
local function guarded(t)
  local n <const> = t:numel()
  local memory = lt.full({ n + 8 }, 7, { dtype = t.dtype })
  memory:narrow(1, 1, n):copy_(t:flatten())
  return memory
end

describe("steps of views on cuda", function()
  local function leaves_what_follows(name, states, options)
    both.it("leave what follows them in memory: " .. name, function()
      for _, dtype in ipairs { "f32", "f64", "bf16" } do
        for n = 1, 9 do
          local memories, list = {}, {}
          for k = 1, 2 + states do
            local own = k > 2 and state_dtype(dtype) or dtype
            memories[k] = guarded(lt.rand({ n }, { dtype = own })):to "cuda"
            list[k] = memories[k]:narrow(1, 1, n)
          end
          c[name .. "_step"](list, options)
          for _, memory in ipairs(memories) do
            assert.same({ 7, 7, 7, 7, 7, 7, 7, 7 }, memory:narrow(1, n + 1, 8):to("cpu"):tolist())
          end
        end
      end
    end)
  end
  leaves_what_follows("adam", 2, { lr = 0.1, step = 1 })
  leaves_what_follows("sgd", 1, { lr = 0.1, momentum = 0.5, first = true })
  for name, states in pairs(ROWS) do
    leaves_what_follows(name, states, { lr = 0.1, states = states })
  end
end)

describe("clipping on cuda", function()
  both.it("has the CPU's norms of any power", function()
    for _, dtype in ipairs { "f32", "f64", "bf16", "mixed" } do
      local list = tensors(dtype, 1)
      for _, p in ipairs { 2, 1, math.huge, 3, 0.5 } do
        local got = c.grads_norm(moved(list, "cuda"), { p = p })
        local want = c.grads_norm(list, { p = p })
        assert.equal(want.dtype, got.dtype)
        assert.near(want:item(), got:item(), 1e-6 * want:item())
      end
    end
    assert.equal(0, c.grads_norm({ lt.zeros { 0 }:to "cuda" }):item())
  end)

  both.it("finds nan and infinities, and squares that f32 does not hold", function()
    for _, p in ipairs { 2, 1, math.huge, 3 } do
      for _, values in ipairs { { 1, 0 / 0, 2 }, { 1, -1 / 0, 2 }, { 1e30, 3e-40, 5 } } do
        both.same_on_both("power " .. p, function(device)
          return c.grads_norm({ lt.tensor(values):to(device) }, { p = p })
        end)
      end
    end
  end)

  both.it("scales by what lies on the device, and not by 1", function()
    for _, dtype in ipairs(DTYPES) do
      for _, factor in ipairs { 1, 0.37, 0 / 0 } do
        local list = tensors(dtype, 1)
        both.same_on_both(dtype, function(device)
          local own = moved(list, device)
          c.grads_scale(joined { { lt.tensor(factor):to(device) }, own })
          return own
        end)
      end
    end
  end)
end)
