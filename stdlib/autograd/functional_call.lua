-- stdlib/autograd/functional_call.lua: lt.func.functional_call: calls a module with other tensors
-- in place of its parameters.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local functional_call = {}

local OPTIONS <const> = {
  strict = { type = "boolean", default = false,
    doc = "whether a tensor of the module that is not given is an error" },
  tie_weights = { type = "boolean", default = true,
    doc = "whether a tensor that the module has in several places is replaced in all of them" },
}

-- One table of tensors by name, out of one or a list of them.
local function joined(tensors, who)
  local all = {}
  if type(tensors) ~= "table" or getmetatable(tensors) ~= nil then
    errors.blame("%s: needs a table of tensors by name: got %s", who, errors.show(tensors))
  end
  for key, value in tree.pairs(tensors) do
    if type(key) == "string" then
      all[key] = value
    else
      for name, x in next, joined(value, who) do
        if all[name] ~= nil then errors.blame("%s: '%s' is given twice", who, name) end
        all[name] = x
      end
    end
  end
  return all
end

-- The places of a module's tensors by name: { [name] = items }, with the names of tied ones.
local function places_of(module, tie_weights)
  local list, aliases, modules = walk.tensors(module)
  local by_value, by_name, names = {}, {}, {}
  for _, entry in ipairs(modules) do
    for _, item in ipairs(entry.tensors) do
      by_value[item.value] = by_value[item.value] or {}
      table.insert(by_value[item.value], item)
      by_name[item.name] = tie_weights and by_value[item.value] or { item }
      names[#names + 1] = item.name
    end
  end
  for alias, name in next, aliases do
    by_name[alias] = by_name[alias] or by_name[name]
    names[#names + 1] = alias
  end
  return by_name, list, names
end

-- What is to be set where: a list of { item, tensor }.
local function plan_of(module, all, o, who)
  local by_name, list, names = places_of(module, o.tie_weights)
  local plan, covered = {}, {}
  for name, x in tree.pairs(all) do
    local items = by_name[name]
    if not items and name:find "%f[%w_]_extra_state$" then
      items = {} -- of a state_dict: what get_extra_state gave
    elseif not items then
      errors.blame("%s: %s has no tensor '%s'%s", who, walk.class_name(module), name,
        errors.did_you_mean(name, names))
    elseif not c.is_tensor(x) then
      errors.blame("%s: '%s' must be a tensor: got %s", who, name, errors.show(x))
    end
    for _, item in ipairs(items) do
      if covered[item] and covered[item] ~= x then
        errors.blame("%s: '%s' is tied to another tensor that is given: give one of them, or write "
          .. "tie_weights = false", who, name)
      end
      if not covered[item] then plan[#plan + 1] = { item, x } end
      covered[item] = x
      covered[item.value] = true
    end
  end
  for _, item in ipairs(o.strict and list or {}) do
    if not covered[item.value] then
      errors.blame("%s: '%s' of %s is not given, with strict", who, item.name,
        walk.class_name(module))
    end
  end
  return plan
end

-- Until it is closed the tensors are those of the plan.
local function replace(plan)
  for _, step in ipairs(plan) do rawset(step[1].holder, step[1].key, step[2]) end
  return setmetatable({}, { __close = function()
    for _, step in ipairs(plan) do rawset(step[1].holder, step[1].key, step[1].value) end
  end })
end

--- What the module returns for `args` with these tensors.
function functional_call.call(module, tensors, args, options)
  local who <const> = "functional_call"
  local o = config.check(options, OPTIONS, who)
  if not walk.is_module(module) then
    errors.blame("%s: needs a module: got %s", who, errors.show(module))
  end
  local is_list = type(args) == "table" and getmetatable(args) == nil
  local list = is_list and args or { args }
  local _ = module.device -- is remembered: a forward may ask for it when the parameters are others
  local _ <close> = replace(plan_of(module, joined(tensors, who), o, who))
  local results = table.pack(module(table.unpack(list, 1, list.n or #list)))
  return table.unpack(results, 1, results.n)
end

--- The parameters and the buffers of modules that are made alike, each stacked along a new dim 1.
function functional_call.stack(modules)
  local who <const> = "stack_module_state"
  local columns, found = {}, { {}, {} }
  if type(modules) ~= "table" or #modules == 0 then
    errors.blame("%s: needs a list of modules: got %s", who, errors.show(modules))
  end
  for i, module in ipairs(modules) do
    if not walk.is_module(module) then
      errors.blame("%s: element %d must be a module: got %s", who, i, errors.show(module))
    end
    for k, item in ipairs((walk.tensors(module))) do
      columns[k] = columns[k] or { item = item }
      local first = columns[k].item
      if i > 1 and (not columns[k][1] or first.name ~= item.name
        or not has_shape(first.value, item.value)) then
        errors.blame("%s: modules 1 and %d are not made alike: '%s' is %s and '%s' %s", who, i,
          first.name, errors.show_shape(first.value), item.name, errors.show_shape(item.value))
      end
      columns[k][i] = item.value:detach()
    end
  end
  for _, column in ipairs(columns) do
    for i = 1, #modules do
      if not column[i] then
        errors.blame("%s: modules 1 and %d are not made alike: '%s' is in the first alone", who, i,
          column.item.name)
      end
    end
    local made = c.stack(column)
    if column.item.buffer then
      found[2][column.item.name] = made
    else
      found[1][column.item.name] = made:requires_grad_(column.item.value.requires_grad)
    end
  end
  return found[1], found[2]
end

return functional_call
