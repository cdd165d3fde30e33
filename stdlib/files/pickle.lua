-- stdlib/files/pickle.lua: reads Python pickles of plain values: dicts, lists, tuples, strings,
-- numbers, booleans and None.
--
-- A pickle is a program for a machine with a stack. This one has the instructions that build plain
-- values, and no other. A name of Python's (`collections.OrderedDict`) means what the caller says:
-- nothing is ever looked up or called by its name. An object of a class that means nothing to the
-- caller is left out of the value, unless tensors would be lost with it.

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

local function holds_tensors(self, value, seen, depth)
  if self.kinds[value] == "tensor" or self.kinds[value] == "storage" then return true end
  if type(value) ~= "table" or seen[value] then return false end
  if depth > MAX_DEPTH then self:fail("is nested deeper than %d levels", MAX_DEPTH) end
  seen[value] = true
  local object = self.objects[value]
  for _, field in next, object and object.parts or value do
    if holds_tensors(self, field, seen, depth + 1) then return true end
  end
  return false
end

--- Whether tensors would be lost with a value.
function Machine:holds_tensors(value) return holds_tensors(self, value, {}, 0) end

-- The value on top, which must be of a kind. An object that is filled as one was of a class that
-- extends it.
function Machine:target(kind)
  local value = self:pop()
  local object = self.objects[value]
  if object then
    if self:holds_tensors(value) then self:refuse(object.name) end
    self.kinds[value], self.counts[value], self.objects[value] = kind, 0, nil
  elseif self.kinds[value] ~= kind then
    self:fail("is damaged: a pickle fills a value that is not a %s", kind)
  end
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

--- Sets a pair of a dict.
function Machine:set(dict, key, value)
  local kind = type(key)
  if kind ~= "string" and (kind ~= "number" or key ~= key) then
    self:fail("contains a dict with a key that is neither a string nor a number")
  end
  if value == NONE then value = nil end
  dict[key] = value
end

--- An object of a class or function of Python's: `fields` is what is known of it: its name,
--- `parts` (what it was made of) and, once that is known, the `value` that stands for it.
function Machine:object(fields)
  local object = self:new "object"
  self.objects[object] = fields
  return object
end

-- Ends the reading for what cannot be left out.
function Machine:refuse(name)
  self:fail("contains %s: only tensors, numbers, strings, lists and dicts are read; save "
    .. "model.state_dict()", errors.printable(name))
end

function Machine:ends_early()
  error({ pickle = "is damaged: a pickle ends too early", short = true }, 0)
end

--- The next n bytes.
function Machine:bytes(n)
  local at = self.at
  if n > #self.text - at + 1 then self:ends_early() end
  self.at = at + n
  return self.text:sub(at, at + n - 1)
end

--- The next byte, as a number.
function Machine:byte()
  local at = self.at
  self.at = at + 1
  return self.text:byte(at) or self:ends_early()
end

--- The next number, in a format of string.unpack.
function Machine:number(format)
  return (string.unpack(format, self:bytes(string.packsize(format))))
end

-- What stands for a name or an object in the value; nil where it is left out.
local function plain(self, value)
  local object = self.objects[value] or value
  if object.value ~= nil then return object.value end
  if self.kinds[value] == "storage" then self:refuse "a storage without a tensor" end
  if self:holds_tensors(value) then self:refuse(object.name) end
  self.left_out[object.name] = true
end

local CONTAINERS <const> = { dict = true, list = true, tuple = true }

-- Checks what was read, tables within tables, and puts plain values in place of objects; returns
-- the value and its height.
local function settle(self, value, open, depth)
  if type(value) ~= "table" or value == NONE then return value, 0 end
  local kind = self.kinds[value]
  if not CONTAINERS[kind] then
    local stands = plain(self, value)
    if not CONTAINERS[self.kinds[stands]] then return stands, 0 end
    return settle(self, stands, open, depth)
  elseif open[value] == "open" then
    self:fail("contains a %s that contains itself", kind)
  end
  local height = open[value] or 0
  if not open[value] and depth < MAX_DEPTH then
    open[value] = "open"
    for key, field in next, value do
      local own, below = settle(self, field, open, depth + 1)
      value[key], height = own, math.max(height, below + 1)
    end
    open[value] = height
  end
  if depth + height >= MAX_DEPTH then self:fail("is nested deeper than %d levels", MAX_DEPTH) end
  return value, height
end

local function run(machine)
  local code = machine:byte()
  while code ~= STOP do
    local step = OPS[code]
    if not step then machine:fail("has the pickle instruction %d, which is not read", code) end
    step(machine)
    code = machine:byte()
  end
  local top = machine:pop()
  if machine.skims then return true end
  local value = settle(machine, top, {}, 0)
  if value == NONE then machine:fail "contains None" end
  if value == nil then machine:refuse((machine.objects[top] or top).name) end
  return value
end

--- The value of the pickle in `text` from byte `at` on, and where it ends; nil and what is wrong
--- with it: { pickle = message }, `whole` where the message names the path itself, `short` where
--- the text ends before the pickle does. A None in a list or dict is nil. find(machine, name)
--- returns what a name of Python's stands for, a table: `call(machine, args, count)` returns what
--- a call of it makes, `value` stands for the name itself; one that `is_harmless` makes an object
--- that is left out. persistent(machine, id) returns what a tuple stands for that names something
--- outside of the pickle. `fields` are what both find in the machine; the names of what is left out
--- of the value become keys of `fields.left_out`; with `fields.skims` the value is true.
return function(text, at, find_name, persistent, fields)
  local machine = setmetatable({ text = text, at = at, stack = {}, top = 0, marks = {}, memo = {},
    memos = 0, kept = 0, kinds = {}, counts = {}, objects = {}, find = find_name,
    persistent = persistent }, Machine)
  for name, value in next, fields do machine[name] = value end
  local ok, result = pcall(run, machine)
  if ok then return result, machine.at end
  if type(result) ~= "table" or not result.pickle then error(result, 0) end
  return nil, result
end
