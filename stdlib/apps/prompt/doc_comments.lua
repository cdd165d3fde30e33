--- stdlib/apps/prompt/doc_comments.lua: reads the doc comments of a file of stdlib/: for `:help`,
--- and for tools/generate_docs.lua.
--
-- The head of the file (path, a line, paragraphs), and each public function with the `---` comment
-- before it. A comment that begins with `---` goes on over the `--` lines below it.
local c = require "ltrain.c"
local dims_family = require "ltrain.core.dims_family"
local lines_of = require("ltrain.core.script_source").lines

local doc_comments = {}

local MOST <const> = 60 -- upvalues that are searched

-- Lines of a comment as markdown: what is indented is code.
local function paragraphs(lines)
  local parts, current, is_code = {}, {}, false
  local function close()
    while #current > 0 and current[#current] == "" do current[#current] = nil end
    if #current > 0 then
      local text = table.concat(current, "\n")
      parts[#parts + 1] = is_code and "```lua\n" .. text .. "\n```" or text
    end
    current = {}
  end
  for _, line in ipairs(lines) do
    local code = line:match("^%s%s(.*)$")
    if line == "" and not is_code or (code ~= nil) ~= is_code and line ~= "" then
      close()
      is_code = code ~= nil
    end
    if code or line ~= "" or is_code then current[#current + 1] = code or line end
  end
  close()
  return table.concat(parts, "\n\n")
end

-- The head: a line on what the file is, and the rest.
local function head(lines)
  local about, at = lines[1]:match("^%-%-%-?%s[%w_/.]+:%s(.*)$"), 2
  assert(about, lines[1])
  while lines[at]:find("^%-%-%-? %S") do
    about = about .. " " .. lines[at]:match("^%-+ (.*)$")
    at = at + 1
  end
  local rest = {}
  while lines[at] and lines[at]:find("^%-%-") do
    rest[#rest + 1] = lines[at]:gsub("^%-%-%s?", "")
    at = at + 1
  end
  return about, paragraphs(rest), at
end

-- What a line of code defines: the name with its separator, arguments.
local function definition(line)
  local owner, sign, name, arguments = line:match("^function ([%w_]+)([.:])([%w_]+)%((.-)%)")
  if owner then return { owner = owner, sign = sign, name = name, arguments = arguments } end
  arguments = line:match "^return function%((.-)%)"
    or line:match "^return call_form%.method%(function%((.-)%)"
  if arguments then return { arguments = arguments } end
  local kind = line:match "^return (%l+)_layer%(" -- nn/loss_layer.lua, nn/activation_layer.lua
  if kind then
    return { sign = ":", name = "init", forward = true,
      arguments = kind == "loss" and "options" or nil }
  end
  owner, name = line:match("^([%w_]+)%.([%w_]+) = ")
  if owner then return { owner = owner, sign = ".", name = name, field = true } end
end

-- A comment split into its sentences and its `@param` lines.
local function comment(lines)
  local text, params = {}, {}
  for _, line in ipairs(lines) do
    local param = line:match("^@param%s+(.*)$")
    if param then params[#params + 1] = param else text[#text + 1] = line end
  end
  return (table.concat(text, " "):gsub("%s+", " ")), params
end

-- The first word of a text with a capital letter, unless the text begins with a formula or a name:
-- "y = x W^T + b", "exp(x) along a dim", "lt.save writes ...".
local function sentence(text)
  local first = text:match "^%S+"
  if first:find "%w[(.:_=^]%w" or #first == 1 and first ~= "a" then return text end
  return text:sub(1, 1):upper() .. text:sub(2)
end

--- What the text of a file says: { about =, more =, functions = { {owner, sign, name, arguments,
--- doc, params} }, text = } in the order of the file; functions without comment have no doc. `n`:
--- of the class for n dims, whose functions stand in another (core/dims_family.lua).
function doc_comments.parse(text, n)
  if n then text = dims_family.text(text, n):gsub("\n  ", "\n") end
  local lines = lines_of(text)
  local about, more, at = head(lines)
  local out = { about = sentence(about), more = more, functions = {}, text = text }
  local block
  for i = at, #lines do
    local line = lines[i]
    local said = line:match("^%-%-%-%s?(.*)$")
    if said then
      block = block or {}
      block[#block + 1] = said
    elseif block and line:find("^%-%- ") then
      block[#block + 1] = line:sub(4)
    else
      local defined = definition(line)
      if defined then
        if block then defined.doc, defined.params = comment(block) end
        out.functions[#out.functions + 1] = defined
        if defined.forward then -- the parameters are those of a call of the layer
          out.functions[#out.functions + 1] = { sign = ":", name = "forward",
            params = defined.params, doc = "" }
          defined.params = nil
        end
      end
      block = nil
    end
  end
  return out
end

--- Names of a table of options in the order in which the text of their file has them: `{` begins a
--- row, `limit`, `flag` and `duration.option` make one; after `= options {` (optim/options.lua) so
--- do numbers and `true`.
function doc_comments.order(text, options)
  local places, names = {}, {}
  for _, row in ipairs(options) do -- of config.signature
    if not row.instead then names[#names + 1] = row[1] end
  end
  if names[1] then return names end
  local shared = text:find("= options {", 1, true)
  for name, option in next, options do
    if not option.instead then names[#names + 1] = name end
    local row = "%f[%w_]" .. name .. "%s*=%s*"
    places[name] = text:find(row .. "[{lfd]")
      or shared and (text:find(row .. "%d", shared) or text:find(row .. "true", shared)) or #text
  end
  table.sort(names, function(a, b)
    if places[a] ~= places[b] then return places[a] < places[b] end
    return a < b
  end)
  return names
end

local function is_options(value)
  if type(value) ~= "table" or next(value) == nil then return false end
  for name, row in next, value do
    if type(row) ~= "table" or type(name) ~= "string" and not row[1] then return false end
    if not (row.type or row.doc or row.default ~= nil or row.instead) then return false end
  end
  return true
end

--- The function as its file has it, behind one that refuses further arguments
--- (core/strict_arity.lua), or that loads it (core/class.lua).
--- upvalue(fn, i) is debug.getupvalue.
function doc_comments.written(fn, upvalue)
  for i = 1, MOST do
    local name, value = upvalue(fn, i)
    if not name then return fn end
    if name == "load_fn" then value = value() end
    if (name == "fn" or name == "load_fn") and value then
      return doc_comments.written(value, upvalue)
    end
  end
end

--- The table of options that a function checks what it is given with, or nil.
function doc_comments.options_of(fn, upvalue)
  fn = doc_comments.written(fn, upvalue)
  for i = 1, MOST do
    local name, value = upvalue(fn, i)
    if not name then return nil end
    if name:find("^[A-Z]+$") and is_options(value) then return value end
  end
end

--- What the file of stdlib/ of this name says ("ltrain.nn.Linear"), or that of the family of such a
--- class ("ltrain.nn.Conv2d"); nil when there is none.
function doc_comments.of(name)
  local text, n = c.runtime.stdlib_source(name), nil
  if not text then
    name, n = dims_family.file_of(name)
    text = name and c.runtime.stdlib_source(name)
  end
  return text and doc_comments.parse(text, n)
end

--- The name of the file of stdlib/ that a function stands in; nil for any other.
function doc_comments.name_of(fn, upvalue)
  local place = c.runtime.function_line(doc_comments.written(fn, upvalue))
  return place and place:match "^(ltrain[%w_.]*):%d+$"
end

return doc_comments
