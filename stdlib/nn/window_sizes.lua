-- stdlib/nn/window_sizes.lua: checks and prints sizes given as one number or one for each dim, for
-- convolutions, pooling and padding.

local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local window_sizes = {}

--- Raises unless `value` is a number, or a list of one for each dim of the layer.
function window_sizes.check(layer, name, value)
  if type(value) == "table" and #value ~= layer.dims then
    errors.blame("nn.%s: %s must be an integer or %d of them: got %s", layer.__name, name,
      layer.dims, errors.show(value))
  end
  return value
end

--- An argument of the constructor: an integer of at least `least`, or one for each dim; of `kind`
--- "sizes" (nil: "each") false for a dim too.
function window_sizes.argument(layer, name, value, least, kind)
  return window_sizes.check(layer, name,
    config.argument(value, kind or "each", "nn." .. layer.__name, name, { min = least or 1 }))
end

--- The options as `rows` describe them, lists as long as the layer has dims.
function window_sizes.options(layer, options, rows)
  local checked = config.check(options, rows, "nn." .. layer.__name)
  for name, row in next, rows do
    if row.type:find "each" then window_sizes.check(layer, name, checked[name]) end
  end
  return checked
end

--- What an argument is along dim k.
function window_sizes.at(value, k) return type(value) == "table" and value[k] or value end

function window_sizes.show(value)
  if type(value) == "table" then
    local shown = {}
    for k, v in ipairs(value) do shown[k] = tostring(v) end
    return "{" .. table.concat(shown, ", ") .. "}"
  end
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

--- "{stride = 2, bias = false}": the options that differ from the defaults, in this order; nil
--- where none does.
function window_sizes.repr(options, rows, order)
  local parts = {}
  for _, name in ipairs(order) do
    local value = options[name]
    if value ~= nil and value ~= rows[name].default then
      parts[#parts + 1] = name .. " = " .. window_sizes.show(value)
    end
  end
  return #parts > 0 and "{" .. table.concat(parts, ", ") .. "}" or nil
end

return window_sizes
