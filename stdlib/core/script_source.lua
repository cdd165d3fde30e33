--- stdlib/core/source.lua: the text of scripts, of files that chunks and messages name.
local c = require "ltrain.c"

local source = {}

--- The text of a chunk by its source name ("@model.lua", or text that was loaded); nil where it
--- cannot be read.
function source.text(name)
  local path = name:match "^@(.*)"
  if not path then return name:find "^[^=]" and name or nil end
  if path:find "^/dev/" or path:find "^/proc/" then return nil end -- read once, or without an end
  return c.io.kind(path) == "file" and c.io.read_file(path) or nil
end

--- The source name of a file as messages have it: they leave out the beginning of a long path.
function source.named(file)
  return "@" .. c.runtime.path_of(file)
end

--- How messages name the file of a path.
function source.short(path)
  return c.runtime.function_line(assert(load("", "@" .. path))):match "^(.*):0$"
end

--- The lines of a text.
function source.lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = line end
  return lines
end

--- Line `number` of a chunk ("@model.lua"); nil where there is none.
function source.line(name, number)
  local text = source.text(name)
  return text and source.lines(text)[number]
end

--- The lines from `at` - `around` to `at` + `around`, with their numbers and a mark at line `here`;
--- nil where the source cannot be read.
function source.excerpt(name, at, around, here)
  local text = source.text(name)
  if not text then return nil end
  local lines = source.lines(text)
  local from, to = math.max(at - around, 1), math.min(at + around, #lines)
  local shown, width = {}, #tostring(to)
  for i = from, to do
    shown[#shown + 1] = ("%s %" .. width .. "d | %s"):format(i == here and ">" or " ", i, lines[i])
  end
  return table.concat(shown, "\n")
end

return source
