--- stdlib/apps/debugger/frames.lua: the script's own frames, from the innermost outwards, and their
--- variables.
--
-- Frames of the library and of C are left out. Where the running thread is a coroutine, those of
-- the thread that has resumed it follow its own.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local script_source = require "ltrain.core.script_source"

local frames = {}

local raw <const> = c.runtime.frames

local function is_user(frame)
  return not frame.ours and frame.what ~= "C" and frame.line > 0
end

--- The running thread and those that wait for it.
frames.threads = raw.threads

--- The same from within a session about an error in a thread, which is one of them, or a coroutine
--- that has ended with it.
function frames.failed_threads(failed)
  local list = raw.threads()
  if rawequal(list[2], failed) then table.remove(list, 1) else list[1] = failed end
  return list
end

--- The script's frames of a list of threads; `from` of the first of an outer thread is true.
function frames.of(threads)
  local found = {}
  for i, thread in ipairs(threads) do
    local first = true
    for _, frame in ipairs(raw.list(thread)) do
      if is_user(frame) then
        frame.resumes = first and i > 1 and #found > 0
        found[#found + 1], first = frame, false
      end
    end
  end
  return found
end

--- The state of the loop that runs, of which the innermost frames of the library know; nil: none.
function frames.loop_state(threads)
  for _, thread in ipairs(threads) do
    for _, frame in ipairs(raw.list(thread)) do
      for _, one in ipairs(frame.ours and raw.variables(frame.thread, frame.depth) or {}) do
        local value = one.name == "state" and one.kind == "local" and one.value
        if type(value) == "table" and type(rawget(value, "trainer")) == "table"
          and type(rawget(value, "loop")) == "table" then
          return value
        end
      end
    end
  end
end

local CATCHES <const> = { [pcall] = true, [xpcall] = true }

--- Whether a function of the script catches what is raised inside: it calls pcall or xpcall.
function frames.is_caught(threads)
  for _, thread in ipairs(threads) do
    local inner
    for _, frame in ipairs(raw.list(thread)) do
      if inner and CATCHES[inner.fn] and is_user(frame) then return true end
      inner = frame
    end
  end
  return false
end

-- A function's name as its source has it: of what the library calls, Lua knows the name that the
-- library has for it.
local function name_of(frame)
  local code = frame.what ~= "main" and script_source.line(frame.source, frame.first_line)
  return code and code:match "function%s+([%a_][%w_.:]*)" or frame.name
end

--- "model.lua:14: in Net:training_step".
function frames.text(frame)
  local what = name_of(frame) or (frame.what == "main" and "main chunk")
    or ("function <%s:%d>"):format(frame.file, frame.first_line)
  return ("%s:%d: in %s"):format(errors.printable(frame.file), frame.line, what)
end

--- Its variables: a list of {name =, kind =, index =, value =} in the order of the source, those
--- that inner blocks hide left out; `locals` only where upvalues are not wanted.
function frames.variables(frame, locals)
  local last, list = {}, raw.variables(frame.thread, frame.depth)
  for i, one in ipairs(list) do
    if one.kind ~= "vararg" then last[one.name] = i end
  end
  local found = {}
  for i, one in ipairs(list) do
    local wanted = one.kind == "local" or one.kind == "upvalue" and not locals
    if wanted and last[one.name] == i and one.name ~= "_ENV" then found[#found + 1] = one end
  end
  return found
end

--- What `...` is there, packed; nil where the function takes no more than it names.
function frames.varargs(frame)
  local found
  for _, one in ipairs(raw.variables(frame.thread, frame.depth)) do
    if one.kind == "vararg" then
      found = found or { n = 0 }
      found.n = found.n + 1
      found[found.n] = one.value
    end
  end
  return found
end

local function globals_of(frame, otherwise)
  for _, one in ipairs(raw.variables(frame.thread, frame.depth)) do
    if one.name == "_ENV" and type(one.value) == "table" then return one.value end
  end
  return otherwise
end

--- A table of globals for code that is to run in the frame: its locals and upvalues, read and
--- written where they are, then what the frame's own globals are, and `lt`.
function frames.environment(frame, globals)
  local by_name = {}
  for _, one in ipairs(frames.variables(frame)) do by_name[one.name] = one end
  globals = globals_of(frame, globals)
  return setmetatable({}, {
    __index = function(_, name)
      local one = by_name[name]
      if one then return raw.get(frame.thread, frame.depth, one.kind, one.index) end
      local value = globals[name]
      if value == nil and name == "lt" then return require "ltrain" end
      return value
    end,
    __newindex = function(_, name, value)
      local one = by_name[name]
      if one then
        raw.set(frame.thread, frame.depth, one.kind, one.index, value)
      else
        globals[name] = value
      end
    end,
    __pairs = function(self)
      local names = {}
      for name in next, globals do names[name] = true end
      for name in next, by_name do names[name] = true end
      return function(_, name)
        name = next(names, name)
        if name ~= nil then return name, self[name] end
      end
    end,
  })
end

return frames
