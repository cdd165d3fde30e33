--- stdlib/strategies/model_parallel/groups.lua: the groups of ranks of a mesh that have the same
--- parts of a module, or together the parts of one.
local Mesh = require "ltrain.dist.Mesh"
local data_ranks = require "ltrain.dist.data_ranks"

local groups = {}

-- Along these dims ranks have a part of their own of each sum: of gradients, weights and metrics.
local SUMMED <const> = { data_parallel = true, expert_parallel = true, context_parallel = true }

-- Ranks have different samples along these.
local READ <const> = { data_parallel = true, expert_parallel = true }

-- Ranks have different parts of a module along these.
local function divides(dim) return not SUMMED[dim] or dim == "expert_parallel" end

-- The names of the dims for which keep(name) is true, and that have several ranks; if there is none
-- the first that is kept.
local function dims_where(mesh, keep)
  local list, first = {}, nil
  for i, dim in ipairs(mesh.names) do
    if keep(dim) then
      first = first or dim
      if mesh.sizes[i] > 1 then list[#list + 1] = dim end
    end
  end
  if #list == 0 then list[1] = first end
  return list
end

--- Makes a mesh of all ranks, and says which of them read samples of their own. Returns { mesh =,
--- same_parts = those that have the same parts of the module, same_experts = those that have the
--- same experts, one_module = those that have the parts of one }, and a value to be closed at the
--- end of the run. All ranks call it.
function groups.make(sizes, dims)
  local mesh = Mesh(sizes, dims)
  local function group(keep) return mesh:group(table.unpack(dims_where(mesh, keep))) end
  local has_experts = table.concat(dims, " "):find("expert_parallel", 1, true)
  local made = { mesh = mesh, one_module = group(divides),
    same_parts = group(function(dim) return not divides(dim) end),
    same_experts = has_experts and group(function(dim) return dim ~= "expert_parallel" end) or nil }
  local reads = dims_where(mesh, function(dim) return READ[dim] end)
  local sums = dims_where(mesh, function(dim) return SUMMED[dim] end)
  return made, data_ranks.use(mesh, reads, sums)
end

return groups
