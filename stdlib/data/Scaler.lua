-- stdlib/data/Scaler.lua: scales features by statistics of the training data. N rows, F features.
--
--   local lt = require "ltrain"
--   local scaler = lt.data.Scaler(2):fit(lt.tensor{{1, 10}, {3, 30}})
--   print(scaler(lt.tensor{{2, 40}}))              -- prints: tensor([[0., 2.]])
--   print(scaler:inverse(lt.tensor{{0.0, 2.0}}))   -- prints: tensor([[ 2., 40.]])
--
-- "standard" scales each feature to mean 0 and standard deviation 1 (that of the population, not of
-- a sample), "min_max" to 0..1. NaN is ignored and stays NaN, or becomes `fill`. Constant features
-- are only shifted. It is a module, so that it can be a field of a model, moves with it to a
-- device, and is saved with it.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local Scaler = Module:extend("Scaler")

local OPTIONS <const> = {
  mode = { type = "string", default = "standard", choices = { "standard", "min_max" },
    doc = "how features are scaled" },
  fill = { type = "number", doc = "value that replaces NaN, after scaling" },
}

--- data.Scaler(3, {fill = 0})
---@param features integer
function Scaler:init(features, options)
  local o <const> = config.check(options, OPTIONS, "Scaler")
  self.features = config.argument(features, "integer", "Scaler", "features", { min = 1 })
  self.mode, self.fill = o.mode, o.fill
  self:register_buffer("shift", c.zeros(features))
  self:register_buffer("scale", c.ones(features))
  self:register_buffer("rows", c.zeros({}, { dtype = "i64" })) -- 0: not fitted
end

local function check(self, x, where)
  if not c.is_tensor(x) or x.ndim < 1 or x.shape[x.ndim] ~= self.features then
    errors.blame("%s: needs a tensor [..., %d], got %s", where, self.features, errors.show(x))
  end
end

-- Shift and spread of each feature of x [N, F], where `known` is.
local function standard(x, known, counts)
  local mean = x:sum(1) / counts
  local off = c.where(known, x - mean, c.zeros_like(x))
  return mean, (off * off):sum(1):div(counts):sqrt()
end

local function min_max(x, known)
  local least = c.where(known, x, c.full_like(x, math.huge)):amin(1)
  local most = c.where(known, x, c.full_like(x, -math.huge)):amax(1)
  return least, most - least
end

--- Computes the shift and scale of each feature of the training data. Returns the scaler.
---@param x Tensor [N, F]
function Scaler:fit(x)
  check(self, x, "Scaler:fit")
  local _ <close> = c.no_grad()
  x = x:reshape(-1, self.features):double()
  local known = x:eq(x)
  local counts = known:double():sum(1)
  for k, n in ipairs(counts:tolist()) do
    if n == 0 then errors.blame("Scaler:fit: feature %d has no value", k) end
  end
  x = c.where(known, x, c.zeros_like(x))
  local shift, scale = (self.mode == "standard" and standard or min_max)(x, known, counts)
  local _ <close> = c.allow_update()
  self.shift:copy_(shift)
  self.scale:copy_(c.where(scale:gt(0), scale, c.ones_like(scale)))
  self.rows:fill_(x.shape[1])
  return self
end

local function check_fitted(self, where)
  if self.rows:item() == 0 then
    errors.blame("%s: the scaler has not been fitted: scaler:fit(x) with the training data", where)
  end
end

---@param x Tensor [..., F] -> the same
function Scaler:forward(x)
  check(self, x, "Scaler")
  check_fitted(self, "Scaler")
  local y = (x - self.shift) / self.scale
  if self.fill then y = c.where(y:eq(y), y, c.full_like(y, self.fill)) end
  return y
end

--- Undoes the scaling.
---@param y Tensor [..., F] -> the same
function Scaler:inverse(y)
  check(self, y, "Scaler:inverse")
  check_fitted(self, "Scaler:inverse")
  return y * self.scale + self.shift
end

function Scaler:extra_repr() return ("%d, mode = '%s'"):format(self.features, self.mode) end

return Scaler
