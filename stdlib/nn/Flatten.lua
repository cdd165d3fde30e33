-- stdlib/nn/Flatten.lua: flattens a range of dims into one.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"

local Flatten = Module:extend("Flatten")

Flatten.__arguments = "| start_dim end_dim"

local OPTIONS <const> = {
  start_dim = { type = "integer", default = 2, doc = "first dim; 1 is the batch" },
  end_dim = { type = "integer", default = -1, doc = "last dim" },
}

--- nn.Flatten(): all dims but the batch
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
