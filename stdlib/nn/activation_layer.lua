-- stdlib/nn/activation_layer.lua: makes the class of an activation layer from the name of its
-- operation.

local Activation = require "ltrain.nn.activation"
local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"

-- Constructors and forwards by the number of arguments: a function takes no more than it names.
local INITS <const> = {
  function(self, a) self:take(a) end,
  function(self, a, b) self:take(a, b) end,
  function(self, a, b, d) self:take(a, b, d) end,
}
local FORWARDS <const> = {
  [0] = function(op)
    return function(self, x)
      local y = x[self.inplace and op .. "_" or op](x)
      return y
    end
  end,
  function(op, a)
    return function(self, x)
      local y = x[self.inplace and op .. "_" or op](x, self[a])
      return y
    end
  end,
  function(op, a, b)
    return function(self, x)
      local y = x[self.inplace and op .. "_" or op](x, self[a], self[b])
      return y
    end
  end,
}

--- The class of a layer that is the operation `op`, with what `rows` name as its arguments, by
--- place too; nil: it has none. The last may be "inplace", which is an option.
return function(name, op, rows)
  local class, places = (rows and Activation or Module):extend(name), {}
  if rows and rows[#rows] == "inplace" then rows[#rows] = Activation.inplace_row end
  for i, row in ipairs(rows or {}) do places[i] = row[1] end
  local has_inplace <const> = places[#places] == "inplace"
  local count <const> = has_inplace and #places - 1 or #places
  if rows then
    local own = table.concat(places, " ", 1, count)
    class.__arguments = own .. (has_inplace and (own == "" and "| inplace" or " | inplace") or "")
    class.options = config.signature(rows)
    class.init = INITS[#places]
  end
  class.forward = FORWARDS[count](op, places[1], places[2])
  return class
end
