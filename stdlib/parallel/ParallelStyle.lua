--- stdlib/parallel/ParallelStyle.lua: how a module computes on a group of ranks: the base class of
--- the styles that a plan of lt.parallelize names.
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local ParallelStyle = class.extend(nil, "ParallelStyle")

ParallelStyle.extend = class.extend

--- Its options.
ParallelStyle.options = {}

--- ParallelStyle{...}: of a subclass.
function ParallelStyle:init(options)
  local cls = class.of(self)
  local o = config.check(options, cls.options, "parallel." .. cls.__name)
  o.use_local_output = nil
  for name, value in next, o do self[name] = value end
  self._names = tree.keys(o)
end

--- What PyTorch's styles have, and has no meaning here.
ParallelStyle.USE_LOCAL_OUTPUT = { type = "boolean",
  doc = "no effect: modules get and return tensors of this rank" }

--- Returns which parameters of a module are cut: by the name of the field { dim =, blocks = }, see
--- `blocks` of ColwiseParallel. `site`: { name = of the module, group = }. Raises where the module
--- is of another kind.
function ParallelStyle:cuts(_module, _site) return {} end

--- Changes how the module computes: site.wrap(module, fn) makes fn(forward, module, ...) its
--- forward, site.set(module, field, value) sets a field; both end with the run.
function ParallelStyle:apply(_module, _site) end

--- Raises: the style is for other modules.
function ParallelStyle:refuse(module, site, wanted)
  errors.blame("parallelize: %s: %s is for %s: got %s", site.name, class.of(self).__name, wanted,
    walk.class_name(module))
end

--- Raises where a rank would have no part of a size, or where one of several blocks does not divide
--- among the ranks.
function ParallelStyle.check_parts(site, what, size, blocks)
  local ranks = site.group:world_size()
  local _, last = cuts.place(size, ranks, ranks - 1)
  if (blocks or 1) > 1 then return ParallelStyle.check_size(site, what, size, blocks) end
  if last > 0 then return end
  errors.blame("parallelize: %s: %s are too few for %d ranks: the last one would have none",
    site.name, what:format(size), ranks)
end

--- Raises where a size does not divide among the ranks.
function ParallelStyle.check_size(site, what, size, blocks)
  local ranks = site.group:world_size()
  if size % (ranks * (blocks or 1)) == 0 then return end
  errors.blame("parallelize: %s: %s do not divide among %d ranks%s", site.name,
    what:format(size), ranks, (blocks or 1) > 1 and (" in %d blocks"):format(blocks) or "")
end

--- Its name and options, the same on all ranks of a group.
function ParallelStyle:__tostring()
  local texts = {}
  for _, name in ipairs(self._names) do
    local value = self[name]
    texts[#texts + 1] = ("%s = %s"):format(name, type(value) == "table"
      and getmetatable(value) == nil and errors.show(value) or tostring(value))
  end
  return ("%s{%s}"):format(class.of(self).__name, table.concat(texts, ", "))
end

return ParallelStyle
