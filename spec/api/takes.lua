-- spec/api/takes.lua: the names of the arguments that a function or class of ours takes.
local c = require "ltrain.c"
local loaded = require "spec.api.loaded"
local lt = require "ltrain"

local ops, by_function = {}, {}
for _, op in ipairs(lt.ops()) do
  ops[op.name] = op
  if not op.hidden and rawget(lt, op.name) then by_function[lt[op.name]] = op end
end

-- Descriptions of options (core/config.lua) among the values that a function holds, and among those
-- of the functions it calls.
local function descriptions(fn, found, depth)
  for i = 1, math.huge do
    local name, value = debug.getupvalue(fn, i)
    if not name then return end
    if type(value) == "function" and depth > 0 and not found[value] then
      found[value] = true
      descriptions(value, found, depth - 1)
    elseif type(value) == "table" and getmetatable(value) == nil and not found[value] then
      found[value] = true
      for key, row in next, value do
        if type(key) == "string" and type(row) == "table" and getmetatable(row) == nil
          and (row.type or row.default ~= nil or row.doc or row.choices) and not row.instead then
          found.names[key] = true
        end
      end
      for k, row in ipairs(value) do
        if type(row) == "table" and type(row[1]) == "string" and value[row[1]] == row then
          found.places = found.places or {}
          found.places[k] = row[1]
        end
      end
    end
  end
end

local function words(text, list)
  for word in text:gmatch "[^%s|]+" do list[#list + 1] = word end
  return list
end

-- The function behind one that refuses what it does not name, or has places for options, and these.
local function behind(fn, options)
  local within
  for i = 1, math.huge do
    local name, value = debug.getupvalue(fn, i)
    if not name then break end
    if name == "fn" and type(value) == "function" then within = value end
    if name == "text" and type(value) == "string" then options = words(value, {}) end
  end
  if within then return behind(within, options) end
  return fn, options
end

local takes = {}

--- Of a row of lt.ops(): the inputs, then the arguments.
function takes.operation(op)
  local places, names = {}, {}
  for k, name in ipairs(op.places) do places[k] = name end
  for _, name in ipairs(places) do names[name] = true end
  return { places = places, names = names }
end

--- Of a function of C that has a form (lua/bind/core/public_functions.h); nil of another.
local function formed(fn)
  local places, names = c.runtime.parameter_names(fn), {}
  for _, name in ipairs(places) do names[name] = true end
  local _, row = debug.getupvalue(fn, 2)
  return type(row) == "userdata" and { places = places, names = names } or nil
end

--- Of a maker of tensors, which is an operation without tensors: zeros, ones; zeros_like takes a
--- tensor in place of sizes.
local function maker(name)
  local as = name:gsub("_like$", "")
  local like, filled = as ~= name, as == "zeros" or as == "ones"
  local made = ops[filled and "full" or as]
  if not (like or filled) or not made then return nil end
  local list = { args = {}, places = like and { "input" } or {} }
  for _, name_of in ipairs(made.places) do
    if not (like and name_of == "size" or filled and name_of == "fill_value") then
      list.places[#list.places + 1] = name_of
    end
  end
  local taken = takes.operation(list)
  taken.names.requires_grad = true
  return taken
end

--- Of a function of Lua, or of C that says what it takes.
function takes.fn(fn)
  local options
  fn, options = behind(loaded(fn))
  local found, places = { names = {} }, {}
  local info = debug.getinfo(fn, "uS")
  if info.what == "C" then return formed(fn) end
  descriptions(fn, found, 2)
  for k = 1, info.nparams do places[k] = debug.getlocal(fn, k) end
  if places[1] == "self" then table.remove(places, 1) end
  if places[#places] and places[#places]:find "options$" then places[#places] = nil end
  if info.isvararg and found.places then
    for _, name in ipairs(found.places) do places[#places + 1] = name end
  end
  for _, name in ipairs(options or {}) do places[#places + 1] = name end
  for _, name in ipairs(places) do found.names[name] = true end
  return { places = places, names = found.names }
end

--- Of a class: the arguments that make an object of it.
function takes.class(given)
  local made = given.init and takes.fn(given.init) or { places = {}, names = {} }
  if given.__arguments then made.places = words(given.__arguments, {}) end
  for name in next, type(given.options) == "table" and given.options or {} do
    made.names[name] = true
  end
  for _, name in ipairs(made.places) do made.names[name] = true end
  return made
end

--- Of a name's value; nil where nothing can be said.
function takes.of(value, name)
  if type(value) == "table" and rawget(value, "__name") then return takes.class(value) end
  if type(value) ~= "function" then return nil end
  local op = ops[name] or by_function[value]
  return takes.fn(value) or op and takes.operation(op) or maker(name)
    or name:sub(-1) == "_" and ops[name:sub(1, -2)] and takes.operation(ops[name:sub(1, -2)]) or nil
end

return takes
