-- stdlib/core/Callback.lua: the base class of callbacks.
--
--   local lt = require "ltrain"
--   local Greet = lt.Callback:extend("Greet")
--   function Greet:on_train_start(trainer, module) print(#module:parameters(), "parameters") end
--   local net = lt.nn.Linear(3, 1)
--   function net:training_step(x) return self(x):square():mean() end
--   function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
--   lt.Trainer{max_epochs = 1, callbacks = {Greet()}}:fit(net, {lt.ones(2, 3)})
--   -- prints: 2	parameters
--
-- A callback may define any hook of core/hooks.lua that is for callbacks; the first arguments are
-- the trainer and the module. No hook is required. With `monitor` (the name of a metric) its
-- on_train_epoch_end runs after that of the module; `saves_checkpoints = true` makes it run after
-- other callbacks. On several ranks only rank 0 runs it, unless `all_ranks = true`.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local Callback = class.extend(nil, "Callback")

Callback.extend = class.extend

--- true: it runs on every rank, which is necessary if it changes what is trained or calls
--- collectives. Else it runs on rank 0 only; if it is not set to false, this is reported once.
Callback.all_ranks = nil

--- true: its on_train_batch_start never ends an epoch (returns -1), so that ranks need not
--- communicate before each batch.
Callback.keeps_epoch = false

--- true: its on_exception saves a checkpoint. The state before each batch is saved for it, so that
--- a run can be resumed with the batch that failed.
Callback.save_on_exception = false

function Callback:init() end

--- Returns the name of its state in checkpoints, which must differ between callbacks of one class.
function Callback:state_key() return getmetatable(self).__name end

--- To be overridden: returns its state for checkpoints, a table of numbers, strings, booleans,
--- tables and tensors; nil for nothing.
function Callback:state_dict() return nil end

--- To be overridden: restores the state.
function Callback:load_state_dict(state) end

--- Converts a plain table of functions to a callback; returns a callback unchanged.
function Callback.adopt(value)
  if class.is_a(value, Callback) then return value end
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    errors.blame("a callback must be an object of a subclass of lt.Callback or a plain table of "
      .. "hooks: got %s%s", errors.show(value),
      class.is_class(value, Callback) and ": call it to make an object" or "")
  end
  return setmetatable(value, Callback)
end

return Callback
