--- stdlib/apps/debugger/stops.lua: where a script is to stop: breakpoints at lines, the next line,
--- the next hook of a Trainer.
--
-- Lines are checked only while one of these is set (lua/bind/debugger/stops.c).
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local frames = require "ltrain.apps.debugger.frames"

local stops = {
  points = {}, -- breakpoints: {file =, line =, condition = text or nil, test = its function, env =}
  reached = nil, -- called as reached{title =, point =} where the script stops
}

local raw <const> = c.runtime.frames

local step -- nil, or {thread = or false for any, depth =, hook = the one that is stepped to}

local awaiting -- ltrain.trainer.hook_calls, while it is to say which hook it calls

local on_line

local function watch()
  local lines = {}
  for i, point in ipairs(stops.points) do lines[i] = point.line end
  if step and not step.awaits then
    raw.watch(on_line, lines, step.thread or false, step.depth)
  elseif #lines > 0 then
    raw.watch(on_line, lines)
  else
    raw.watch(nil)
  end
end

-- Whether a frame's file is the one that was written: its path, or the end of that.
local function is_file(file, wanted)
  return file == wanted or file:sub(-#wanted - 1) == "/" .. wanted
end

-- Whether its condition holds in the innermost frame; what is wrong with it is a reason to stop.
local function holds(point)
  if not point.condition then return true end
  local frame = frames.of(frames.threads())[1]
  local fn = load("return " .. point.condition, "=condition", "t",
    frames.environment(frame, point.globals))
  local ok, value = raw.session(pcall, fn)
  if ok then return value and true or false end
  return true, ("%s: %s"):format(point.condition, c.runtime.error_text(value))
end

local function hit(file, line)
  for i, point in ipairs(stops.points) do
    if point.line == line and is_file(file, point.file) then
      local stop, wrong = holds(point)
      if stop then return i, wrong end
    end
  end
end

function on_line(file, line, is_next)
  local number, wrong = hit(file, line)
  if not number and not is_next then return end
  local hook = step and step.hook
  stops.forget_step()
  local title = number and ("breakpoint %d%s"):format(number, wrong and ": " .. wrong or "")
    or hook and "at " .. hook or nil
  stops.reached { title = title }
end

--- Sets a breakpoint; returns its number, or nil and what is wrong with the condition.
function stops.add(file, line, condition, globals)
  if condition then
    local fn, message = load("return " .. condition, "=condition", "t", {})
    if not fn then return nil, (message:gsub("^condition:1: ", "")) end
  end
  local list = stops.points
  list[#list + 1] = { file = file, line = line, condition = condition, globals = globals }
  watch()
  return #list
end

--- Removes breakpoint `number`, or all; whether there was one.
function stops.remove(number)
  if number and not stops.points[number] then return false end
  if number then table.remove(stops.points, number) else stops.points = {} end
  watch()
  return true
end

--- Stops at the next line that the frame comes to, or the function that it returns to.
function stops.step_line(frame)
  step = { thread = frame.thread, depth = frame.depth }
  watch()
end

--- Stops at the first line of the next hook that the Trainer calls and the script defines.
function stops.step_hook()
  awaiting = require "ltrain.trainer.hook_calls"
  step = { awaits = true }
  watch()
  function awaiting.entered(name) -- some run no line of the script
    local first = step.awaits
    step = { thread = false, hook = name }
    if first then watch() end
  end
end

--- Nothing is stepped to any more.
function stops.forget_step()
  if not step then return end
  step = nil
  if awaiting then awaiting.entered, awaiting = nil, nil end
  watch()
end

--- "1  model.lua:12 if x > 3" of a breakpoint.
function stops.text(number)
  local point = stops.points[number]
  return ("%d  %s:%d%s"):format(number, errors.printable(point.file), point.line,
    point.condition and " if " .. point.condition or "")
end

return stops
