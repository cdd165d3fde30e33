--- stdlib/apps/check/checks/options.lua: options of the Trainer that leave nothing to train, or do
--- nothing.
local visit = require "ltrain.apps.check.source.visit"

local TINY <const>, HUGE <const> = 1e-5, 1e6 -- norms of gradients

-- The line at which the script gives the option; 0: a flag, or none.
local function line_of(context, name)
  local line = 0
  visit(context.source and context.source.tree or {}, function(node)
    if node.kind == "item" and node.key and node.key.value == name and line == 0 then
      line = node.line
    end
  end)
  return line
end

local function check_clipping(context, value)
  if not value or value == 0 or value == math.huge then return end
  local where = line_of(context, "gradient_clip_val")
  if value < TINY then
    context.report:warn("options", where, ("gradient_clip_val = %g makes all gradients that small")
      :format(value), "0.5 to 5 are usual")
  elseif value > HUGE then
    context.report:warn("options", where, ("gradient_clip_val = %g clips nothing"):format(value),
      "0.5 to 5 are usual; leave it out to clip nothing")
  end
end

-- Validation after more batches than an epoch has.
local function check_interval(context, count)
  local interval = context.trainer.options.val_check_interval
  if math.type(interval) == "integer" and context.by_epoch and count and interval > count then
    context.report:error("options", line_of(context, "val_check_interval"),
      ("val_check_interval = %d is more than the %d batches of an epoch"):format(interval, count),
      "lower it, or let it count across epochs: check_val_every_n_epoch = false")
  end
end

return {
  on_data = function(context, state) check_interval(context, state.data.train.count) end,
  at_start = function(context)
    local trainer = context.trainer
    check_clipping(context, trainer.gradient_clip_val or trainer.options.gradient_clip_val)
  end,
  -- Called without a loop: those end before their first batch.
  options = function(context)
    local given = context.trainer.options
    context.by_epoch = given.check_val_every_n_epoch
    for _, name in ipairs { "max_epochs", "max_steps", "limit_train_batches" } do
      if given[name] == 0 then
        context.report:warn("options", line_of(context, name), name .. " = 0: nothing is trained",
          "give a count above 0")
        context.trainer[name] = name == "limit_train_batches" and 1.0 or -1
      end
    end
  end,
}
