--- stdlib/dist/staging_warning.lua: warns once when collectives on a device copy through host
--- memory because no comm backend transfers the device's memory directly.
local c = require "ltrain.c"
local console = require "ltrain.core.console"

--- `device`: the name that a collective returned, nil when there is nothing to report.
return function(device)
  if not device then return end
  local _, why = c.dist.link(device)
  console.say(("no comm backend transfers memory of %s directly: collectives copy it through host "
    .. "memory over %s (same results, slower)%s"):format(device, c.dist.world().backend,
    why and ": " .. why or ""))
end
