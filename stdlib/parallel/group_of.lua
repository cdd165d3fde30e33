--- stdlib/parallel/group_of.lua: the ranks of a mesh that compute one module together.
local Group = require "ltrain.dist.Group"
local Mesh = require "ltrain.dist.Mesh"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local DIM <const> = "tensor_parallel"

--- Of a mesh the group of its dim "tensor_parallel", or of its only one; a group is itself.
return function(mesh, who)
  if class.is_a(mesh, Group) then return mesh end
  if not class.is_a(mesh, Mesh) then
    errors.blame("%s: the mesh must be one of lt.dist.mesh, self.device_mesh of "
      .. "strategies.ModelParallelStrategy, or a group of ranks: got %s", who, errors.show(mesh))
  end
  return mesh:group(#mesh.names == 1 and mesh.names[1] or DIM)
end
