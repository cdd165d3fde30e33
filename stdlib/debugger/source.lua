--- stdlib/debugger/source.lua: the lines of what runs, from the files that chunks name.
local c = require "ltrain.c"

local source = {}

-- The lines of a chunk by its source name; nil where it cannot be read.
local function lines_of(name)
  local path = name:match "^@(.*)"
  local text = path and c.io.kind(path) == "file" and c.io.read_file(path)
  if not text and name:find "^[^@=]" then text = name end -- a text that was loaded
  if not text then return nil end
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = line end
  return lines
end

--- Line `number` of a chunk ("@model.lua"); nil where there is none.
function source.line(name, number)
  local lines = lines_of(name)
  return lines and lines[number]
end

--- The lines from `at` - `around` to `at` + `around`, with their numbers and a mark at line `here`;
--- nil where the source cannot be read.
function source.excerpt(name, at, around, here)
  local lines = lines_of(name)
  if not lines then return nil end
  local from, to = math.max(at - around, 1), math.min(at + around, #lines)
  local shown, width = {}, #tostring(to)
  for i = from, to do
    shown[#shown + 1] = ("%s %" .. width .. "d | %s"):format(i == here and ">" or " ", i, lines[i])
  end
  return table.concat(shown, "\n")
end

return source
