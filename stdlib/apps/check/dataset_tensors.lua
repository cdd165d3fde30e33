--- stdlib/apps/check/dataset_tensors.lua: the tensors of a loader's data set, where it has some
--- (TensorDataset).
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local visit = require "ltrain.apps.check.source.visit"

local dataset_tensors = {}

local function dataset_of(loader)
  return type(loader) == "table" and rawget(loader, "dataset") or nil
end

--- A list of {tensor =, name =, key = of a batch}, of the whole data set, with the order `map` of
--- the samples in it (nil: all as they are); nil where the data are not tensors. Without bytes that
--- are read as fractions, but for `all`.
function dataset_tensors.of(loader, all)
  local dataset = dataset_of(loader)
  if not class.has_method(dataset, "columns") or loader.collate then return nil end
  local found = dataset:columns()
  if not found then return nil end
  local names, list = found.owner.names, { map = found.map }
  for i, tensor in ipairs(found.tensors) do
    if all or not found.divisors[i] then
      local name = names and names[i]
      list[#list + 1] = { tensor = tensor, name = name, key = name or i }
    end
  end
  return list
end

--- The column of the leaf of a batch; nil without one.
function dataset_tensors.find(list, leaf)
  if #leaf.keys ~= 1 then return nil end
  for _, column in ipairs(list or {}) do
    if column.key == leaf.keys[1] then return column end
  end
end

--- The rows of a column that the loader gives, in its order.
function dataset_tensors.rows(list, column)
  if not list.map then return column.tensor end
  local positions = {}
  for i = 1, #list.map do positions[i] = list.map:at(i) - 1 end
  return column.tensor[c.tensor(positions, { dtype = "i64" })]
end

--- The line of the script that makes the training data: its first data set or loader; 0: none.
function dataset_tensors.line_of(context, wanted)
  local line = 0
  if not context.source then return line end
  visit(context.source.tree, function(node)
    if node.kind ~= "call" or line > 0 then return end
    local fn = node.fn
    local name = fn and (fn.kind == "index" and fn.key.value or fn.kind == "name" and fn.name)
    if name and name:find(wanted or "Dataset") then line = node.at end
  end)
  if line == 0 and not wanted then return dataset_tensors.line_of(context, "DataLoader") end
  return line
end

return dataset_tensors
