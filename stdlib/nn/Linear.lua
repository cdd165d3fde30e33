-- stdlib/nn/Linear.lua: y = x W^T + b.
-- N any leading dims, I inputs, O outputs.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local initialise = require "ltrain.nn.initialise"

local Linear = Module:extend("Linear")

Linear.__arguments = "in_features out_features | bias"

local OPTIONS <const> = { bias = { type = "boolean", default = true, doc = "whether it has b" } }

--- nn.Linear(784, 10, {bias = true})
function Linear:init(in_features, out_features, options)
  self.in_features = config.argument(in_features, "integer", "nn.Linear", "in_features",
    { min = 1 })
  self.out_features = config.argument(out_features, "integer", "nn.Linear", "out_features",
    { min = 1 })
  local o = config.check(options, OPTIONS, "nn.Linear")
  self.weight = c.parameter(c.empty(out_features, in_features))
  if o.bias then self.bias = c.parameter(c.empty(out_features)) end
  initialise.default_(self.weight, self.bias)
end

---@param x Tensor [N, I] -> [N, O]
function Linear:forward(x)
  local y = c.linear(x, self.weight, self.bias)
  return y
end

function Linear:extra_repr()
  return ("%d, %d%s"):format(self.in_features, self.out_features,
    self.bias and "" or ", {bias = false}")
end

return Linear
