--- stdlib/apps/check/checks/rank_collectives.lua: collectives that not all ranks reach.
--
-- All ranks must make the same collective calls in the same order; one that stands in a branch
-- which the rank decides is waited for by the others.
local dist = require "ltrain.dist"
local resolve = require "ltrain.apps.check.source.resolve"
local visit = require "ltrain.apps.check.source.visit"

local COLLECTIVES <const> = { "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast",
  "gather", "reduce", "reduce_scatter", "scatter", "gather_tree", "reduce_boolean", "split" }
local RANKS <const> = { rank = true, global_rank = true, local_rank = true, node_rank = true,
  is_global_zero = true, is_rank_zero = true }
local OF_OBJECTS <const> = { strategy = true, self = true, trainer = true }

local by_name <const>, functions <const> = {}, {}
for _, name in ipairs(COLLECTIVES) do
  by_name[name] = true
  local ok, fn = pcall(function() return dist[name] end)
  if ok and fn then functions[fn] = name end
end

-- Whether a call has {key = ...} with a value other than nil and false among its arguments.
local function has_option(call, key)
  for _, arg in ipairs(call.args) do
    for _, item in ipairs(arg.kind == "table" and arg.items or {}) do
      if item.key and item.key.value == key and item.value.value ~= "false" then return true end
    end
  end
  return false
end

local function last_name(node)
  return node.kind == "name" and node.name or node.kind == "index" and node.key.value or nil
end

-- The name of the collective that a call is; nil for another call.
local function collective_of(call)
  if call.method == "log" or call.method == "log_dict" then
    return has_option(call, "sync_dist") and "self:" .. call.method .. " with sync_dist" or nil
  elseif call.method then
    local of = last_name(call.object)
    return by_name[call.method] and OF_OBJECTS[of] and ("%s:%s"):format(of, call.method) or nil
  end
  local value = resolve(call.fn)
  local name = value ~= nil and functions[value]
  return name and not has_option(call, "group") and "lt.dist." .. name or nil
end

-- The name under which a function is called: a local variable, or the text of a method.
local function called(call)
  if call.method then return call.method end
  return call.fn.kind == "name" and call.fn.var or call.fn.kind == "index" and call.fn.key.value
end

-- Functions of the script that contain collectives: by variable or method's name.
local function own_functions(tree)
  local bodies, known = {}, {}
  visit(tree, function(node)
    for i, value in ipairs((node.kind == "local" or node.kind == "assign") and node.values or {}) do
      local target = node.vars and node.vars[i] or node.targets and node.targets[i]
      if value.kind == "function" and target then
        local key = node.vars and target or target.var
          or target.kind == "index" and target.key.value
        if key then bodies[key] = value end
      end
    end
  end)
  local function within(body)
    local name
    visit(body, function(node)
      if node.kind == "call" then name = name or collective_of(node) or known[called(node)] end
      return name == nil
    end)
    return name
  end
  local changed = true
  while changed do
    changed = false
    for key, fn in next, bodies do
      if not known[key] then
        known[key] = within(fn.body)
        changed = changed or known[key] ~= nil
      end
    end
  end
  return known
end

-- Whether an expression asks who this rank is.
local function asks_rank(node)
  local found = false
  visit(node, function(part)
    local name = last_name(part)
    if name and RANKS[name] or part.kind == "call" and RANKS[part.method] then found = true end
    local var = part.kind == "name" and part.var
    if var and var.value and var.value.kind == "call" and not var.assigned then
      local of = last_name(var.value.fn or {})
      found = found or var.value.method == "rank" or RANKS[of] or false
    end
    return not found and part.kind ~= "function"
  end)
  return found
end

-- The collectives in a part of the tree, in order: {name =, line =}.
local function collectives_in(part, known)
  local list = {}
  visit(part, function(node)
    if node.kind == "function" then return false end -- runs when it is called
    if node.kind ~= "call" then return end
    local name = collective_of(node)
    if not name then
      local key = called(node)
      name = key and known[key]
      name = name and ("%s, which calls %s"):format(type(key) == "string" and key or key.name, name)
    end
    if name then list[#list + 1] = { name = name, line = node.at } end
  end)
  return list
end

-- Whether all branches of an `if` make the same calls.
local function same_in_all(node, known)
  if not node.otherwise then return false end
  local texts = {}
  local function note(body)
    local names = {}
    for i, one in ipairs(collectives_in(body, known)) do names[i] = one.name end
    texts[#texts + 1] = table.concat(names, ";")
  end
  for _, clause in ipairs(node.clauses) do note(clause.body) end
  note(node.otherwise)
  for _, text in ipairs(texts) do
    if text ~= texts[1] then return false end
  end
  return true
end

local REMEDY <const> = "call it on every rank, outside of the branch; branch on the rank only to "
  .. "use its result"

local function report(context, one, line)
  context.report:error("collective", one.line,
    ("%s is called only where the condition of line %d on the rank holds: the other ranks wait for "
      .. "it forever"):format(one.name, line), REMEDY)
end

local function check_if(context, node, known)
  local asks = false
  for _, clause in ipairs(node.clauses) do asks = asks or asks_rank(clause.condition) end
  if not asks or same_in_all(node, known) then return end
  for _, clause in ipairs(node.clauses) do
    for _, one in ipairs(collectives_in(clause.body, known)) do report(context, one, node.line) end
  end
  for _, one in ipairs(node.otherwise and collectives_in(node.otherwise, known) or {}) do
    report(context, one, node.line)
  end
end

-- What leaves the function: `if rank ~= 0 then return end`.
local function leaves(statement)
  if statement.kind ~= "if" or statement.otherwise or #statement.clauses ~= 1 then return false end
  local body = statement.clauses[1].body.statements
  local last = body[#body]
  return last and (last.kind == "return" or last.kind == "jump")
    and asks_rank(statement.clauses[1].condition)
end

local function check_block(context, node, known)
  local line
  for _, statement in ipairs(node.statements) do
    for _, one in ipairs(line and collectives_in(statement, known) or {}) do
      context.report:error("collective", one.line,
        ("%s: ranks for which the condition of line %d holds have left before it: the others wait "
          .. "for them forever"):format(one.name, line), REMEDY)
    end
    line = line or leaves(statement) and statement.line
  end
end

return {
  source = function(context)
    local known = own_functions(context.source.tree)
    visit(context.source.tree, function(node)
      if node.kind == "if" then
        check_if(context, node, known)
      elseif node.kind == "block" then
        check_block(context, node, known)
      elseif node.kind == "while" and asks_rank(node.condition) then
        for _, one in ipairs(collectives_in(node.body, known)) do
          report(context, one, node.line)
        end
      elseif node.kind == "binary" and (node.operator == "and" or node.operator == "or")
        and asks_rank(node.left) then
        for _, one in ipairs(collectives_in(node.right, known)) do
          report(context, one, node.line)
        end
      end
    end)
  end,
}
