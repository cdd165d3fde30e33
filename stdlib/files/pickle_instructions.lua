-- stdlib/files/pickle_instructions.lua: the instructions of pickles that build plain values, by
-- their bytes: OPS[byte](machine). The machine is that of ltrain.files.pickle.

local MAX_PROTOCOL <const> = 5

local function append(self, list, value)
  local count = self.counts[list] + 1
  self.counts[list] = count
  if value ~= self.NONE then list[count] = value end
end

-- The text up to the end of the line.
local function line(self)
  local last = self.text:find("\n", self.at, true)
  if not last then self:ends_early() end
  return self:bytes(last - self.at + 1):sub(1, -2)
end

local function find(self, module, name)
  if type(module) ~= "string" or type(name) ~= "string" then
    self:fail "is damaged: a name of a pickle is not a string"
  end
  local full = ("%s.%s"):format(module:gsub("^__builtin__$", "builtins"), name)
  local token = self.find(self, full)
  token.name = full
  self.kinds[token] = "name"
  self:push(token)
end

local function remember(self, index)
  local value = self:pop()
  self:push(value) -- which counts the note
  self.memo[index] = value
  self.memos = self.memos + 1
end

local function recall(self, index)
  local value = self.memo[index]
  if value == nil then self:fail "is damaged: a pickle names a value that it lacks" end
  self:push(value)
end

local function integer(self, n)
  if n > 8 then self:fail "contains an integer of more than 64 bits" end
  self:push(n == 0 and 0 or (string.unpack("<i" .. n, self:bytes(n))))
end

local function tuple(self, n)
  local values = {}
  for i = n, 1, -1 do values[i] = self:pop() end
  self:push(self:new("tuple", values, n))
end

local OPS <const> = {}
local function op(char, fn) OPS[char:byte()] = fn end

op("\x80", function(self)
  local protocol = self:byte()
  if protocol > MAX_PROTOCOL then self:fail("is a pickle of protocol %d", protocol) end
end)
op("\x95", function(self) self:bytes(8) end) -- FRAME
op("(", function(self)
  self:keep()
  self.marks[#self.marks + 1] = self.top
end)
op("N", function(self) self:push(self.NONE) end)
op("\x88", function(self) self:push(true) end)
op("\x89", function(self) self:push(false) end)
op("J", function(self) self:push(self:number("<i4")) end)
op("K", function(self) self:push(self:byte()) end)
op("M", function(self) self:push(self:number("<I2")) end)
op("\x8a", function(self) integer(self, self:byte()) end)
op("\x8b", function(self) integer(self, self:number("<I4")) end)
op("G", function(self) self:push(self:number(">d")) end)
-- strings and bytes, after their length
for char, format in next, { X = "<I4", ["\x8c"] = "B", ["\x8d"] = "<i8", T = "<I4", U = "B",
  B = "<I4", C = "B", ["\x8e"] = "<i8", ["\x96"] = "<i8" } do
  op(char, function(self)
    local n = self:number(format)
    self:push(self:bytes(n < 0 and math.maxinteger or n))
  end)
end
op("}", function(self) self:push(self:new "dict") end)
op("]", function(self) self:push(self:new "list") end)
op("\x8f", function(self) self:push(self:new "list") end) -- a set
op(")", function(self) self:push(self:new "tuple") end)
op("\x85", function(self) tuple(self, 1) end)
op("\x86", function(self) tuple(self, 2) end)
op("\x87", function(self) tuple(self, 3) end)
op("t", function(self) self:push(self:new("tuple", self:marked())) end)
for _, char in ipairs { "l", "\x91" } do -- a list, a set that does not change
  op(char, function(self) self:push(self:new("list", self:marked())) end)
end

local function set_all(self, dict, values, count)
  if count % 2 ~= 0 then self:fail "is damaged: a dict has a key without a value" end
  for i = 1, count, 2 do self:set(dict, values[i], values[i + 1]) end
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
  self:set(self:target "dict", key, value)
end)
op("a", function(self)
  local value = self:pop()
  append(self, self:target "list", value)
end)
for _, char in ipairs { "e", "\x90" } do -- of a list, of a set
  op(char, function(self)
    local values, count = self:marked()
    local list = self:target "list"
    for i = 1, count do append(self, list, values[i]) end
  end)
end

op("q", function(self) remember(self, self:byte()) end)
op("r", function(self) remember(self, self:number("<I4")) end)
op("\x94", function(self) remember(self, self.memos) end)
op("h", function(self) recall(self, self:byte()) end)
op("j", function(self) recall(self, self:number("<I4")) end)

op("c", function(self)
  local module = line(self)
  find(self, module, line(self))
end)
op("\x93", function(self)
  local name = self:pop()
  find(self, self:pop(), name)
end)
-- What a call of a name makes. A harmless one makes an object; another that means nothing to the
-- caller ends the reading.
local function call(self, token, args)
  if self.kinds[token] ~= "name" or self.kinds[args] ~= "tuple" then
    self:fail "is damaged: a pickle calls what cannot be called"
  elseif token.call then
    self:push(token.call(self, args, self.counts[args]))
  elseif token.is_harmless then
    self:push(self:object { name = token.name, parts = { args } })
  else
    self:refuse(token.name)
  end
end

for _, char in ipairs { "R", "\x81" } do -- of a function, of a class
  op(char, function(self)
    local args, token = self:pop(), self:pop()
    call(self, token, args)
  end)
end
op("\x92", function(self)
  local named, args, token = self:pop(), self:pop(), self:pop()
  if self.kinds[named] ~= "dict" then self:fail "is damaged: a pickle has names without a dict" end
  call(self, token, self:new("tuple", { args, named }, 2))
end)
op("b", function(self) -- the state of an object; that of a dict is what Python code has added to it
  local state, value = self:pop(), self:pop()
  local object, kind = self.objects[value], self.kinds[value]
  if object then
    object.parts[#object.parts + 1] = state
    if object.build then object.build(self, object, state) end
  elseif kind ~= "dict" and kind ~= "tensor" and kind ~= "list" then
    self:fail "is damaged: a pickle sets the state of a value that is not an object"
  elseif self:holds_tensors(state) then
    self:refuse(("tensors in fields of a %s"):format(kind))
  end
  self:push(value)
end)
op("Q", function(self)
  local id = self:pop()
  if self.kinds[id] ~= "tuple" then self:fail "is damaged: a storage has no name" end
  self:push(self.persistent(self, id))
end)

return OPS
