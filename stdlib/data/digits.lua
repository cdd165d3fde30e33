-- stdlib/data/digits.lua: a data set of drawn digits that needs no download.
--
-- 12,000 images to train on and 2,000 others to test on, each 28 x 28 grey values in 0..1; with
-- another seed another hand writes. They are drawn in a fraction of a second.

local TensorDataset = require "ltrain.data.TensorDataset"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local OPTIONS <const> = {
  n = { type = "integer", min = 1, doc = "how many; default 12000 to train, 2000 to test" },
  seed = { type = "integer", default = 1, doc = "of the drawing" },
  split = { type = "string", default = "train", choices = { "train", "test" } },
}

--- A TensorDataset of images f32 [N, 1, 28, 28] and labels i64 [N] in 0..9.
return function(options)
  options = config.check(options, OPTIONS, "data.digits")
  local test = options.split == "test"
  local images, labels =
    c.runtime.data.digits(options.n or test and 2000 or 12000, options.seed, test)
  return TensorDataset(images, labels):scaled(1, 255)
end
