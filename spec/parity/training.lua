-- spec/parity/training.lua: random optimizers and schedulers, some steps of each.
--
-- A row of OPTIMIZERS is a function that returns options: one line for an optimizer. It minimises
-- the sum of c (p - 1)^2 / 2 from drawn parameters, by a closure. A row of SCHEDULERS returns the
-- arguments after the optimizer, and options; with `metrics`, each step is given one.
local lt = require "ltrain"
local make = require "spec.parity.inputs"

local one_of, random = make.one_of, math.random

local M = {}

local function lr() return one_of{0.1, 0.01} end
local function adam()
  return {lr = lr(), betas = one_of{{0.9, 0.999}, {0.5, 0.9}}, eps = one_of{1e-8, 1e-4},
    weight_decay = one_of{0, 0.1}}
end

local OPTIMIZERS <const> = {
  Adam = adam, AdamW = adam,
  SGD = function()
    local momentum = one_of{0, 0.9}
    return {lr = lr(), momentum = momentum, weight_decay = one_of{0, 0.1},
      nesterov = momentum > 0 and one_of{true, false}}
  end,
}

local SCHEDULERS <const> = {
  CosineAnnealingLR = function() return {random(4, 12)}, {eta_min = one_of{0, 0.01}} end,
  LambdaLR = function() return {"lambda"}, {} end,
  ReduceLROnPlateau = function()
    return {}, {patience = random(0, 2), factor = one_of{0.5, 0.1}, mode = one_of{"min", "max"}},
      true
  end,
  StepLR = function() return {random(4)}, {gamma = one_of{0.5, 0.1}} end,
}

--- Names of lt.optim that are not compared, with the reason.
M.except = {
  GradScaler = "scales losses: spec/optim/grad_scaler_spec.lua", LRScheduler = "a base class",
  Optimizer = "a base class", AveragedModel = "spec/optim/averaged_model_spec.lua",
}
for _, name in ipairs{"ASGD", "Adadelta", "Adafactor", "Adagrad", "Adamax", "LBFGS", "Lion", "Muon",
  "NAdam", "RAdam", "RMSprop", "Rprop"} do
  M.except[name] = "recorded over 100 steps: spec/optim/torch_steps_spec.lua"
end
for _, name in ipairs{"ChainedScheduler", "ConstantLR", "CosineAnnealingWarmRestarts", "CyclicLR",
  "ExponentialLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
  "SWALR", "SequentialLR"} do
  M.except[name] = "recorded: spec/optim/torch_rates_spec.lua"
end

function M.names()
  local have, lack = {}, {}
  for _, name in pairs(lt.optim) do
    if name:find "^%u" and not M.except[name] then
      local list = (OPTIMIZERS[name] or SCHEDULERS[name]) and have or lack
      list[#list + 1] = "optim." .. name
    end
  end
  return have, lack
end

function M.draw(name)
  name = name:sub(7)
  local case = {steps = 12, inputs = {}}
  if OPTIMIZERS[name] then
    case.optimizer, case.options = name, OPTIMIZERS[name]()
    case.steps = 4
    for k = 1, 2 do
      case.inputs[k] = make.tensor(make.shape_of(0, 2), {dtype = one_of{"f64", "f64", "f32"}})
    end
    return case
  end
  case.scheduler = name
  case.args, case.options, case.metrics = SCHEDULERS[name]()
  if case.metrics then
    case.metrics = {}
    for k = 1, case.steps do case.metrics[k] = random(8) / 8 end
  end
  return case
end

local function weights(p) return (lt.arange(0, p:numel()) % 5 + 1):to(p.dtype):reshape(p.shape) end

local function optimize(case, tools)
  local params, results = {}, {}
  for k, x in ipairs(case.inputs) do params[k] = tools.build(x):contiguous():requires_grad_() end
  local optimizer = lt.optim[case.optimizer](params, case.options)
  for _ = 1, case.steps do
    optimizer:step(function()
      optimizer:zero_grad()
      local loss = lt.zeros({}, {dtype = "f64"})
      for _, p in ipairs(params) do
        loss = loss + (weights(p) * (p - 1) ^ 2):sum():to "f64" / 2
      end
      loss:backward()
      return loss
    end)
  end
  for k, p in ipairs(params) do results[k] = tools.described(p) end
  return {results = results, grads = {}}
end

-- The rates, and momenta or betas, before each step and after the last.
local function schedule(case, tools)
  local optimizer = lt.optim.SGD({lt.zeros(1):requires_grad_()}, {lr = 0.5, momentum = 0.9})
  local arguments = {optimizer, table.unpack(case.args)}
  if case.args[1] == "lambda" then arguments[2] = function(n) return 1 / (1 + n) end end
  if next(case.options) then arguments[#arguments + 1] = case.options end
  local scheduler = lt.optim[case.scheduler](table.unpack(arguments))
  local rates, momenta, group = {}, {}, optimizer.param_groups[1]
  for k = 1, case.steps + 1 do
    rates[k], momenta[k] = group.lr, group.momentum
    if k <= case.steps then
      if case.metrics then scheduler:step(case.metrics[k]) else scheduler:step() end
    end
  end
  local function list(values) return tools.described(lt.tensor(values, {dtype = "f64"})) end
  return {results = {list(rates), list(momenta)}, grads = {}}
end

function M.run(case, tools)
  return (case.optimizer and optimize or schedule)(case, tools)
end

return M
