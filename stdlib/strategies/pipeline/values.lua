--- stdlib/strategies/pipeline/values.lua: what travels between the stages of a pipeline, as
--- messages: arguments of a block, and their gradients.
--
-- Arguments are { places =, values = }: values of these places, trees of tensors (core/tree.lua).
-- One tensor that gradients go through, in the first place, is a message itself, which goes from
-- memory to memory; other arguments are a table with a flag for each tensor. Gradients are the one
-- of that tensor, or a list of them with false for none.
local c = require "ltrain.c"
local tree = require "ltrain.core.tree"

local values = {}

local function tensors_of(list)
  local tensors = {}
  for _, value in ipairs(list) do
    tree.each(value, function(leaf)
      if c.is_tensor(leaf) then tensors[#tensors + 1] = leaf end
    end)
  end
  return tensors
end

local function mapped(list, fn)
  local copy = {}
  for k, value in ipairs(list) do copy[k] = tree.map(value, fn) end
  return copy
end

local function detached(leaf) return c.is_tensor(leaf) and leaf:detach() or leaf end

--- What is sent of the arguments that a block was called with, and the tensors among them that
--- gradients come back for.
function values.pack(left)
  local list, flags, roots = {}, {}, {}
  for k, place in ipairs(left.places) do list[k] = left.args[place] end
  for k, tensor in ipairs(tensors_of(list)) do
    flags[k] = tensor.requires_grad
    if flags[k] then roots[#roots + 1] = tensor end
  end
  if #list == 1 and left.places[1] == 1 and c.is_tensor(list[1]) and flags[1] then
    return list[1]:detach(), roots
  end
  return { places = left.places, values = mapped(list, detached), flags = flags }, roots
end

--- The arguments of a message, and the list of those tensors, which are leaves here.
function values.unpack(message)
  if c.is_tensor(message) then
    if c.is_grad_enabled() then message.requires_grad = true end
    return { places = { 1 }, values = { message } }, { message }
  end
  local leaves = {}
  for k, tensor in ipairs(tensors_of(message.values)) do
    if message.flags[k] and c.is_grad_enabled() then tensor.requires_grad = true end
    if message.flags[k] then leaves[#leaves + 1] = tensor end
  end
  return { places = message.places, values = message.values }, leaves
end

--- The gradients of leaves, as a message; false: there is none.
function values.gradients(leaves)
  local list, any = {}, false
  for k, leaf in ipairs(leaves) do
    list[k] = leaf.grad or false
    any = any or list[k] ~= false
  end
  if not any then return false end
  return #list == 1 and list[1] or list
end

--- The roots that have a gradient in such a message, and these gradients.
function values.with_gradients(roots, message)
  if c.is_tensor(message) then return roots, { message } end
  if not message then return {}, {} end
  local list, gradients = {}, {}
  for k, root in ipairs(roots) do
    if message[k] then
      list[#list + 1], gradients[#gradients + 1] = root, message[k]
    end
  end
  return list, gradients
end

return values
