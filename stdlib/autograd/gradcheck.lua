--- stdlib/autograd/gradcheck.lua: lt.gradcheck, gradients against finite differences.
--
--   local lt = require "ltrain"
--   local x = lt.tensor({0.3, -0.7}, {dtype = "f64", requires_grad = true})
--   print(lt.gradcheck(lt.tanh, x))
--   -- prints: true
--
-- Every element of every result by every element of every input that requires grad: for small
-- tensors, in f64.
local config = require "ltrain.core.config"
local differences = require "ltrain.autograd.differences"

--- Whether the gradients of f(table.unpack(inputs)) agree with central differences, for each input
--- that requires grad (f64). Raises, naming the first element that does not; with
--- `raise_exception = false` it returns false and that text. Options: eps (1e-6), atol (1e-5), rtol
--- (1e-3).
return function(f, inputs, options)
  local o = config.check(options, differences.OPTIONS, "gradcheck")
  local list = differences.list_of(inputs, "gradcheck")
  return differences.check(f, list, o, "gradcheck")
end
