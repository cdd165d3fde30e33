-- stdlib/core/remedies.lua: suggestions for errors that Lua itself raises.
--
-- Lua says what was nil, not why. The script's text often does: a field that it assigns under
-- another name, a local variable that was meant to be a field, a function that Python has.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local current_step = require "ltrain.core.current_step"
local errors = require "ltrain.core.errors"
local foreign_names = require "ltrain.core.foreign_names"
local foreign_syntax = require "ltrain.core.foreign_syntax"
local script_source = require "ltrain.core.script_source"
local tree = require "ltrain.core.tree"

local GLOBALS <const> = { "assert", "coroutine", "error", "ipairs", "io", "math", "next", "os",
  "pairs", "pcall", "print", "require", "select", "setmetatable", "string", "table", "tonumber",
  "tostring", "type", "utf8" }

-- The names that a script defines: fields and methods, or else local variables and functions; with
-- the line of the first.
local function defined(text, fields)
  local names, lines, number = {}, {}, 0
  local function add(name)
    if not lines[name] then names[#names + 1], lines[name] = name, number end
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    line = line:gsub("%-%-.*", "")
    if fields then
      for name in line:gmatch "%.([%a_][%w_]*)%s*=%f[^=]" do add(name) end
      for name in line:gmatch "function%s+[%w_.]+[.:]([%a_][%w_]*)" do add(name) end
    else
      for list in line:gmatch "local%s+([%a_][%w_<>, ]*)" do
        for name in list:gsub("<.->", ""):gmatch "[%a_][%w_]*" do add(name) end
      end
      for name in line:gmatch "function%s+([%a_][%w_]*)%s*%(" do add(name) end
      for list in line:gmatch "function[^(]*%(([^)]*)%)" do
        for name in list:gmatch "[%a_][%w_]*" do add(name) end
      end
    end
  end
  return names, lines
end

local function did_you_mean(name, names, lines)
  for i, known in ipairs(names) do
    if known == name then table.remove(names, i) break end
  end
  local guess = errors.did_you_mean(name, names)
  local word = guess:match "'(.*)'"
  return word and lines[word] and ("%s (line %d)"):format(guess, lines[word]) or guess
end

local function of_global(name, text)
  if name == "self" then return "; write function Class:method(...), with a colon, to have self" end
  if foreign_names.globals[name] then return "; write " .. foreign_names.globals[name] end
  local names, lines = defined(text, false)
  if lines[name] then
    return ("; the local of line %d is not visible here"):format(lines[name])
  end
  for _, known in ipairs(GLOBALS) do names[#names + 1] = known end
  return did_you_mean(name, names, lines)
end

-- The line that assigns to a global variable of the name.
local function global_at(name, text)
  local number = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local before = line:match("([^%s]?)%s*%f[%w_.:]" .. name .. "%s*=%f[^=]")
    if before and not before:find "[{,]" or line:find("^%s*" .. name .. "%s*,") then
      return number
    end
  end
end

-- The line of a local variable in an init, that may have been meant as a field.
local function local_in_init(name, text)
  local number, inside = 0, false
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if line:find "^%s*function" or line:find "=%s*function" then inside = line:find ":init%s*%(" end
    local list = inside and line:match "%f[%w]local%s+([%a_][%w_, ]*)="
    if list and list:find("%f[%w_]" .. name .. "%f[^%w_]") then return number end
  end
end

-- What fields are there for that another library has, or that are made late.
local FIELDS <const> = {
  grad = "gradients are there after backward",
  hparams = "self:save_hyperparameters(o) makes it, in init",
  new = "an object is made by calling its class: Net(...)",
}

-- "; init of line 5 sets it: ..." for a field that the init of a class above would have set.
local function of_parent(name, text)
  local name_of_class, at, number = nil, nil, 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local opened = line:match "^%s*function%s+([%w_.]+):init%f[^%w_]"
    name_of_class, at = opened or name_of_class, opened and number or at
    local sets = name_of_class and line:find("self%." .. name .. "%s*=%f[^=]")
    if sets and text:find("%f[%w_]" .. name_of_class .. ":extend%f[^%w_]") then
      return ("; %s:init (line %d) sets it: an init of a class below calls %s.init(self, ...)")
        :format(name_of_class, at, name_of_class)
    end
    if line:find "^end" then name_of_class = nil end
  end
  return ""
end

-- What to do about a member that another library's objects have, unless the script sets it.
local function of_library(name, lines)
  local said = not lines[name] and foreign_names.member(name)
  return said and "; " .. said
end

local function of_field(name, text)
  if FIELDS[name] then return "; " .. FIELDS[name] end
  local parent = of_parent(name, text)
  if parent ~= "" then return parent end
  local names, fields = defined(text, true)
  local elsewhere_called = of_library(name, fields)
  if elsewhere_called then return elsewhere_called end
  if not fields[name] then
    local at, kind = local_in_init(name, text), "local"
    if not at then at, kind = global_at(name, text), "global" end
    if at then
      return ("; '%s' of line %d is a %s variable: for a field write self.%s = ..."):format(name,
        at, kind, name)
    end
    return did_you_mean(name, names, fields)
  end
  return ("; what line %d assigns is nil, or of another object"):format(fields[name])
end

-- As of_field, for a method: those of the library's objects too.
local function of_method_name(name, text)
  local names, lines = defined(text, true)
  local elsewhere_called = of_library(name, lines)
  if elsewhere_called then return elsewhere_called end
  local near = not lines[name] and did_you_mean(name, names, lines) or ""
  local found = near ~= "" and near or of_field(name, text)
  if found ~= "" then return found end
  names = {}
  for one in pairs(class.made) do
    for key, value in next, one do
      if type(key) == "string" and type(value) == "function" and not key:find "^_" then
        names[#names + 1] = key
      end
    end
  end
  table.sort(names)
  return errors.did_you_mean(name, names)
end

-- What a batch has: "a list: a tensor [4, 2], a tensor [4]", "image = a tensor [4, 2], ...".
local function contents(batch)
  local parts = {}
  for key, value in tree.pairs(batch) do
    if type(key) == "string" then
      parts[#parts + 1] = ("%s = %s"):format(key, errors.show(value))
    else
      parts[#parts + 1] = ("[%s] = %s"):format(tostring(key), errors.show(value))
    end
  end
  return #parts > 0 and table.concat(parts, ", ", 1, math.min(#parts, 8)) or "nothing"
end

-- Fields of the running step's batch that the script's steps use, and the batch lacks.
local function of_batch(text)
  local batch = current_step.batch
  if type(batch) ~= "table" or getmetatable(batch) ~= nil then return nil end
  text = text:gsub("\nfunction", "\n\0%0") .. "\0" -- where a function ends
  for name, body in text:gmatch "_step%s*%(%s*([%a_][%w_]*)([^\0]*)" do
    for key in body:gmatch("%f[%w_]" .. name .. "%.([%a_][%w_]*)") do
      if batch[key] == nil then
        return ("; %s.%s is nil: the batch has %s"):format(name, key, contents(batch))
      end
    end
    for key in body:gmatch("%f[%w_]" .. name .. "%[(%d+)%]") do
      if batch[tonumber(key)] == nil then
        return ("; %s[%s] is nil: the batch has %s"):format(name, key, contents(batch))
      end
    end
  end
end

-- A local variable that has no value as a table of sizes is one value.
local function of_local(name, text)
  for line in text:gmatch "[^\n]+" do
    local first, second = line:match "^%s*local%s+([%a_][%w_]*)%s+([%a_][%w_]*)[%s,]*[%w_, ]*="
    if first == name and second ~= "function" then
      return ("; a comma is missing: write local %s, %s = ..."):format(first, second)
    end
    local names, value = line:match "local%s+([%w_, ]+)=(.*)"
    if names and names:find(",", 1, true) and names:find("%f[%w_]" .. name .. "%f[^%w_]")
      and (value:find "%.shape%s*$" or value:find ":size%(%)%s*$") then
      return "; the sizes are one table: write local a, b = table.unpack(x.shape)"
    end
  end
  return ""
end

local function of_boolean(_, _, line)
  return line:find "[=~]=" and "; == of tensors is one boolean: write a:eq(b), a:ne(b)"
    or line:find "%f[%w]not%f[%W]" and "; not x is a boolean: write x:logical_not()" or ""
end

local function of_position(_, _, line)
  if line:find "%[0%]" then return "; positions count from 1: the first is x[1]" end
  local indexed = line:match "([%a_][%w_.]*%[[%a_][%w_.]*%])[.:(]"
  return indexed and ("; %s is nil: there is no such key"):format(indexed) or ""
end

local PYTHON <const> = { True = "true", False = "false", None = "nil" }

-- What a line says in which a nil is of no use.
local function of_line(line)
  for word, here in tree.pairs(PYTHON) do
    if line:find("%f[%w_.]" .. word .. "%f[^%w_]") then
      return ("; %s is a name without value here: write %s"):format(word, here)
    end
  end
  return line:find "shape%[0%]" and "; sizes count from 1: x.shape[1]" or ""
end

local function of_text(operation)
  return operation == "add" and "; texts are joined by a .. b"
    or "; the number in a string is tonumber(text)"
end

local function of_shape() return "; shape is a table of sizes: x.shape[1], or x:size(1)" end

local function of_called_field(name)
  return ("; %s is a field: write it without the brackets"):format(name)
end

local function of_method() return "; a method is called: x:name()" end

-- Rows: a pattern of Lua's messages, and a function of what it captures and the script's text.
local ROWS <const> = {
  { "a nil value %(global '([%w_]+)'%)", of_global },
  { "a nil value %(field '([%w_]+)'%)", of_field },
  { "a nil value %(method '([%w_]+)'%)", of_method_name },
  { "a nil value %(local '([%w_]+)'%)", of_local },
  { "a nil value %(field 'integer index'%)", of_position },
  { "a nil value %(field '%?'%)", of_position },
  { "attempt to index a boolean value", of_boolean },
  { "attempt to (%a+) a 'string' with a", of_text },
  { "attempt to (%a+) a '%a+' with a 'string'", of_text },
  { "attempt to call a table value %(%a+ 'shape'%)", of_shape },
  { "attempt to call a table value %(for iterator", function()
    return "; write for i, value in ipairs(list) do, or for key, value in pairs(t) do"
  end },
  { "arithmetic on a table value %(field 'shape'%)", of_shape },
  { "attempt to call a number value %(method '([%w_]+)'%)", of_called_field },
  { "attempt to call a [^n]%a+ value %(method '([%w_]+)'%)", of_called_field },
  { "attempt to %a+ a function value", of_method },
  { "attempt to perform arithmetic on a function value", of_method },
  { "^bad argument #%d+ to '([%w_]+)' %(%a+ expected, got ltrain%.Tensor%)", function(name)
    return c[name] and ("; write x:%s()"):format(name)
      or "; a number of a tensor of one element is x:item()"
  end },
}

-- Of a module that Lua could not load: its message has another in its second line.
local function of_module(message)
  local first, path, number, said, rest =
    message:match "^([^\n]*error loading module[^\n]*\n%s*)([^\n]-):(%d+): ([^\n]*)(.*)$"
  if not first then
    local name = message:match "error loading module '([^'\n]*)'[^\n]*\n%s*C stack overflow"
    return name and (message:gsub("C stack overflow",
      ("C stack overflow: does the file require '%s', itself?"):format(name:gsub("%%", "%%%%")), 1))
      or message
  end
  local lines = script_source.lines(script_source.text(script_source.named(path)) or "")
  number = tonumber(number)
  return ("%s%s:%d: %s%s%s"):format(first, path, number, said,
    foreign_syntax(said, lines[number] or "", lines[number - 1]), rest)
end

--- The message, "model.lua:3: attempt to ...", with what to do about it behind its first line,
--- where that is known. `text`: the script's, by default that of the file.
return function(message, text)
  local where, said, rest = message:match "^([^\n]-:%d+: )([^\n]*)(.*)$"
  if message:find "^[^\n]*error loading module" then return of_module(message) end
  if not where or where:find "^ltrain%." then return message end
  local path, number = where:match "^(.*):(%d+): $"
  text = text or script_source.text(script_source.named(path)) or ""
  local lines = script_source.lines(text)
  local line = lines[tonumber(number)] or ""
  if said:find "near '" or said:find "near <eof>" or said == "unexpected symbol" then
    return where .. said .. foreign_syntax(said, line, lines[number - 1]) .. rest
  end
  local lacking = said:find "%f[%w]nil%f[%W]" and current_step.batch ~= nil and of_batch(text)
  if lacking then return where .. said .. lacking .. rest end
  for _, row in ipairs(ROWS) do
    local found = said:match(row[1])
    local remedy = found and row[2](found, text, line) or ""
    if remedy ~= "" then return where .. said .. remedy .. rest end
  end
  local remedy = said:find "%f[%w]nil%f[%W]" and not said:find "; [wd]" and of_line(line) or ""
  return where .. said .. remedy .. rest
end
