-- stdlib/nn/Identity.lua: returns its input; a placeholder for a removed layer.

local Module = require "ltrain.nn.Module"

local Identity = Module:extend("Identity")

function Identity:forward(x) return x end

return Identity
