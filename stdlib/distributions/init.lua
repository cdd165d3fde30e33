-- stdlib/distributions/init.lua: lt.distributions, probability distributions: each is the file of
-- its name.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.distributions", "distributions", { "kl_divergence" })
