-- stdlib/nn/Bilinear.lua: y[o] = x1^T W[o] x2 + b[o].
-- N any leading dims, I and J inputs, O outputs.

local Module = require "ltrain.nn.Module"
local bilinear = require "ltrain.ops.bilinear"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local initialise = require "ltrain.nn.initialise"

local Bilinear = Module:extend("Bilinear")

Bilinear.__arguments = "in1_features in2_features out_features | bias"

local OPTIONS <const> = { bias = { type = "boolean", default = true, doc = "whether it has b" } }

--- nn.Bilinear(20, 30, 40)
function Bilinear:init(in1_features, in2_features, out_features, options)
  local name <const>, one <const> = "nn.Bilinear", { min = 1 }
  self.in1_features = config.argument(in1_features, "integer", name, "in1_features", one)
  self.in2_features = config.argument(in2_features, "integer", name, "in2_features", one)
  self.out_features = config.argument(out_features, "integer", name, "out_features", one)
  local o = config.check(options, OPTIONS, name)
  local bound = 1 / math.sqrt(in1_features)
  self.weight = c.parameter(c.empty(out_features, in1_features, in2_features))
  initialise.uniform_(self.weight, -bound, bound)
  if o.bias then
    self.bias = c.parameter(c.empty(out_features))
    initialise.uniform_(self.bias, -bound, bound)
  end
end

---@param x1 Tensor [N, I]
---@param x2 Tensor [N, J]
function Bilinear:forward(x1, x2)
  local y = bilinear(x1, x2, self.weight, self.bias)
  return y
end

function Bilinear:extra_repr()
  return ("%d, %d, %d%s"):format(self.in1_features, self.in2_features, self.out_features,
    self.bias and "" or ", {bias = false}")
end

return Bilinear
