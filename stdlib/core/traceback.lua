--- stdlib/core/traceback.lua: formats an error: the message and the stack frames of the script.
--
-- Frames of the library are left out, unless the error is the library's own fault: then its message
-- begins with one of its files, and everything is shown.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local return_line = require "ltrain.core.return_line"
local script_source = require "ltrain.core.script_source"

local traceback = {}

-- Lua leaves out the middle of a deep stack; a line says where frames of the script follow.
local SKIPPED <const> = "^\t%.%.%.\t%(skipping "

--- Whether a frame's line is not the script's.
function traceback.is_ours(line)
  return line:find("^\t%[C%]") or line:find("^\tltrain%.[%w_.]+:%d+:")
    or line:find("^\tltrain:%d+:") or line:find("^\t%(%.%.%.tail calls%.%.%.%)")
end

-- A frame that is a field, local or upvalue of the library, by the script's name for the function:
-- what begins last at the start of a line above.
local function called_frame(file, number)
  local text, name = script_source.text(script_source.named(file)), nil
  for k, line in ipairs(script_source.lines(text or "")) do
    name = line:match "^function%s+([%w_.:]+)" or not line:find "^%S" and name or nil
    if k == tonumber(number) then break end
  end
  return ("\t%s:%s: in function '%s'"):format(file, number, name or "?")
end

-- Whether the message is that of another rank, with its line: these frames are of where the ranks
-- were started.
local function is_of_a_rank(message)
  local last = c.last_error()
  return message:find "^ranks? [%d, ]+: [^\n:]+:%d+: " ~= nil and last ~= nil
    and last.code == "ranks"
end

local FIRST <const>, LAST <const> = 12, 11 -- lines that are shown of a long traceback

local function shortened(kept)
  local n <const> = #kept - FIRST - LAST
  if n <= 1 then return table.concat(kept, "\n") end
  return ("%s\n\t...\t(skipping %d frames)\n%s"):format(table.concat(kept, "\n", 1, FIRST), n,
    table.concat(kept, "\n", #kept - LAST + 1))
end

--- The traceback below `message`, without the frames of the library; none when the message has the
--- lines of all others.
function traceback.trim(message, text)
  if message:find("^ltrain%.[%w_.]+:%d+:") or message:find("^ltrain:%d+:") then return text end
  if is_of_a_rank(message) then return message end
  local kept, says_more, skipped = { message }, false, nil
  for line in text:sub(#message + 1):gmatch("[^\n]+") do
    local is_ours <const> = traceback.is_ours(line)
    if line:find(SKIPPED) then
      skipped = line
    elseif line == "stack traceback:" then
      kept[#kept + 1] = line
    elseif is_ours then -- of what it called Lua has the name that it has there
      kept[#kept] = kept[#kept]:gsub("^\t(.*):(%d+): in [flu][iop]%l+ '[%w_]+'$", called_frame)
    elseif line:find "^\t" then
      says_more = says_more or not message:find(line:match "^\t(.-:%d+:)" or line, 1, true)
      kept[#kept + 1] = skipped
      kept[#kept + 1], skipped = line, nil
    end
  end
  return says_more and shortened(kept) or message
end

-- A message that was passed on has several places in front, as out of coroutine.wrap: the last is
-- where it began.
local function innermost(message)
  local outer, rest = message:match "^([^\n:]+:%d+): ([^\n:]+%.lua:%d+: .*)$"
  return rest and innermost(rest):gsub("^[^\n]*", function(first)
    return ("%s (passed on at %s)"):format(first, outer)
  end) or message
end

-- A function of the script that ends in `return DataLoader(...)` has no frame any more, and the
-- message has the line that called it: the one `return` of what it speaks of is meant.
local function at_return(message, text)
  local path, number, said = message:match "^([^\n]-):(%d+): (.*)$"
  local word = said and said:match "^[%w_.]-([%w_]+): "
  local frame <const> = ("\n\t(...tail calls...)\n\t%s:%s:"):format(path, number)
  if not word or not text:find(frame, 1, true) then return message end
  local name <const> = script_source.named(path)
  local here <const> = script_source.line(name, tonumber(number)) or word
  local found = not here:find("%f[%w_]" .. word .. "%f[^%w_]")
    and return_line(name, 1, math.huge, word)
  return found and ("%s:%d: %s"):format(path, found, said:gsub("^[^\n]*", function(first)
    return ("%s (called at %s:%s)"):format(first, path, number)
  end)) or message
end

--- The traceback `text` of `message` with the frames of the coroutine in front that the error comes
--- from: coroutine.wrap has ended it.
function traceback.whole(message, text)
  local said, frames = c.runtime.frames.ended()
  if not said or message:sub(-#said) ~= said or #said == #message then return text end
  local header <const> = message .. "\nstack traceback:"
  if text:sub(1, #header) ~= header then return text end
  return header .. frames .. text:sub(#header + 1)
end

--- The same as the user sees it: with what to do about an error of Lua's, and on a terminal with
--- the line of the script below the message.
function traceback.show(message, text)
  local cause = require "ltrain.core.caller_errors"(message)
  if cause ~= message then message, text = cause, cause .. text:sub(#message + 1) end
  text = traceback.whole(message, text)
  local stack = traceback.trim(message, text):sub(#message + 1)
  local said = at_return(innermost(message), text)
  local excerpt = console.is_terminal() and require "ltrain.core.source_line"(said)
  return require "ltrain.core.lua_error_hints"(said) .. (excerpt and "\n" .. excerpt or "") .. stack
end

return traceback
