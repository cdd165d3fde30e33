--- stdlib/apps/check/checks/lr_schedule.lua: the learning rates that schedulers give until the end.
local c = require "ltrain.c"
local visit = require "ltrain.apps.check.source.visit"

local MOST <const> = 20000 -- steps of a scheduler that are tried
local LARGE <const>, GROWTH <const> = 1, 100 -- a rate, and it against the first
local GONE <const> = 0.5 -- of the steps, with a rate of 0

local function rate_of(optimizer)
  local most = 0
  for _, group in ipairs(optimizer.param_groups) do most = math.max(most, group.lr) end
  return most
end

local function name_of(scheduler)
  local meta = getmetatable(scheduler)
  return type(meta) == "table" and meta.__name or "the scheduler"
end

-- A scheduler whose length counts steps, and that is stepped once an epoch.
local function check_interval(context, config, where)
  local scheduler, epochs, steps = config.scheduler, context.max_epochs, context.total_steps
  local length = scheduler.total_steps or scheduler.T_max
  if config.interval ~= "epoch" or type(length) ~= "number" or steps <= epochs then return end
  if length > 2 * epochs and length >= steps / 2 then
    context.report:warn("schedule", where, ("%s is as long as %d steps, and is stepped once an "
      .. "epoch, %d times"):format(name_of(scheduler), length, epochs),
      "write {scheduler = ..., interval = 'step'}")
    return true
  end
end

local function check_rates(context, config, where)
  local scheduler = config.scheduler
  local optimizer, unit = scheduler.optimizer, config.interval
  local n = (unit == "step" and context.total_steps or context.max_epochs) // config.frequency
  if n > MOST or n < 2 then return end
  local first, most, gone = rate_of(optimizer), 0, 0
  for k = 2, n do
    local ok, message = pcall(scheduler.step, scheduler)
    if not ok then
      context.report:error("schedule", where, ("%s cannot be stepped for %s %d of %d: %s"):format(
        name_of(scheduler), unit, k, n, (c.runtime.error_text(message):gsub("\n.*", "")
          :gsub("^[^\n:]+:%d+: ", ""))), "set it to the number of training steps: "
          .. "self.trainer.estimated_stepping_batches")
      return
    end
    local rate = rate_of(optimizer)
    most, gone = math.max(most, rate), gone + (rate == 0 and 1 or 0)
  end
  if most > LARGE and most > GROWTH * math.max(first, 1e-12) then
    context.report:warn("schedule", where, ("%s raises the learning rate from %g to %g"):format(
      name_of(scheduler), first, most), "a gamma above 1 raises it; check its interval ('epoch' "
      .. "or 'step') too")
  elseif gone > GONE * n then
    context.report:warn("schedule", where, ("with %s the learning rate is 0 for %d of %d %ss")
      :format(name_of(scheduler), gone, n, unit), "check its factors and its interval ('epoch' or "
      .. "'step')")
  end
end

-- A scheduler that is made, and not used: of configure_optimizers, that does not return it.
local function check_unused(context)
  local made, uses = {}, {}
  visit(context.source.tree, function(node)
    if node.kind == "local" then
      for i, value in ipairs(node.values or {}) do
        local name = value.kind == "call" and value.fn and value.fn.kind == "index"
          and value.fn.key.value
        if type(name) == "string" and name:find "LR%f[%W]" or name == "ReduceLROnPlateau" then
          made[#made + 1] = { var = node.vars[i], line = node.line, name = name }
        end
      end
    elseif node.kind == "name" and node.var then
      uses[node.var] = true
    end
  end)
  for _, one in ipairs(made) do
    if not uses[one.var] then
      context.report:warn("schedule", one.line, ("nothing uses the scheduler %s: the learning rate "
        .. "stays as it is"):format(one.name), "return {optimizer = ..., lr_scheduler = ...}")
    end
  end
end

return {
  source = check_unused,
  at_start = function(context, state)
    local trainer = state.trainer
    context.max_epochs = not trainer.epochs_by_default and trainer.max_epochs or -1
    if trainer.max_steps ~= -1 then context.max_epochs = -1 end
  end,
  on_data = function(context, state)
    local count = state.data.train.count
    if context.max_epochs > 0 and count and count < math.huge then
      local windows = math.ceil(count / state.trainer.accumulate_grad_batches)
      context.total_steps = windows * context.max_epochs
    end
  end,
  at_end = function(context, state)
    if not context.total_steps or not state.automatic then return end
    local where = c.runtime.function_line(state.module.configure_optimizers)
    for _, config in ipairs(state.schedulers) do
      if not config.reduce_on_plateau and type(config.scheduler.step) == "function"
        and type(config.scheduler.optimizer) == "table"
        and not check_interval(context, config, where) then
        check_rates(context, config, where)
      end
    end
  end,
}
