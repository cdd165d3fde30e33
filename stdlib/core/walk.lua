-- stdlib/core/walk.lua: what a module holds: parameters, buffers, modules, in a fixed order.
--
-- Registration is a walk at time of use, not an event: nothing has to be told when a field changes.
-- Fields go in order of first assignment (noted in `_order`), positions before them; plain tables
-- are walked to any depth. A module's own tensors come before those of the modules in it.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local walk = {}

--- Whether a value is a Module: its class has `__module`, which classes below inherit.
function walk.is_module(value)
  if type(value) ~= "table" then return false end
  local meta = getmetatable(value)
  return type(meta) == "table" and rawget(meta, "__module") == true
end

--- The name of a module's class.
function walk.class_name(module)
  return rawget(module, "_class_name") or getmetatable(module).__name
end

--- Whether a field is no part of the module: its name begins with _, or is "trainer".
function walk.is_skipped(key)
  return type(key) == "string" and (key:byte() == 95 or key == "trainer") -- 95: "_"
end

-- The keys of a module's fields, in order.
local function field_keys(module)
  local order, sorted, seen, keys = rawget(module, "_order") or {}, tree.keys(module), {}, {}
  for _, key in ipairs(sorted) do
    if math.type(key) then keys[#keys + 1] = key end
  end
  for _, key in ipairs(order) do
    if rawget(module, key) ~= nil then keys[#keys + 1] = key end
    seen[key] = true
  end
  for _, key in ipairs(sorted) do
    if not math.type(key) and not seen[key] and not walk.is_skipped(key) then
      keys[#keys + 1] = key
    end
  end
  return keys
end

local function copy(keys)
  return table.move(keys, 1, #keys, 1, {})
end

local look

-- Looks into a plain table. One met before is not looked at again: plain data may be shared, or
-- contain itself.
local function look_into(found, holder, keys)
  if found.seen[holder] then return end
  found.seen[holder] = true
  local before = found.count
  local list, mixed, other = tree.keys(holder)
  for _, key in ipairs(list) do
    keys[#keys + 1] = key
    look(found, holder, key, keys)
    keys[#keys] = nil
  end
  if other ~= nil then
    for key in next, holder do
      if math.type(key) ~= "integer" and type(key) ~= "string" then
        look(found, holder, key, keys)
      end
    end
  end
  if (mixed or other ~= nil) and found.count > before then
    errors.blame("%s holds modules or parameters under both positions and names: use one kind",
      tree.path(found.root, keys))
  end
end

-- Sorts one value, holder[key], into found.tensors, found.modules or found.objects.
function look(found, holder, key, keys)
  local value = rawget(holder, key)
  local kind = type(value)
  local list
  if kind == "userdata" then
    if c.is_parameter(value) then
      list = found.tensors
    elseif holder == found.module and found.buffers[key] then
      list = found.buffer_tensors
    else
      return
    end
  elseif kind ~= "table" then
    return
  elseif getmetatable(value) == nil then
    return look_into(found, value, keys)
  elseif walk.is_module(value) then
    list = found.modules
  else
    list = found.objects
  end
  if list ~= found.objects then found.count = found.count + 1 end
  list[#list + 1] = { holder = holder, key = key, keys = copy(keys), value = value,
                      owner = found.module }
end

-- What one module holds itself. `keys` leads from the root to it.
local function look_at(root, module, keys)
  local found = { root = root, module = module, buffers = rawget(module, "_buffers") or {},
                  tensors = {}, buffer_tensors = {}, modules = {}, objects = {}, seen = {},
                  count = 0 }
  for _, key in ipairs(field_keys(module)) do
    keys[#keys + 1] = key
    look(found, module, key, keys)
    keys[#keys] = nil
  end
  for _, item in ipairs(found.buffer_tensors) do
    item.buffer = found.buffers[item.key]
    found.tensors[#found.tensors + 1] = item
  end
  return found
end

--- The modules that a module holds itself: a list of { keys =, value =, ... }.
function walk.children(module)
  return look_at(walk.class_name(module), module, {}).modules
end

local function visit(state, module, keys)
  state.open[module], state.seen[module] = true, keys
  local found = look_at(state.root, module, keys)
  state.list[#state.list + 1] = { module = module, keys = keys, tensors = found.tensors,
                                  objects = found.objects, children = found.modules }
  for _, child in ipairs(found.modules) do
    if state.open[child.value] then
      errors.blame("%s: a module inside itself: begin the field's name with _ to leave it out",
        tree.path(state.root, child.keys))
    elseif state.seen[child.value] then
      child.first = state.seen[child.value]
      state.again[#state.again + 1] = child
    else
      visit(state, child.value, child.keys)
    end
  end
  state.open[module] = nil
end

--- The module and all modules below it, once each, parents first: a list of
--- { module =, keys =, tensors =, objects =, children = }. The second result lists the places
--- where a module was met again: { keys =, first = (keys of its first place), ... }.
function walk.modules(root)
  local state = { root = walk.class_name(root), list = {}, again = {}, open = {}, seen = {} }
  visit(state, root, {})
  return state.list, state.again
end

-- Adds the names that tensors have through modules that were met again.
local function alias_modules(list, places, aliases)
  for _, place in ipairs(places) do
    local old, new = tree.name(place.first) .. ".", tree.name(place.keys) .. "."
    for _, item in ipairs(list) do
      if item.name:sub(1, #old) == old then aliases[new .. item.name:sub(#old + 1)] = item.name end
    end
  end
end

-- A field name with a dot can make two tensors that a file could not tell apart.
local function check_name(root, item, other)
  if not other then return end
  errors.blame("%s and another tensor are both called '%s' in state_dict: rename a field",
    tree.path(walk.class_name(root), item.keys), item.name)
end

--- All parameters and buffers, once each under their first path: a list of
--- { name =, keys =, value =, owner =, holder =, key =, buffer = }; buffer is nil for a parameter,
--- "saved" or "unsaved" for a buffer. The second result maps the other names of tensors that have
--- several to the first.
function walk.tensors(root)
  local list, aliases, first, named = {}, {}, {}, {}
  local modules, places = walk.modules(root)
  for _, entry in ipairs(modules) do
    for _, item in ipairs(entry.tensors) do
      item.name = tree.name(item.keys)
      local met = first[item.value]
      if met then
        aliases[item.name] = met.name
      else
        check_name(root, item, named[item.name])
        first[item.value], named[item.name] = item, item
        list[#list + 1] = item
      end
    end
  end
  alias_modules(list, places, aliases)
  return list, aliases
end

return walk
