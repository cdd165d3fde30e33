-- stdlib/core/parameters_of.lua: the list of an optimizer's parameters, in the order of its groups.

return function(optimizer)
  local list = {}
  for _, group in ipairs(optimizer.param_groups) do
    table.move(group.params, 1, #group.params, #list + 1, list)
  end
  return list
end
