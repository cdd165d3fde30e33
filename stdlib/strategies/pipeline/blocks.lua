--- stdlib/strategies/pipeline/blocks.lua: which Sequential or ModuleList of a module a pipeline
--- divides.
local Module = require "ltrain.nn.Module"
local ModuleList = require "ltrain.nn.ModuleList"
local Sequential = require "ltrain.nn.Sequential"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local WHERE <const> = "strategies.Pipeline"

local function is_container(module)
  return class.is_a(module, Sequential) or class.is_a(module, ModuleList)
end

local function shown(name) return name == "" and "the module itself" or ("'%s'"):format(name) end

local function by_name(module, name)
  local found = module:get_submodule(name)
  if not is_container(found) then
    errors.blame("%s: module = '%s': must be the name of a Sequential or ModuleList: got %s", WHERE,
      name, errors.show(found))
  end
  return found, name
end

-- The containers of at least so many elements with most parameters, as entries of the walk.
local function largest(module, stages)
  local list, most = {}, 0
  for _, entry in ipairs((walk.modules(module))) do
    local found = entry.module
    local count = is_container(found) and #found >= stages and found:num_parameters() or 0
    if count > most then list, most = {}, count end
    if count > 0 and count == most then list[#list + 1] = entry end
  end
  return list
end

--- Returns the container that the option `module` names, by default the one with most parameters,
--- and its name. Raises where there is none of at least `stages` elements, or several are equally
--- large.
return function(module, name, stages)
  local container
  if name then
    container, name = by_name(module, name)
  else
    local list = largest(module, stages)
    if #list == 0 then
      errors.blame("%s: %s has no Sequential or ModuleList of at least %d elements to divide into "
        .. "%d stages", WHERE, walk.class_name(module), stages, stages)
    elseif #list > 1 then
      local names = {}
      for i, entry in ipairs(list) do names[i] = shown(entry.name) end
      errors.blame("%s: which Sequential or ModuleList is divided? write module = a name: %s are "
        .. "equally large", WHERE, table.concat(names, ", "))
    end
    container, name = list[1].module, list[1].name
  end
  if #container < stages then
    errors.blame("%s: %s has %d elements: %d stages need as many", WHERE, shown(name), #container,
      stages)
  end
  for i = 1, #container do
    if container[i].forward == Module.forward then
      errors.blame("%s: %s[%d] has no forward: its elements are called one after the other", WHERE,
        shown(name), i)
    end
  end
  return container, name == "" and walk.class_name(module) or name
end
