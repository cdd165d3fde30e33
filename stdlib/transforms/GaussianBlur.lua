-- stdlib/transforms/GaussianBlur.lua: blurs an image with a Gaussian kernel of random width.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local values = require "ltrain.transforms.values"

local GaussianBlur = Transform:extend("GaussianBlur")

GaussianBlur.__arguments = "kernel_size | sigma"

local WHERE <const> = "transforms.GaussianBlur"
local OPTIONS <const> = {
  sigma = { type = "number|table", default = { 0.1, 2 },
    doc = "standard deviation of the kernel, or {min, max}" },
}

--- transforms.GaussianBlur(5): the kernel size, odd; or {height, width}
---@param kernel_size integer|table
function GaussianBlur:init(kernel_size, options)
  self.kernel_size = values.size(kernel_size, WHERE, "kernel_size")
  for _, side in ipairs(self.kernel_size) do
    if side % 2 == 0 or side > 255 then
      errors.blame("%s: kernel_size must be odd, at most 255: got %d", WHERE, side)
    end
  end
  local sigma = config.check(options, OPTIONS, WHERE).sigma
  if type(sigma) == "number" then sigma = { sigma, sigma } end
  self.sigma = values.range(sigma, WHERE, "sigma", { above = 0 })
end

function GaussianBlur:_steps()
  return { { "gaussian_blur", self.kernel_size[1], self.kernel_size[2], self.sigma[1],
    self.sigma[2] } }
end

return GaussianBlur
