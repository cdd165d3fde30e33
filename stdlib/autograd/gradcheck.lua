--- stdlib/autograd/gradcheck.lua: lt.gradcheck, gradients against finite differences.
--
--   local lt = require "ltrain"
--   local x = lt.tensor({0.3, -0.7}, {dtype = "f64", requires_grad = true})
--   print(lt.gradcheck(lt.tanh, x))
--   -- prints: true
--
-- Checks every element of every result with respect to every element of every input that requires
-- grad: for small tensors, in f64.
local config = require "ltrain.core.config"
local finite_differences = require "ltrain.autograd.finite_differences"

--- Whether the gradients of f(table.unpack(inputs)) agree with central differences, for each input
--- that requires grad (f64). Otherwise raises an error that names the first element; with
--- `raise_exception = false` it returns false and the message. Options: eps (1e-6), atol (1e-5),
--- rtol (1e-3).
return function(f, inputs, options)
  local o = config.check(options, finite_differences.OPTIONS, "gradcheck")
  local list = finite_differences.list_of(inputs, "gradcheck")
  return finite_differences.check(f, list, o, "gradcheck")
end
