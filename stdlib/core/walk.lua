-- stdlib/core/walk.lua: traverses a module's parameters, buffers and submodules in a fixed order,
-- as named_parameters does.
--
-- Registration is a walk at time of use, not an event: nothing has to be notified when a field
-- changes. Fields go in order of first assignment (noted in `_order`), positions before them; plain
-- tables are walked to any depth. A module's own tensors come before those of the modules in it.
--
-- A walk is made often, and of large models: what is neither table nor userdata is passed over
-- before any key is kept, and names are joined on the way, not from the root anew.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local walk = {}

local NONE <const> = {} -- the list of a module that holds nothing of a kind

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

--- Whether a field is not a part of the module: its name begins with _, or is "trainer".
function walk.is_skipped(key)
  return type(key) == "string" and (key:byte() == 95 or key == "trainer") -- 95: "_"
end

-- Keys.

local function sorted(list)
  for i = 2, #list do
    if list[i] < list[i - 1] then
      table.sort(list)
      return list
    end
  end
  return list
end

-- The keys of a table under which there may be something: positions and names, both sorted, and
-- the others.
local function keys_of(holder)
  local numbers, names, others = {}, {}, {}
  for key, value in next, holder do
    local kind = type(value)
    if kind == "table" or kind == "userdata" then
      local list = math.type(key) == "integer" and numbers or type(key) == "string" and names
        or others
      list[#list + 1] = key
    end
  end
  return sorted(numbers), names, others
end

-- The keys of a module's fields besides those whose order was noted: positions, and names that were
-- assigned by rawset, both sorted; nil where there are none, as in most modules.
local function other_keys(module, order)
  local numbers, rest
  for key, value in next, module do
    local kind = type(value)
    if (kind == "table" or kind == "userdata") and order[key] ~= true then
      if math.type(key) == "integer" then
        numbers = numbers or {}
        numbers[#numbers + 1] = key
      elseif type(key) == "string" and not walk.is_skipped(key) then
        rest = rest or {}
        rest[#rest + 1] = key
      end
    end
  end
  return numbers and sorted(numbers), rest and sorted(rest)
end

-- Whether a plain table has keys of more than one kind, or of a kind that has no order.
local function is_mixed(holder)
  local _, mixed, other = tree.keys(holder)
  return mixed or other ~= nil
end

-- One module.

--- The keys that lead from the module that holds an item to its value.
function walk.way(item)
  return item.way or { item.key }
end

--- The keys that lead from the root of the walk to an item's value.
function walk.keys(item)
  local ways = {}
  while item do
    table.insert(ways, walk.way(item))
    item = item.entry.item
  end
  local keys = {}
  for i = #ways, 1, -1 do table.move(ways[i], 1, #ways[i], #keys + 1, keys) end
  return keys
end

local look

-- The path of the value under `key` of the table that `found` stands in.
local function path_of(found, key)
  local item = { way = table.move(found.keys, 1, #found.keys, 1, {}), entry = found.entry }
  if key ~= nil then table.insert(item.way, key) end
  return tree.path(found.root, walk.keys(item))
end

--- The first position of a list under which there is nil although others follow; nil: none.
function walk.hole(list)
  for i = 1, #list do
    if rawget(list, i) == nil then return i end
  end
end

--- Raises where a list of modules or parameters has a nil: ipairs ends there. `path` names it.
function walk.refuse_hole(list, path)
  local hole = walk.hole(list)
  if hole then
    errors.blame("%s[%d] is nil, and [%d] is not: a list ends at its first nil: is a name "
      .. "misspelt?", path, hole, #list)
  end
end

-- Looks into a plain table. One met before is not checked again: plain data may be shared, or
-- contain itself.
local function look_into(found, holder, key)
  found.seen = found.seen or {}
  if found.seen[holder] then return end
  found.seen[holder] = true
  local numbers, names, others = keys_of(holder)
  if #numbers + #names + #others == 0 then return end
  local before, keys = found.count, found.keys
  keys[#keys + 1] = key
  for _, inner in ipairs(numbers) do look(found, holder, inner) end
  for _, inner in ipairs(sorted(names)) do look(found, holder, inner) end
  for _, inner in ipairs(others) do look(found, holder, inner) end
  if found.count > before and is_mixed(holder) then
    errors.blame("%s has modules or parameters under both positions and names: use one kind",
      path_of(found))
  end
  if found.count > before and walk.hole(holder) then walk.refuse_hole(holder, path_of(found)) end
  keys[#keys] = nil
end

-- An item for holder[key], at the end of the list that the entry has under the name `kind`.
local function add(found, kind, holder, key, value)
  local entry, keys, way, name = found.entry, found.keys, nil, key
  if keys[1] ~= nil then
    way = table.move(keys, 1, #keys, 1, {})
    way[#way + 1] = key
    name = tree.name(way)
  elseif type(key) ~= "string" then
    name = math.type(key) == "integer" and key - 1 or tostring(key)
  end
  local list = entry[kind]
  if list == NONE then
    list = {}
    entry[kind] = list
  end
  local item = { holder = holder, key = key, value = value, way = way, entry = entry,
                 name = found.prefix .. name }
  list[#list + 1] = item
  return item
end

-- Sorts one value, holder[key], into the tensors, children or objects of the entry.
function look(found, holder, key)
  local value = rawget(holder, key)
  local kind = type(value)
  if kind == "userdata" then
    if c.is_parameter(value) then
      found.count = found.count + 1
      add(found, "tensors", holder, key, value)
    elseif found.buffers and holder == found.entry.module and found.buffers[key] then
      found.count = found.count + 1
      add(found, "buffers", holder, key, value).buffer = found.buffers[key]
    end
  elseif kind == "table" then
    if getmetatable(value) == nil then
      look_into(found, value, key)
    elseif walk.is_module(value) then
      found.count = found.count + 1
      add(found, "children", holder, key, value)
    else
      add(found, "objects", holder, key, value)
    end
  end
end

-- What is known on the way through the modules below `root`. `keys` lead from a module into its
-- plain tables, `seen` are those tables.
local function new_search(root)
  return { root = walk.class_name(root), keys = {} }
end

-- An entry with all fields that it will get, so that its table need not grow.
local function new_entry(module, item)
  return { module = module, item = item, name = item and item.name or "", first = 0, last = 0,
           tensors = NONE, buffers = NONE, children = NONE, objects = NONE }
end

-- What one module holds itself: the lists of `entry` are filled. `found` is that of the walk.
local function look_at(found, entry)
  local module = entry.module
  found.entry, found.buffers, found.seen = entry, rawget(module, "_buffers"), nil
  found.prefix, found.count = entry.item and entry.name .. "." or "", 0
  local order = rawget(module, "_order") or NONE
  local numbers, rest = other_keys(module, order)
  for i = 1, numbers and #numbers or 0 do look(found, module, numbers[i]) end
  for i = 1, #order do look(found, module, order[i]) end
  for i = 1, rest and #rest or 0 do look(found, module, rest[i]) end
  if entry.buffers ~= NONE then
    local tensors = entry.tensors == NONE and {} or entry.tensors
    entry.tensors = table.move(entry.buffers, 1, #entry.buffers, #tensors + 1, tensors)
  end
  return entry
end

--- The modules that a module holds itself: a list of { name =, key =, value =, ... }.
function walk.children(module)
  return look_at(new_search(module), new_entry(module)).children
end

-- All modules.

-- Goes on until `state.ends(entry)` is true; returns that.
local function visit(state, module, item)
  local list = state.list
  local entry = new_entry(module, item)
  look_at(state.search, entry)
  list[#list + 1] = entry
  state.open[module], state.seen[module], entry.first = true, entry, #list
  if state.ends(entry) then return true end
  for _, child in ipairs(entry.children) do
    if state.open[child.value] then
      errors.blame("%s: a module inside itself: begin the field's name with _ to leave it out",
        tree.path(state.search.root, walk.keys(child)))
    elseif state.seen[child.value] then
      child.again = state.seen[child.value]
      state.again[#state.again + 1] = child
    elseif visit(state, child.value, child) then
      return true
    end
  end
  entry.last = #list
  state.open[module] = nil
end

local function walk_until(root, ends)
  local state = { search = new_search(root), list = {}, again = {}, open = {}, seen = {},
                  ends = ends }
  visit(state, root)
  return state.list, state.again
end

local function never() return false end

-- The walk that answers for its root; see walk.keep.
local kept

--- Until the result is closed, walks of `root` are answered by the first of them: for code that
--- asks often, and changes no module meanwhile.
function walk.keep(root)
  local before = kept
  kept = { root = root }
  return setmetatable({}, { __close = function() kept = before end })
end

-- What find(root) gives, a list and two more values; kept under `name` where walks are.
local function answer(name, root, find)
  if rawget(root, "__name") then
    errors.blame("%s is a class: call it to make a module", root.__name)
  end
  if not kept or kept.root ~= root then return find(root) end
  kept[name] = kept[name] or table.pack(find(root))
  return table.unpack(kept[name], 1, 3)
end

local function modules_of(root) return walk_until(root, never) end

--- The module and all modules below it, once each, parents first: a list of
--- { module =, name =, item =, tensors =, objects =, children =, first =, last = }: what stands
--- between numbers `first` and `last` is the module and what was first met below it. The items of
--- the three lists are { name =, value =, holder =, key =, entry =, ... }. The second result lists
--- the children that are modules which were met before; their field `again` is the entry of that.
function walk.modules(root)
  return answer("modules", root, modules_of)
end

local function has_parameter(entry)
  return entry.tensors[1] and not entry.tensors[1].buffer -- buffers come after parameters
end

--- The item of the first parameter; nil: there is none. Looks no further.
function walk.first_parameter(root)
  local list = walk_until(root, has_parameter)
  local last = list[#list]
  return has_parameter(last) and last.tensors[1] or nil
end

-- All tensors.

-- Adds the names that tensors have through modules that were met again.
local function alias_modules(modules, first, places, aliases)
  for _, place in ipairs(places) do
    local old, new = #place.again.name + 2, place.name .. "."
    for i = place.again.first, place.again.last do
      for _, item in ipairs(modules[i].tensors) do
        if first[item.value] == item then aliases[new .. item.name:sub(old)] = item.name end
      end
    end
  end
end

-- A field name with a dot can make two tensors that a file could not distinguish.
local function refuse_name(root, item)
  errors.blame("%s and another tensor are both called '%s' in state_dict: rename a field",
    tree.path(walk.class_name(root), walk.keys(item)), item.name)
end

local function tensors_of(root)
  local list, aliases, first, named = {}, {}, {}, {}
  local modules, places = walk.modules(root)
  for _, entry in ipairs(modules) do
    for _, item in ipairs(entry.tensors) do
      local met = first[item.value]
      if met then
        aliases[item.name] = met.name
      else
        if named[item.name] then refuse_name(root, item) end
        first[item.value], named[item.name] = item, item
        list[#list + 1] = item
      end
    end
  end
  alias_modules(modules, first, places, aliases)
  return list, aliases, modules
end

--- All parameters and buffers, once each under their first path: a list of
--- { name =, value =, holder =, key =, entry =, buffer = }; buffer is nil for a parameter, "saved"
--- or "unsaved" for a buffer. The second result maps the other names of tensors that have several
--- to the first, the third is the list of walk.modules.
function walk.tensors(root)
  return answer("tensors", root, tensors_of)
end

return walk
