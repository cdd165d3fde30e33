--- stdlib/strategies/sharded/units.lua: which modules of a model are units of sharding.
--
-- By default the elements of ModuleLists and Sequentials with many parameters: the blocks of a
-- network. What they do not have is one more unit, of the root. A parameter that modules of several
-- units have belongs to the root's, which is there whenever one of them runs.
local class = require "ltrain.core.class"
local walk = require "ltrain.core.walk"

local units = {}

local CONTAINERS <const> = { ModuleList = true, Sequential = true }

-- The parameters of one module, without those of modules in it.
local function own_parameters(entry)
  local list = {}
  for _, item in ipairs(entry.tensors) do
    if not item.buffer then list[#list + 1] = item.value end
  end
  return list
end

local function is_in_container(entry)
  local parent = entry.item and entry.item.entry.module
  return parent ~= nil and CONTAINERS[walk.class_name(parent)] or false
end

-- Elements of all parameters of a module and below it.
local function size_of(entries, entry)
  local n = 0
  for i = entry.first, entry.last do
    for _, parameter in ipairs(own_parameters(entries[i])) do n = n + parameter:numel() end
  end
  return n
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

local function is_wanted(entries, entry, wanted)
  if not math.type(wanted) then return units.is_meant(entry, wanted) end
  return is_in_container(entry) and size_of(entries, entry) >= wanted
end

-- The unit that each entry is in, by its number: the innermost; false: none.
local function units_of(entries, again, wanted)
  local of, is_unit = {}, {}
  for i, entry in ipairs(entries) do
    is_unit[i] = i > 1 and is_wanted(entries, entry, wanted)
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

--- Returns a list of { module =, name =, parameters = a list of { name =, value = } } in the order
--- of the model: its root, then its units. `wanted`: the least number of parameters of a unit, a
--- list of classes, or fn(module, name).
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
      list[#list + 1] = { module = entry.module, name = entry.name, parameters = {} }
      by_number[i] = list[#list]
    end
  end
  for _, item in ipairs(named) do
    table.insert(by_number[owner[item.value]].parameters, item)
  end
  return list
end

return units
