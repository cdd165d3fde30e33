-- stdlib/data/windows.lua: sliding windows of a series, with the values that follow each.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
  size = { type = "integer", min = 1, doc = "length of a window" },
  stride = { type = "integer", default = 1, min = 1, doc = "steps between the starts of windows" },
  horizon = { type = "integer", default = 1, min = 0, doc = "number of following steps, the "
    .. "target" },
}

--- Returns windows [n, size, ...] of a series x [T, ...], `stride` steps apart, and the `horizon`
--- steps after each, [n, horizon, ...]; with horizon = 0 only the windows. They are views of the
--- series.
---@param x Tensor
return function(x, options)
  local o <const> = config.check(options, OPTIONS, "windows")
  if not c.is_tensor(x) or x.ndim == 0 then
    errors.blame("windows: x must be a tensor [T, ...]: got %s", errors.show(x))
  end
  if not o.size then errors.blame "windows: size is missing" end
  local length <const> = o.size + o.horizon
  if x.shape[1] < length then
    errors.blame("windows: a series of %d steps has no window of %d and %d after it", x.shape[1],
      o.size, o.horizon)
  end
  local all <const> = x:unfold(1, length, o.stride) -- [n, ..., length]
  local whole <const> = all:movedim(all.ndim, 2)
  if o.horizon == 0 then return whole end
  return whole:narrow(2, 1, o.size), whole:narrow(2, o.size + 1, o.horizon)
end
