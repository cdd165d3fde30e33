-- stdlib/core/Callback.lua: what a callback of the Trainer is.
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
-- Any hook of core/hooks.lua that callbacks may define is a method; it gets the trainer and the
-- module first. None has a default. `monitor` (a metric's name) makes on_train_epoch_end run after
-- the module's; `saves_checkpoints = true` puts a callback last. Of several
-- ranks only rank 0 runs it, unless `all_ranks = true`.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local Callback = class.extend(nil, "Callback")

Callback.extend = class.extend

--- true: it runs on every rank, as one must that changes what is trained or calls collectives.
--- Else on rank 0 alone, which is noted once where a callback does not say false.
Callback.all_ranks = nil

--- true: its on_train_batch_start never ends an epoch (returns -1), so that ranks need not ask each
--- other before each batch.
Callback.keeps_epoch = false

--- true: its on_exception saves a checkpoint. The state before each batch is kept for it, so that
--- the file resumes with the batch that failed.
Callback.save_on_exception = false

function Callback:init() end

--- The name under which checkpoints keep its state. Two callbacks of one class need different ones.
function Callback:state_key() return getmetatable(self).__name end

--- Overridden: what a checkpoint keeps of it, a table of numbers, strings, booleans, tables and
--- tensors; nil for nothing.
function Callback:state_dict() return nil end

--- Overridden: takes that table back.
function Callback:load_state_dict(state) end

--- A callback from a plain table of functions; a callback is returned as it is.
function Callback.adopt(value)
  if class.is_a(value, Callback) then return value end
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    errors.blame("a callback is an object below lt.Callback or a plain table of hooks: got %s",
      errors.show(value))
  end
  return setmetatable(value, Callback)
end

return Callback
