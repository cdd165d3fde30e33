-- stdlib/transforms/mixing.lua: what MixUp and CutMix share: pairing the images of a batch, and
-- mixing their labels.

local Beta = require "ltrain.distributions.Beta"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local mixing = {}

mixing.OPTIONS = {
  alpha = { type = "number", default = 1, above = 0, doc = "parameter of the Beta distribution "
    .. "of mixing ratios" },
  num_classes = { type = "integer", min = 1, doc = "for labels that are ids" },
}

--- Takes the options of an object.
function mixing.init(self, options, where)
  local o <const> = config.check(options, mixing.OPTIONS, where)
  self.alpha, self.num_classes = o.alpha, o.num_classes
end

--- Images and labels of a batch {images [N, C, H, W], labels [N] or [N, K]}; labels as shares.
function mixing.parts(self, batch, where)
  local images <const>, labels = batch[1], batch[2]
  if not c.is_tensor(images) or images.ndim ~= 4 or not c.is_tensor(labels)
    or labels.ndim > 2 or labels.shape[1] ~= images.shape[1] then
    errors.blame("%s: a batch is {images [N, C, H, W], labels [N] or [N, K]}: got %s", where,
      errors.show(images) .. ", " .. errors.show(labels))
  end
  if labels.ndim == 1 then
    if not self.num_classes then
      errors.blame("%s: num_classes is needed for labels that are ids", where)
    end
    labels = c.one_hot(labels, self.num_classes)
  end
  return images:to "f32", labels:to "f32"
end

--- The share that each keeps of itself.
function mixing.share(self)
  return Beta(self.alpha, self.alpha):sample():item()
end

--- Each by its share, and by the rest its neighbour in the batch.
function mixing.blend(x, share)
  return x * share + x:roll(1, 1) * (1 - share)
end

return mixing
