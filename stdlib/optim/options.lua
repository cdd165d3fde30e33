-- stdlib/optim/options.lua: the rows of options that optimizers share.

local tree = require "ltrain.core.tree"

local function check_betas(betas)
  for i = 1, 2 do
    local beta = betas[i]
    if type(beta) ~= "number" or beta < 0 or beta >= 1 then
      return ("must be two numbers in 0..1, 1 excluded: got {%s, %s}"):format(betas[1], betas[2])
    end
  end
end

local SHARED <const> = {
  lr = { type = "number", min = 0, doc = "learning rate" },
  betas = { type = "table", check = check_betas, doc = "decay rates of the running means" },
  eps = { type = "number", min = 0, doc = "added to the denominator" },
  weight_decay = { type = "number", default = 0, min = 0,
    doc = "L2 penalty: this times the weight is added to the gradient" },
  decoupled_weight_decay = { type = "boolean", default = false,
    doc = "weight_decay times lr times the weight is subtracted instead (as AdamW does)" },
  maximize = { type = "boolean", default = false, doc = "ascend along the gradient" },
  initial_lr = { type = "number", doc = "set by schedulers" },
}

--- The rows of an optimizer's options: a table with one row an option, or, of those above, with
--- their default (true: they have it). All have `maximize` and `initial_lr`.
return function(own)
  own.maximize, own.initial_lr = true, true
  local rows = {}
  for name, value in tree.pairs(own) do
    local row = SHARED[name]
    if row == nil or type(value) == "table" and value.doc then
      rows[name] = value
    else
      local copy = {}
      for key, part in tree.pairs(row) do copy[key] = part end
      if value ~= true then copy.default = value end
      rows[name] = copy
    end
  end
  return rows
end
