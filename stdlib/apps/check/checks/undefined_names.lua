--- stdlib/apps/check/checks/undefined_names.lua: names that nothing has defined.
local unknown_names = require "ltrain.apps.check.source.unknown_names"
local visit = require "ltrain.apps.check.source.visit"

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
    local source <const>, report <const> = context.source, context.report
    unknown_names(source.tree, source.vars, context.globals, function(name, line, remedy)
      report:retract(line, ("(global '%s')"):format(name))
      report:error("global", line, ("nothing is called '%s'"):format(name), remedy)
    end)
  end,
}
