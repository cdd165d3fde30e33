-- stdlib/nn/parameter_vector.lua: parameters as one vector, and back.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local parameter_vector = {}

local function check(parameters, who)
  if type(parameters) ~= "table" or getmetatable(parameters) ~= nil or #parameters == 0 then
    errors.blame("%s: needs a list of tensors, like net:parameters(): got %s", who,
      errors.show(parameters))
  end
  for i, parameter in ipairs(parameters) do
    if not c.is_tensor(parameter) then
      errors.blame("%s: element %d of the list must be a tensor: got %s", who, i,
        errors.show(parameter))
    end
  end
end

function parameter_vector.parameters_to_vector(parameters)
  check(parameters, "parameters_to_vector")
  local list = {}
  for i, parameter in ipairs(parameters) do list[i] = parameter:reshape(-1) end
  return c.cat(list)
end

function parameter_vector.vector_to_parameters(vector, parameters)
  local who <const> = "vector_to_parameters"
  check(parameters, who)
  local count = 0
  for _, parameter in ipairs(parameters) do count = count + parameter:numel() end
  if not c.is_tensor(vector) or vector.ndim ~= 1 or vector.shape[1] ~= count then
    errors.blame("%s: needs a vector of the %d elements of the parameters: got %s", who, count,
      errors.show(vector))
  end
  local _ <close> = c.no_grad()
  local _ <close> = c.allow_update()
  local at = 1
  for _, parameter in ipairs(parameters) do
    local n = parameter:numel()
    if n > 0 then parameter:copy_(vector:narrow(1, at, n):reshape(parameter.shape)) end
    at = at + n
  end
end

return parameter_vector
