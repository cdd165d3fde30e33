-- stdlib/special/functions.lua: functions of lt by the names that they have in torch.special.

local c = require "ltrain.c"
local gamma = require "ltrain.ops.gamma"

local NAMES <const> = { expit = "sigmoid", gammainc = "igamma", gammaincc = "igammac",
  gammaln = "lgamma", modified_bessel_i0 = "i0", modified_bessel_i1 = "i1", psi = "digamma",
  multigammaln = "mvlgamma" }

return setmetatable({}, {
  __index = function(_, name)
    local own <const> = NAMES[name] or name
    return gamma[own] or c[own]
  end,
})
