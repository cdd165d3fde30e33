--- stdlib/trainer/setup/accelerator.lua: the Trainer's accelerator: a kind of device by its name.
local Accelerator = require "ltrain.core.Accelerator"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local option_rules = require "ltrain.trainer.setup.option_rules"

local NAMES <const> = { "auto", "cpu", "gpu", "cuda" }
local FAMILIAR <const> = { gpu = true, cuda = true, mps = true, tpu = true }

-- Rank k of a machine takes its device k.
local function of_kind(kind, count)
  local accelerator = Accelerator.adopt({ name = kind }, "Trainer")
  accelerator.count = count
  function accelerator:device(local_rank) return ("%s:%d"):format(kind, local_rank) end
  return accelerator
end

-- Why a name is none that can be used: `why` is the runtime's.
local function reason(name, why)
  local unknown = why:find "^device: unknown device"
  if FAMILIAR[name] and (unknown or why:find "not in this build") then
    return "not in this build: it trains on the CPU ('auto' or 'cpu')"
  elseif unknown then
    return "must be 'auto', 'cpu' or a kind of device" .. errors.did_you_mean(name, NAMES)
  end
  return why
end

--- The accelerator that the option names, which may be an object already; nil: the CPU.
return function(accelerator)
  if type(accelerator) == "table" then return accelerator end
  local name = accelerator:lower()
  if name == "auto" or name == "cpu" then return nil end
  local count, kind = c.runtime.devices(name)
  if not count then option_rules.refuse("accelerator", accelerator, reason(name, kind)) end
  return of_kind(kind, count)
end
