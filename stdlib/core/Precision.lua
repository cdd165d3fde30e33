-- stdlib/core/Precision.lua: in which numbers a run computes. The base is f32, as things are.
--
-- Every strategy has one; the Trainer's `precision` names one that is built in. Another one is a
-- subclass or a plain table of methods, given as lt.strategies.DDP{precision = ...}.

local adopt = require "ltrain.core.adopt"
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local Precision = class.extend(nil, "Precision")

Precision.extend = class.extend

--- How it is called.
Precision.name = "32-true"
--- The dtype that steps compute products in ("bf16"), weights staying as they are; nil: theirs.
Precision.autocast = nil

function Precision:init() end

--- Changes the module to the precision, before optimizers are made and a checkpoint's weights
--- are used: module:to("f64").
function Precision:convert_module(module) end

--- The batch as steps take it, before it goes to the device.
function Precision:convert_input(batch) return batch end

--- What is open around each step, and closed after it; nil for nothing.
function Precision:forward_context()
  return self.autocast and c.autocast(self.autocast) or nil
end

--- Limits the gradients of an optimizer: their total norm ("norm") or each number ("value").
function Precision:clip_gradients(optimizer, clip_val, algorithm)
  optimizer:clip_gradients(clip_val, algorithm)
end

--- An object out of a table of methods; `where` begins the text of errors.
function Precision.adopt(value, where) return adopt(value, Precision, where) end

return Precision
