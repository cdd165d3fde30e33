-- stdlib/optim/AdamW.lua: Adam with decoupled weight decay (Loshchilov and Hutter 2019).

local Adam = require "ltrain.optim.Adam"
local tree = require "ltrain.core.tree"

local AdamW = Adam:extend("AdamW")

AdamW.__arguments = "params | lr betas eps weight_decay amsgrad maximize"

AdamW.decoupled = true

AdamW.options = {}
for name, row in tree.pairs(Adam.options) do AdamW.options[name] = row end
AdamW.options.weight_decay = { type = "number", default = 0.01, min = 0,
                               doc = "this times lr times the weight is subtracted" }
AdamW.options.decoupled_weight_decay = nil

return AdamW
