-- stdlib/nn/Flatten.lua: a range of dims made one.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"

local Flatten = Module:extend("Flatten")

local OPTIONS <const> = {
  start_dim = { type = "integer", default = 2, doc = "first of the dims; 1 is the batch" },
  end_dim = { type = "integer", default = -1, doc = "last of the dims" },
}

--- nn.Flatten(): everything but the batch
function Flatten:init(options)
  local o = config.check(options, OPTIONS, "nn.Flatten")
  self.start_dim, self.end_dim = o.start_dim, o.end_dim
end

---@param x Tensor [B, ...] -> [B, N]
function Flatten:forward(x)
  local y = x:flatten(self.start_dim, self.end_dim)
  return y
end

function Flatten:extra_repr()
  return ("{start_dim = %d, end_dim = %d}"):format(self.start_dim, self.end_dim)
end

return Flatten
