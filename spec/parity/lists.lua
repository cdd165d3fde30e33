-- spec/parity/lists.lua: random calls of the ops that take a list of gradients and write them.
local make = require "spec.parity.inputs"

local random <const> = math.random

local function call_of(gradients, options)
  local case = make.call(gradients, options)
  case.list, case.in_place = true, true
  return case
end

-- A few gradients of one dtype, with sizes from `smallest`; some without elements where none is
-- reported.
local function gradients(smallest)
  local list, d = {}, make.wide()
  for k = 1, random(3) do list[k] = make.tensor(make.shape_of(0, 3, smallest), {dtype = d}) end
  return list
end

-- A norm, and gradients that have it: PyTorch knows no largest element of none.
local function normed()
  local p = make.one_of{2, 2, 1, 3, 0.5, math.huge}
  return p, gradients(p == math.huge and 1 or nil)
end

return {
  grads_norm = function()
    local p, list = normed()
    return call_of(list, {p = p})
  end,
  grads_scale = function()
    local list = gradients()
    table.insert(list, 1, make.tensor({1}, {dtype = list[1].dtype}))
    return call_of(list)
  end,
  clip_grad_norm = function()
    local p, list = normed()
    return call_of(list, {max_norm = make.one_of{0.5, 2, 100}, norm_type = p})
  end,
  clip_grad_value = function() return call_of(gradients(), {clip_value = make.one_of{0.5, 2}}) end,
}
