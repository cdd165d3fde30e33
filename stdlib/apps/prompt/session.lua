--- stdlib/apps/prompt/session.lua: reads an entry, evaluates it, prints its values, and repeats.
--
-- A session is made of
--   host      read_line(mark, helper), remember(text), write(text), complain(text), tty,
--             stopped(), traceback(message, level): stdlib/cli/init.lua describes them
--   env       the table of globals that entries read and write: _G, or one whose metamethods reach
--             the locals of a frame (`pairs` lists what can be completed)
--   commands  name -> { args =, doc =, run(session, text) }: what `:name text` does
-- and keeps
--   last      the last value that was printed: `_`
--   failure   what evaluation.lua caught last, or nil
--   files     { path =, result = } of the script and of `:load`: what `:reload` runs again
local c = require "ltrain.c"
local evaluation = require "ltrain.apps.prompt.evaluation"
local commands = require "ltrain.apps.prompt.commands"
local errors = require "ltrain.core.errors"
local remedies = require "ltrain.core.lua_error_hints"
local value_text = require "ltrain.apps.prompt.value_text"
local tree = require "ltrain.core.tree"

local session = {}
session.__index = session

local FIRST <const>, MORE <const> = "> ", ">> "
local LOCAL_NOTE <const> = "(a local lasts for its line only: leave out `local` to keep it)\n"

--- A session from {host =, env =, commands =}; `mark` (default "> ") stands before each entry.
function session.new(o)
  local made = { host = o.host, env = o.env, commands = o.commands or commands,
                 mark = o.mark or FIRST, files = {} }
  c.runtime.note_allocations(true) -- for `:mem`
  return setmetatable(made, session)
end

--- The script that the program runs; nil for none, or where it cannot be read again.
function session.script(host)
  local arg = host.globals.arg
  local path = type(arg) == "table" and arg[-1] and arg[0]
  return path ~= "-" and path or nil
end

-- Whether a message of `load` says that the text may continue.
local function is_incomplete(message)
  return message:sub(-5) == "<eof>"
end

-- Before each entry: `_` is the last value. A call that is the whole entry would be a tail call,
-- and its error would not know the line.
local HEAD <const> = "local _, results__ = ...; "

-- The same for entries with `...`: what follows HEAD's own values.
local VARARGS <const> = "return (function(_, results__, ...) %s\nend)(...)"

local function pass(...) return ... end

--- The function that a text stands for: an expression, else a statement; or nil, a message, and
--- whether more lines could mend it.
function session:compile(text)
  text = text:gsub("^%s*=", "")
  local function compile(code) return load(HEAD .. code, "=stdin", "t", self.env) end
  local chunk, why = compile("return " .. text)
  if chunk then -- the text may end in a comment; a line more would be that of an index's error
    chunk = compile(("return results__(%s)"):format(text))
      or compile(("return results__(%s\n)"):format(text)) or chunk
  end
  local statement, message = chunk, nil
  if not chunk then statement, message = compile(text) end
  if statement and text:find("...", 1, true) then -- those of the selected function
    statement = compile(VARARGS:format(chunk and ("return results__(%s\n)"):format(text) or text))
      or statement
    local given = self.varargs or { n = 0 }
    return function()
      return statement(self.last, pass, table.unpack(given, 1, given.n))
    end
  end
  if statement then return function() return statement(self.last, pass) end end
  return nil, message, is_incomplete(message) or is_incomplete(why)
end

--- Whether Enter ends the entry.
function session:is_complete(text)
  if text:find "^%s*:%a" then return true end
  local _, _, incomplete = self:compile(text)
  return not incomplete
end

-- What the editor asks while an entry is made: lua/apps/prompt_input.h.
local function helper_of(self)
  return {
    enter = function(_, text)
      local tokens = require "ltrain.core.tokens"
      local extra = tostring(tokens.too_many_blanks(text))
      if self:is_complete(text) then return nil, extra end
      return "\n" .. ("  "):rep(tokens.depth(text)), extra
    end,
    complete = function(_, text, cursor)
      return require "ltrain.apps.prompt.complete".press(self, text:sub(1, cursor - 1))
    end,
    look = function(_, text)
      local highlighting = require "ltrain.apps.prompt.highlighting"
      local ok, hint = pcall(highlighting.hint, self, text)
      return highlighting.styles(self, text), ok and hint or nil
    end,
  }
end

--- Text for the user.
function session:say(text)
  self.host.paint(text .. "\n")
end

--- A line on what was wrong with an entry.
function session:complain(text)
  self.host.complain(text .. "\n")
end

--- Prints what evaluation.lua caught, and keeps it for `:bt`.
function session:report(failure)
  self.failure = failure
  local after_echo = failure.stopped and self.host.tty and "\n" or "" -- the terminal shows ^C
  self.host.complain(after_echo .. failure.text .. "\n")
end

--- Calls f(...); reports what it raises. Returns true and its results, or false.
function session:try(f, ...)
  local results = table.pack(evaluation.call(self.host, f, ...))
  if results[1] then return table.unpack(results, 1, results.n) end
  self:report(results[2])
  return false
end

-- Showing calls the script's __tostring.
local function print_values(self, values)
  self:say(value_text.values(values, 2))
end

--- Prints what `try` returned, packed, and keeps the first value as the last.
function session:print(results)
  if not results[1] or results.n == 1 then return end
  self.last = results[2]
  self:try(print_values, self, results)
end

--- Evaluates one entry of Lua and prints its values; returns whether it did not fail.
function session:evaluate(text)
  local chunk, message = self:compile(text)
  if not chunk then
    self:complain(remedies(message, text))
    return false
  end
  local results = table.pack(self:try(chunk))
  self:print(results)
  if results[1] and results.n == 1 and text:find "^%s*local%s" and not self.warned_local then
    self.warned_local = true
    self.host.write(LOCAL_NOTE)
  end
  return results[1]
end

--- Runs `:name text`.
function session:command(name, text)
  local command = self.commands[name]
  if not command then
    return self:complain((":%s: no such command%s; :help lists them"):format(name,
      errors.did_you_mean(name, (tree.keys(self.commands)))))
  end
  self:try(command.run, self, text)
end

--- From a command: ends the loop, which returns `result`.
function session:leave(result)
  self.left, self.result = true, result
end

-- One entry: over as many lines as it takes. nil at the end of the input; false when Ctrl-C threw
-- it away.
local function read(self)
  local host = self.host
  self.helper = self.helper or helper_of(self)
  local text = host.read_line(self.mark, self.helper)
  if not text then return text end
  while not self:is_complete(text) do
    local line = host.read_line(MORE)
    if line == false then return false end
    if line == nil then break end
    text = text .. "\n" .. line
  end
  host.remember(text)
  return text
end

--- Reads and runs entries until the input ends (returns nil) or a command leaves (its result).
function session:loop()
  self.left = false
  while not self.left do
    local text = read(self)
    if text == nil then
      if self.host.tty then self.host.write("\n") end
      return nil
    elseif text then
      local name, rest = text:match "^%s*:([%a_]+)%s*(.-)%s*$"
      if name then self:command(name, rest) else self:evaluate(text) end
      evaluation.forget_interrupt()
    end
  end
  return self.result
end

return session
