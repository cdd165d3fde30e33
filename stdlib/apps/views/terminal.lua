--- stdlib/apps/views/terminal.lua: the capabilities of standard output: width, letters (UTF-8) and
--- colours.
local c = require "ltrain.c"

local terminal = {}

local NARROW <const>, USUAL <const> = 20, 80 -- columns

local function has_utf8()
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local value = c.runtime.getenv(name)
    if value and value ~= "" then return value:lower():find "utf%-?8" ~= nil end
  end
  return false
end

-- "24bit", "256" or nil: none.
local function colours()
  if not c.runtime.isatty "stdout" or c.runtime.getenv "NO_COLOR"
    or c.runtime.getenv "TERM" == "dumb" then
    return nil
  end
  local depth = c.runtime.getenv "COLORTERM"
  return (depth == "truecolor" or depth == "24bit") and "24bit" or "256"
end

--- {utf8 =, colours = "24bit", "256" or nil, width = columns}, as they are now.
function terminal.look()
  return { utf8 = has_utf8(), colours = colours(),
           width = math.max(NARROW, c.runtime.terminal_width "stdout" or USUAL) }
end

--- One of the letters of a scale, "▁▂▃", for a share from 0 to 1.
function terminal.letter(letters, share)
  return letters[math.min(#letters, math.floor(share * #letters) + 1)]
end

return terminal
