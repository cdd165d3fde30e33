-- stdlib/core/load_place.lua: the value of a name of core/places.lua, the same each time.

local c = require "ltrain.c"
local closed = require "ltrain.core.closed"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"
local places = require "ltrain.core.places"

local values <const> = {}

--- What lt.<name> is, for a name that has a place.
return function(name)
  if values[name] == nil then
    local path <const>, field = places[name]:match "^([^:]+):?(.*)$"
    if path:find "^ltrain%.apps" and not c.runtime.stdlib_source(path) then
      errors.blame("lt.%s: this build is without the apps (LT_APPS=OFF)", name)
    end
    local value <const> = require(path)
    values[name] = closed(exact.fn(field == "" and value or value[field], name), name)
  end
  return values[name]
end
