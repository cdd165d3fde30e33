--- stdlib/apps/check/checks/optimizer.lua: the parameters of the optimizers, and their learning
--- rates.
local c = require "ltrain.c"
local function_line <const> = c.runtime.function_line

-- Names of the module's parameters by tensor.
local function names_of(module)
  local names, list = {}, {}
  for name, parameter in module:named_parameters() do
    names[parameter] = name
    list[#list + 1] = { name = name, value = parameter }
  end
  return names, list
end

local SMALLEST <const> = 1e-9
local LARGEST <const> = { Adam = 1, AdamW = 1, Adamax = 1, NAdam = 1, RAdam = 1, RMSprop = 1 }

-- A step of these changes each weight by about the learning rate.
local function check_size(context, optimizer, group, where)
  local name = optimizer.__name or "the optimizer"
  local lr, decay, betas = group.lr, group.weight_decay or 0, group.betas
  if lr > 0 and lr < SMALLEST then
    context.report:warn("optimizer", where, ("lr = %g: weights hardly change"):format(lr),
      "1e-4 to 1e-2 are usual for Adam, 1e-3 to 1 for SGD")
  elseif LARGEST[name] and lr >= LARGEST[name] then
    context.report:warn("optimizer", where, ("lr = %g: a step of %s changes each weight by about "
      .. "that much"):format(lr, name), "1e-4 to 1e-2 are usual for Adam")
  end
  if decay >= 1 or decay * lr > 0.1 then
    context.report:warn("optimizer", where, ("weight_decay = %g (lr = %g): weights go to 0"):format(
      decay, lr), "1e-5 to 0.1 are usual")
  end
  if type(betas) == "table" and betas[1] and betas[2] and betas[1] > betas[2] then
    context.report:warn("optimizer", where, ("betas = {%g, %g}: the first is usually the smaller "
      .. "one"):format(betas[1], betas[2]), "{0.9, 0.999} is usual")
  end
  if type(group.momentum) == "number" and group.momentum >= 1 then
    context.report:error("optimizer", where, ("momentum = %g: steps grow without bound"):format(
      group.momentum), "0.9 is usual")
  end
end

-- Up to three names, and how many more.
local function enumerate(names)
  local text = table.concat(names, ", ", 1, math.min(#names, 3))
  return #names > 3 and ("%s and %d more"):format(text, #names - 3) or text
end

local function check_rate(context, group, i, where, scheduled)
  if group.lr == 0 and not scheduled then
    context.report:error("optimizer", where, ("the learning rate of group %d is 0: its parameters "
      .. "are not changed"):format(i), "give the optimizer an lr above 0")
  end
end

return {
  at_start = function(context, state)
    if #state.optimizers == 0 then return end
    local where = function_line(state.module.configure_optimizers)
    local names, list = names_of(state.module)
    local trained, foreign = {}, 0
    for _, optimizer in ipairs(state.optimizers) do
      local scheduled = false
      for _, config in ipairs(state.schedulers) do
        scheduled = scheduled or config.scheduler.optimizer == optimizer
      end
      for i, group in ipairs(optimizer.param_groups) do
        check_rate(context, group, i, where, scheduled)
        if not scheduled then check_size(context, optimizer, group, where) end
        for _, parameter in ipairs(group.params or {}) do
          trained[parameter] = true
          if not names[parameter] then foreign = foreign + 1 end
        end
      end
    end
    if foreign > 0 then
      context.report:error("optimizer", where, ("%d parameter%s of the optimizer %s not of the "
        .. "module"):format(foreign, foreign == 1 and "" or "s", foreign == 1 and "is" or "are"),
        "make the optimizer in configure_optimizers, from self:parameters(); layers that were "
          .. "replaced or moved have new parameters")
    end
    context.foreign = foreign > 0
    local missing, frozen = {}, #list > 0
    for _, item in ipairs(list) do frozen = frozen and not item.value.requires_grad end
    if frozen then
      context.report:error("optimizer", where, ("none of the %d parameters requires grad: nothing "
        .. "can be learnt"):format(#list), "freeze only the layers that must not change: "
        .. "requires_grad = true for the others")
      context.frozen = true
    end
    for _, item in ipairs(list) do
      if item.value.requires_grad and not trained[item.value] then
        missing[#missing + 1] = item.name
      end
    end
    if #missing > 0 and not context.foreign then
      context.report:warn("optimizer", where, ("no optimizer has %s: not learnt"):format(
        enumerate(missing)), "add them to the optimizer, or freeze them with requires_grad = false")
    end
  end,
}
