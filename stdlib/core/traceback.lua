--- stdlib/core/traceback.lua: what is shown of an error: the message and the user's own frames.
--
-- Frames of the library are left out, unless the error is the library's own fault: then its message
-- begins with one of its files, and everything is shown.
local c = require "ltrain.c"
local console = require "ltrain.core.console"

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

--- The same as the user sees it: with what to do about an error of Lua's, and on a terminal with
--- the line of the script below the message.
function traceback.show(message, text)
  local stack = traceback.trim(message, text):sub(#message + 1)
  local excerpt = console.is_terminal() and require "ltrain.core.source_line"(message)
  return require "ltrain.core.remedies"(message) .. (excerpt and "\n" .. excerpt or "") .. stack
end

return traceback
