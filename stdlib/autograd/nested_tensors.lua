-- stdlib/autograd/nested_tensors.lua: nested tables of tensors, in the order of core/tree.lua.

local tree = require "ltrain.core.tree"

local nested_tensors = {}

local function is_branch(value) return type(value) == "table" and getmetatable(value) == nil end

--- The same tables with fn(leaf, other) in place of each leaf; `other` is what `beside`, which may
--- have the same tables, has there. The field `names` of lists like net:parameters() is left out.
function nested_tensors.map(value, fn, beside)
  if not is_branch(value) then return fn(value, beside) end
  local made = {}
  for key, field in tree.pairs(value) do
    if key ~= "names" or not is_branch(field) then
      local other = beside
      if type(beside) == "table" then other = beside[key] end
      made[key] = nested_tensors.map(field, fn, other)
    end
  end
  return made
end

--- The leaves as a list.
function nested_tensors.leaves(value)
  local list = {}
  nested_tensors.map(value, function(leaf) list[#list + 1] = leaf end)
  return list
end

--- The first n of several results as one value: the only one, or a list.
function nested_tensors.result(results, n)
  if n == 1 then return results[1] end
  return table.move(results, 1, n, 1, {})
end

return nested_tensors
