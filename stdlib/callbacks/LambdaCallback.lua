--- stdlib/callbacks/LambdaCallback.lua: a callback made of functions.
--
--   local lt = require "ltrain"
--   local callback = lt.callbacks.LambdaCallback{
--     on_train_epoch_end = function(trainer) print("epoch", trainer.current_epoch) end,
--   }
--   local net = lt.nn.Linear(1, 1)
--   function net:training_step(x) return self(x):square():mean() end
--   function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
--   lt.Trainer{max_epochs = 2, callbacks = {callback}}:fit(net, {lt.ones(2, 1)})
--   -- prints: epoch	0
--   -- prints: epoch	1
local Callback = require "ltrain.core.Callback"
local errors = require "ltrain.core.errors"
local hooks = require "ltrain.core.hooks"
local tree = require "ltrain.core.tree"

local LambdaCallback = Callback:extend("LambdaCallback")

--- LambdaCallback{on_train_start = function(trainer, module) ... end}: functions by the names of
--- callback hooks, and all_ranks = true to run them on every rank.
function LambdaCallback:init(functions)
  if type(functions) ~= "table" or getmetatable(functions) then
    errors.blame("callbacks.LambdaCallback: a table of functions is needed: got %s",
      errors.show(functions))
  end
  local names = hooks.names "callback"
  local known = { all_ranks = true }
  for _, name in ipairs(names) do known[name] = true end
  names[#names + 1] = "all_ranks"
  for name, fn in tree.pairs(functions) do
    if not known[name] then
      errors.blame("callbacks.LambdaCallback: there is no hook %s%s", errors.show(name),
        errors.did_you_mean(name, names))
    elseif name == "all_ranks" then
      if type(fn) ~= "boolean" then
        errors.blame("callbacks.LambdaCallback: all_ranks must be true or false: got %s",
          errors.show(fn))
      end
      self.all_ranks = fn
    elseif type(fn) ~= "function" then
      errors.blame("callbacks.LambdaCallback: %s must be a function: got %s", name,
        errors.show(fn))
    else
      self[name] = function(_, ...) return fn(...) end
    end
  end
end

return LambdaCallback
