-- stdlib/autograd/derivatives.lua: what lt.autograd.functional and lt.func share: calls of a
-- function on tracked inputs, and rows of derivatives.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local derivatives = {}

--- What stands for x while a function is differentiated by it. With `keep`, what is computed from
--- it has the history of x as well.
function derivatives.input(x, keep, who)
  if not c.is_tensor(x) or not is_float(x.dtype) then
    errors.blame("%s: derivatives are by tensors of floats: got %s", who, errors.show(x))
  end
  if keep and x.requires_grad then return x:view_as(x) end
  return x:detach():requires_grad_()
end

--- The gradients of the results `ys` by the tensors `xs`, a list with nil where there is none.
--- `seeds`: those of the results (nil: ones).
function derivatives.gradients(ys, xs, seeds, create_graph)
  local of, given = {}, {}
  for k, y in ipairs(ys) do
    if y.requires_grad then
      of[#of + 1], given[#given + 1] = y, seeds and seeds[k] or c.ones_like(y)
    end
  end
  if #of == 0 then return {} end
  return c.grad(of, xs, { grad_outputs = given, create_graph = create_graph, retain_graph = true,
    allow_unused = true })
end

local function joined(a, b)
  return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {}))
end

--- The derivatives of every element of y by every element of each of `xs`: a list of tensors
--- [y.shape..., x.shape...]. zero(k, row) is what stands for one that does not depend on xs[k];
--- check(k, row) is called with each other.
function derivatives.jacobian(y, xs, create_graph, zero, check)
  local rows, n = {}, y:numel()
  for k in ipairs(xs) do rows[k] = {} end
  for j = 1, n do
    local seed = c.zeros({ n }, { dtype = y.dtype, device = y.device })
    seed[j] = 1
    local got = derivatives.gradients({ y }, xs, { seed:view(y.shape) }, create_graph)
    for k, x in ipairs(xs) do
      if got[k] and check then check(k, got[k]) end
      rows[k][j] = got[k] or zero(k) or c.zeros_like(x)
    end
  end
  local made = {}
  for k, x in ipairs(xs) do
    local shape = joined(y.shape, x.shape)
    made[k] = n > 0 and c.stack(rows[k]):reshape(shape)
      or c.zeros(shape, { dtype = x.dtype, device = x.device })
  end
  return made
end

--- The derivatives of the results along `directions` of the inputs: a list, nil where a result does
--- not depend on them. By two backwards: the gradient by the inputs is linear in the seeds of the
--- results, and its derivative by the seeds is what is wanted. `check`, if any, gets the gradients.
function derivatives.along(ys, xs, directions, create_graph, check)
  local seeds, live, places = {}, {}, {}
  for k, y in ipairs(ys) do
    if y.requires_grad then
      live[#live + 1], places[#places + 1] = y, k
      seeds[#seeds + 1] = c.zeros_like(y):detach():requires_grad_()
    end
  end
  if #live == 0 then return {} end
  local slopes = derivatives.gradients(live, xs, seeds, true)
  if check then check(slopes) end
  local of, given = {}, {}
  for k in ipairs(xs) do
    if slopes[k] then of[#of + 1], given[#given + 1] = slopes[k], directions[k] end
  end
  local got, out = derivatives.gradients(of, seeds, given, create_graph), {}
  for k, place in ipairs(places) do out[place] = got[k] end
  return out
end

return derivatives
