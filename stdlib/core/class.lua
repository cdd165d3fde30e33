-- stdlib/core/class.lua: classes with one constructor and single inheritance.
--
-- A class is the metatable of its objects, so a metamethod is written like a method
-- (`function Words:__len()`); extend hands those of the parent on.

local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"

local class = {}

-- A class was called as if it were a module: with a tensor that its init does not name.
local function refuse_input(self, input, count)
  local names = self.init and c.runtime.parameters(self.init, true)
  if self.__module and names and names <= count then
    errors.blame("%s: init takes no tensor: got %s: make a module first, then call it: local net = "
      .. "%s(...), net(x)", self.__name, errors.show(input), self.__name)
  end
end

local function make(self, ...)
  local object = setmetatable({}, self)
  local init = self.init
  if type((...)) == "userdata" then refuse_input(self, (...), select("#", ...)) end
  if self.__construct then self.__construct(object, ...) end
  if init then init(object, ...) end
  return object
end

local function construct(self, ...)
  local form = self.__arguments
  if form then return call_form.construct(make, self, form, ...) end
  return make(self, ...)
end

local function name_of(self)
  return "class " .. self.__name
end

-- Whether a method may get more than it names: a hook does, and takes of it what it wants.
local OPEN <const> = { setup = true, teardown = true, predict_step = true }
local function is_open(key)
  return type(key) ~= "string" or OPEN[key] or key:find "^_" or key:find "^on_"
end

-- The value as a class has it: the library's own methods refuse arguments that they would drop; a
-- script's are as it wrote them.
local function method(self, key, value)
  if is_open(key) then return value end
  local places = type(value) == "function" and self.__options and self.__options[key]
  local count = places and c.runtime.parameters(value)
  value = strict_arity.fn(value, key == "init" and self.__name or key, self.__name)
  return count and call_form.method(value, key, count - 1, places) or value
end

local function define(self, key, value)
  value = method(self, key, value)
  if key == "init" and rawget(self, "__arguments") == nil then
    rawset(self, "__arguments", false) -- the parent's are those of another init
  end
  rawset(self, key, value)
end

--- All classes, a set. `reopen(parent, name)`, while the prompt reloads a file: the class that
--- extend returns in place of a new one, or nil.
class.made, class.reopen = setmetatable({}, { __mode = "k" }), nil

--- A new class below `parent` (nil: none). `Name(...)` makes an object and runs its `init(...)`.
function class.extend(parent, name)
  if name == nil and type(parent) == "string" then
    errors.blame("extend: call it with a colon, Class:extend(%q)", parent)
  elseif type(name) ~= "string" or name == "" then
    errors.blame("extend: a class needs a name: got %s", errors.show(name))
  end
  local again = class.reopen and class.reopen(parent, name)
  if again then return again end
  local new = {}
  class.made[new] = true
  for key, value in next, parent or {} do
    local is_meta = type(key) == "string" and key:sub(1, 2) == "__"
    if is_meta and key ~= "__arguments" then new[key] = value end
  end
  new.__index = new
  new.__name = name
  new.super = parent
  return setmetatable(new,
    { __index = parent, __call = construct, __newindex = define, __tostring = name_of })
end

--- Gives a class the methods of `names` that are in a table which `load` returns, when one of them
--- is first called.
function class.add_later(self, names, load)
  for name in names:gmatch "%S+" do
    local fn
    local function load_fn() return method(self, name, load()[name]) end
    rawset(self, name, function(...)
      fn = fn or load_fn()
      return fn(...)
    end)
  end
end

--- The class of an object; nil for anything else.
function class.of(value)
  if type(value) ~= "table" then return nil end
  local meta = getmetatable(value)
  return type(meta) == "table" and rawget(meta, "__name") and meta or nil
end

--- Whether `value` is an object of the class `wanted` or of one below it.
function class.is_a(value, wanted)
  local found = class.of(value)
  while found do
    if found == wanted then return true end
    found = rawget(found, "super")
  end
  return false
end

--- Raises when a saved state is that of another class; `saved`: its name, nil when the state does
--- not say. `where` begins the text.
function class.check_saved(object, saved, where)
  local own = getmetatable(object).__name
  if saved ~= nil and saved ~= own then
    errors.blame("%s: load_state_dict: the state is that of %s, not of %s", where, saved, own)
  end
end

--- Whether `value` is a class that is `wanted` or below it.
function class.is_class(value, wanted)
  while type(value) == "table" and rawget(value, "__name") do
    if value == wanted then return true end
    value = rawget(value, "super")
  end
  return false
end

--- Whether a value has a method of this name. Objects of users count by what they can do, not by
--- their class.
function class.has_method(value, name)
  return type(value) == "table" and type(value[name]) == "function"
end

--- Whether a value is a function or an object that can be called.
function class.is_callable(value)
  local meta = getmetatable(value)
  return type(value) == "function" or type(meta) == "table" and meta.__call ~= nil
end

return class
