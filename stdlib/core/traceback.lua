--- stdlib/core/traceback.lua: what is shown of an error: the message and the user's own frames.
--
-- Frames of the library are left out, unless the error is the library's own fault: then its message
-- begins with one of its files, and everything is shown.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local source = require "ltrain.core.source"

local traceback = {}

-- Lua leaves out the middle of a deep stack; a line says where frames of the script follow.
local SKIPPED <const> = "^\t%.%.%.\t%(skipping "

--- Whether a frame's line is not the script's.
function traceback.is_ours(line)
  return line:find("^\t%[C%]") or line:find("^\tltrain%.[%w_.]+:%d+:")
    or line:find("^\tltrain:%d+:") or line:find("^\t%(%.%.%.tail calls%.%.%.%)")
end

-- Whether the message is that of another rank, with its line: these frames are of where the ranks
-- were started.
local function is_of_a_rank(message)
  local last = c.last_error()
  return message:find "^ranks? [%d, ]+: [^\n:]+:%d+: " ~= nil and last ~= nil
    and last.code == "ranks"
end

-- Whether a frame's line says no more than the message does: "\tmodel.lua:3: in ...".
local function says_nothing_new(message, line)
  local place = line:match("^\t(.-:%d+:)")
  return place ~= nil and message:sub(1, #place) == place
end

--- The traceback below `message`, without the frames of the library; none when the message says it
--- all.
function traceback.trim(message, text)
  if message:find("^ltrain%.[%w_.]+:%d+:") or message:find("^ltrain:%d+:") then return text end
  if is_of_a_rank(message) then return message end
  local kept, frames, skipped = { message }, 0, nil
  for line in text:sub(#message + 1):gmatch("[^\n]+") do
    if line:find(SKIPPED) then
      skipped = line
    elseif line:find("^\t") and not traceback.is_ours(line) then
      frames = frames + 1
      kept[#kept + 1] = skipped
      kept[#kept + 1] = line
      skipped = nil
    elseif line == "stack traceback:" then
      kept[#kept + 1] = line
    end
  end
  if frames == 0 or frames == 1 and says_nothing_new(message, kept[#kept]) then return message end
  return table.concat(kept, "\n")
end

-- A message that was passed on has several places in front, as out of coroutine.wrap: the last is
-- where it began.
local function innermost(message)
  local passed = {}
  while true do
    local outer, rest = message:match "^([^\n:]+:%d+): (.*)$"
    local path = rest and rest:match "^([^\n:]+):%d+: "
    if not path or path ~= outer:match "^[^:]+" and not path:find "%.lua$" then break end
    passed[#passed + 1], message = outer, rest
  end
  if #passed == 0 then return message end
  return (message:gsub("^[^\n]*", function(first)
    return ("%s (passed on at %s)"):format(first, table.concat(passed, ", "))
  end))
end

-- Whether the frame at the message's place called what ended in a tail call.
local function is_tail_called(place, text)
  local before
  for line in text:gmatch "[^\n]+" do
    if line:sub(1, #place + 2) == "\t" .. place .. ":" then
      return before ~= nil and before:find "^\t%(%.%.%.tail calls" ~= nil
    end
    before = line
  end
end

-- A function of the script that ends in `return DataLoader(...)` is no frame any more, and the
-- message has the line that called it: the one `return` of what it speaks of is meant.
local function at_return(message, text)
  local path, number, said = message:match "^([^\n]-):(%d+): (.*)$"
  local word = said and said:match "^[%w_.]-([%w_]+): "
  if not word or not is_tail_called(path .. ":" .. number, text) then return message end
  local lines, found = source.lines(source.text(source.named(path)) or ""), nil
  local pattern <const> = "%f[%w_]" .. word .. "%f[^%w_]"
  if (lines[tonumber(number)] or ""):find(pattern) then return message end
  for i, line in ipairs(lines) do
    if line:find "^%s*return%s" and line:find(pattern) then
      if found then return message end
      found = i
    end
  end
  return found and ("%s:%d: %s"):format(path, found,
    (said:gsub("^[^\n]*", "%0 (called at " .. path:gsub("%%", "%%%%") .. ":" .. number .. ")")))
    or message
end

--- The same as the user sees it: with what to do about an error of Lua's, and on a terminal with
--- the line of the script below the message.
function traceback.show(message, text)
  local cause = require "ltrain.core.fault"(message)
  if cause ~= message then message, text = cause, cause .. text:sub(#message + 1) end
  local stack = traceback.trim(message, text):sub(#message + 1)
  local said = at_return(innermost(message), text)
  local excerpt = console.is_terminal() and require "ltrain.core.source_line"(said)
  return require "ltrain.core.remedies"(said) .. (excerpt and "\n" .. excerpt or "") .. stack
end

return traceback
