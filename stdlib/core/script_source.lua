--- stdlib/core/script_source.lua: the source text of scripts: lines and excerpts by chunk name or
--- file.
local c = require "ltrain.c"

local script_source = {}

--- The text of a chunk by its source name ("@model.lua", or text that was loaded); nil where it
--- cannot be read.
function script_source.text(name)
  local path = name:match "^@(.*)"
  if not path then return name:find "^[^=]" and name or nil end
  if path:find "^/dev/" or path:find "^/proc/" then return nil end -- read once, or without an end
  return c.io.kind(path) == "file" and c.io.read_file(path) or nil
end

--- The source name of a file as messages have it: they leave out the beginning of a long path.
function script_source.named(file)
  return "@" .. c.runtime.path_of(file)
end

--- How messages name the file of a path.
function script_source.short(path)
  return c.runtime.function_line(assert(load("", "@" .. path))):match "^(.*):0$"
end

--- The lines of a text.
function script_source.lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = line end
  return lines
end

--- Line `number` of a chunk ("@model.lua"); nil where there is none.
function script_source.line(name, number)
  local text = script_source.text(name)
  return text and script_source.lines(text)[number]
end

--- The lines from `at` - `around` to `at` + `around`, with their numbers and a mark at line `here`;
--- nil where the source cannot be read.
function script_source.excerpt(name, at, around, here)
  local text = script_source.text(name)
  if not text then return nil end
  local lines = script_source.lines(text)
  local from, to = math.max(at - around, 1), math.min(at + around, #lines)
  local shown, width = {}, #tostring(to)
  for i = from, to do
    shown[#shown + 1] = ("%s %" .. width .. "d | %s"):format(i == here and ">" or " ", i, lines[i])
  end
  return table.concat(shown, "\n")
end

return script_source
