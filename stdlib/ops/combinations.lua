-- stdlib/ops/combinations.lua: lt.combinations: all combinations of r elements of a vector.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = config.signature {
  { "r", type = "integer", default = 2, min = 0, doc = "how many elements each has" },
  { "with_replacement", type = "boolean", default = false, doc = "elements may repeat" },
}

--- The combinations of r elements of a vector, in lexicographic order of their positions: [M, r].
---@param x Tensor [N]
return function(x, r, with_replacement)
  arguments.tensor(x, "combinations", "x")
  local o <const> = config.arguments("combinations", OPTIONS, r, with_replacement)
  if x.ndim ~= 1 then
    errors.blame("combinations: needs a vector: got %s", errors.show_shape(x))
  end
  if o.r == 0 then return x:narrow(1, 1, 0) end
  local n <const>, step <const> = x:numel(), o.with_replacement and 0 or 1
  local positions, at = {}, {}
  local function choose(k, from)
    if k > o.r then
      table.move(at, 1, o.r, #positions + 1, positions)
      return
    end
    for position = from, n - 1 do
      at[k] = position
      choose(k + 1, position + step)
    end
  end
  choose(1, 0)
  local y <const> = x:index_select(1, c.tensor(positions, { dtype = "i64", device = x.device }))
  return y:reshape { -1, o.r }
end
