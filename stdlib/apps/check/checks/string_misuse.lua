--- stdlib/apps/check/checks/string_misuse.lua: misuse of strings that Lua accepts silently: a
--- method called with a dot, one not called, a string compared with a number.
local visit = require "ltrain.apps.check.source.visit"

local ARITHMETIC <const> = { ["+"] = true, ["-"] = true, ["*"] = true, ["/"] = true, ["//"] = true,
  ["%"] = true, ["^"] = true }

-- What looks for something in a text; other words are fields of tables too.
local SEARCHES <const> = { find = true, match = true, gmatch = true }

local function is_of(node, library)
  return node.kind == "index" and node.object.kind == "name" and node.object.name == library
end

-- Whether it is a number in any case.
local function is_number(node)
  if node.kind == "call" then return not node.method and is_of(node.fn, "math") end
  return node.kind == "number" or node.kind == "binary" and ARITHMETIC[node.operator] or false
end

-- ("%d").format(n): the text's own place is taken by n.
local function check_call(report, node)
  local fn = node.fn
  if node.method or not fn or fn.kind ~= "index" or fn.object.kind ~= "string" then return end
  report:error("text", node.line, ("%s of a string is called with a dot: the string itself is not "
    .. "passed")
    :format(fn.key.value or "a method"), ("write (\"...\"):%s(...)"):format(fn.key.value or "name"))
end

-- if text.find then: a function is true.
local function check_condition(report, node)
  local condition = node.condition
  local key = condition.kind == "index" and condition.key.kind == "string" and condition.key.value
  if not key or is_of(condition, "string") then return end
  if condition.object.kind ~= "name" or not SEARCHES[key] then return end
  report:warn("text", node.line, ("%s is not called: it is a method of strings, which is always "
    .. "true")
    :format(key), ("write %s:%s(...)"):format(condition.object.name, key))
end

local function check_comparison(report, node)
  if node.operator ~= "==" and node.operator ~= "~=" then return end
  local left, right = node.left, node.right
  if left.kind == "string" and is_number(right) or right.kind == "string" and is_number(left) then
    report:error("text", node.line, ("a number never equals a string: %s is always %s"):format(
      node.operator, tostring(node.operator == "~=")), "write the number without quotes")
  end
end

return {
  source = function(context)
    local report <const> = context.report
    visit(context.source.tree, function(node)
      if node.kind == "call" then check_call(report, node) end
      if node.kind == "clause" and node.condition then check_condition(report, node) end
      if node.kind == "binary" then check_comparison(report, node) end
    end)
  end,
}
