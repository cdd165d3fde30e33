--- stdlib/apps/check/source/unknown_names.lua: names that nothing has defined: they are nil.
local errors = require "ltrain.core.errors"
local visit = require "ltrain.apps.check.source.visit"

-- Names that the script itself makes global, and the globals that it only asks for.
local function made_globals(tree)
  local made, asked = {}, {}
  visit(tree, function(node)
    if node.kind == "assign" then
      for _, target in ipairs(node.targets) do
        if target.kind == "name" and not target.var then made[target.name] = true end
      end
    elseif node.kind == "binary" and (node.operator == "and" or node.operator == "or") then
      asked[node.left] = true
    elseif node.kind == "clause" then
      asked[node.condition] = true
    elseif node.kind == "unary" and node.operator == "not" then
      asked[node.operand] = true
    end
  end)
  return made, asked
end

-- Whether a name that is only asked for ("if DEBUG then") is a local of the script, misspelt.
local function is_misspelt(vars, name)
  local names = {}
  for i, var in ipairs(vars) do names[i] = var.name end
  local near = errors.nearest(name, names)
  return near ~= nil and near ~= name and #name > 3
end

local function remedy_for(vars, globals, name, line)
  local foreign_names = require "ltrain.core.foreign_names" -- by the first such name alone
  if name == "self" then
    return "define the function with a colon, function Net:name(...), or give it a parameter self"
  elseif foreign_names.globals[name] then
    return "write " .. foreign_names.globals[name]
  end
  local names = {}
  for _, var in ipairs(vars) do
    if var.name == name then
      local when = var.line > line and "only declared in line %d, below" or "the local of line %d, "
        .. "which is not visible here"
      return ("%s is " .. when .. ": declare it before, in a block around both"):format(name,
        var.line)
    end
    names[#names + 1] = var.name
  end
  for key in next, globals do
    if type(key) == "string" then names[#names + 1] = key end
  end
  local near = errors.nearest(name, names)
  return near and ("write %s"):format(near) or ("declare it: local %s = ..."):format(name)
end

--- Calls act(name, line, remedy) for each place of a parsed script where such a name is used;
--- `globals`: what is there when the script has run.
return function(tree, vars, globals, act)
  local made, asked = made_globals(tree)
  visit(tree, function(node, above)
    if node.kind ~= "name" or node.var or node.name == "_ENV" or made[node.name]
      or globals[node.name] ~= nil or asked[node] and not is_misspelt(vars, node.name) then
      return
    end
    if above and above.kind == "item" and above.key == node then return end
    act(node.name, node.line, remedy_for(vars, globals, node.name, node.line))
  end)
end
