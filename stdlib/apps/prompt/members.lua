--- stdlib/apps/prompt/members.lua: the members of a value: fields, methods, options; for
--- completion.
--
-- TAB must not run the script's code: what an __index or __pairs of the script would give is not
-- looked for.
local c = require "ltrain.c"
local doc_comments = require "ltrain.apps.prompt.doc_comments"
local exports = require "ltrain.core.exports"
local tensor_page = require "ltrain.apps.prompt.tensor_page"

local members = {}

local TENSOR_FIELDS <const> = { "shape", "dtype", "device", "ndim", "grad", "requires_grad" }

--- Whether a value is a tensor.
function members.is_tensor(value) return getmetatable(value) == "ltrain.Tensor" end

local function is_ours(fn)
  return type(fn) == "function" and c.runtime.parameters(fn) ~= nil
end

local function meta_of(value)
  local meta = getmetatable(value)
  return type(meta) == "table" and meta or {}
end

-- A field, as far as it can be read without the script's code; ok, value.
local function field(value, key)
  if type(value) == "table" then
    local own = rawget(value, key)
    if own ~= nil then return own end
    local meta = meta_of(value)
    local index = rawget(meta, "__index")
    if type(index) == "table" then return field(index, key) end
    if not is_ours(index) and not rawget(meta, "__name") then return nil end
  elseif getmetatable(value) ~= "ltrain.Tensor" and type(value) ~= "string" then
    return nil
  end
  local ok, found = pcall(function() return value[key] end)
  if ok then return found end
end

--- The value that a list of keys leads to from a table of globals; nil where none is known.
function members.resolve(env, keys)
  local ok, value = pcall(function() return env[keys[1]] end)
  if not ok then return nil end
  for i = 2, #keys do
    if value == nil then return nil end
    value = field(value, keys[i])
  end
  return value
end

local function add_keys(set, value, seen)
  if type(value) ~= "table" or seen[value] then return end
  seen[value] = true
  local meta = meta_of(value)
  local loop = is_ours(rawget(meta, "__pairs")) and pairs or next
  if loop == pairs then
    for key, name in pairs(value) do set[math.type(key) and name or key] = true end
  end
  for key in next, value do set[key] = true end
  add_keys(set, rawget(meta, "__index"), seen)
  if rawget(meta, "__name") then add_keys(set, meta, seen) end -- the class of an object
  add_keys(set, rawget(value, "super"), seen)
end

local function is_library(value)
  return type(value) == "table" and rawget(value, "relu") == c.relu
    and rawequal(value, require "ltrain")
end

--- Whether a table is the library, or a part of it as `lt.nn`.
function members.is_namespace(value)
  return is_ours(rawget(meta_of(value), "__pairs")) or is_library(value)
end

--- The names of the fields of a value, a set.
function members.fields(value)
  local set = {}
  if type(value) == "string" then
    for key in next, string do set[key] = true end
  elseif getmetatable(value) == "ltrain.Tensor" then
    for key in next, c.runtime.methods do set[key] = true end
    for _, key in ipairs(TENSOR_FIELDS) do set[key] = true end
  else
    add_keys(set, value, {})
  end
  if is_library(value) then
    for key in next, exports do set[key] = true end -- lt itself
  end
  return set
end

--- The names that entries may begin with: globals, and locals of a frame. `pairs`: the debugger's
--- table lists them by __pairs.
function members.globals(env)
  local set = {}
  for key in pairs(env) do set[key] = true end
  set.lt = true
  return set
end

local ops -- rows by name, made at first use

--- The row of the operation that a function of lt or a method of tensors is; nil for others.
function members.op(name)
  if not ops then
    ops = {}
    for _, row in ipairs(c.ops()) do
      if not row.hidden then ops[row.name] = row end
    end
  end
  return ops[name] or ops[name:match "^(.-)_$" or ""]
end

-- Functions of tensor.md that give what is not a tensor.
local NO_TENSOR <const> = { allclose = true, dim = true, equal = true, is_contiguous = true,
  is_pinned = true, item = true, numel = true, size = true, split = true, stride = true,
  tobytes = true, tolist = true, chunk = true, unbind = true, tensor_split = true, rows = true }

--- Whether a function gives a tensor: an operation, or what makes or converts one.
function members.makes_tensor(fn, name)
  if c.runtime.function_line(fn) then return false end
  return members.op(name) ~= nil or tensor_page.row(name) ~= nil and not NO_TENSOR[name]
    and (rawequal(c.runtime.methods[name], fn) or rawequal(c[name], fn))
end

--- The words that the text on an option has in quotes.
function members.words(doc)
  local list = {}
  for word in (doc or ""):gmatch "'([%w_.+-]+)'" do list[#list + 1] = word end
  return list
end

--- The options of what is called: rows by name; nil where it has none that are known.
function members.options(value, name, upvalue)
  if type(value) == "table" then
    local own = rawget(value, "__name") and value.options
    if type(own) == "table" then return own end
    if rawget(value, "__name") == "Trainer" then return require "ltrain.trainer.setup.options" end
    value = rawget(value, "__name") and value.init
  end
  if type(value) ~= "function" then return nil end
  local options = is_ours(doc_comments.written(value, upvalue))
    and doc_comments.options_of(value, upvalue)
  local op = not options and members.op(name)
  local row = not options and not op and tensor_page.row(name, true)
  if row then
    options = {}
    for option in next, row.options do options[option] = { doc = "" } end
  end
  if not op then return options or nil end
  options = {}
  for _, argument in ipairs(op.args) do options[argument.name] = argument end
  return options
end

return members
