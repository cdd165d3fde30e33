-- stdlib/transforms/values.lua: arguments of transforms, as C takes them.

local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local Transform = require "ltrain.transforms.Transform"

local values = {}

local FILTERS <const> = { nearest = 0, bilinear = 1, bicubic = 2 }
local PADDINGS <const> = { constant = 0, edge = 1, reflect = 2, symmetric = 3 }

--- Rows of options that several have.
values.p = { type = "number", default = 0.5, min = 0, max = 1, doc = "probability" }
values.fill = { type = "number|table", default = 0,
  doc = "value outside of the image, or a list with one per channel" }
values.padding_mode = { type = "string", default = "constant",
  choices = { "constant", "edge", "reflect", "symmetric" } }

function values.interpolation(default, ...)
  return { type = "string", default = default, choices = { "nearest", "bilinear", ... } }
end

function values.filter(name) return FILTERS[name] end
function values.padding(name) return PADDINGS[name] end

--- A list of n numbers; `bounds` as those of config.
function values.list(value, n, where, name, bounds)
  local right = type(value) == "table" and getmetatable(value) == nil and #value == n
  for k = 1, right and n or 0 do right = right and type(value[k]) == "number" end
  if not right then
    errors.blame("%s: %s must be %d numbers: got %s", where, name, n, errors.show(value))
  end
  return config.value(value, { type = "table", min = bounds and bounds.min,
    max = bounds and bounds.max, above = bounds and bounds.above }, where, name)
end

--- {low, high}.
function values.range(value, where, name, bounds)
  local range <const> = values.list(value, 2, where, name, bounds)
  local in_order <const> = range[1] <= range[2]
  if not in_order then
    errors.blame("%s: %s must be {low, high}: got {%g, %g}", where, name, range[1], range[2])
  end
  return range
end

--- {-x, x} of a number, or a range.
function values.around_zero(value, where, name)
  if type(value) ~= "number" then return values.range(value, where, name) end
  config.value(value, { type = "number", min = 0 }, where, name)
  return { -value, value }
end

--- {height, width} of an integer, or as it is.
function values.size(value, where, name)
  local size <const> = config.value(value, { type = "pair", min = 1, max = 65535 }, where, name)
  return type(size) == "table" and size or { size, size }
end

--- One value a channel, of a number for all of them.
function values.channels(value, where, name)
  if type(value) == "number" then return { value, value, value, value } end
  if #value < 1 or #value > 4 then
    errors.blame("%s: %s must be a number, or one for each of 1 to 4 channels: got %s", where, name,
      errors.show(value))
  end
  return values.list(value, #value, where, name)
end

--- {left, top, right, bottom} of a number, {x, y}, or four.
function values.sides(value, where, name)
  if math.type(value) == "integer" then value = { value, value, value, value } end
  if type(value) == "table" and #value == 2 then
    value = { value[1], value[2], value[1], value[2] }
  end
  values.list(value, 4, where, name, { min = -65535, max = 65535 })
  for _, side in ipairs(value) do
    config.argument(side, "integer", where, name)
  end
  return value
end

--- A list of transforms and functions.
function values.parts(list, where)
  if type(list) ~= "table" or getmetatable(list) ~= nil then
    errors.blame("%s: transforms must be a list: got %s", where, errors.show(list))
  end
  for k, part in elements.each(list) do
    local is_class = class.is_class(part, Transform)
    if is_class or not class.is_callable(part) then
      errors.blame("%s: entry %d must be a transform or a function: got %s%s", where, k,
        errors.show(part), is_class and ": call it to make an object" or "")
    end
  end
  if #list == 0 and next(list) ~= nil then
    errors.blame("%s: transforms must be a list: got names", where)
  end
  return list
end

--- The steps of all parts, one list a part; nil when one is a function.
function values.steps_of(parts)
  local lists = {}
  for k, part in ipairs(parts) do
    lists[k] = class.is_a(part, Transform) and part:_steps() or nil
    if not lists[k] then return nil end
  end
  return lists
end

--- Lists of steps, one after another.
function values.joined(lists)
  local all = {}
  for _, list in ipairs(lists) do table.move(list, 1, #list, #all + 1, all) end
  return all
end

return values
