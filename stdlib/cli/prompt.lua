--- stdlib/cli/prompt.lua: reads a line, runs it, prints its values, and repeats.
local c = require "ltrain.c"
local protect = require "ltrain.cli.protect"
local show = require "ltrain.cli.show"

local prompt = {}

local FIRST <const>, MORE <const> = "> ", ">> "
local LOCAL_NOTE <const> = "(a local lasts for its line only: leave out `local` to keep it)\n"

-- Whether a message of `load` says that the text may continue.
local function is_incomplete(message)
  return message:sub(-5) == "<eof>"
end

-- The function that a text stands for: an expression, else a statement; or nil, a message, and
-- whether more lines could mend it.
local function compile(text, globals)
  local chunk, why = load("return " .. text, "=stdin", "t", globals)
  if chunk then return chunk end
  local statement, message = load(text, "=stdin", "t", globals)
  if statement then return statement end
  return nil, message, is_incomplete(message) or is_incomplete(why)
end

-- One statement, read over as many lines as it takes. Returns its function and text; nil and a
-- message for one that does not compile; nil alone at the end of the input; false when Ctrl-C threw
-- the lines away.
local function read(host)
  local text = host.read_line(FIRST)
  if not text then return text end
  host.remember(text)
  text = text:gsub("^%s*=", "return ")
  while true do
    local chunk, message, incomplete = compile(text, host.globals)
    if chunk then return chunk, text end
    if not incomplete then return nil, message end
    local line = host.read_line(MORE)
    if line == nil then return nil, message end
    if line == false then return false end
    host.remember(line)
    text = text .. "\n" .. line
  end
end

local function print_values(host, values)
  local parts = {}
  for i = 1, values.n do parts[i] = show.value(values[i]) end
  if values.n > 0 then host.write(table.concat(parts, "\t") .. "\n") end
end

local function run(host, chunk, text, notes)
  local results = table.pack(protect.call(host, chunk))
  local silent = results[1] and results.n == 1
  if results[1] then
    -- Showing calls the script's __tostring.
    local values = table.pack(table.unpack(results, 2, results.n))
    results[1], results[2] = protect.call(host, print_values, host, values)
  end
  if not results[1] then
    local failure = results[2]
    local after_echo = failure.stopped and host.tty and "\n" or "" -- the terminal shows ^C
    host.complain(after_echo .. failure.text .. "\n")
  end
  if silent and text:find("^%s*local%s") and not notes.warned_local then
    notes.warned_local = true
    host.write(LOCAL_NOTE)
  end
  c.runtime.clear_interrupt()
end

--- Reads statements until the input ends; returns the exit status.
function prompt.main(host)
  local notes = {}
  while true do
    local chunk, text = read(host)
    if chunk then
      run(host, chunk, text, notes)
    elseif chunk == nil and text then
      host.complain(text .. "\n")
    elseif chunk == nil then
      if host.tty then host.write("\n") end
      return host.signal() == 143 and 143 or 0
    end
  end
end

return prompt
