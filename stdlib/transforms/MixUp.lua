-- stdlib/transforms/MixUp.lua: mixes each image of a batch with its neighbour (Zhang et al. 2018).
--
-- For a loader's `batch_transform`; labels become probabilities [N, K], which lt.cross_entropy
-- accepts.

local class = require "ltrain.core.class"
local mixing = require "ltrain.transforms.mixing"

local MixUp = class.extend(nil, "MixUp")

MixUp.__arguments = "| alpha num_classes"

MixUp.extend = class.extend
MixUp.options = mixing.OPTIONS

--- transforms.MixUp{num_classes = 10}: called with {images, labels}
function MixUp:init(options)
  mixing.init(self, options, "transforms.MixUp")
end

function MixUp:__call(batch)
  local images <const>, labels <const> = mixing.parts(self, batch, "transforms.MixUp")
  local share <const> = mixing.share(self)
  return { mixing.blend(images, share), mixing.blend(labels, share) }
end

return MixUp
