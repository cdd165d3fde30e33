--- stdlib/core/console.lua: prints messages of the loops without breaking a progress bar.
--
-- Messages and the bar go to stderr, so that what a script prints can be piped. Whoever holds the
-- last line of the terminal (a bar) is asked to clear it before, and to draw it again after. Of
-- several ranks only rank 0 speaks.
local c = require "ltrain.c"
local tree = require "ltrain.core.tree"

local console = {}

local hold_line <const> = c.runtime.hold_line -- of the program, on a terminal: lua/cli/output.h

local KEPT <const> = 1000 -- lines

local early = {} -- lines from before anybody wanted a copy
local copy -- the path of the file that lines are copied to, or nil
local verbose = false -- the other ranks speak too, and say who they are
local holder -- an object with hide() and draw(), or nil

--- Makes `bar` the holder of the last line; nil: nobody.
function console.set_bar(bar)
  holder = bar
  if not hold_line then return end
  if bar then
    hold_line(function() bar:hide() end, function() bar:draw() end)
  else
    hold_line()
  end
end

--- Has every rank speak (true), the others with their numbers before their lines.
function console.speak_all(on)
  verbose = on
end

local function is_first()
  return c.dist.rank() == 0
end

--- Copies lines to the end of a file from now on, those from before there was one too. Where that
--- cannot be written there is no copy.
function console.copy_to(path)
  copy = path
  if #early > 0 then console.copy(table.concat(early)) end
  early = {}
end

--- Text for the copy only: what others have written.
function console.copy(text)
  if copy then
    if not c.io.append_file(copy, text) then copy = nil end
  elseif #early < KEPT then
    early[#early + 1] = text
  end
end

--- Calls write(...), which writes lines to the terminal, past whoever holds its last line.
function console.past(write, ...)
  if holder then holder:hide() end
  write(...)
  if holder then holder:draw() end
end

local function around(write)
  if verbose or is_first() then console.past(write) end
end

--- A line on stderr.
function console.say(text)
  if not is_first() then
    if verbose then console.say_anywhere(text) end
    return
  end
  local line = ("ltrain: %s\n"):format(c.runtime.printable(text, "lines"))
  around(function() c.runtime.write_stderr(line) end)
  console.copy(line)
end

--- A line on stderr of whichever rank this is, with its number in front: of what the others cannot
--- know.
function console.say_anywhere(text)
  local world = c.dist.world()
  if world.ranks == 1 then return console.say(text) end
  local tagged = world.forked and world.rank > 0 -- what forked ranks write gets their number later
  local line = ("%sltrain: %s\n"):format(tagged and "" or ("[rank %d] "):format(world.rank),
    c.runtime.printable(text, "lines"))
  local function write() c.runtime.write_stderr(line) end
  if world.rank == 0 then console.past(write) else write() end
end

--- A warning.
function console.warn(text) console.say("warning: " .. text) end

c.runtime.warn = console.warn -- what the runtime warns of, from here on

--- Lines on stderr.
function console.write(text)
  text = c.runtime.printable(text, "lines")
  around(function() c.runtime.write_stderr(text) end)
  if is_first() then console.copy(text) end
end

--- Text of the holder of the last line.
function console.raw(text)
  if not is_first() then return end
  c.runtime.write_stderr(text)
end

--- Whether stderr is a terminal that understands escape codes.
function console.is_terminal()
  return c.runtime.isatty "stderr" and c.runtime.getenv "TERM" ~= "dumb"
end

--- Columns of the terminal.
function console.width()
  return c.runtime.terminal_width "stderr" or 80
end

--- What print(...) writes.
function console.line(...)
  local texts = table.pack(...)
  for i = 1, texts.n do texts[i] = tostring(texts[i]) end
  return table.concat(texts, "\t") .. "\n"
end

--- What `print` does.
function console.print(...)
  local values = table.pack(...)
  if is_first() then console.copy(console.line(...)) end
  around(function()
    if is_first() then
      print(table.unpack(values, 1, values.n))
    else
      print(("[rank %d]"):format(c.dist.rank()), table.unpack(values, 1, values.n))
    end
  end)
end

local function number_text(value)
  return math.type(value) == "integer" and tostring(value) or ("%.6g"):format(value)
end

--- Prints the metrics of validate or test: one line a name, one column a loader.
function console.table(title, metrics)
  local _ <close> = c.runtime.plain_locale()
  local names, seen, width = {}, {}, #title
  for _, one in ipairs(metrics) do
    for name in tree.pairs(one) do
      if not seen[name] then
        seen[name] = true
        names[#names + 1] = name
        width = math.max(width, #name)
      end
    end
  end
  table.sort(names)
  local lines = {}
  for i, name in ipairs(names) do
    -- A format takes widths up to 99.
    local cells = { c.runtime.printable(name) .. (" "):rep(width - #name) }
    for _, one in ipairs(metrics) do
      cells[#cells + 1] = ("%12s"):format(one[name] and number_text(one[name]) or "")
    end
    lines[i] = table.concat(cells, "  ")
  end
  if #lines > 0 then console.print(table.concat(lines, "\n")) end
end

return console
