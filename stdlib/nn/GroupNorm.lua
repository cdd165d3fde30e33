-- stdlib/nn/GroupNorm.lua: group normalization: each group of channels is normalized to mean 0 and
-- variance 1. N batch, C channels.
--
-- It is the same in training and evaluation mode, and is computed for each element of the batch
-- separately.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local GroupNorm = Module:extend("GroupNorm")

GroupNorm.__arguments = "num_groups num_channels | eps affine"

local OPTIONS <const> = {
  eps = { type = "number", default = 1e-5, min = 0, doc = "added to the variance" },
  affine = { type = "boolean", default = true, doc = "learn a weight and a bias for each channel" },
}

--- nn.GroupNorm(8, 32): 8 groups of 4 channels
function GroupNorm:init(num_groups, num_channels, options)
  local where = "nn.GroupNorm"
  self.num_groups = config.argument(num_groups, "integer", where, "num_groups", { min = 1 })
  self.num_channels = config.argument(num_channels, "integer", where, "num_channels", { min = 1 })
  if num_channels % num_groups ~= 0 then
    errors.blame("%s: num_channels must be divisible by num_groups: got %d and %d", where,
      num_channels, num_groups)
  end
  local o = config.check(options, OPTIONS, where)
  self.eps = o.eps
  if o.affine then
    self.weight = c.parameter(c.ones(num_channels))
    self.bias = c.parameter(c.zeros(num_channels))
  end
end

---@param x Tensor [N, C, ...] -> the same
function GroupNorm:forward(x)
  local y = c.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)
  return y
end

function GroupNorm:extra_repr()
  return ("%d, %d, {eps = %g}"):format(self.num_groups, self.num_channels, self.eps)
end

return GroupNorm
