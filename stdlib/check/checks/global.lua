--- stdlib/check/checks/global.lua: names that nothing has defined.
local elsewhere = require "ltrain.core.elsewhere"
local errors = require "ltrain.core.errors"
local visit = require "ltrain.check.source.visit"

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

local function remedy_for(context, name, line)
  if name == "self" then
    return "define the function with a colon, function Net:name(...), or give it a parameter self"
  elseif elsewhere.globals[name] then
    return "write " .. elsewhere.globals[name]
  end
  local names = {}
  for _, var in ipairs(context.source.vars) do
    if var.name == name then
      local when = var.line > line and "only declared in line %d, below" or "the local of line %d, "
        .. "which is not visible here"
      return ("%s is " .. when .. ": declare it before, in a block around both"):format(name,
        var.line)
    end
    names[#names + 1] = var.name
  end
  for key in next, context.globals do
    if type(key) == "string" then names[#names + 1] = key end
  end
  local near = errors.nearest(name, names)
  return near and ("write %s"):format(near) or ("declare it: local %s = ..."):format(name)
end

-- The functions that a name is used in, from the outermost; and what is written first of all.
local function each_global(tree, act)
  local function inside(node, functions)
    visit(node, function(inner)
      if inner ~= node and inner.kind == "function" then
        local list = table.move(functions, 1, #functions, 1, {})
        list[#list + 1] = inner
        inside(inner, list)
        return false
      elseif inner.kind == "assign" then
        for _, target in ipairs(inner.targets) do
          if target.kind == "name" and not target.var then
            act(target, "write", functions[#functions], inner)
          end
        end
      elseif inner.kind == "name" and not inner.var then
        act(inner, "read", functions[#functions])
      end
    end)
  end
  inside(tree, {})
end

-- A name without `local` in a function, that no other part of the script uses.
local function check_local(context)
  local first, shared, order = {}, {}, {}
  each_global(context.source.tree, function(node, what, fn)
    local name = node.name
    if not first[name] then
      first[name] = { line = node.line, fn = fn or false, what = what }
      order[#order + 1] = name
    elseif first[name].fn ~= (fn or false) then
      shared[name] = true
    end
  end)
  for _, name in ipairs(order) do
    local one = first[name]
    if one.fn and one.what == "write" and not shared[name] and name ~= "_" then
      context.report:warn("global", one.line, ("%s is a global, and only this function uses it: it "
        .. "stays after the call, with its graph if it is a tensor"):format(name),
        ("write local %s = ..."):format(name))
    end
  end
end

return {
  source = function(context)
    check_local(context)
    local made, asked = made_globals(context.source.tree)
    visit(context.source.tree, function(node, above)
      if node.kind ~= "name" or node.var or node.name == "_ENV" or made[node.name]
        or asked[node] or context.globals[node.name] ~= nil then
        return
      end
      if above and above.kind == "item" and above.key == node then return end
      context.report:retract(node.line, ("(global '%s')"):format(node.name))
      context.report:error("global", node.line, ("nothing is called '%s'"):format(node.name),
        remedy_for(context, node.name, node.line))
    end)
  end,
}
