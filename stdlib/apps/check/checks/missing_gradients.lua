--- stdlib/apps/check/checks/missing_gradients.lua: parameters without a gradient, or with a
--- vanishing one.
local c = require "ltrain.c"

local VANISHED <const> = 1e-8 -- of the largest gradient

local function rms(tensor) return tensor:detach():norm():item() / tensor:numel() ^ 0.5 end

-- Names by the first field of their path.
local function by_field(names)
  local groups, order = {}, {}
  for _, name in ipairs(names) do
    local field = name:match "^[^.]+"
    if not groups[field] then
      groups[field] = {}
      order[#order + 1] = field
    end
    table.insert(groups[field], name)
  end
  return groups, order
end

local function line_of(context, field)
  return context.source and context.source.line_of_field(field) or context.step_line
end

local function check_missing(context, missing)
  local groups, order = by_field(missing)
  for _, field in ipairs(order) do
    local names = groups[field]
    context.report:warn("gradient", line_of(context, field), ("no gradient reaches %s%s"):format(
      names[1], #names > 1 and (" and %d more of %s"):format(#names - 1, field) or ""),
      "use it to compute the loss, without detach() or no_grad; or freeze it with requires_grad = "
        .. "false")
  end
end

local function check_vanishing(context, sizes)
  local most, least = nil, nil
  for _, one in ipairs(sizes) do
    if not most or one.size > most.size then most = one end
    if one.size > 0 and (not least or one.size < least.size) then least = one end
  end
  if least and least.size < VANISHED * most.size then
    context.report:warn("gradient", line_of(context, least.name:match "^[^.]+"),
      ("gradients vanish: their root mean square is %.2g in %s and %.2g in %s"):format(least.size,
        least.name, most.size, most.name),
      "use relu or gelu for sigmoid and tanh, residual connections, normalisation, or larger "
        .. "weights at the start")
  end
end

-- Weights that the step computes with, and the module does not have.
local function check_foreign(context, state)
  local own, seen = {}, {}
  for _, parameter in state.module:named_parameters() do own[parameter] = true end
  for _, call in ipairs(context.first and context.first.calls or {}) do
    local out = call.outputs[1]
    for _, x in ipairs(out and out.requires_grad and call.inputs or {}) do
      local anew = context.first.made > 0
      local place = not own[x] and c.is_parameter(x) and x.requires_grad
        and (c.runtime.parameter_line(x) or anew and context.step_line or call.line)
      if place and not seen[place] then
        seen[place] = true
        context.report:error("gradient", place, ("weights [%s] are %s: no optimizer trains them, "
          .. "no checkpoint has them"):format(table.concat(x.shape, ", "),
          anew and "made in the step" or "in no field of the module"),
          "create the layer in init, as a field: self.name = ...")
      end
    end
  end
end

return {
  after = function(context, state)
    if not context.foreign then check_foreign(context, state) end
    if context.foreign or next(context.gradients) == nil then return end
    local _ <close> = c.no_grad()
    local missing, sizes = {}, {}
    for name, parameter in state.module:named_parameters() do
      local gradient = context.gradients[name]
      if parameter.requires_grad and not gradient then missing[#missing + 1] = name end
      if gradient and #parameter.shape >= 2 then
        sizes[#sizes + 1] = { name = name, size = rms(gradient) }
      end
    end
    check_missing(context, missing)
    check_vanishing(context, sizes)
  end,
}
