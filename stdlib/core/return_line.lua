-- stdlib/core/return_line.lua: the line at which a script's function returned or made a tail call,
-- after its frame has been popped.
local script_source = require "ltrain.core.script_source"

-- What follows a `return` of a value that may be meant; nil: the line has none.
local function returned(line)
  local value = line:match "^%s*return%s+(.*)" or line:match "%f[%w_]then%s+return%s+(.*)"
  return value and not value:find "^nil%f[^%w_]" and not value:find "^end%f[^%w_]"
    and not value:find "^%-%-" and value or nil
end

--- The line of the only `return` of a value in the lines `first` to `last` of a function, the last
--- of a chunk itself (`first` is 0); nil: there are several, or the text cannot be read. `word`
--- (nil: any): what it returns names it.
return function(name, first, last, word)
  local text = script_source.text(name)
  if not text then return nil end
  local lines, found = script_source.lines((text:gsub("%s+$", ""))), nil
  if first == 0 then return #lines end
  for number = first, math.min(last, #lines) do
    local value = returned(lines[number])
    if value and (not word or value:find("%f[%w_]" .. word .. "%f[^%w_]")) then
      if found then return nil end
      found = number
    end
  end
  return found
end
