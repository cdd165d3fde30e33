--- stdlib/dist/Group.lua: some of the ranks, as lt.dist.split makes them.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"

local d = c.dist

local Group = class.extend(nil, "Group")

-- `handle`: the runtime's.
function Group:init(handle)
  self._handle = handle
end

--- This rank's place in the group, from 0.
function Group:rank()
  return d.rank(self._handle)
end

--- How many ranks the group has.
function Group:world_size()
  return d.size(self._handle)
end

--- The members, as ranks of the world, in the group's order.
function Group:ranks()
  return d.ranks(self._handle)
end

-- Each collective as a method: the group goes into the options, which come last.
for name, places in next, collectives.places do
  Group[name] = function(self, ...)
    local args = table.pack(...)
    local options = args[places + 1]
    if type(options) == "table" and options.group ~= nil then
      errors.blame("%s: group: this is a method of a group already", name)
    end
    args[places + 1] = collectives.with_group(options, self)
    return collectives[name](table.unpack(args, 1, math.max(args.n, places + 1)))
  end
end

--- A group of some ranks of this one: see lt.dist.split.
function Group:split(color, options)
  return collectives.split(color, collectives.with_group(options, self))
end

return Group
