-- stdlib/core/gradients_of.lua: the gradients of the parameters in a list of parameter groups.

return function(groups)
  local list, n = {}, 0
  for _, group in ipairs(groups) do
    for _, parameter in ipairs(group.params) do
      local grad = parameter.grad
      if grad then
        n = n + 1
        list[n] = grad
      end
    end
  end
  return list
end
