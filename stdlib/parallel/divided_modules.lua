--- stdlib/parallel/divided_modules.lua: what lt.parallelize has changed in modules, and how it is
--- taken back.
local c = require "ltrain.c"
local cuts = require "ltrain.core.cuts"
local full_tensor = require "ltrain.parallel.full_tensor"
local walk = require "ltrain.core.walk"

local divided_modules = {}

--- The record of a module that is divided now: { cuts = lists of the places of a parameter each,
--- changes = { module, field, what it was } }.
function divided_modules.record(module)
  local record = rawget(module, "_divided") or { cuts = {}, changes = {} }
  rawset(module, "_divided", record)
  return record
end

-- Gives modules the fields that they had.
local function take_back(module, record)
  local changes = record and record.changes or {}
  for i = #changes, 1, -1 do rawset(table.unpack(changes[i], 1, 3)) end
  rawset(module, "_divided", nil)
end

--- Makes a module whole again, and all that is in it: each rank gets all parts of its parameters.
--- All ranks that divided it call it. Returns the whole parameters by their parts.
function divided_modules.undo(module)
  local new = {}
  for _, entry in ipairs(walk.modules(module)) do
    local record = rawget(entry.module, "_divided")
    for _, items in ipairs(record and record.cuts or {}) do
      local part = rawget(items[1].holder, items[1].key)
      local parameter = c.parameter(full_tensor(part, cuts.of(part)),
        { requires_grad = part.requires_grad })
      new[part] = parameter
      for _, item in ipairs(items) do rawset(item.holder, item.key, parameter) end
    end
    take_back(entry.module, record)
  end
  return new
end

--- What is said of a parameter whose other parts are gone with a run under a strategy (`who`).
function divided_modules.lost_text(name, who)
  return ("parameter '%s' is incomplete: a run under %s failed, and the other ranks ended with "
    .. "their parts of it: make the module anew, and resume from a checkpoint"):format(name, who)
end

--- The run of the other ranks has failed, and their parts are gone: what reads the parameters says
--- so. `who`: the strategy.
function divided_modules.lose(module, who)
  for _, entry in ipairs(walk.modules(module)) do
    local record = rawget(entry.module, "_divided")
    for _, items in ipairs(record and record.cuts or {}) do
      local part = rawget(items[1].holder, items[1].key)
      if c.dist.is_alone(part) then
        c.dist.empty(part, divided_modules.lost_text(items[1].name, who))
      end
    end
    take_back(entry.module, record)
  end
end

return divided_modules
