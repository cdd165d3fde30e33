-- spec/xla/plugin.lua: whether the devices of XLA can be used here; why not, in a sentence.
local lt = require "ltrain"

local ok, err = pcall(function() return lt.zeros(1):to("xla") end)
return { missing = not ok and tostring(err) or nil }
