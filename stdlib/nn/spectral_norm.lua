-- stdlib/nn/spectral_norm.lua: a parameter divided by its largest singular value.
--
-- The singular vectors are found by power iteration, which continues at each read in training mode.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local parametrize = require "ltrain.nn.parametrize"
local walk = require "ltrain.core.walk"

local FIRST_ITERATIONS <const> = 15

-- The two singular vectors, as buffers with PyTorch's names.
local Vectors = Module:extend("Vectors")

local function drawn(n, like, eps)
  local x = c.randn({ n }, { dtype = "f32" }):to(like.dtype):to(like.device)
  return c.normalize(x, { dim = 1, eps = eps })
end

function Vectors:init(matrix, eps)
  self:register_buffer("_u", drawn(matrix.shape[1], matrix, eps))
  self:register_buffer("_v", drawn(matrix.shape[2], matrix, eps))
end

--- Goes on n steps with power iteration.
function Vectors:iterate(matrix, n, eps)
  local _ <close> = c.no_grad()
  local _ <close> = c.allow_update()
  for _ = 1, n do
    self._u:copy_(c.normalize(matrix:matmul(self._v), { dim = 1, eps = eps }))
    self._v:copy_(c.normalize(matrix:t():matmul(self._u), { dim = 1, eps = eps }))
  end
end

local SpectralNorm = Module:extend("SpectralNorm")

-- The weight as rows of dim `dim`.
local function matrix_of(weight, dim)
  if dim ~= 1 then weight = weight:movedim(dim, 1) end
  return weight:flatten(2)
end

function SpectralNorm:init(weight, dim, steps, eps)
  self._dim, self._steps, self._eps = dim, steps, eps
  self.original = weight
  if weight.ndim == 1 then return end
  local matrix = matrix_of(weight:detach(), dim)
  self[1] = Vectors(matrix, eps)
  self[1]:iterate(matrix, FIRST_ITERATIONS, eps)
end

function SpectralNorm:forward()
  local vectors, weight = self[1], self.original
  if not vectors then
    local unit = c.normalize(weight, { dim = 1, eps = self._eps })
    return unit
  end
  local matrix = matrix_of(weight, self._dim)
  if self.training and not c.runtime.is_recomputing() then
    vectors:iterate(matrix:detach(), self._steps, self._eps)
  end
  local u, v = vectors._u:clone(), vectors._v:clone() -- the next read changes them
  local normalized = weight / u:dot(matrix:matmul(v))
  return normalized
end

--- Takes a value as what is divided.
function SpectralNorm:assign(value)
  local _ <close> = c.allow_update()
  self.original:copy_(value)
end

local OPTIONS <const> = config.signature {
  { "name", type = "string", default = "weight", doc = "the parameter" },
  { "n_power_iterations", type = "integer", default = 1, min = 1,
    doc = "steps of power iteration at each read in training mode" },
  { "eps", type = "number", default = 1e-12, min = 0, doc = "least length of a vector" },
  { "dim", type = "integer", min = 1,
    doc = "dim of the outputs: 1, of transposed convolutions 2" },
}

local who <const> = "spectral_norm"

--- Makes a parameter of a module what it is, divided by its largest singular value; returns the
--- module.
return function(module, ...)
  local o = config.arguments(who, OPTIONS, ...)
  local weight = parametrize.parameter(module, o.name, who)
  local dim = o.dim or (walk.class_name(module):find "^ConvTranspose" and 2 or 1)
  if dim > weight.ndim then
    errors.blame("%s: dim must be a dim of %s: got %d", who, errors.show(weight), dim)
  end
  local made = SpectralNorm(weight, dim, o.n_power_iterations, o.eps)
  return parametrize.register(module, o.name, made)
end
