-- stdlib/core/lua_error_hints.lua: suggestions for errors that Lua itself raises.
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

local GLOBALS <const> = { "assert", "coroutine", "error", "ipairs", "io", "math", "next", "os",
  "pairs", "pcall", "print", "require", "select", "setmetatable", "string", "table", "tonumber",
  "tostring", "type", "utf8" }

local FIELD_PATTERNS <const> = { "%.([%a_][%w_]*)%s*=%f[^=]",
  "function%s+[%w_.]+[.:]([%a_][%w_]*)" }
local LOCAL_PATTERNS <const> = { "local%s+([%a_][%w_<>, ]*)", "function%s+([%a_][%w_]*)%s*%(",
  "function[^(]*%(([^)]*)%)" }

-- The names that a script defines: fields and methods, or else local variables and functions; with
-- the line of the first.
local function defined(text, fields)
  local names, lines = {}, {}
  for number, line in ipairs(script_source.lines(text)) do
    line = line:gsub("%-%-.*", "")
    for _, pattern in ipairs(fields and FIELD_PATTERNS or LOCAL_PATTERNS) do
      for list in line:gmatch(pattern) do
        for name in list:gsub("<.->", ""):gmatch "[%a_][%w_]*" do
          if not lines[name] then names[#names + 1], lines[name] = name, number end
        end
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

-- The line that sets a variable of the name, and which kind of variable it is.
local function variable_at(name, text)
  local word <const> = "%f[%w_]" .. name .. "%f[^%w_]"
  for number, line in ipairs(script_source.lines(text)) do
    local list = line:match "%f[%w_]local%s+([%w_, ]+)="
    if list and list:find(word) then return number, "local" end
    local before = line:match("(.?)%s*%f[%w_.:]" .. name .. "%s*[,=]%f[^=]")
    if before and not before:find "[%w{,.]" then return number, "global" end
  end
end

-- What fields are there for that another library has, or that are made late.
local FIELDS <const> = {
  grad = "gradients are there after backward",
  hparams = "self:save_hyperparameters(o) makes it, in init",
  new = "an object is made by calling its class: Net(...)",
}

-- The init in which a line is, where a class of the script is below its class.
local function init_around(at, text)
  local lines = script_source.lines(text)
  for line = at, 1, -1 do
    local name = lines[line]:match "%f[%w]function%s+([%w_.]+):init%f[^%w_]"
    if name then
      local has_below = text:find("%f[%w_]" .. name .. ":extend%f[^%w_]")
      return has_below and { name = name, line = line }
    end
    if lines[line]:find "^end" then return nil end
  end
end

-- What to do about a member that another library's objects have, unless the script sets it.
local function of_library(name, lines)
  local said = not lines[name] and foreign_names.member(name)
  return said and "; " .. said
end

local function of_field(name, text)
  if FIELDS[name] then return "; " .. FIELDS[name] end
  local names, fields = defined(text, true)
  local elsewhere_called = of_library(name, fields)
  if elsewhere_called then return elsewhere_called end
  if fields[name] then
    local above = init_around(fields[name], text)
    if not above then
      return ("; what line %d assigns is nil, or of another object"):format(fields[name])
    end
    return ("; %s:init (line %d) sets it: an init of a class below calls %s.init(self, ...)")
      :format(above.name, above.line, above.name)
  end
  local at, kind = variable_at(name, text)
  if not at then return did_you_mean(name, names, fields) end
  return ("; '%s' of line %d is a %s variable: for a field write self.%s = ..."):format(name, at,
    kind, name)
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

-- Fields of the running step's batch that the script's steps use, and the batch lacks.
local function of_batch(text)
  local batch = current_step.batch
  if type(batch) ~= "table" or getmetatable(batch) ~= nil then return nil end
  text = text:gsub("\nfunction", "\n\0%0") .. "\0" -- where a function ends
  for name, body in text:gmatch "_step%s*%(%s*([%a_][%w_]*)([^\0]*)" do
    for field in body:gmatch("%f[%w_]" .. name .. "([.[][%w_]+)") do
      local key = field:sub(2)
      if batch[field:sub(1, 1) == "[" and tonumber(key) or key] == nil then
        field = field:gsub("^%[.*", "%0]")
        return ("; %s%s is nil: the batch has %s"):format(name, field,
          errors.show_fields(batch) or "nothing")
      end
    end
  end
end

-- A local variable that has no value as a table of sizes is one value.
local function of_local(name, text)
  for names, value in text:gmatch "local%s+([%w_]+,[%w_, ]+)=([^\n]*)" do
    if names:find("%f[%w_]" .. name .. "%f[^%w_]")
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

-- What a line says in which a nil is of no use.
local function of_line(line)
  for _, word in ipairs { "True", "False", "None" } do
    if line:find("%f[%w_.]" .. word .. "%f[^%w_]") then
      return ("; %s is a name without value here: write %s"):format(word,
        foreign_names.globals[word])
    end
  end
  return line:find "shape%[0%]" and "; sizes count from 1: x.shape[1]" or ""
end

local function of_tensor(name)
  return c[name] and ("; write x:%s()"):format(name)
    or "; a number of a tensor of one element is x:item()"
end

local SHAPE <const> = "; shape is a table of sizes: x.shape[1], or x:size(1)"

-- Rows: a pattern of Lua's messages, and a remedy, or a function of what the pattern captures, the
-- script's text and the line.
local ROWS <const> = {
  { "a nil value %(global '([%w_]+)'%)", of_global },
  { "a nil value %(field '([%w_]+)'%)", of_field },
  { "a nil value %(method '([%w_]+)'%)", of_method_name },
  { "a nil value %(local '([%w_]+)'%)", of_local },
  { "a nil value %(field 'integer index'%)", of_position },
  { "a nil value %(field '%?'%)", of_position },
  { "attempt to index a boolean value", of_boolean },
  { "attempt to add a 'string' with a", "; texts are joined by a .. b" },
  { "attempt to add a '%a+' with a 'string'", "; texts are joined by a .. b" },
  { "attempt to %a+ a 'string' with a", "; the number in a string is tonumber(text)" },
  { "attempt to %a+ a '%a+' with a 'string'", "; the number in a string is tonumber(text)" },
  { "attempt to call a table value %(%a+ 'shape'%)", SHAPE },
  { "arithmetic on a table value %(field 'shape'%)", SHAPE },
  { "attempt to call a table value %(for iterator",
    "; write for i, value in ipairs(list) do, or for key, value in pairs(t) do" },
  { "attempt to call a n?[^ni]%a+ value %(method '([%w_]+)'%)", -- not of nil
    "; %s is a field: write it without the brackets" },
  { "attempt to [%a ]+ a function value", "; a method is called: x:name()" },
  { "^bad argument #%d+ to '([%w_]+)' %(%a+ expected, got ltrain%.Tensor%)", of_tensor },
}

-- Of a module that Lua could not load: its message has another in its second line.
local function of_module(message)
  local first, path, number, said, rest =
    message:match "^([^\n]*error loading module[^\n]*\n%s*)([^\n]-):(%d+): ([^\n]*)(.*)$"
  if not first then
    return (message:gsub("^([^\n]*error loading module '([^'\n]*)'[^\n]*\n%s*C stack overflow)",
      "%1: does the file require '%2', itself?"))
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
    local found, does = said:match(row[1]), row[2]
    local remedy = found and (type(does) == "string" and does:format(found)
      or type(does) == "function" and does(found, text, line)) or ""
    if remedy ~= "" then return where .. said .. remedy .. rest end
  end
  local remedy = said:find "%f[%w]nil%f[%W]" and not said:find "; [wd]" and of_line(line) or ""
  return where .. said .. remedy .. rest
end
