--- stdlib/parallel/layout_lists.lua: layouts of several tensors, by place: arguments or results.
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local layouts = require "ltrain.parallel.layouts"

local layout_lists = {}

--- A row of options for one layout, or a list of layouts and false.
function layout_lists.row(doc)
  return { type = "object|table", required = true, doc = doc, check = function(value)
    for _, one in ipairs(layouts.is(value) and {} or value) do
      if one and not layouts.is(one) then
        return ("must be Shard(dim), Replicate(), or a list of these and false: got %s in it")
          :format(errors.show(one))
      end
    end
  end }
end

--- Makes lists of two options of a style, which must have as many places.
function layout_lists.check(style, from, to)
  for _, name in ipairs { from, to } do
    if layouts.is(style[name]) then style[name] = { style[name] } end
  end
  if #style[from] == #style[to] then return end
  errors.blame("parallel.%s: %s and %s must have equally many places: got %d and %d",
    class.of(style).__name, from, to, #style[from], #style[to])
end

return layout_lists
