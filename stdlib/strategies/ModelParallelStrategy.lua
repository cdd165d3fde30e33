--- stdlib/strategies/ModelParallelStrategy.lua: groups of ranks compute one module together, each
--- rank a part of it; the groups are data parallel, as in DDP.
--
-- The ranks are a mesh with a dim for each kind of parallelism (Lightning's names): along
-- data_parallel ranks read different samples, along context_parallel they have parts of the same
-- sequences, along tensor_parallel parts of the same matrices, which lt.parallelize cuts in the
-- module's configure_model. Tensor parallel comes last, so that its ranks are next to each other:
-- it has most traffic.
--
-- What a rank has of a parameter that is cut is a parameter of its own: gradients are summed over
-- the ranks that have the same part, and the optimizer steps it as any other. The norm of all
-- gradients counts each part once. Parameters that are not cut are the same on all ranks of a
-- group, and get the same gradients there.
local DDP = require "ltrain.strategies.DDP"
local Mesh = require "ltrain.dist.Mesh"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local ddp_options = require "ltrain.strategies.ddp_options"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"

local ModelParallelStrategy = DDP:extend("ModelParallelStrategy")

local function check_size(value)
  if value ~= "auto" and not (math.type(value) == "integer" and value >= 1) then
    return ("must be a number of ranks or 'auto': got %s"):format(errors.show(value))
  end
end

local SIZES <const> = {
  data_parallel_size = { type = "integer|string", default = "auto", check = check_size,
    doc = "groups of ranks that read different samples; 'auto': as many as there are" },
  tensor_parallel_size = { type = "integer|string", default = "auto", check = check_size,
    doc = "ranks that divide matrices; 'auto': what data_parallel_size leaves, else the ranks of a "
      .. "machine" },
  context_parallel_size = { type = "integer", default = 1, min = 1,
    doc = "ranks that divide sequences" },
}

--- Rows of options for a subclass: its own and those of this class.
function ModelParallelStrategy.rows(own)
  local rows = ddp_options.with(SIZES)
  for name, row in next, own or {} do rows[name] = row end
  return rows
end

--- Its options.
ModelParallelStrategy.options = ModelParallelStrategy.rows()

--- The dims of the mesh in their order; of each there is an option `<dim>_size`.
ModelParallelStrategy.dims = { "data_parallel", "context_parallel", "tensor_parallel" }

--- The dims along which ranks have different modules, such as the stages of a pipeline: parameters
--- are not compared along them.
ModelParallelStrategy.stage_dims = {}

local function name_of(self) return "strategies." .. class.of(self).__name end

--- ModelParallelStrategy{data_parallel_size = 2, tensor_parallel_size = 2, ...}
function ModelParallelStrategy:init(options)
  local o, notes = ddp_options.check(options, class.of(self).options, name_of(self))
  self:take_options(o, notes)
  self.given_sizes = {} -- by dim, as the script gave them
  for _, dim in ipairs(self.dims) do
    self.given_sizes[dim] = o[dim .. "_size"]
    self[dim .. "_size"] = o[dim .. "_size"]
  end
end

-- Sizes.

-- The product of the sizes that are given as numbers.
local function product(sizes)
  local total = 1
  for _, size in next, sizes do
    if size ~= "auto" then total = total * size end
  end
  return total
end

local function refuse_sizes(self, sizes, ranks)
  local texts, open = {}, nil
  for i, dim in ipairs(self.dims) do
    texts[i] = ("%s_size = %s"):format(dim, sizes[dim])
    open = open or sizes[dim] == "auto" and dim
  end
  errors.blame("%s: %s: %s: there are %d", name_of(self), table.concat(texts, ", "), open
    and ("%s_size = 'auto' is not a whole number of ranks"):format(open)
    or ("these are %d ranks"):format(product(sizes)), ranks)
end

--- The size of each dim of the mesh for so many ranks on so many machines, by name. Raises where
--- they do not multiply to the ranks.
function ModelParallelStrategy:mesh_sizes(ranks, machines)
  local sizes = {}
  for dim, size in next, self.given_sizes do sizes[dim] = size end
  if sizes.tensor_parallel == "auto" and sizes.data_parallel == "auto" then
    local each = ranks // machines
    if each % product(sizes) == 0 then sizes.tensor_parallel = each // product(sizes) end
  end
  for _, dim in ipairs { "tensor_parallel", "data_parallel" } do
    if sizes[dim] == "auto" then
      local rest = product(sizes)
      if ranks % rest ~= 0 then refuse_sizes(self, sizes, ranks) end
      sizes[dim] = ranks // rest
    end
  end
  if product(sizes) ~= ranks then refuse_sizes(self, sizes, ranks) end
  return sizes
end

--- Refuses sizes that do not fit the number of ranks, and sets those that are "auto".
function ModelParallelStrategy:configure(ranks, o)
  ParallelStrategy.configure(self, ranks, o)
  local world = dist.world()
  local sizes = self:mesh_sizes(ranks, world.ranks == ranks and world.nodes or 1)
  for dim, size in next, sizes do self[dim .. "_size"] = size end
end

-- The names of the dims for which keep(name) is true, and that have several ranks; if there is none
-- the first that is kept.
local function dims_where(self, keep)
  local list, first = {}, nil
  for _, dim in ipairs(self.dims) do
    if keep(dim) then
      first = first or dim
      if self[dim .. "_size"] > 1 then list[#list + 1] = dim end
    end
  end
  if #list == 0 then list[1] = first end
  return list
end

local function has(list, value)
  for _, one in ipairs(list) do
    if one == value then return true end
  end
  return false
end

-- Sums are over these dims: of gradients, weights and metrics.
local SUMMED <const> = { data_parallel = true, context_parallel = true }

--- Makes the mesh, and says which of its ranks read samples of their own.
function ModelParallelStrategy:setup_mesh()
  local sizes = {}
  for i, dim in ipairs(self.dims) do sizes[i] = self[dim .. "_size"] end
  local mesh = Mesh(sizes, self.dims)
  local function group(keep) return mesh:group(table.unpack(dims_where(self, keep))) end
  self.device_mesh = mesh
  -- Those that have the same names of parameters; those that share a sum; those that have the parts
  -- of one module.
  self.same_modules = group(function(dim) return not has(self.stage_dims, dim) end)
  self.same_parts = group(function(dim) return SUMMED[dim] end)
  self.one_module = group(function(dim) return not SUMMED[dim] end)
  local scope = data_ranks.use(mesh, { "data_parallel" }, dims_where(self, function(dim)
    return SUMMED[dim]
  end))
  return setmetatable({}, { __close = function()
    local _ <close> = scope
    self.device_mesh, self.same_modules, self.same_parts, self.one_module = nil, nil, nil, nil
  end })
end

-- Ranks.

--- The ranks that have the same module get the parameters and buffers of the first of them.
function ModelParallelStrategy:share_module(module)
  broadcast_parameters.module(module, nil, self.same_modules)
end

function ModelParallelStrategy:sync_buffers(module)
  if self.world_size > 1 and self.broadcast_buffers ~= false then
    broadcast_parameters.buffers(module, self.same_modules)
  end
end

return ModelParallelStrategy
