-- stdlib/nn/Identity.lua: gives back what it gets; stands where a layer was taken out.

local Module = require "ltrain.nn.Module"

local Identity = Module:extend("Identity")

function Identity:forward(x) return x end

return Identity
