-- spec/api/public.lua: what scripts may call: { [name] = function }, found by walking the library.
--
-- "lt.save", "lt.nn.Linear" (what makes one), "lt.nn.Linear:forward", "x:item" of a tensor. A name
-- that is new in the library is here by itself.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local exports = require "ltrain.core.exports"
local functional = require "ltrain.nn.functional" -- functions of lt under another name
local loaded = require "spec.api.loaded"
local lt = require "ltrain"
local tree = require "ltrain.core.tree"

local function is_public(key, value)
  return type(key) == "string" and not key:find "^_" and type(value) == "function"
end

local public = {}

local function add_class(found, name, given)
  if found.classes[given] then return end
  found.classes[given] = name
  found.list[name] = rawget(given, "init") -- what the constructor's arguments go to
  for key, value in next, given do
    if is_public(key, value) and key ~= "init" then
      found.list[name .. ":" .. key] = loaded(value)
    end
  end
end

local function add(found, name, value)
  if type(value) == "function" then
    found.list[name] = value
  elseif class.is_class(value, value) then
    add_class(found, name, value)
  elseif type(value) == "table" and value ~= functional then
    local listed = getmetatable(value)
    local keys = {}
    for key, held in pairs(value) do keys[#keys + 1] = listed and listed.__pairs and held or key end
    table.sort(keys)
    for _, key in ipairs(keys) do add(found, name .. "." .. key, value[key]) end
  end
end

--- The function behind one that refuses what it does not name; nil of another.
function public.named(fn)
  for i = 1, math.huge do
    local name, value = debug.getupvalue(fn, i)
    if not name then return nil end
    if name == "fn" and type(value) == "function" then return public.named(value) or value end
  end
end

--- Whether a function that names its parameters takes a table of options.
function public.takes_options(fn)
  for i = 1, debug.getinfo(fn, "u").nparams do
    local name = debug.getlocal(fn, i)
    if name:find "options$" or name == "script" then return true end
  end
  return false
end

--- The methods of tensors, by name.
function public.methods()
  return select(2, debug.getupvalue(debug.getmetatable(lt.ones(1)).__index, 2))
end

-- Classes that public ones are below.
local function add_bases(found)
  local bases = {}
  for given in next, found.classes do
    local super = rawget(given, "super")
    while super do
      bases[super] = "base." .. super.__name
      super = rawget(super, "super")
    end
  end
  for given, name in next, bases do add_class(found, name, given) end
end

--- All of it.
function public.list()
  local found = { list = {}, classes = {} }
  local _, _ = lt.dist.hooks, lt.dist.DistributedOptimizer -- loaded when they are asked for
  for name in tree.pairs(exports) do add(found, "lt." .. name, lt[name]) end
  for name in pairs(c) do
    if not exports[name] then add(found, "lt." .. name, rawget(lt, name)) end
  end
  for name, method in pairs(public.methods()) do found.list["x:" .. name] = method end
  for _, name in ipairs { "Group", "Handle" } do
    add(found, "dist." .. name, require("ltrain.dist." .. name))
  end
  found.list["lt.seed_everything"] = lt.seed_everything
  add_bases(found)
  return found.list
end

return public
