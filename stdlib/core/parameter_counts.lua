-- stdlib/core/parameter_counts.lua: counts the elements of each module's parameters, its submodules
-- included; a shared parameter counts once.

-- The entries of the modules that hold each module.
local function holders_of(modules)
  local holders = {}
  for _, entry in ipairs(modules) do
    for _, child in ipairs(entry.children) do
      local list = holders[child.value] or {}
      holders[child.value], list[#list + 1] = list, entry
    end
  end
  return holders
end

-- Adds to all that hold `entry`, by whatever way, once.
local function add_above(counts, holders, entry, count, seen)
  local open = { entry }
  while #open > 0 do
    local at = table.remove(open)
    if not seen[at] then
      seen[at] = true
      counts[at.module] = counts[at.module] + count
      for _, holder in ipairs(holders[at.module] or {}) do open[#open + 1] = holder end
    end
  end
end

-- The entries that hold each parameter, and the list of parameters.
local function owners_of(modules)
  local owners, list = {}, {}
  for _, entry in ipairs(modules) do
    for _, item in ipairs(entry.tensors) do
      if not item.buffer then
        local own = owners[item.value]
        if not own then
          own, list[#list + 1] = {}, item.value
          owners[item.value] = own
        end
        own[#own + 1] = entry
      end
    end
  end
  return owners, list
end

-- Whether the modules on the way to each hang in one place only.
local function find_single(modules, holders)
  local single = {}
  for _, entry in ipairs(modules) do -- those that hold it come first
    local above = holders[entry.module] or {}
    single[entry] = #above == 0 or #above == 1 and single[above[1]]
  end
  return single
end

--- `modules`: what walk.modules gives. Returns the counts by module, and how many of all of them
--- require grad.
return function(modules)
  local counts, trainable = {}, 0
  local holders = holders_of(modules)
  local owners, list = owners_of(modules)
  local single = find_single(modules, holders)
  for _, entry in ipairs(modules) do counts[entry.module] = 0 end
  for _, parameter in ipairs(list) do
    local own, n = owners[parameter], parameter:numel()
    if parameter.requires_grad then trainable = trainable + n end
    if #own == 1 and single[own[1]] then counts[own[1].module] = counts[own[1].module] + n end
  end
  for i = #modules, 2, -1 do -- those in it first
    local entry = modules[i]
    if single[entry] then
      local above = holders[entry.module][1].module
      counts[above] = counts[above] + counts[entry.module]
    end
  end
  for _, parameter in ipairs(list) do
    local own, seen = owners[parameter], {}
    if #own > 1 or not single[own[1]] then
      for _, entry in ipairs(own) do
        add_above(counts, holders, entry, parameter:numel(), seen)
      end
    end
  end
  return counts, trainable
end
