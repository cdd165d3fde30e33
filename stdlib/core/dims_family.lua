-- stdlib/core/dims_family.lua: classes for one, two and three dims that share a file.
--
-- nn/MaxPoolNd.lua makes nn.MaxPool1d, nn.MaxPool2d and nn.MaxPool3d, each when it is first asked
-- for. Its comments document all three: "N dims", `MaxPoolNd`, `[B, C, ...]`, `[B, C, ...']` and
-- "... dims" become "two dims", `MaxPool2d`, `[B, C, H, W]`, `[B, C, H', W']` and "H height, W
-- width".

local dims_family = {}

local COUNTS <const> = { "one dim", "two dims", "three dims" }
local LETTERS <const> = { "L", "H, W", "D, H, W" }
local MEANINGS <const> = { "L length", "H height, W width", "D depth, H height, W width" }

--- A text of the file in the form for `n` dims.
function dims_family.text(text, n)
  local replaced = text:gsub("%f[%w]N dims", COUNTS[n]):gsub("(%w)Nd%f[^%w]", "%1" .. n .. "d")
    :gsub("%.%.%.'%]", LETTERS[n]:gsub("%u", "%0'") .. "]"):gsub("%.%.%.%]", LETTERS[n] .. "]")
    :gsub("%.%.%. dims", MEANINGS[n])
  return replaced
end

--- The names of the classes of the file `name`, by their dims; nil for a file of one class.
function dims_family.names(name)
  local names <const> = name:find "%wNd$" and {} or nil
  for n = 1, names and #COUNTS or 0 do names[n] = dims_family.text(name, n) end
  return names
end

--- The file that may have the class `name` ("ltrain.nn.MaxPool2d"), and the class's dims; nil for
--- a name that says no dims.
function dims_family.file_of(name)
  local first <const>, n = name:match "^(.*%w)([123])d$"
  if first then return first .. "Nd", tonumber(n) end
end

--- The classes below `parent`, by their dims. `name`: "MaxPoolNd"; `define(class, n)` gives a
--- class, whose field `dims` is n, its other fields and methods.
function dims_family.extend(parent, name, define)
  return setmetatable({}, { __index = function(self, n)
    local class <const> = parent:extend(dims_family.text(name, n))
    class.dims = n
    define(class, n)
    self[n] = class
    return class
  end })
end

return dims_family
