-- stdlib/transforms/CutMix.lua: replaces a rectangle of each image by that of its neighbour in the
-- batch (Yun et al. 2019).
--
-- For a loader's `batch_transform`; labels become probabilities [N, K], which lt.cross_entropy
-- accepts.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local mixing = require "ltrain.transforms.mixing"

local CutMix = class.extend(nil, "CutMix")

CutMix.__arguments = "| alpha num_classes"

CutMix.extend = class.extend
CutMix.options = mixing.OPTIONS

--- transforms.CutMix{num_classes = 10}: called with {images, labels}
function CutMix:init(options)
  mixing.init(self, options, "transforms.CutMix")
end

-- The first and last row or column of a part of n around a place, as positions.
local function span(n, part)
  local at <const>, half <const> = c.randint(0, n, { 1 }):item(), math.tointeger(part * n // 2)
  return math.max(at - half, 0) + 1, math.min(at + half, n)
end

function CutMix:__call(batch)
  local images <const>, labels <const> = mixing.parts(self, batch, "transforms.CutMix")
  local height <const>, width <const> = images.shape[3], images.shape[4]
  local part <const> = math.sqrt(1 - mixing.share(self))
  local left <const>, right <const> = span(width, part)
  local top <const>, bottom <const> = span(height, part)
  local cut <const> = math.max(right - left + 1, 0) * math.max(bottom - top + 1, 0)
  local out <const> = images:clone()
  if cut > 0 then
    local place <const> = { c.all, c.all, { top, bottom }, { left, right } }
    out[place] = images:roll(1, 1)[place]
  end
  return { out, mixing.blend(labels, 1 - cut / (height * width)) }
end

return CutMix
