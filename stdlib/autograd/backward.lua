--- stdlib/autograd/backward.lua: lt.autograd.backward, a backward pass from several tensors.
--
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local ROWS <const> = config.signature {
  { "grad_tensors", type = "tensor|table",
    doc = "their gradients, one or a list; false or nil for a tensor with one element" },
  { "retain_graph", type = "boolean", doc = "keep saved values; by default the value of "
    .. "create_graph" },
  { "create_graph", type = "boolean", default = false, doc = "record the backward pass itself" },
  { "inputs", type = "tensor|table",
    doc = "the leaves whose `grad` is accumulated: one or a list; by default all" },
}

local function as_list(value) return c.is_tensor(value) and { value } or value end

--- lt.autograd.backward(tensors, grad_tensors, retain_graph, create_graph, inputs): adds the
--- gradients of the sum of `tensors`, one or a list, to the `grad` of leaves, as torch.autograd's.
return function(tensors, ...)
  local o = config.arguments("backward", ROWS, ...)
  local list, given, total = as_list(tensors), as_list(o.grad_tensors) or {}, nil
  if type(list) ~= "table" or #list == 0 then
    errors.blame("backward: needs a tensor or a list of tensors: got %s", errors.show(tensors))
  end
  for k, y in ipairs(list) do
    if not c.is_tensor(y) then
      errors.blame("backward: tensor %d must be a tensor: got %s", k, errors.show(y))
    end
    local part = given[k] and (y * given[k]):sum() or y
    if part:numel() ~= 1 then
      errors.blame("backward: tensor %d is %s: write its gradient in grad_tensors", k,
        errors.show_shape(y))
    end
    total = total and total + part:sum() or part:sum()
  end
  local retain_graph = o.create_graph
  if o.retain_graph ~= nil then retain_graph = o.retain_graph end
  if not o.inputs then
    return total:backward { retain_graph = retain_graph, create_graph = o.create_graph }
  end
  local leaves = as_list(o.inputs)
  local got = c.grad(total, leaves, { retain_graph = retain_graph, create_graph = o.create_graph,
    allow_unused = true })
  for k, leaf in ipairs(leaves) do
    if got[k] then leaf.grad = leaf.grad and leaf.grad + got[k] or got[k] end
  end
end
