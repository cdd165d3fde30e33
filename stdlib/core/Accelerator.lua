-- stdlib/core/Accelerator.lua: what a rank computes on. The base is the CPU.
--
-- Every strategy has one. Another one is a subclass or a plain table of methods, given to the
-- Trainer or to a strategy: lt.strategies.DDP{accelerator = {device = ...}}.

local adopt = require "ltrain.core.adopt"
local class = require "ltrain.core.class"

local Accelerator = class.extend(nil, "Accelerator")

Accelerator.extend = class.extend

--- How it is called.
Accelerator.name = "cpu"

function Accelerator:init() end

--- The device of a rank, by its number on this machine: where modules and batches go.
function Accelerator:device(local_rank) return "cpu" end

--- Before the module is put there, in every rank.
function Accelerator:setup(trainer) end

--- After the run, also after an error.
function Accelerator:teardown() end

--- An object out of a table of methods; `where` begins the text of errors.
function Accelerator.adopt(value, where) return adopt(value, Accelerator, where) end

return Accelerator
