--- stdlib/core/traceback.lua: formats an error: the message and the stack frames of the script.
--
-- Frames of the library are left out, unless the error is the library's own fault: then its message
-- begins with one of its files, and everything is shown.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local script_source = require "ltrain.core.script_source"

local traceback = {}

-- Lua leaves out the middle of a deep stack; a line says where frames of the script follow.
local SKIPPED <const> = "^\t%.%.%.\t%(skipping "

--- Whether a frame's line is not the script's.
function traceback.is_ours(line)
  return line:find("^\t%[C%]") or line:find("^\tltrain%.[%w_.]+:%d+:")
    or line:find("^\tltrain:%d+:") or line:find("^\t%(%.%.%.tail calls%.%.%.%)")
end

-- Of what the library calls Lua knows the name that the library has for it ("local 'fn'"): the one
-- that the source has, or the line where the function begins, by the indentation.
local function with_own_name(line)
  local file, number, name = line:match "^\t([^\n]-):(%d+): in %l+ '([%w_]+)'$"
  local text = file and script_source.text(script_source.named(file))
  if not text or text:find("function%s+[%w_.:]-" .. name .. "%f[^%w_]")
    or text:find(name .. "%f[^%w_]%s*=%s*function") then
    return line
  end
  local lines, at = script_source.lines(text), tonumber(number)
  local depth = #(lines[at] or ""):match "^%s*"
  for i = at, 1, -1 do
    local blank, code = (lines[i] or ""):match "^(%s*)(.*)$"
    if code:find "%f[%w_]function%f[^%w_]" and (#blank < depth or i == at) then
      local own = code:match "function%s+([%a_][%w_.:]*)"
      return ("\t%s:%s: in function %s"):format(file, number, own and ("'%s'"):format(own)
        or ("<%s:%d>"):format(file, i))
    end
  end
  return line
end

local FIRST <const>, LAST <const> = 11, 11 -- frames that are shown of a long list

-- A traceback's lines, the middle of many frames left out.
local function shortened(kept)
  local n = #kept - FIRST - LAST - 1
  if n <= 1 then return kept end
  for i = FIRST + 2, #kept - LAST do
    n = n + (math.tointeger(tonumber(kept[i]:match "^\t%.%.%.\t%(skipping (%d+) ")) or 1) - 1
  end
  local short = table.move(kept, 1, FIRST + 1, 1, {})
  short[#short + 1] = ("\t...\t(skipping %d frames)"):format(n)
  return table.move(kept, #kept - LAST + 1, #kept, #short + 1, short)
end

-- Whether the message is that of another rank, with its line: these frames are of where the ranks
-- were started.
local function is_of_a_rank(message)
  local last = c.last_error()
  return message:find "^ranks? [%d, ]+: [^\n:]+:%d+: " ~= nil and last ~= nil
    and last.code == "ranks"
end

-- Whether frames ("\tmodel.lua:3: in ...") say no more than the message, with the places in front
-- through which it was passed on.
local function say_nothing_new(message, lines)
  local places, rest = {}, message
  while true do
    local place, after = rest:match "^([^\n:]+:%d+:) (.*)$"
    if not place then break end
    places[place], rest = true, after
  end
  for _, line in ipairs(lines) do
    if line:find "^\t" and not places[line:match "^\t(.-:%d+:)" or ""] then return false end
  end
  return true
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
      kept[#kept + 1] = with_own_name(line)
      skipped = nil
    elseif line == "stack traceback:" then
      kept[#kept + 1] = line
    end
  end
  if frames == 0 or say_nothing_new(message, kept) then return message end
  return table.concat(shortened(kept), "\n")
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

-- A function of the script that ends in `return DataLoader(...)` is no frame any more, and the
-- message has the line that called it: the one `return` of what it speaks of is meant.
local function at_return(message, text)
  local path, number, said = message:match "^([^\n]-):(%d+): (.*)$"
  local word = said and said:match "^[%w_.]-([%w_]+): "
  local frame <const> = ("\n\t(...tail calls...)\n\t%s:%s:"):format(path, number)
  if not word or not text:find(frame, 1, true) then return message end
  local found
  for i, line in ipairs(script_source.lines(script_source.text(script_source.named(path)) or "")) do
    local is_here <const> = i == tonumber(number)
    if line:find("%f[%w_]" .. word .. "%f[^%w_]") and (is_here or line:find "^%s*return%s") then
      if found or is_here then return message end
      found = i
    end
  end
  return found and ("%s:%d: %s"):format(path, found,
    (said:gsub("^[^\n]*", "%0 (called at " .. path:gsub("%%", "%%%%") .. ":" .. number .. ")")))
    or message
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
