-- stdlib/core/load_place.lua: the value of a name of core/places.lua, the same each time.

local closed = require "ltrain.core.closed"
local exact = require "ltrain.core.exact"
local places = require "ltrain.core.places"

local values <const> = {}

--- What lt.<name> is, for a name that has a place.
return function(name)
  if values[name] == nil then
    local path <const>, field = places[name]:match "^([^:]+):?(.*)$"
    local value <const> = require(path)
    values[name] = closed(exact.fn(field == "" and value or value[field], name), name)
  end
  return values[name]
end
