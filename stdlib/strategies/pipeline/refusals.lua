--- stdlib/strategies/pipeline/refusals.lua: what cannot run in a pipeline.
local Module = require "ltrain.nn.Module"
local Optimizer = require "ltrain.optim.Optimizer"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local refusals = {}

local WHERE <const> = "strategies.Pipeline"

local function check_callbacks(trainer)
  for _, callback in ipairs(trainer.callbacks) do
    if callback.reads_whole then
      errors.blame("%s: the callback %s reads whole %s, of which a stage has a part: remove it, or "
        .. "write strategy = 'ddp'", WHERE, class.of(callback).__name, callback.reads_whole)
    end
  end
end

--- Raises where a fit of a module cannot run in a pipeline with a schedule.
function refusals.check_run(module, schedule)
  local trainer = module.trainer
  if trainer.options.deterministic == "world" then
    errors.blame("%s: deterministic = 'world' adds gradients in an order of its own: write "
      .. "deterministic = true", WHERE)
  elseif module.automatic_optimization == false then
    errors.blame("%s: manual optimization calls backward within a step, which stages run one after "
      .. "the other: leave automatic_optimization on, or write strategy = 'ddp'", WHERE)
  elseif schedule == "zero_bubble" and module.backward ~= Module.backward then
    errors.blame("%s: schedule = 'zero_bubble' runs the gradients of weights apart, and the module "
      .. "defines backward: write schedule = '1f1b', or remove it", WHERE)
  end
  check_callbacks(trainer)
end

--- Raises where an optimizer computes with the parameters of all stages.
function refusals.check_optimizer(optimizer)
  if class.is_a(optimizer, Optimizer) and optimizer.step == Optimizer.step then return end
  errors.blame("%s: %s overrides step, which uses the parameters of all stages: take AdamW or "
    .. "another optimizer that defines update, or write strategy = 'ddp'", WHERE,
    errors.show(optimizer))
end

return refusals
