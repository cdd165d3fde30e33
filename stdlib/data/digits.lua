-- stdlib/data/digits.lua: a generated data set of digits, without downloads.
--
-- 12,000 training images and 2,000 test images of 28 x 28 grey values in 0..1; each seed generates
-- a different handwriting. They are generated in a fraction of a second.

local TensorDataset = require "ltrain.data.TensorDataset"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local OPTIONS <const> = {
  n = { type = "integer", min = 1,
    doc = "number of images; by default 12000 for training, 2000 for testing" },
  seed = { type = "integer", default = 1, doc = "seed of the generator" },
  split = { type = "string", default = "train", choices = { "train", "test" } },
}

--- Returns a TensorDataset of images f32 [N, 1, 28, 28] and labels i64 [N] in 0..9.
return function(options)
  options = config.check(options, OPTIONS, "data.digits")
  local test = options.split == "test"
  local images, labels =
    c.runtime.data.digits(options.n or test and 2000 or 12000, options.seed, test)
  return TensorDataset(images, labels):scaled(1, 255)
end
