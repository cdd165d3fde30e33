--- stdlib/dist/init.lua: lt.dist: launching ranks, and communication between them.
--
-- Outside of a launch the world size is 1, and all functions work.
local Mesh = require "ltrain.dist.Mesh"
local batch = require "ltrain.dist.batch"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local ddp = require "ltrain.dist.ddp"
local errors = require "ltrain.core.errors"
local launch = require "ltrain.dist.launch"
local rank_zero = require "ltrain.dist.rank_zero"
local strict_arity = require "ltrain.core.strict_arity"

local d = c.dist

local dist = {
  batch = batch, ddp = ddp.wrap, launch = launch, split = collectives.split,
}

for name in next, collectives.places do dist[name] = collectives[name] end
for name, fn in next, rank_zero do dist[name] = fn end

--- Returns the ranks as a grid of named dims, `mesh({2, 4}, {"replicate", "tensor"})`: see Meshes.
--- The sizes multiply to the number of ranks. All ranks must call it.
function dist.mesh(sizes, names)
  return Mesh(config.argument(sizes, "table", "dist.mesh", "sizes"),
    config.argument(names, "table", "dist.mesh", "names"))
end

--- Returns the rank of this process, from 0.
function dist.rank()
  return d.rank()
end

--- Returns a table that describes the job and this process: backend, rank, ranks, local_rank and
--- more.
function dist.world()
  return d.world()
end

--- Returns the number of ranks.
function dist.world_size()
  return d.size()
end

--- Registers a communication backend: `path` is a shared object that exports lt_backend_open
--- (docs/adding.md). A cluster environment refers to it as its `comm`; a backend that transfers
--- memory between devices is used for this from then on.
function dist.register_comm(name, path)
  d.register_comm(config.argument(name, "string", "dist.register_comm", "name"),
    config.argument(path, "string", "dist.register_comm", "path"))
end

local function unknown(self, name)
  local names = {}
  for known in next, self do names[#names + 1] = known end
  table.sort(names)
  errors.blame("dist: there is no '%s'%s", tostring(name), errors.did_you_mean(name, names))
end

return setmetatable(strict_arity.all(dist), { __index = unknown })
