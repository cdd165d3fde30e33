-- spec/callbacks/written.lua: what callbacks write to the console, on a terminal or not.
local console = require "ltrain.core.console"

--- The text that fn() writes to stderr. `width`: of the terminal that it believes to have; nil: it
--- has none.
return function(width, fn)
  local parts, before = {}, {}
  local function keep(text) parts[#parts + 1] = text end
  local fakes = { raw = keep, write = keep, is_terminal = function() return width ~= nil end,
    width = function() return width end }
  for name, fake in pairs(fakes) do before[name], console[name] = console[name], fake end
  local ok, message = pcall(fn)
  for name, own in pairs(before) do console[name] = own end
  assert(ok, message)
  return table.concat(parts)
end
