-- stdlib/ops/joining.lua: lists of tensors joined, by PyTorch's short names: lt.hstack, lt.vstack,
-- lt.dstack, lt.column_stack, lt.block_diag, lt.cartesian_prod.

local arguments = require "ltrain.ops.arguments"
local arrangement = require "ltrain.ops.arrangement"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local joining = {}

-- A list of tensors, or those that come one by one.
local function list_of(tensors, who, ...)
  if c.is_tensor(tensors) then
    tensors = { tensors, ... }
  elseif ... ~= nil then
    errors.blame("%s: one argument too many: %s", who, errors.show(...))
  end
  if type(tensors) ~= "table" or #tensors == 0 then
    errors.blame("%s: needs a list of tensors: got %s", who, errors.show(tensors))
  end
  for k, x in ipairs(tensors) do arguments.tensor(x, who, ("element %d of the list"):format(k)) end
  return tensors
end

-- Of each tensor of a list f(x), with the name of the caller for errors.
local function each(tensors, who, f, ...)
  local list = {}
  for k, x in ipairs(list_of(tensors, who, ...)) do list[k] = f(x) end
  return list
end

--- Concatenates tensors along dim 2; vectors along dim 1.
function joining.hstack(tensors)
  local list <const> = each(tensors, "hstack", arrangement.atleast_1d)
  return c.cat(list, list[1].ndim == 1 and 1 or 2)
end

--- Stacks tensors vertically: concatenates them along dim 1; vectors are rows.
function joining.vstack(tensors)
  return c.cat(each(tensors, "vstack", arrangement.atleast_2d), 1)
end

--- Concatenates tensors along dim 3, which is added if missing.
function joining.dstack(tensors)
  return c.cat(each(tensors, "dstack", arrangement.atleast_3d), 3)
end

--- Stacks tensors horizontally; vectors become columns.
function joining.column_stack(tensors)
  return c.cat(each(tensors, "column_stack", function(x)
    return x.ndim < 2 and x:reshape { -1, 1 } or x
  end), 2)
end

--- A block-diagonal matrix of the matrices in the list, or of matrices as arguments.
function joining.block_diag(tensors, ...)
  local blocks <const>, width = each(tensors, "block_diag", arrangement.atleast_2d, ...), 0
  for _, block in ipairs(blocks) do
    if block.ndim ~= 2 then
      errors.blame("block_diag: needs matrices: got %s", errors.show_shape(block))
    end
    width = width + block.shape[2]
  end
  local rows, left = {}, 0
  for k, block in ipairs(blocks) do
    local n <const> = block.shape[2]
    rows[k] = block:pad { left, width - left - n }
    left = left + n
  end
  return c.cat(rows, 1)
end

--- The Cartesian product of vectors, a list or arguments: [N1 N2 ..., K]; of a single vector the
--- vector itself.
function joining.cartesian_prod(tensors, ...)
  local list <const> = list_of(tensors, "cartesian_prod", ...)
  if #list == 1 then return list[1] end
  local columns <const> = c.meshgrid(list)
  for k, x in ipairs(columns) do columns[k] = x:reshape { -1 } end
  return c.stack(columns, 2)
end

return joining
