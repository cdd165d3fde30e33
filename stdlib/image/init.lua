-- stdlib/image/init.lua: lt.image: image files as tensors [C, H, W]: JPEG and PNG; WebP and BMP for
-- reading only.
--
--   local lt = require "ltrain"
--   local picture = lt.zeros(3, 8, 8, {dtype = "u8"})
--   picture[1]:fill_(255)
--   local bytes = lt.image.encode(picture, "png")
--   print(lt.image.decode(bytes).shape[1], lt.image.decode(bytes, {mode = "grey"})[1][1][1])
--   -- prints: 3	tensor(76, dtype=uint8)

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"
local write_unsynced = require "ltrain.core.write_unsynced"

local files = c.runtime.image

local READ_OPTIONS <const> = {
  mode = { type = "string", default = "rgb", choices = { "rgb", "grey", "rgba", "as_is" } },
  apply_exif_orientation = { type = "boolean", default = false },
}
local WRITE_OPTIONS <const> = {
  quality = { type = "integer", default = 75, min = 1, max = 100 },
  compression_level = { type = "integer", default = 6, min = 0, max = 9 },
}
local GRID_OPTIONS <const> = {
  nrow = { type = "integer", default = 8, min = 1 },
  padding = { type = "integer", default = 2, min = 0 },
  pad_value = { type = "number", default = 0 },
  normalize = { type = "boolean", default = false },
}
local FORMATS <const> = { png = "png", jpg = "jpeg", jpeg = "jpeg" }
local CHANNELS <const> = { png = { 1, 2, 3, 4 }, jpeg = { 1, 3 } }

local image = {}

--- Reads a JPEG, PNG, WebP or BMP file, detected from its content, as u8 [C, H, W]. Options: `mode`
--- ("rgb", "grey", "rgba", or "as_is": the channels of the file, palette ids, 16-bit values as i32)
--- and `apply_exif_orientation` (false: pixels as they are stored). Returns nil and the reason if
--- the file cannot be read, is truncated, or has more than 178,956,970 pixels.
---@param path string
function image.read(path, options)
  local o <const> = config.check(options, READ_OPTIONS, "image.read")
  return files.read(path, o.mode, o.apply_exif_orientation)
end

--- Reads an image from a string with the contents of a file.
---@param bytes string
function image.decode(bytes, options)
  local o <const> = config.check(options, READ_OPTIONS, "image.decode")
  config.argument(bytes, "string", "image.decode", "bytes")
  return files.decode(bytes, o.mode, o.apply_exif_orientation)
end

local function has(list, wanted)
  for _, value in ipairs(list) do
    if value == wanted then return true end
  end
end

-- What a file can hold: u8, from f32 in 0..1, or (PNG) i32 of 16 bits.
local function to_integers(picture, format, where)
  local limit <const> = picture.dtype == "i32" and 65535 or 1
  if picture.dtype == "u8" or picture:numel() == 0 then return picture end
  if picture.dtype ~= "f32" and (picture.dtype ~= "i32" or format ~= "png") then
    errors.blame("%s: an image is u8, or f32 in 0..1%s: got %s", where,
      format == "png" and ", or i32 in 0..65535" or "", errors.show(picture))
  end
  local low <const>, high <const> = picture:min():item(), picture:max():item()
  if not (low >= 0 and high <= limit) then
    errors.blame("%s: values of %s must be in 0..%d: got %g to %g", where, picture.dtype, limit,
      low, high)
  end
  return picture.dtype == "i32" and picture or (picture * 255 + 0.5):to "u8"
end

local function encode(picture, format, options, where)
  if not c.is_tensor(picture) then
    errors.blame("%s: image must be a tensor [C, H, W]: got %s", where, errors.show(picture))
  end
  local shape <const> = picture.shape
  if #shape ~= 3 or not has(CHANNELS[format], shape[1]) or shape[2] * shape[3] == 0 then
    errors.blame("%s: %s has %s channels: got %s", where, format,
      table.concat(CHANNELS[format], ", "), errors.show(picture))
  end
  local integers <const> = to_integers(picture:detach():to "cpu", format, where)
  return files.encode(integers, format,
    format == "png" and options.compression_level or options.quality)
end

--- Returns the contents of an image file as a string: `format` is "png" or "jpeg"; image and
--- options as in `write`.
---@param picture Tensor [C, H, W]
---@param format string
function image.encode(picture, format, options)
  local o <const> = config.check(options, WRITE_OPTIONS, "image.encode")
  config.value(format, { type = "string", choices = { "png", "jpeg" } }, "image.encode", "format")
  return encode(picture, format, o, "image.encode")
end

--- Writes an image, u8 or f32 in 0..1; the extension selects the format: .png, .jpg or .jpeg. PNG
--- takes 1 to 4 channels, and i32 in 0..65535 as 16 bits; JPEG takes 1 or 3. Options: `quality`
--- (75, of JPEG), `compression_level` (6, of PNG). Returns true, or nil and the reason.
---@param path string
---@param picture Tensor [C, H, W]
function image.write(path, picture, options)
  local o <const> = config.check(options, WRITE_OPTIONS, "image.write")
  config.argument(path, "string", "image.write", "path")
  local format <const> = FORMATS[(path:match "%.(%w+)$" or ""):lower()]
  if not format then
    errors.blame("image.write: the name must end in .png, .jpg or .jpeg: got '%s'", path)
  end
  local bytes <const>, message = encode(picture, format, o, "image.write")
  if not bytes then return nil, message end
  return write_unsynced(path, bytes, "image.write")
end

-- A list of images as one tensor [N, C, H, W]; grey ones in three channels.
local function batch_of(images)
  local batch = type(images) == "table" and images[1] ~= nil and c.stack(images) or images
  if not c.is_tensor(batch) or batch.ndim < 3 or batch.ndim > 4 then
    errors.blame("image.grid: images must be a tensor [N, C, H, W] or a list of [C, H, W]: got %s",
      errors.show(batch))
  end
  batch = batch.ndim == 3 and batch:unsqueeze(1) or batch
  if batch.shape[1] == 0 then errors.blame("image.grid: there are no images") end
  return batch.shape[2] == 1 and batch:expand(-1, 3, -1, -1) or batch
end

-- From the least to the greatest value as 0..1.
local function stretch(batch)
  local low <const>, high <const> = batch:min():item(), batch:max():item()
  return (batch:to "f32" - low) / math.max(high - low, 1e-5)
end

--- Returns one image [C, H, W] of several, as torchvision's make_grid: `nrow` (8) images per row
--- with `padding` (2) pixels of `pad_value` (0) between them; `normalize` (false): scale values to
--- 0..1.
---@param images Tensor [N, C, H, W], or a list of [C, H, W]
function image.grid(images, options)
  local o <const> = config.check(options, GRID_OPTIONS, "image.grid")
  local batch = batch_of(images)
  if o.normalize then batch = stretch(batch) end
  local n, channels, height, width = table.unpack(batch.shape)
  if n == 1 then return batch[1] end -- as make_grid does
  local columns <const> = math.min(o.nrow, n)
  local rows <const>, pad <const> = (n + columns - 1) // columns, o.padding
  local out = c.full({ channels, rows * (height + pad) + pad, columns * (width + pad) + pad },
    o.pad_value, { dtype = batch.dtype })
  for k = 0, n - 1 do
    local y <const> = k // columns * (height + pad) + pad
    local x <const> = k % columns * (width + pad) + pad
    out[{ c.all, { y + 1, y + height }, { x + 1, x + width } }] = batch[k + 1]
  end
  return out
end

return strict_arity.all(image, "image")
