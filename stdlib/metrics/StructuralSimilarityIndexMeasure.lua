--- stdlib/metrics/StructuralSimilarityIndexMeasure.lua: the structural similarity (SSIM,
-- Wang et al. 2004) of images.
--
-- N images, C channels, H height, W width.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local data_range = require "ltrain.metrics.data_range"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local StructuralSimilarityIndexMeasure = Metric:extend("StructuralSimilarityIndexMeasure")

StructuralSimilarityIndexMeasure.__arguments = "| gaussian_kernel sigma kernel_size reduction"
  .. " data_range k1 k2"

StructuralSimilarityIndexMeasure.higher_is_better = true

local function even(value) return value % 2 == 0 and "must be odd" or nil end

StructuralSimilarityIndexMeasure.options = {
  data_range = data_range.option,
  gaussian_kernel = { type = "boolean", default = true,
    doc = "a Gaussian window; false: a uniform one" },
  sigma = { type = "number", default = 1.5, above = 0,
    doc = "standard deviation of the Gaussian, in pixels" },
  kernel_size = { type = "integer", default = 11, min = 1, check = even,
    doc = "size of a uniform window; that of a Gaussian follows from sigma" },
  k1 = { type = "number", default = 0.01, doc = "constant of luminance" },
  k2 = { type = "number", default = 0.03, doc = "constant of contrast" },
  reduction = { type = "string", default = "elementwise_mean",
    choices = { "elementwise_mean", "sum" },
    doc = "reduction over images" },
}

--- StructuralSimilarityIndexMeasure{data_range = 1.0}
function StructuralSimilarityIndexMeasure:init(options)
  local o = config.check(options, self.options, "metrics.StructuralSimilarityIndexMeasure")
  for name, value in next, o do self[name] = value end
  self:add_state("total", c.zeros({}, { dtype = "f64" }))
  self:add_state("count", 0)
end

-- The separable window's factor: [K], with sum 1.
local function window_of(self, device)
  local o = { dtype = "f64", device = device }
  if not self.gaussian_kernel then return c.full({ self.kernel_size }, 1 / self.kernel_size, o) end
  local radius = math.floor(3.5 * self.sigma + 0.5)
  local x = (c.arange(2 * radius + 1, o) - radius) / self.sigma
  local weights = (x:square() * -0.5):exp()
  return weights / weights:sum()
end

-- Means over the window around each pixel of planes [N, 1, H, W].
local function smooth(x, window)
  local size = window.shape[1]
  local edge = size // 2
  x = c.pad(x, { edge, edge, edge, edge }, { mode = "reflect" })
  x = c.conv2d(x, window:reshape { 1, 1, size, 1 })
  return c.conv2d(x, window:reshape { 1, 1, 1, size })
end

-- SSIM of each image, [N].
local function similarity(self, x, y)
  local shape, range = x.shape, data_range.width(self)
  local c1, c2 = (self.k1 * range) ^ 2, (self.k2 * range) ^ 2
  local window = window_of(self, x.device)
  local planes = { -1, 1, shape[3], shape[4] }
  x, y = x:reshape(planes), y:reshape(planes)
  local mean_x, mean_y = smooth(x, window), smooth(y, window)
  local var_x = (smooth(x * x, window) - mean_x * mean_x):clamp { min = 0 }
  local var_y = (smooth(y * y, window) - mean_y * mean_y):clamp { min = 0 }
  local both = mean_x * mean_y
  local covariance = smooth(x * y, window) - both
  local index = (both * 2 + c1) * (covariance * 2 + c2)
    / ((mean_x * mean_x + mean_y * mean_y + c1) * (var_x + var_y + c2))
  return index:reshape { shape[1], -1 }:mean(2)
end

--- Updates the metric with predicted and true images, both [N, C, H, W].
function StructuralSimilarityIndexMeasure:update(predictions, targets)
  if not c.is_tensor(predictions) or not c.is_tensor(targets)
    or not inputs.same_shape(predictions, targets) or predictions.ndim ~= 4 then
    errors.blame("metrics.StructuralSimilarityIndexMeasure: update needs two tensors "
      .. "[N, C, H, W]: got %s and %s", errors.show(predictions), errors.show(targets))
  end
  local x = data_range.clamp(self, predictions:detach():to "f64")
  local y = data_range.clamp(self, targets:detach():to "f64")
  self.total = self.total + similarity(self, x, y):sum()
  self.count = self.count + predictions.shape[1]
end

--- Returns the mean (or sum) over images; nan without images, which is reported once.
function StructuralSimilarityIndexMeasure:compute()
  if self.count == 0 then return inputs.nothing(self) end
  local total = self.total:item()
  return self.reduction == "sum" and total or total / self.count
end

return StructuralSimilarityIndexMeasure
