-- stdlib/files/pickle.lua: reads Python pickles of plain values: dicts, lists, tuples, strings,
-- numbers, booleans and None.
--
-- A pickle is a program for a machine with a stack. This one has the instructions that build plain
-- values, and no other. A name of Python's (`collections.OrderedDict`) means what the caller says,
-- or ends the reading: nothing is ever looked up or called by its name.

local OPS = require "ltrain.files.pickle_instructions"
local errors = require "ltrain.core.errors"

local MAX_VALUES <const> = 1 << 22 -- each may take some 150 bytes
local MAX_DEPTH <const> = 128
local STOP <const> = 0x2e
local NONE <const> = {} -- None, while it is on the stack

local Machine = { NONE = NONE }
Machine.__index = Machine

--- Ends the reading: its message, after the path.
function Machine.fail(_, message, ...)
  error({ pickle = message:format(...) }, 0)
end

--- Counts what is kept: a value, a mark, a note of a value.
function Machine:keep()
  self.kept = self.kept + 1
  if self.kept > MAX_VALUES then self:fail("has more than %d values", MAX_VALUES) end
end

function Machine:push(value)
  self:keep()
  self.top = self.top + 1
  self.stack[self.top] = value
end

function Machine:pop()
  local base = self.marks[#self.marks] or 0
  if self.top <= base then self:fail "is damaged: a pickle takes more values than it has" end
  local value = self.stack[self.top]
  self.stack[self.top], self.top = nil, self.top - 1
  return value
end

-- The value on top, which must be of a kind.
function Machine:target(kind)
  local value = self:pop()
  if self.kinds[value] ~= kind then self:fail("is damaged: a pickle fills what is no %s", kind) end
  self:push(value)
  return value
end

-- The values above the last mark, as a new table, and how many.
function Machine:marked()
  local base = table.remove(self.marks)
  if not base then self:fail "is damaged: a pickle takes more values than it has" end
  local count = self.top - base
  local values = table.move(self.stack, base + 1, self.top, 1, {})
  for i = base + 1, self.top do self.stack[i] = nil end
  self.top = base
  return values, count
end

--- A new container: "dict", "list" or "tuple".
function Machine:new(kind, values, count)
  values = values or {}
  self.kinds[values], self.counts[values] = kind, count or 0
  for i = 1, count or 0 do
    if values[i] == NONE then values[i] = nil end
  end
  return values
end

--- The next n bytes.
function Machine:bytes(n)
  local at = self.at
  if n > #self.text - at + 1 then self:fail "is damaged: a pickle ends too early" end
  self.at = at + n
  return self.text:sub(at, at + n - 1)
end

--- The next byte, as a number.
function Machine:byte()
  local at = self.at
  self.at = at + 1
  return self.text:byte(at) or self:fail "is damaged: a pickle ends too early"
end

--- The next number, in a format of string.unpack.
function Machine:number(format)
  return (string.unpack(format, self:bytes(string.packsize(format))))
end

-- Checks what was read, tables within tables; returns the height of a value.
local function check(self, value, open, depth)
  if type(value) ~= "table" then return 0 end
  local kind = self.kinds[value]
  if value == NONE then return 0 end
  if kind ~= "dict" and kind ~= "list" and kind ~= "tuple" then
    self:fail("holds %s: only tensors, numbers, strings, lists and dicts are read",
      errors.printable(value.name or "a storage without a tensor"))
  elseif open[value] == "open" then
    self:fail("holds a %s that contains itself", kind)
  end
  local height = open[value] or 0
  if not open[value] and depth < MAX_DEPTH then
    open[value] = "open"
    for _, held in next, value do
      height = math.max(height, check(self, held, open, depth + 1) + 1)
    end
    open[value] = height
  end
  if depth + height >= MAX_DEPTH then self:fail("is nested deeper than %d levels", MAX_DEPTH) end
  return height
end

local function run(machine)
  local code = machine:byte()
  while code ~= STOP do
    local step = OPS[code]
    if not step then machine:fail("has the pickle instruction %d, which is not read", code) end
    step(machine)
    code = machine:byte()
  end
  local value = machine:pop()
  check(machine, value, {}, 0)
  if value == NONE then machine:fail "holds None" end
  return value
end

--- The value of a pickle; nil and what is wrong with it. A None in a list or dict is nil.
--- find(machine, name) returns what a name of Python's stands for, nil to refuse it: a table,
--- which may have `call(machine, args, count)`; persistent(machine, id) what a tuple does that
--- names something outside of the pickle. `fields` are what both find in the machine. The third
--- result is true where a message of theirs is whole: it names the path itself.
return function(text, find_name, persistent, fields)
  local machine = setmetatable({ text = text, at = 1, stack = {}, top = 0, marks = {}, memo = {},
    memos = 0, kept = 0, kinds = {}, counts = {}, find = find_name, persistent = persistent },
    Machine)
  for name, value in next, fields do machine[name] = value end
  local ok, result = pcall(run, machine)
  if ok then return result end
  if type(result) ~= "table" or not result.pickle then error(result, 0) end
  return nil, result.pickle, result.whole
end
