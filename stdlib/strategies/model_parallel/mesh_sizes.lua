--- stdlib/strategies/model_parallel/mesh_sizes.lua: how many ranks each dim of a strategy's mesh
--- has, by the options `<dim>_size`, of which some are "auto".
local errors = require "ltrain.core.errors"

-- The product of the sizes that are given as numbers.
local function product(sizes)
  local total = 1
  for _, size in next, sizes do
    if size ~= "auto" then total = total * size end
  end
  return total
end

local function refuse(who, dims, sizes, ranks)
  local texts, open = {}, nil
  for i, dim in ipairs(dims) do
    texts[i] = ("%s_size = %s"):format(dim, sizes[dim])
    open = open or sizes[dim] == "auto" and dim
  end
  errors.blame("%s: %s: %s: there are %d", who, table.concat(texts, ", "), open
    and ("%s_size = 'auto' is not a whole number of ranks"):format(open)
    or ("these are %d ranks"):format(product(sizes)), ranks)
end

--- The sizes by dim for so many ranks on so many machines. `given`: numbers and "auto", by dim: of
--- tensor_parallel what data_parallel leaves, else the ranks of a machine; of data_parallel the
--- rest. Raises where they do not multiply to the ranks. One rank divides nothing, whatever is
--- given.
return function(who, dims, given, ranks, machines)
  local sizes = {}
  for dim, size in next, given do sizes[dim] = ranks == 1 and 1 or size end
  if sizes.tensor_parallel == "auto" and sizes.data_parallel == "auto" then
    local each = ranks // machines
    if each % product(sizes) == 0 then sizes.tensor_parallel = each // product(sizes) end
  end
  for _, dim in ipairs { "tensor_parallel", "data_parallel" } do
    if sizes[dim] == "auto" then
      local rest = product(sizes)
      if ranks % rest ~= 0 then refuse(who, dims, sizes, ranks) end
      sizes[dim] = ranks // rest
    end
  end
  if product(sizes) ~= ranks then refuse(who, dims, sizes, ranks) end
  return sizes
end
