-- stdlib/transforms/Transform.lua: the base class of transforms, called with an image or with a
-- sample table.
--
-- `t(image)` returns the transformed image. `t{image = x, mask = m, boxes = b, ...}` returns a
-- sample whose image, mask and boxes were transformed together, with the same random parameters:
-- masks of ids [H, W] are resampled with nearest-neighbour interpolation, boxes [N, 4] (x1, y1, x2,
-- y2) are clipped to the image; other fields are not changed. Images are u8 or f32 [C, H, W].
-- Random numbers are the script's; in `get(i)` of a data set they depend on the sample. Transforms
-- run in C, and in threads in a loader of lt.data.ImageFolder or lt.data.Images.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local Transform = class.extend(nil, "Transform")

Transform.extend = class.extend

--- Returns what C runs: a list of {name, values..., fill =, steps =} (runtime/image/steps.def);
--- nil where a function of Lua is among it.
function Transform:_steps()
  errors.blame("transforms.%s is a base class: use one of its subclasses, or a function",
    getmetatable(self).__name)
end

-- The chain in C, made once; nil without one.
function Transform:_compiled()
  if self._chain == nil then
    local steps <const> = self:_steps()
    self._chain = steps and c.runtime.image.chain(steps) or false
  end
  return self._chain or nil
end

local function check_image(image)
  if not c.is_tensor(image) or image.ndim ~= 3 then
    errors.blame("transforms: an image is a tensor [C, H, W]: got %s", errors.show(image))
  end
  local channels <const> = image.shape[1]
  if image.dtype ~= "u8" and image.dtype ~= "f32" or channels < 1 or channels > 4 then
    errors.blame("transforms: an image is u8 or f32 with 1 to 4 channels: got %s %s", image.dtype,
      errors.show(image))
  end
  return image:detach():to "cpu"
end

-- A mask [H, W] or [C, H, W] as u8 or i32 [C, H, W].
local function check_mask(mask, image)
  local shape <const> = c.is_tensor(mask) and mask.shape or {}
  if #shape < 2 or #shape > 3 or shape[#shape] ~= image.shape[3]
    or shape[#shape - 1] ~= image.shape[2] or mask.dtype:find "f" then
    errors.blame("transforms: a mask is a tensor of integers [H, W] with the sides of the image %s:"
      .. " got %s", errors.show_shape(image), errors.show(mask))
  end
  local whole <const> = mask.dtype == "u8" and mask or mask:to "i32"
  return #shape == 2 and whole:unsqueeze(1) or whole
end

local function check_boxes(boxes)
  if not c.is_tensor(boxes) or boxes.ndim ~= 2 or boxes.shape[2] ~= 4 then
    errors.blame("transforms: boxes are a tensor [N, 4] of x1, y1, x2, y2: got %s",
      errors.show(boxes))
  end
  return boxes:detach():to("cpu"):to("f32"):contiguous()
end

local function apply_to_fields(chain, sample)
  if sample.image == nil then
    errors.blame("transforms: a sample has a field 'image': got a table without")
  end
  local image <const> = check_image(sample.image)
  local mask <const> = sample.mask and check_mask(sample.mask, image)
  local boxes <const> = sample.boxes and check_boxes(sample.boxes)
  local changed <const> = { c.runtime.image.apply(chain, image, mask, boxes) }
  local out = {}
  for name, value in next, sample do out[name] = value end
  out.image = changed[1]
  if mask then
    local same <const> = changed[2]:to(sample.mask.dtype)
    out.mask = sample.mask.ndim == 2 and same[1] or same
  end
  if boxes then out.boxes = changed[#changed] end
  return out
end

-- What runs where a function of Lua is among the parts: to be overridden by those with parts.
function Transform:_by_parts(sample)
  return sample
end

function Transform:__call(sample)
  local chain <const> = self:_compiled()
  local out
  if not chain then
    out = self:_by_parts(sample)
  elseif type(sample) == "table" and getmetatable(sample) == nil then
    out = apply_to_fields(chain, sample)
  else
    out = c.runtime.image.apply(chain, check_image(sample), nil, nil)
  end
  return out
end

return Transform
