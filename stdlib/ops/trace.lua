-- stdlib/ops/trace.lua: lt.trace, the sum of a matrix's diagonal.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

--- The sum of the diagonal of a matrix [M, N].
return function(x)
  if not c.is_tensor(x) or x.ndim ~= 2 then
    errors.blame("trace: needs a matrix: got %s",
      c.is_tensor(x) and errors.show_shape(x) or errors.show(x))
  end
  return x:diagonal():sum()
end
