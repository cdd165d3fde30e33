-- stdlib/optim/init.lua: lt.optim, the optimizers and schedulers: each is the file of its name.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.optim", "optim", { averaging = { "get_ema_avg_fn", "update_bn" } })
