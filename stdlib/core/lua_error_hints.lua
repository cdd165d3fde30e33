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

local GLOBALS <const> = { "error", "ipairs", "math", "pairs", "pcall", "print", "require", "string",
  "table", "tonumber", "tostring", "type" }
local FIELDS <const> = { "%.([%a_][%w_]*)%s*=%f[^=]", "function%s+[%w_.]+[.:]([%a_][%w_]*)" }
local LOCALS <const> = { "local%s+([%a_][%w_<>, ]*)", "function%s+([%a_][%w_]*)%s*%(",
  "function[^(]*%(([^)]*)%)" }
local VARIABLES <const> = { "%f[%w_.]([%a_][%w_]*)%s*=%f[^=]", table.unpack(LOCALS) }

-- The names in a script that match one of the patterns, and the line of the first of each.
local function defined(text, patterns)
  local names, lines = {}, {}
  for number, line in ipairs(script_source.lines(text)) do
    line = line:gsub("%-%-.*", "")
    for _, pattern in ipairs(patterns) do
      for list in line:gmatch(pattern) do
        for name in list:gsub("<.->", ""):gmatch "[%a_][%w_]*" do
          if not lines[name] then names[#names + 1], lines[name] = name, number end
        end
      end
    end
  end
  return names, lines
end

local function nearest(name, names, lines)
  local guess = errors.did_you_mean(name, names):sub(3)
  local line = lines[guess:match "'(.*)'"]
  return line and ("%s (line %d)"):format(guess, line) or guess
end

local function of_global(name, text)
  if foreign_names.globals[name] then return "write " .. foreign_names.globals[name] end
  local names, lines = defined(text, LOCALS)
  if lines[name] then return ("the local of line %d is not visible here"):format(lines[name]) end
  return nearest(name, table.move(GLOBALS, 1, #GLOBALS, #names + 1, names), lines)
end

local function of_field(name, text)
  local names, lines = defined(text, FIELDS)
  local _, variables = defined(text, VARIABLES)
  return lines[name] and ("what line %d assigns is nil, or of another object, or its init was not "
    .. "called: Parent.init(self, ...)"):format(lines[name])
    or foreign_names.member(name)
    or variables[name] and ("'%s' of line %d is a variable: for a field write self.%s = ...")
      :format(name, variables[name], name)
    or nearest(name, names, lines)
end

-- As of_field, for a method: those of the library's objects too.
local function of_method(name, text)
  local found, names = of_field(name, text), {}
  if found ~= "" then return found end
  for one in pairs(class.made) do
    for key, value in next, one do
      local is_method <const> = type(key) == "string" and type(value) == "function"
      if is_method and key:find "^%a" then names[#names + 1] = key end
    end
  end
  return nearest(name, names, {})
end

-- A field of the running step's batch that the script's steps use, and the batch lacks.
local function of_batch(text)
  local batch = current_step.batch
  if type(batch) ~= "table" or getmetatable(batch) ~= nil then return nil end
  for name in text:gmatch "_step%s*%(%s*([%a_][%w_]*)" do
    for field in text:gmatch("%f[%w_]" .. name .. "([.[][%w_]+)") do
      local key = field:sub(2)
      if batch[field:sub(1, 1) == "[" and tonumber(key) or key] == nil then
        return ("%s%s is nil: the batch has %s"):format(name, field:gsub("^%[.*", "%0]"),
          errors.show_fields(batch) or "nothing")
      end
    end
  end
end

-- A local variable that has no value as a table of sizes is one value.
local function of_local(name, text)
  return text:find("local%s[%w_, ]*%f[%w_]" .. name .. "%f[^%w_][^\n]*%.shape%s*\n")
    and "the sizes are one table: write local a, b = table.unpack(x.shape)"
end

local function of_word(word)
  local ours = foreign_names.globals[word]
  return ours and ("%s is a name without value here: write %s"):format(word, ours)
end

local function of_tensor(name)
  return c[name] and ("write x:%s()"):format(name)
    or "a number of a tensor of one element is x:item()"
end

local NIL <const> = "%f[%w]nil%f[%W]"

-- Rows: a pattern of Lua's messages; false or one of the script's line; and a remedy, or a function
-- of what the last pattern has captured and the script's text. %s in a remedy: the same.
local ROWS <const> = {
  { "a nil value %(global '([%w_]+)'%)", false, of_global },
  { "a nil value %(field '([%w_]+)'%)", false, of_field },
  { "a nil value %(method '([%w_]+)'%)", false, of_method },
  { "a nil value %(local '([%w_]+)'%)", false, of_local },
  { NIL, "%[0%]", "positions count from 1: the first is x[1]" },
  { "a nil value %(field '[i?]", "([%a_][%w_.]*%[[%a_][%w_.]*%])[.:(]",
    "%s is nil: there is no such key" },
  { NIL, "%f[%w_.]([TFN]%l+)%f[^%w_]", of_word },
  { "attempt to index a boolean value", "[=~]=",
    "== of tensors is one boolean: write a:eq(b), a:ne(b)" },
  { "attempt to add a '%a+' with a '", false, "texts are joined by a .. b" }, -- one is a text
  { "attempt to %a+ a '%a+' with a '", false, "the number in a string is tonumber(text)" },
  { "a table value %(%a+ 'shape'%)", false,
    "shape is a table of sizes: x.shape[1], or x:size(1)" },
  { "attempt to call a table value %(for iterator", false,
    "write for i, value in ipairs(list) do, or for key, value in pairs(t) do" },
  { "attempt to call a n?[^ni]%a+ value %(method '([%w_]+)'%)", false, -- not of nil
    "%s is a field: write it without the brackets" },
  { "attempt to [%a ]+ a function value", false, "a method is called: x:name()" },
  { "^bad argument #%d+ to '([%w_]+)' %(%a+ expected, got ltrain%.Tensor%)", false, of_tensor },
}

-- What to do about the message of line `number`, or "".
local function remedy_for(said, text, number)
  local lines = script_source.lines(text)
  local line = lines[number] or ""
  if said:find "near '" or said:find "near <eof>" or said == "unexpected symbol" then
    return foreign_syntax(said, line, lines[number - 1])
  end
  if said:find "^cross_entropy: needs a floating tensor, got i" then
    return "; logits come first, labels second"
  end
  local lacking = said:find(NIL) and of_batch(text)
  if lacking then return "; " .. lacking end
  for _, row in ipairs(said:find "; [wd]" and {} or ROWS) do
    local found, part, does = said:match(row[1]), row[2], row[3]
    if found and part then found = line:match(part) end
    local remedy = found and (type(does) == "function" and does(found, text)
      or type(does) == "string" and does:format(found)) or ""
    if remedy ~= "" then return "; " .. remedy end
  end
  return ""
end

--- The message, "model.lua:3: attempt to ...", with what to do about it behind its first line,
--- where that is known. `text`: the script's, by default that of the file.
local function with_remedy(message, text)
  local head, inner = message:match "^([^\n]*error loading module '[^\n]*\n%s*)(.*)$"
  if head then
    return head .. with_remedy(inner:gsub("^C stack overflow", "%0: does it require itself?"), nil)
  end
  local path, number, said, rest = message:match "^([^\n]-):(%d+): ([^\n]*)(.*)$"
  if not path or path:find "^ltrain%." then return message end
  text = text or script_source.text(script_source.named(path)) or ""
  local remedy <const> = remedy_for(said, text, tonumber(number))
  return ("%s:%s: %s%s%s"):format(path, number, said, remedy, rest)
end

return with_remedy
