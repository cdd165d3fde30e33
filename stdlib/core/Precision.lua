-- stdlib/core/Precision.lua: the base class of precisions: the dtypes of a run. The base class
-- changes nothing.
--
-- Every strategy has one; the Trainer's `precision` selects a built-in one. A custom one is a
-- subclass or a plain table of methods, passed as lt.strategies.DDP{precision = ...}.

local as_instance = require "ltrain.core.as_instance"
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local Precision = class.extend(nil, "Precision")

Precision.extend = class.extend

--- Its name.
Precision.name = "32-true"
--- The autocast dtype of steps ("bf16"); weights keep their dtype. nil: no autocast.
Precision.autocast = nil
--- The lt.GradScaler that scales losses and skips steps that overflowed; nil: none.
Precision.scaler = nil

function Precision:init() end

--- Converts the module, before optimizers are created and weights of a checkpoint are loaded:
--- module:to("f64").
function Precision:convert_module(module) end

--- Returns the converted batch, before it is moved to the device.
function Precision:convert_input(batch) return batch end

--- Returns a scope for each step, which is closed after it; or nil.
function Precision:forward_context()
  return self.autocast and c.autocast(self.autocast) or nil
end

--- Called after each step of an optimizer, on all ranks.
function Precision:after_step() end

--- Called when a run ends: undoes what convert_module did to the module's layers.
function Precision:teardown() end

--- Returns what a checkpoint has of it, to be given to load_state_dict; or nil.
function Precision:state_dict() return nil end

--- Restores it from a checkpoint.
function Precision:load_state_dict(state) end

--- Clips the gradients of an optimizer: by their total norm ("norm") or each element ("value").
function Precision:clip_gradients(optimizer, clip_val, algorithm)
  optimizer:clip_gradients(clip_val, algorithm)
end

--- Converts a table of methods to an object; `where` is the prefix of error messages.
function Precision.adopt(value, where) return as_instance(value, Precision, where) end

return Precision
