-- stdlib/nn/module_memory.lua: moves the parameters and buffers of a module to another device or
-- dtype, and gives memory to those of the meta device (`to_empty`, `materialize`).

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local methods = {}
local memory = { methods = methods }

-- The tensor in place of `item`: a parameter stays one.
local function replacement(item, fn)
  local old = item.value
  local plain = old:detach()
  local new = fn(plain, item)
  if new == plain then return old end
  if item.buffer then return new end
  local parameter = c.parameter(new, { requires_grad = old.requires_grad })
  cuts.note(parameter, cuts.of(old))
  return parameter
end

-- Replaces each parameter and buffer by fn(tensor, item), unless fn returns the tensor itself. One
-- with several names keeps them. recurse = false: of the module alone.
function memory.replace(module, fn, recurse)
  local done = {}
  for _, entry in ipairs(walk.modules(module)) do
    local skipped = recurse == false and entry.module ~= module
    for _, item in ipairs(skipped and {} or entry.tensors) do
      local old = item.value
      done[old] = done[old] or replacement(item, fn)
      rawset(item.holder, item.key, done[old])
    end
  end
end

local OPTIONS <const> = { device = { type = "string", default = "cpu" },
  recurse = { type = "boolean", default = true } }

--- Replaces all parameters and buffers by uninitialised ones on a device, e.g. before
--- load_state_dict: `net:to_empty "cpu"`. Create optimizers after this. Options: device ("cpu"),
--- recurse (true; false: not those of submodules).
function methods.to_empty(self, options)
  local o = config.check(options, OPTIONS, "to_empty")
  memory.replace(self, function(tensor)
    return c.empty_like(tensor, { device = o.device })
  end, o.recurse)
  return self
end

--- Replaces the parameters and buffers that are on the meta device by ones with data, computed on a
--- device: the values that their initialization would have given there, bit for bit, whatever was
--- drawn since. Create optimizers after this. Options: device ("cpu"), recurse (true).
function methods.materialize(self, options)
  local o = config.check(options, OPTIONS, "materialize")
  memory.replace(self, function(tensor, item)
    if not tensor.is_meta then return tensor end
    local made, why = c.runtime.materialize(tensor, o.device)
    if made then return made end
    errors.blame("materialize: %s: %s", tree.path(walk.class_name(self), walk.keys(item)), why)
  end, o.recurse)
  return self
end

return memory
