-- stdlib/core/load_export.lua: loads a name of core/exports.lua on first access, and caches the
-- value.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local exports = require "ltrain.core.exports"
local strict_arity = require "ltrain.core.strict_arity"
local strict_table = require "ltrain.core.strict_table"

local values <const> = {}

--- What lt.<name> is, for a name that has a place.
return function(name)
  if values[name] == nil then
    local path <const>, field = exports[name]:match "^([^:]+):?(.*)$"
    if path:find "^ltrain%.apps" and not c.runtime.in_stdlib(path) then
      errors.blame("lt.%s: this build is without the apps (LT_APPS=OFF)", name)
    end
    local value <const> = require(path)
    values[name] = strict_table(strict_arity.fn(field == "" and value or value[field], name), name)
  end
  return values[name]
end
