--- stdlib/trainer/setup/accelerator.lua: the Trainer's accelerator: a kind of device by its name.
local Accelerator = require "ltrain.core.Accelerator"
local c = require "ltrain.c"
local devices_of = require "ltrain.trainer.setup.devices"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local option_rules = require "ltrain.trainer.setup.option_rules"

local NAMES <const> = { "auto", "cpu", "gpu", "cuda" }
local FAMILIAR <const> = { gpu = true, cuda = true, hpu = true, mps = true, tpu = true,
  xla = true }
-- Kinds whose backend drives devices of these names.
local DRIVEN_BY <const> = { tpu = "xla" }

-- Rank k of a machine takes the k-th of the devices. Ranks that a launcher has started choose when
-- they run (strategies/rank_device.lua): until then the kind is all that counts.
local function of_kind(kind, numbers)
  local accelerator = Accelerator.adopt({ name = kind, kind = kind }, "Trainer")
  accelerator.devices = numbers
  function accelerator:device(local_rank)
    return ("%s:%d"):format(kind, numbers[local_rank % #numbers + 1])
  end
  return accelerator
end

-- A kind of which each process opens all devices, and knows their number then: a rank takes one.
local function of_process(kind, devices)
  local count = devices == "auto" and 1 or math.tointeger(tonumber(devices))
  if not count or count == 0 or count < -1 then
    option_rules.refuse("devices", devices, kind .. ": write how many (-1: all), or 'auto'")
  end
  local found = of_kind(kind, { 0 })
  found.opens_all, found.ranks = true, count
  return found
end

-- Why a name is none that can be used: `why` is the runtime's.
local function reason(name, why)
  local unknown = why:find "^device: unknown device"
  if FAMILIAR[name] and (unknown or why:find "not in this build") then
    return "not in this build: it trains on the CPU ('auto' or 'cpu')"
  elseif unknown then
    return "must be 'auto', 'cpu', 'gpu' (or 'cuda') or the kind of a backend in LTRAIN_BACKENDS"
      .. errors.did_you_mean(name, NAMES)
  end
  return why
end

-- What the runtime has of a name: their number, the kind, whether one is used by default, and
-- whether each process opens all; nil and why not.
local function devices_named(name)
  local count, kind, one, opens_all = c.runtime.devices(name == "auto" and "gpu" or name)
  if not count and DRIVEN_BY[name] then return c.runtime.devices(DRIVEN_BY[name]) end
  return count, kind, one, opens_all
end

--- The accelerator that the options name, which may be an object already, with a list `devices` of
--- the numbers that ranks of this machine take; nil: the CPU. 'auto' is a GPU where there is one.
return function(accelerator, devices)
  if type(accelerator) == "table" then return accelerator end
  local name = accelerator:lower()
  if name == "cpu" then return nil end
  local count, kind, one, opens_all = devices_named(name)
  if not count then
    if name == "auto" then return nil end
    option_rules.refuse("accelerator", accelerator, reason(name, kind))
  end
  if opens_all then return of_process(kind, devices) end
  local world = dist.world()
  local joined = world.ranks > 1 and devices == "auto" -- the launcher has said how many
  local ranks = world.ranks > 1 and not world.forked and math.tointeger(tonumber(devices))
  local numbers, why = devices_of(ranks and ranks > count and "auto" or devices, count,
    one and not joined)
  if not numbers then
    option_rules.refuse("devices", devices, ("%s: %s"):format(kind, why))
  end
  local found = of_kind(kind, numbers)
  found.ranks = ranks -- of a machine; each may see one device alone
  return found
end
