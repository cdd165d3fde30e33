--- stdlib/apps/debugger/view.lua: one stop at the debugger's prompt: the selected frame, and the
--- prompt's commands.
local c = require "ltrain.c"
local base = require "ltrain.apps.prompt.commands"
local errors = require "ltrain.core.errors"
local frames = require "ltrain.apps.debugger.frames"
local prompt = require "ltrain.apps.prompt.session"
local variable_text = require "ltrain.apps.debugger.variable_text"
local script_source = require "ltrain.core.script_source"
local source_line = require "ltrain.core.source_line"
local stops = require "ltrain.apps.debugger.stops"

local view = {}

local MOST <const> = 40 -- frames that :where lists
local AROUND <const> = 8 -- lines that :list prints before and after one
local commands <const> = {}
for name, command in next, base do commands[name] = command end

-- The selected frame; nil: the Trainer's loop, which had called nothing of the script.
local function current(session) return session.stop.frames[session.level] end

-- Makes the prompt's variables those of frame `level`.
local function select_frame(session, level)
  session.level = level
  local frame = current(session)
  session.env = frame and frames.environment(frame, session.globals) or session.loop_env
  session.varargs = frame and frames.varargs(frame)
end

local function say_frame(session, around)
  local frame = current(session)
  if not frame then return end
  session:say(frames.text(frame))
  local excerpt = script_source.excerpt(frame.source, frame.line, around, frame.line)
  if excerpt then session:say(excerpt) end
end

local function say_variables(session, list)
  local text = variable_text.variables(list)
  session:say(text ~= "" and text or "  (no variables)")
end

-- Functions, and the library, are left to :locals.
local function say_locals(session)
  local frame = current(session)
  local list, shown = frame and frames.variables(frame, true) or session.loop_variables, {}
  for _, one in ipairs(list) do
    local is_library = type(one.value) == "table" and rawget(one.value, "relu") == c.relu
    if type(one.value) ~= "function" and not is_library then shown[#shown + 1] = one end
  end
  if #shown > 0 then say_variables(session, shown) end
end

local function move(session, by, end_text)
  local level = session.level + by
  if level < session.first or level > #session.stop.frames then
    return session:complain(end_text)
  end
  select_frame(session, level)
  say_frame(session, 2)
  say_locals(session)
end

commands.up = { doc = "look at the function that called this one",
  run = function(session) move(session, 1, ":up: this is the outermost function") end }

commands.down = { doc = "look at the function that this one called",
  run = function(session) move(session, -1, ":down: this is the innermost function") end }

commands.where = { doc = "list the script's functions that are running", run = function(session)
  for i, frame in ipairs(session.stop.frames) do
    if i > MOST then return session:say(("  ... %d more"):format(#session.stop.frames - MOST)) end
    if frame.resumes then session:say "  (a coroutine, resumed by)" end
    session:say(("%s %s"):format(i == session.level and ">" or " ", frames.text(frame)))
  end
end }

commands.list = { args = "[LINE]", doc = "print the source around this line, or around LINE",
  run = function(session, text)
    local frame = current(session)
    local at = tonumber(text)
    if text ~= "" and not math.tointeger(at) then
      return session:complain(":list: LINE must be a number: got " .. errors.show(text))
    end
    local excerpt = frame
      and script_source.excerpt(frame.source, at or frame.line, AROUND, frame.line)
    if not excerpt then return session:complain(":list: there is no source to read") end
    session:say(excerpt)
  end }

commands.locals = { doc = "list the variables of this function: locals, then upvalues",
  run = function(session)
    local frame = current(session)
    if not frame then return say_variables(session, session.loop_variables) end
    local groups = { ["local"] = {}, upvalue = {} }
    for _, one in ipairs(frames.variables(frame)) do table.insert(groups[one.kind], one) end
    say_variables(session, groups["local"])
    if #groups.upvalue > 0 then session:say "upvalues:" say_variables(session, groups.upvalue) end
    local varargs = frames.varargs(frame)
    if varargs then
      local parts = {}
      for i = 1, varargs.n do parts[i] = variable_text.brief(varargs[i]) end
      session:say("... = " .. table.concat(parts, ", "))
    end
  end }

commands.continue = { doc = "continue the script; after an error, fail as it would",
  run = function(session) session:leave "continue" end }

-- After an error nothing of the script runs any more.
local function may_step(session, name)
  if not session.stop.failed then return true end
  session:complain(":" .. name .. ": the script has failed here: :continue ends it")
end

commands.step = { doc = "continue to the first line of the Trainer's next hook",
  run = function(session)
    if not may_step(session, "step") then return end
    stops.step_hook()
    session:leave "step"
  end }

commands.next = { doc = "continue to the next line of this function",
  run = function(session)
    if not may_step(session, "next") then return end
    stops.step_line(session.stop.frames[1])
    session:leave "next"
  end }

-- Whether code can stand in a line.
local function is_code(line)
  return line:find "%S" ~= nil and not line:find "^%s*%-%-"
end

-- "FILE:LINE if EXPR", "LINE if EXPR": the file ("" without one), the line, the expression or nil;
-- nothing where it is neither. A name with blanks is a file that is there, or stands in quotes.
local function read_place(text)
  local file, line, condition = text:match "^(.-):(%d+)%s+if%s+(.+)$"
  if not file then file, line = text:match "^(.-):(%d+)$" end
  if not file then line, condition = text:match "^(%d+)%s+if%s+(.+)$" end
  line = math.tointeger(tonumber(line or text))
  file = file or ""
  return file:match '^"(.*)"$' or file:match "^'(.*)'$" or file, line, condition
end

commands["break"] = { args = "[FILE:]LINE [if EXPR]",
  doc = "stop in front of that line, where EXPR is true; alone: list the breakpoints",
  run = function(session, text)
    if text == "" then
      for i in ipairs(stops.points) do session:say(stops.text(i)) end
      if #stops.points == 0 then session:say "(no breakpoints)" end
      return
    end
    local file, line, condition = read_place(text)
    local frame = current(session)
    if file == "" and frame then file = frame.file end
    local code = line and script_source.line("@" .. file, line)
    if not line or file == "" or file:find "%s" and not code and file == text:sub(1, #file) then
      return session:complain(":break: needs FILE:LINE [if EXPR]: got " .. errors.show(text))
    end
    local whole = not code and script_source.text("@" .. file)
    if whole then
      local lines = script_source.lines((whole:gsub("\n$", "")))
      return session:complain((":break: %s has %d lines"):format(file, #lines))
    end
    if code and not is_code(code) then
      return session:complain((":break: %s:%d is not a line of code"):format(file, line))
    end
    local number, wrong = stops.add(file, line, condition, session.globals)
    if not number then return session:complain(":break: " .. wrong) end
    session:say("breakpoint " .. stops.text(number) .. (code and "  |" .. code
      or "  (no such file yet)"))
  end }

commands.delete = { args = "[N]", doc = "remove breakpoint N, or all",
  run = function(session, text)
    local number = math.tointeger(tonumber(text))
    if text ~= "" and not number or not stops.remove(number) then
      session:complain(":delete: there is no breakpoint " .. text)
    end
  end }

commands.quit = { doc = "end the script", run = function(session) session:leave "quit" end }

for short, name in pairs { u = "up", d = "down", w = "where", l = "list", c = "continue",
                           s = "step", n = "next", b = "break", q = "quit" } do
  commands[short] = { alias = true, args = commands[name].args, doc = commands[name].doc,
    run = commands[name].run }
end

-- Where no function of the script runs: what the loop has.
local function loop_variables(state)
  if not state then return {} end
  local list, loop = {}, state.loop
  local function add(name, value) list[#list + 1] = { name = name, value = value } end
  add("trainer", state.trainer)
  add("module", state.module)
  if loop.batch then add("batch", loop.batch) end
  if loop.outputs then add("outputs", loop.outputs) end
  return list
end

local function loop_environment(list, globals)
  local values = {}
  for _, one in ipairs(list) do values[one.name] = one.value end
  return setmetatable(values, { __newindex = globals, __index = function(_, name)
    local value = globals[name]
    if value == nil and name == "lt" then return require "ltrain" end
    return value
  end })
end

-- The operation whose derivative an error speaks of, and its line.
local DERIVATIVE <const> = "derivative of ([%w_]+) at (%S+:%d+)"

-- The line of the script that an error speaks of.
local function fault_line(message)
  local op, place = message:match(DERIVATIVE)
  return source_line(op and ("%s: %s: "):format(place, op) or message)
end

-- The level that is selected first: 0, the loop, where it was the loop that called backward.
local function first_level(stop)
  local of_loop = stop.state and (stop.title or ""):find(DERIVATIVE)
  return (of_loop or #stop.frames == 0) and 0 or 1
end

-- What the user sees first.
local function greet(session)
  local stop, rank = session.stop, c.dist.rank()
  local who = c.dist.world().ranks > 1 and ("rank %d: "):format(rank) or ""
  if stop.failed or stop.title then session:say(who .. (stop.title or "")) end
  if current(session) then
    say_frame(session, stop.title and 2 or 1)
  else
    local line = fault_line(stop.title)
    if line then session:say(line) end
  end
  say_locals(session)
end

-- On a terminal whose output goes elsewhere questions go to stderr.
local function visible(host)
  local edits = host.tty or c.runtime.isatty "stdout"
  if edits or not c.runtime.isatty "stdin" or not c.runtime.isatty "stderr" then return host end
  return setmetatable({
    write = host.complain, paint = host.complain,
    read_line = function(mark, helper)
      host.complain(mark)
      return host.read_line("", helper)
    end,
  }, { __index = host })
end

--- The prompt at a stop; returns "continue", "step", "next" or "quit", nil at the end of the input.
function view.open(stop, host)
  local ranks = c.dist.world().ranks
  local mark = ranks > 1 and ("[rank %d] debug> "):format(c.dist.rank()) or "debug> "
  local session = prompt.new { host = visible(host), env = host.globals, commands = commands,
    mark = mark }
  session.stop, session.globals = stop, host.globals
  session.files[1] = { path = prompt.script(host) }
  if stop.failed then -- for `:bt`
    session.failure = { stack = host.traceback(stop.title, 0, stop.threads[1]) }
  end
  session.loop_variables = loop_variables(stop.state)
  session.loop_env = loop_environment(session.loop_variables, host.globals)
  session.first = first_level(stop)
  select_frame(session, session.first)
  session:try(greet, session)
  return session:loop()
end

return view
