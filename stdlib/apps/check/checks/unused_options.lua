--- stdlib/apps/check/checks/unused_options.lua: options of a script that nothing reads.
--
-- Checked are the fields of lt.args{...}, self:save_hyperparameters{...}, and of the table that
-- an object of one of the script's classes is made with: a field counts as read where its name
-- stands behind a dot or in quotes. A table that is walked or handed to others is left alone.
local errors = require "ltrain.core.errors"
local resolve = require "ltrain.apps.check.source.resolve"
local visit = require "ltrain.apps.check.source.visit"

-- Whether an expression is a class of the script: X:extend "Name".
local function is_own_class(node)
  local value = node.kind == "name" and node.var and not node.var.assigned and node.var.value
  return value and value.kind == "call" and value.method == "extend"
end

-- Names that are read as fields, or stand in a text.
local function read_names(tree)
  local read, targets, keys = {}, {}, {}
  visit(tree, function(node)
    if node.kind == "assign" then
      for _, target in ipairs(node.targets) do targets[target] = true end
    elseif node.kind == "item" and node.key then
      keys[node.key] = true
    elseif node.kind == "index" and node.key.kind == "string" then
      if not targets[node] then read[node.key.value] = true end
      keys[node.key] = true
    elseif node.kind == "string" and not keys[node] then
      read[node.value] = true
    end
  end)
  return read
end

-- Whether a call hands its arguments to the script's own code, which is checked.
local function is_own_call(call)
  if call.method then return call.method == "save_hyperparameters" end
  return is_own_class(call.fn)
end

-- Variables that are used as a whole: walked, or given to code that is not checked.
local function whole_vars(tree)
  local whole, harmless = {}, {}
  visit(tree, function(node, above)
    if node.kind == "index" and node.object.kind == "name" then
      harmless[node.object] = true
    elseif node.kind == "call" and is_own_call(node) then
      for _, arg in ipairs(node.args) do harmless[arg] = true end
    elseif node.kind == "name" and node.var and not harmless[node] and above then
      whole[node.var] = true
    end
  end)
  return whole
end

-- The parameter of the class's init that takes the table; nil where it is not seen.
local function init_parameter(tree, class_var)
  local found
  visit(tree, function(node)
    local target = node.kind == "assign" and node.targets[1]
    if target and target.kind == "index" and target.key.value == "init"
      and target.object.kind == "name" and target.object.var == class_var then
      found = node.values[1].kind == "function" and node.values[1].params[2] or nil
    end
  end)
  return found
end

local function check_items(context, items, read, what)
  local names = {}
  for name in next, read do names[#names + 1] = name end
  for _, item in ipairs(items) do
    local name = item.key and item.key.kind == "string" and item.key.value
    if name and not read[name] then
      local near = errors.nearest(name, names)
      context.report:warn("hyper_parameter", item.line,
        ("%s: nothing reads '%s'"):format(what, name),
        near and ("did you mean '%s'? else remove it"):format(near) or "use it, or remove it")
    end
  end
end

local function with_table(call)
  local arg = call.args[1]
  return #call.args == 1 and arg.kind == "table" and #arg.items > 0 and arg or nil
end

return {
  source = function(context)
    if not context.fn and not context.manual then return end -- it trains nothing
    local tree = context.source.tree
    local read, whole, declared = read_names(tree), whole_vars(tree), {}
    visit(tree, function(node)
      if node.kind == "local" and node.values[1] then declared[node.values[1]] = node.vars[1] end
      local given = node.kind == "call" and with_table(node)
      if not given then return end
      local _, name = resolve(node.fn or node)
      if name == "lt.args" then
        local var = declared[node]
        if var and not whole[var] then check_items(context, given.items, read, "lt.args") end
      elseif node.method == "save_hyperparameters" then
        check_items(context, given.items, read, "save_hyperparameters")
      elseif not node.method and is_own_class(node.fn) then
        local parameter = init_parameter(tree, node.fn.var)
        if parameter and not whole[parameter] then
          check_items(context, given.items, read, node.fn.name)
        end
      end
    end)
  end,
}
