--- stdlib/trainer/misspelled_hooks.lua: warns of methods whose names are nearly those of hooks: the
--- Trainer never calls them.
--
-- Checked are the functions that the script wrote, on an object and its classes; what the
-- library's own classes define is known. A name that another of the script's methods says is taken
-- to be called by it.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local hooks = require "ltrain.core.hooks"
local old_hooks = require "ltrain.compat.hooks"
local walk = require "ltrain.core.walk"

local misspelled_hooks = {}

local REMOVED <const> = old_hooks.removed

local origin <const>, code_of <const> = c.runtime.origin, c.runtime.code

-- Methods besides the hooks that the loops and checkpoints ask for.
local PROTOCOL <const> = {
  module = { "forward", "state_dict", "load_state_dict" },
  callback = { "state_key", "state_dict", "load_state_dict" },
  data_module = { "state_dict", "load_state_dict" },
}

-- Words that stand for one of those that names of hooks are made of.
local SAME <const> = {
  begin = "start", began = "start", begins = "start", started = "start", enter = "start",
  stop = "end", stopped = "end", finish = "end", finished = "end", done = "end", ended = "end",
  complete = "end", completed = "end", exit = "end",
  training = "train", val = "validation", valid = "validation", eval = "validation",
  testing = "test", prediction = "predict",
}
local SAME_OF_LOADERS <const> = { validation = "val", valid = "val", training = "train",
  testing = "test", prediction = "predict" }

local function with_words(key, same)
  return (key:gsub("%a+", same))
end

-- The hook that is meant by the words of a name, if not by its letters.
local function meant(key, known)
  if key:find "_dataloaders?$" then
    local word = with_words(key, SAME_OF_LOADERS):gsub("s$", "")
    return known[word] and word
  end
  local word = with_words(key, SAME)
  if known[word] then return word end
  local family = key:match "^(on_%a+_%a+)_%a+$"
  if family and known[family .. "_start"] and known[family .. "_end"] then
    return family .. "_start' or '" .. family .. "_end"
  end
end

local function words_of(kind)
  local list, known = hooks.names(kind), {}
  table.move(PROTOCOL[kind], 1, #PROTOCOL[kind], #list + 1, list)
  for _, name in ipairs(list) do known[name] = true end
  return list, known
end

local function near_to(key, list, known)
  return errors.nearest(key, list)
    or (key:find "^on_" or key:find "_dataloaders?$") and meant(key, known)
end

-- The script's functions of an object and its classes, by name; the library's become known.
local function methods_of(object, known)
  local found, seen = {}, {}
  while type(object) == "table" and not seen[object] do
    seen[object] = true
    for key, value in next, object do
      if type(key) == "string" and type(value) == "function" then
        local place = origin(value)
        if not place then
          known[key] = true
        elseif key:byte() ~= 95 and not found[key] then -- 95: "_"
          found[key] = { key = key, fn = value, place = place }
        end
      end
    end
    local meta = getmetatable(object)
    local index = type(meta) == "table" and rawget(meta, "__index")
    object = type(index) == "table" and index or type(meta) == "table" and meta or nil
  end
  return found
end

-- Everybody whose names are checked: { object =, kind =, list =, known =, methods = }.
local function everybody(state)
  local all = {}
  local function add(object, kind)
    local list, known = words_of(kind)
    all[#all + 1] = { object = object, list = list, known = known,
      methods = methods_of(object, known) }
  end
  add(state.module, "module")
  for _, callback in ipairs(state.trainer.callbacks) do add(callback, "callback") end
  if state.data_module then add(state.data_module, "data_module") end
  return all
end

-- Whether a method of another name says this one: in a function's code stands the length, then the
-- text (Lua's dump of a string of up to 126 bytes).
local function is_called(all, key)
  local constant = string.char(#key + 1 | 0x80) .. key
  for _, one in ipairs(all) do
    for name, method in pairs(one.methods) do
      if name ~= key and code_of(method.fn):find(constant, 1, true) then return true end
    end
  end
  return false
end

local function name_of(object)
  return walk.is_module(object) and walk.class_name(object)
    or errors.show(object):gsub("^an object of class ", "")
end

-- Adds to `wrong` what is to be said of names that nothing would call, in the alphabet's order.
local function check_one(one, all, wrong)
  local keys = {}
  for key in pairs(one.methods) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local near = not one.known[key] and (REMOVED[key] or near_to(key, one.list, one.known))
    if near and not is_called(all, key) then
      if REMOVED[key] then
        wrong[#wrong + 1] = ("%s: nothing calls '%s'; write %s"):format(name_of(one.object), key,
          near)
      else
        wrong[#wrong + 1] = ("%s: no hook is called '%s'; did you mean '%s'? (at %s; a method of "
          .. "your own: _%s)"):format(name_of(one.object), key, near, one.methods[key].place, key)
      end
    end
  end
end

--- Raises when the module, a callback or the data module has a method whose name is nearly that of
--- a hook, and which none of their methods calls.
function misspelled_hooks.check(state)
  local all, wrong = everybody(state), {}
  for _, one in ipairs(all) do check_one(one, all, wrong) end
  if #wrong > 0 then errors.blame("%s", table.concat(wrong, "; ")) end
end

return misspelled_hooks
