--- stdlib/strategies/sharded/units.lua: which modules of a model are units of sharding.
--
-- Those that lt.shard has marked, and by default the elements of ModuleLists and Sequentials with
-- many parameters: the blocks of a network. What they do not have is one more unit, of the root. A
-- parameter that modules of several units have belongs to the root's, which is there whenever one
-- of them runs.
local Module = require "ltrain.nn.Module"
local class = require "ltrain.core.class"
local walk = require "ltrain.core.walk"

local units = {}

local CONTAINERS <const> = { ModuleList = true, Sequential = true }

local function is_in_container(entry)
  local parent = entry.item and entry.item.entry.module
  return parent ~= nil and CONTAINERS[walk.class_name(parent)] or false
end

-- Elements of all parameters before each entry, and before what would follow the last.
local function elements_before(entries)
  local before = { 0 }
  for i, entry in ipairs(entries) do
    before[i + 1] = before[i]
    for _, item in ipairs(entry.tensors) do
      if not item.buffer then before[i + 1] = before[i + 1] + item.value:numel() end
    end
  end
  return before
end

--- Whether the script means the module of an entry of the walk by `wanted`: a list of classes, or
--- fn(module, name).
function units.is_meant(entry, wanted)
  if type(wanted) == "function" then return wanted(entry.module, entry.name) end
  for _, one in ipairs(wanted) do
    if class.is_a(entry.module, one) then return true end
  end
  return false
end

-- fn(entry): whether it is a unit by `wanted`, or marked by hand.
local function chooser(entries, wanted)
  local before = math.type(wanted) and elements_before(entries)
  return function(entry)
    if rawget(entry.module, "_shard") then return true end
    if not before then return units.is_meant(entry, wanted) end
    return is_in_container(entry) and entry.module.forward ~= Module.forward
      and before[entry.last + 1] - before[entry.first] >= wanted
  end
end

-- The unit that each entry is in, by its number: the innermost; false: none.
local function units_of(entries, again, wanted)
  local of, is_unit, is_chosen = {}, {}, chooser(entries, wanted)
  for i, entry in ipairs(entries) do
    is_unit[i] = i > 1 and is_chosen(entry)
    if is_unit[i] then
      for k = entry.first, entry.last do of[k] = i end
    end
  end
  -- A module that stands in two places is in no unit but its own.
  for _, child in ipairs(again) do
    local entry = child.again
    for k = entry.first, entry.last do
      if not is_unit[entry.first] and (of[k] or 0) < entry.first then of[k] = false end
    end
  end
  return of
end

-- The number of the unit that a unit stands in; nil: none but the root.
local function outer_of(entries, of, i)
  for k = i - 1, 2, -1 do
    if of[k] == k and entries[k].last >= i then return k end
  end
end

-- The root, and the modules of its unit that have other units in them.
local function modules_around(entries, of)
  local list, next_unit = {}, math.huge -- the number of the first unit behind an entry
  for i = #entries, 1, -1 do
    if i == 1 or not of[i] and next_unit <= entries[i].last then
      list[#list + 1] = entries[i].module
    end
    if of[i] == i then next_unit = i end
  end
  return list
end

--- Returns a list of { module =, name =, modules = those in it, parameters = a list of { name =,
--- value = }, reshard_after_forward = what lt.shard was given, or nil, outer = the unit that it is
--- in, or nil } in the order of the model: its root, with `around` = the modules that have units in
--- them, then its units. `wanted`: the least number of parameters of a unit, a list of classes, or
--- fn(module, name).
function units.find(root, wanted)
  local entries, again = walk.modules(root)
  local of, owner, named = units_of(entries, again, wanted), {}, {}
  for i, entry in ipairs(entries) do
    for _, item in ipairs(entry.tensors) do
      local parameter, unit = item.value, of[i] or 1
      if not item.buffer and owner[parameter] == nil then
        owner[parameter] = unit
        named[#named + 1] = { name = item.name, value = parameter }
      elseif not item.buffer and owner[parameter] ~= unit then
        owner[parameter] = 1
      end
    end
  end
  local list, by_number = {}, {}
  for i, entry in ipairs(entries) do
    if i == 1 or of[i] == i then
      local mark = rawget(entry.module, "_shard") or {}
      by_number[i] = { module = entry.module, name = entry.name, modules = {}, parameters = {},
        reshard_after_forward = mark.reshard_after_forward,
        outer = by_number[outer_of(entries, of, i)] }
      list[#list + 1] = by_number[i]
    end
    table.insert(by_number[of[i] or 1].modules, entry.module)
  end
  list[1].around = modules_around(entries, of)
  for _, item in ipairs(named) do
    table.insert(by_number[owner[item.value]].parameters, item)
  end
  return list
end

return units
