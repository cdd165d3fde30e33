--- stdlib/check/checks/weights.lua: weights that begin all alike, and can therefore not differ.
local c = require "ltrain.c"
local walk = require "ltrain.core.walk"

local LAYERS <const> = { "^Linear", "^Conv", "^Bilinear" }
local ENOUGH <const> = 4 -- steps after which a gradient has come to all weights

local function is_layer(module)
  local name = walk.class_name(module)
  for _, pattern in ipairs(LAYERS) do
    if name:find(pattern) then return true end
  end
  return false
end

local function line_of(context, name)
  local field = name:match "^[^.%[]+"
  return context.source and context.source.line_of_field(field) or context.step_line
end

local function shape(tensor) return "[" .. table.concat(tensor.shape, ", ") .. "]" end

return {
  before = function(context, state)
    local _ <close> = c.no_grad()
    context.zeros = {}
    for _, entry in ipairs(walk.modules(state.module)) do
      local weight = rawget(entry.module, "weight")
      if c.is_tensor(weight) and weight.requires_grad and #weight.shape >= 2
        and weight.shape[1] > 1 and is_layer(entry.module) then
        local low, high = weight:min():item(), weight:max():item()
        local name = entry.name == "" and "weight" or entry.name .. ".weight"
        if low == 0 and high == 0 then
          table.insert(context.zeros, { name = name, weight = weight })
        elseif low == high then
          context.report:warn("weights", line_of(context, name), ("all values of %s %s are %g: its "
            .. "%d outputs are the same, and stay so"):format(name, shape(weight), low,
            weight.shape[1]), "start with random weights (kaiming_uniform_ and the like)")
        end
      end
    end
  end,
  -- A last layer of zeros is a usual start; two of them in a row are not.
  after = function(context)
    if (context.learn_steps or 0) < ENOUGH then return end
    local _ <close> = c.no_grad()
    for _, one in ipairs(context.zeros or {}) do
      if not one.weight:any():item() then
        local text = "all values of %s %s are 0, and stay 0 in %d steps: no gradient comes to them"
        context.report:warn("weights", line_of(context, one.name),
          text:format(one.name, shape(one.weight), context.learn_steps),
          "start with random weights; zeros do for the last of several layers only")
      end
    end
  end,
}
