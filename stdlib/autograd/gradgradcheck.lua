--- stdlib/autograd/gradgradcheck.lua: lt.gradgradcheck, second derivatives against finite
--- differences.
--
--   local lt = require "ltrain"
--   local x = lt.tensor({0.3, -0.7}, {dtype = "f64", requires_grad = true})
--   print(lt.gradgradcheck(lt.tanh, x))
--   -- prints: true
--
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local finite_differences = require "ltrain.autograd.finite_differences"

-- Numbers without a pattern in the shape of y.
local function weights_of(y)
  local n = y:numel()
  local list = (c.arange(1, n + 1):to("f64") * 1.7):sin():to(y.device):reshape(y.shape)
  return list:to(y.dtype):detach():requires_grad_()
end

-- The gradients of f, as a function of its inputs and of the gradients that it is given.
local function gradient_of(f, n, who)
  return function(...)
    local given = { ... }
    local inputs, seeds = table.move(given, 1, n, 1, {}), table.move(given, n + 1, #given, 1, {})
    local results, leaves, made = finite_differences.results_of(f, inputs, who), {}, {}
    for _, x in ipairs(inputs) do
      if c.is_tensor(x) and x.requires_grad then leaves[#leaves + 1] = x end
    end
    local ys, ws = {}, {}
    for k, y in ipairs(results) do
      if y.requires_grad then ys[#ys + 1], ws[#ws + 1] = y, seeds[k] end
    end
    local grads = c.grad(ys, leaves, { grad_outputs = ws, create_graph = true,
      allow_unused = true })
    for i, x in ipairs(leaves) do made[i] = grads[i] or c.zeros_like(x) end
    return table.unpack(made)
  end
end

--- Whether the second derivatives of f(table.unpack(inputs)) agree with central differences: its
--- gradients with respect to the inputs, and to the gradients of the results, for which random
--- numbers are used. The options of `lt.gradcheck`.
return function(f, inputs, options)
  local who = "gradgradcheck"
  local o = config.check(options, finite_differences.OPTIONS, who)
  inputs = finite_differences.list_of(inputs, who)
  local all = table.move(inputs, 1, #inputs, 1, {})
  for _, y in ipairs((finite_differences.results_of(f, inputs, who))) do
    all[#all + 1] = weights_of(y)
  end
  return finite_differences.check(gradient_of(f, #inputs, who), all, o, who)
end
