-- spec/xla/plugin.lua: whether the devices of XLA can be used here, and cases that need them.
local busted = require "busted"
local lt = require "ltrain"

local ok, err = pcall(function() return lt.zeros(1):to("xla") end)
local plugin = { missing = not ok and tostring(err) or nil }

--- A case that needs the devices; pending with the reason where there are none.
function plugin.it(name, fn)
  if not plugin.missing then return busted.it(name, fn) end
  busted.pending(("%s (%s)"):format(name, plugin.missing))
end

return plugin
