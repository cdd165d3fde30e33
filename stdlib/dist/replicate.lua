--- stdlib/dist/replicate.lua: parameters and buffers of all ranks as they are on rank 0.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local replicate = {}

-- Name, shape and dtype of all tensors, as one text a tensor.
local function shapes_of(state)
  local list = {}
  for name, tensor in tree.pairs(state) do
    list[#list + 1] = ("%s [%s] %s"):format(name, table.concat(tensor.shape, ", "), tensor.dtype)
  end
  return list
end

local function check_shapes(state)
  local own = shapes_of(state)
  local wanted = collectives.broadcast(own)
  for i = 1, math.max(#own, #wanted) do
    if own[i] ~= wanted[i] then
      errors.blame("ranks built different modules: rank 0 has %s, rank %d has %s",
        wanted[i] or "nothing more", c.dist.rank(), own[i] or "nothing more")
    end
  end
end

--- Copies a list of tensors from rank 0 to all.
function replicate.tensors(list)
  local _ <close> = c.allow_update()
  for _, tensor in ipairs(list) do
    tensor:copy_(collectives.broadcast(tensor:detach()))
  end
end

--- Copies a module's buffers from rank 0 to all.
function replicate.buffers(module)
  local list = {}
  for _, buffer in module:named_buffers() do list[#list + 1] = buffer end
  replicate.tensors(list)
end

--- Copies all that a module's state has, after all ranks were seen to have built the same.
function replicate.module(module)
  if c.dist.size() == 1 then return end
  local state, list = module:state_dict(), {}
  check_shapes(state)
  for _, tensor in tree.pairs(state) do list[#list + 1] = tensor end
  replicate.tensors(list)
end

return replicate
