--- stdlib/trainer/steps/nonfinite/gradient_names.lua: names the parameters whose gradients are not
--- finite, for messages.
local dist = require "ltrain.dist"
local exchange = require "ltrain.trainer.ranks.exchange"
local finite_values = require "ltrain.trainer.steps.nonfinite.finite_values"

local gradient_names = {}

local MOST <const> = 3 -- names in a text

--- "a, b and 3 more"; "all" when only their norm overflows.
function gradient_names.listed(names)
  if #names == 0 then return "all parameters together" end
  if #names <= MOST then return table.concat(names, ", ") end
  return ("%s and %d more"):format(table.concat(names, ", ", 1, MOST), #names - MOST)
end

--- The names of an optimizer's parameters whose gradients are not finite on this rank.
function gradient_names.own(state, optimizer)
  local names = {}
  for _, group in ipairs(state.strategy:param_groups(optimizer)) do
    for i, parameter in ipairs(group.params) do
      local grad = parameter.grad
      if grad and not finite_values.of(grad) then
        names[#names + 1] = group.names and group.names[i] or tostring(#names + 1)
      end
    end
  end
  return names
end

--- Those of all ranks, in their order, each once. All ranks come here.
function gradient_names.of_ranks(own)
  local names, seen = {}, {}
  for _, of_rank in ipairs(exchange("nonfinite", dist.all_gather, own)) do
    for _, name in ipairs(of_rank) do
      if not seen[name] then names[#names + 1] = name end
      seen[name] = true
    end
  end
  return names
end

return gradient_names
