--- stdlib/dist/Group.lua: a group of ranks, made by lt.dist.split.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local d = c.dist

local Group = class.extend(nil, "Group")

-- `handle`: the runtime's.
function Group:init(handle)
  self._handle = handle
end

--- Returns the rank of this process in the group, from 0.
function Group:rank()
  return d.rank(self._handle)
end

--- Returns the number of ranks in the group.
function Group:world_size()
  return d.size(self._handle)
end

--- Returns the members, as ranks of the world, in the order of the group.
function Group:ranks()
  return d.ranks(self._handle)
end

-- The options with a group in them.
local function with_group(options, group)
  if options ~= nil and type(options) ~= "table" then return options end
  local with = { group = group }
  for key, value in next, options or {} do with[key] = value end
  return with
end
Group._with = with_group

--- Makes a group of ranks of this one: see lt.dist.split.
function Group:split(color, options)
  return Group._split(color, with_group(options, self))
end

--- Begins several collectives of its ranks at once: see lt.dist.batch.
function Group:batch(calls, options)
  return Group._batch(calls, with_group(options, self))
end

--- Makes a method of each collective, by its name (`places`: how many arguments come before the
--- options), and `split`. The group goes into the options, which come last.
function Group._give(collectives, places)
  Group._split = collectives.split
  for name, count in next, places do
    Group[name] = function(self, ...)
      local args = table.pack(...)
      local options = args[count + 1]
      if type(options) == "table" and options.group ~= nil then
        errors.blame("%s: group: this is a method of a group already", name)
      end
      args[count + 1] = with_group(options, self)
      return collectives[name](table.unpack(args, 1, math.max(args.n, count + 1)))
    end
  end
end

return Group
