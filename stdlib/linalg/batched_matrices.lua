-- stdlib/linalg/batched_matrices.lua: checks and broadcasting of batches of matrices [B..., M, N],
-- for the functions of lt.linalg.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local operation <const> = c.runtime.operation

local batched_matrices = {}

--- x, which must be a floating tensor of at least `least` dims (2).
function batched_matrices.check(x, where, least)
  least = least or 2
  if not c.is_tensor(x) then errors.blame("%s: needs a tensor, got %s", where, errors.show(x)) end
  if not is_float(x.dtype) then
    errors.blame("%s: needs a floating tensor, got %s; write x:to('f32')", where, x.dtype)
  end
  if x.ndim < least then
    errors.blame("%s: needs %s, got %s", where, least > 1 and "matrices [.., M, N]" or "vectors",
      errors.show_shape(x))
  end
  return x
end

--- The same with square matrices.
function batched_matrices.square(x, where)
  batched_matrices.check(x, where)
  if x.shape[x.ndim - 1] ~= x.shape[x.ndim] then
    errors.blame("%s: needs square matrices, got %s", where, errors.show_shape(x))
  end
  return x
end

--- Ones on the diagonal, as many as matrices of x have rows.
function batched_matrices.eye(x, n)
  return c.eye(n or x.shape[x.ndim], { dtype = x.dtype, device = x.device })
end

--- The inverses of square matrices; errors begin with `where`.
function batched_matrices.inverse(x, where)
  batched_matrices.square(x, where)
  local y = operation("linalg_solve", where)(x, batched_matrices.eye(x):expand(x.shape))
  return y
end

--- U, S and Vh without what is not needed for a product; errors begin with `where`.
function batched_matrices.svd(x, where)
  return operation("linalg_svd", where)(x, { full_matrices = false })
end

--- a and b with the batch that theirs broadcast to.
function batched_matrices.broadcast(a, b, where)
  local shape, n = {}, math.max(a.ndim, b.ndim) - 2
  for k = 1, n do
    local p, q = a.shape[a.ndim - 2 - n + k] or 1, b.shape[b.ndim - 2 - n + k] or 1
    if p ~= q and p ~= 1 and q ~= 1 then
      errors.blame("%s: the batches of %s and %s do not broadcast", where, errors.show_shape(a),
        errors.show_shape(b))
    end
    shape[k] = p == 1 and q or p
  end
  local function expanded(x)
    if x.ndim == 2 and n == 0 then return x end
    local sizes = table.move(shape, 1, n, 1, {})
    sizes[n + 1], sizes[n + 2] = x.shape[x.ndim - 1], x.shape[x.ndim]
    return x:expand(sizes)
  end
  return expanded(a), expanded(b)
end

return batched_matrices
