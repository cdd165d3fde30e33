-- stdlib/files/pickle.lua: reads Python pickles of plain values: dicts, lists, tuples, strings,
-- numbers, booleans and None.
--
-- A pickle is a program for a machine with a stack. This one has the instructions that build plain
-- values, and no other. A name of Python's (`collections.OrderedDict`) means what the caller says,
-- or ends the reading: nothing is ever looked up or called by its name.

local errors = require "ltrain.core.errors"

local MAX_VALUES <const> = 1 << 23
local MAX_DEPTH <const> = 128
local MAX_PROTOCOL <const> = 5
local STOP <const> = 0x2e
local NONE <const> = {} -- None, while it is on the stack

local Machine = {}
Machine.__index = Machine

--- Ends the reading: its message, after the path.
function Machine.fail(_, message, ...)
  error({ pickle = message:format(...) }, 0)
end

function Machine:push(value)
  self.pushed = self.pushed + 1
  if self.pushed > MAX_VALUES then self:fail("has more than %d values", MAX_VALUES) end
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

local function append(self, list, value)
  local count = self.counts[list] + 1
  self.counts[list] = count
  if value ~= NONE then list[count] = value end
end

local function set(self, dict, key, value)
  local kind = type(key)
  if kind ~= "string" and (kind ~= "number" or key ~= key) then
    self:fail("holds a dict with a key that is neither a string nor a number")
  end
  if value == NONE then value = nil end
  dict[key] = value
end

-- The next n bytes.
local function bytes(self, n)
  local at = self.at
  if n > #self.text - at + 1 then self:fail "is damaged: a pickle ends too early" end
  self.at = at + n
  return self.text:sub(at, at + n - 1)
end

local function number(self, format)
  return (string.unpack(format, bytes(self, string.packsize(format))))
end

-- The text up to the end of the line.
local function line(self)
  local last = self.text:find("\n", self.at, true)
  if not last then self:fail "is damaged: a pickle ends too early" end
  return bytes(self, last - self.at + 1):sub(1, -2)
end

local function find(self, module, name)
  if type(module) ~= "string" or type(name) ~= "string" then
    self:fail "is damaged: a name of a pickle is no string"
  end
  local full = ("%s.%s"):format(module, name)
  local token = self.find(self, full)
  if not token then
    self:fail("holds %s: only tensors, numbers, strings, lists and dicts are read; "
      .. "save model.state_dict()", errors.printable(full))
  end
  token.name = full
  self.kinds[token] = "name"
  self:push(token)
end

local function remember(self, index)
  local value = self:pop()
  self:push(value)
  self.memo[index] = value
  self.memos = self.memos + 1
end

local function recall(self, index)
  local value = self.memo[index]
  if value == nil then self:fail "is damaged: a pickle names a value that it lacks" end
  self:push(value)
end

local function integer(self, n)
  if n > 8 then self:fail "holds an integer of more than 64 bits" end
  self:push(n == 0 and 0 or (string.unpack("<i" .. n, bytes(self, n))))
end

local function tuple(self, n)
  local values = {}
  for i = n, 1, -1 do values[i] = self:pop() end
  self:push(self:new("tuple", values, n))
end

local OPS <const> = {}
local function op(char, fn) OPS[char:byte()] = fn end

op("\x80", function(self)
  local protocol = number(self, "B")
  if protocol > MAX_PROTOCOL then self:fail("is a pickle of protocol %d", protocol) end
end)
op("\x95", function(self) bytes(self, 8) end) -- FRAME
op("(", function(self) self.marks[#self.marks + 1] = self.top end)
op("N", function(self) self:push(NONE) end)
op("\x88", function(self) self:push(true) end)
op("\x89", function(self) self:push(false) end)
op("J", function(self) self:push(number(self, "<i4")) end)
op("K", function(self) self:push(number(self, "B")) end)
op("M", function(self) self:push(number(self, "<I2")) end)
op("\x8a", function(self) integer(self, number(self, "B")) end)
op("\x8b", function(self) integer(self, number(self, "<I4")) end)
op("G", function(self) self:push(number(self, ">d")) end)
for char, format in next, { X = "<I4", ["\x8c"] = "B", ["\x8d"] = "<i8", T = "<I4", U = "B",
  B = "<I4", C = "B", ["\x8e"] = "<i8" } do -- strings and bytes, after their length
  op(char, function(self)
    local n = number(self, format)
    self:push(bytes(self, n < 0 and math.maxinteger or n))
  end)
end
op("}", function(self) self:push(self:new "dict") end)
op("]", function(self) self:push(self:new "list") end)
op(")", function(self) self:push(self:new "tuple") end)
op("\x85", function(self) tuple(self, 1) end)
op("\x86", function(self) tuple(self, 2) end)
op("\x87", function(self) tuple(self, 3) end)
op("t", function(self) self:push(self:new("tuple", self:marked())) end)
op("l", function(self) self:push(self:new("list", self:marked())) end)

local function set_all(self, dict, values, count)
  if count % 2 ~= 0 then self:fail "is damaged: a dict has a key without a value" end
  for i = 1, count, 2 do set(self, dict, values[i], values[i + 1]) end
end

op("d", function(self)
  local values, count = self:marked()
  local dict = self:new "dict"
  set_all(self, dict, values, count)
  self:push(dict)
end)
op("u", function(self)
  local values, count = self:marked()
  set_all(self, self:target "dict", values, count)
end)
op("s", function(self)
  local value = self:pop()
  local key = self:pop()
  set(self, self:target "dict", key, value)
end)
op("a", function(self)
  local value = self:pop()
  append(self, self:target "list", value)
end)
op("e", function(self)
  local values, count = self:marked()
  local list = self:target "list"
  for i = 1, count do append(self, list, values[i]) end
end)

op("q", function(self) remember(self, number(self, "B")) end)
op("r", function(self) remember(self, number(self, "<I4")) end)
op("\x94", function(self) remember(self, self.memos) end)
op("h", function(self) recall(self, number(self, "B")) end)
op("j", function(self) recall(self, number(self, "<I4")) end)

op("c", function(self)
  local module = line(self)
  find(self, module, line(self))
end)
op("\x93", function(self)
  local name = self:pop()
  find(self, self:pop(), name)
end)
op("R", function(self)
  local args, token = self:pop(), self:pop()
  if self.kinds[token] ~= "name" or not token.call or self.kinds[args] ~= "tuple" then
    self:fail "is damaged: a pickle calls what cannot be called"
  end
  self:push(token.call(self, args, self.counts[args]))
end)
op("b", function(self) -- what Python code has added to a dict
  self:pop()
  self:target "dict"
end)
op("Q", function(self)
  local id = self:pop()
  if self.kinds[id] ~= "tuple" then self:fail "is damaged: a storage has no name" end
  self:push(self.persistent(self, id))
end)

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
  local code = number(machine, "B")
  while code ~= STOP do
    local step = OPS[code]
    if not step then machine:fail("has the pickle instruction %d, which is not read", code) end
    step(machine)
    code = number(machine, "B")
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
    memos = 0, pushed = 0, kinds = {}, counts = {}, find = find_name, persistent = persistent },
    Machine)
  for name, value in next, fields do machine[name] = value end
  local ok, result = pcall(run, machine)
  if ok then return result end
  if type(result) ~= "table" or not result.pickle then error(result, 0) end
  return nil, result.pickle, result.whole
end
