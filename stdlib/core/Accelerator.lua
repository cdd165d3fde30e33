-- stdlib/core/Accelerator.lua: the base class of accelerators: the device of a rank. The base class
-- is the CPU.
--
-- Every strategy has one. A custom one is a subclass or a plain table of methods, passed to the
-- Trainer or to a strategy: lt.strategies.DDP{accelerator = {device = ...}}.

local as_instance = require "ltrain.core.as_instance"
local class = require "ltrain.core.class"

local Accelerator = class.extend(nil, "Accelerator")

Accelerator.extend = class.extend

--- Its name.
Accelerator.name = "cpu"

function Accelerator:init() end

--- Returns the device for modules and batches of a rank, by its number on this machine.
function Accelerator:device(local_rank) return "cpu" end

--- Called on every rank before the module is moved to the device.
function Accelerator:setup(trainer) end

--- Called after the run, also after an error.
function Accelerator:teardown() end

--- Converts a table of methods to an object; `where` is the prefix of error messages.
function Accelerator.adopt(value, where) return as_instance(value, Accelerator, where) end

return Accelerator
