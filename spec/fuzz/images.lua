-- spec/fuzz/images.lua: damaged image files, read in every mode; random chains of transforms.
--
--   LT_SANITIZE=address,undefined ./dev fuzz images [RUNS] [SEED]
--
-- Files begin as those of spec/image/recorded.jsonl. Each is cut, and bytes of it are changed,
-- taken out, doubled or moved; checks of PNG chunks are made right in half of the cases, so that
-- what is behind them is reached. A run ends well when nothing crashes, no reading takes over ten
-- seconds, and all that is refused is refused by a sentence that names the bytes.
local lt = require "ltrain"
local recorded = require("spec.recorded")("spec/image/recorded.jsonl")

local RUNS <const>, SEED <const> = tonumber(arg[1] or 20000), tonumber(arg[2] or 1)
local MODES <const> = { "rgb", "grey", "rgba", "as_is" }
local T <const> = lt.transforms
local random <const>, clock <const> = math.random, os.clock -- the time of the processor

local table_of_crc = {}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do crc = crc >> 1 ~ (crc & 1) * 0xedb88320 end
  table_of_crc[byte] = crc
end

local function crc32(text)
  local crc = 0xffffffff
  for k = 1, #text do crc = crc >> 8 ~ table_of_crc[(crc ~ text:byte(k)) & 255] end
  return crc ~ 0xffffffff
end

-- A PNG file with the checks of its chunks made right, as far as it has chunks.
local function mended(png)
  local parts, at = { png:sub(1, 8) }, 9
  while at + 11 <= #png do
    local n = string.unpack(">I4", png, at)
    if at + 11 + n > #png then break end
    local body = png:sub(at + 4, at + 7 + n)
    parts[#parts + 1] = png:sub(at, at + 3) .. body .. string.pack(">I4", crc32(body))
    at = at + 12 + n
  end
  parts[#parts + 1] = png:sub(at)
  return table.concat(parts)
end

local CHANGES <const> = {
  function(s, at) return s:sub(1, at - 1) .. string.char(random(0, 255)) .. s:sub(at + 1) end,
  function(s, at) return s:sub(1, at - 1) .. string.char(s:byte(at) ~ 1 << random(0, 7))
    .. s:sub(at + 1) end,
  function(s, at) return s:sub(1, at - 1) .. s:sub(at + random(1, 9)) end,
  function(s, at) return s:sub(1, at) .. s:sub(at, at + random(0, 30)) .. s:sub(at + 1) end,
  function(s, at)
    local words = { "\0\0\0\0", "\xff\xff\xff\xff", "\x7f\xff", "\xff\xd8", "\xff\xd9", "\xff\xda" }
    return s:sub(1, at - 1) .. words[random(#words)] .. s:sub(at + 4)
  end,
  function(s, at) return s:sub(1, at) end,
}

-- Most changes are of a single byte: what is cut off early is refused early.
local function damaged(bytes)
  local changes <const> = ({ 0, 1, 1, 1, 2, 5 })[random(6)]
  for _ = 1, changes do
    if #bytes == 0 then break end
    bytes = CHANGES[random(10) > 3 and random(2) or random(#CHANGES)](bytes, random(1, #bytes))
  end
  return bytes:find("^\x89PNG") and random(2) == 1 and mended(bytes) or bytes
end

local function range(low, high)
  local a, b = low + random() * (high - low), low + random() * (high - low)
  return { math.min(a, b), math.max(a, b) }
end

-- Each gives a transform; sides stay small.
local MAKERS <const> = {
  function() return T.Resize({ random(40), random(40) },
    { interpolation = ({ "nearest", "bilinear", "bicubic" })[random(3)] }) end,
  function() return T.CenterCrop { random(40), random(40) } end,
  function() return T.RandomCrop({ random(20), random(20) }, { padding = random(0, 30),
    padding_mode = ({ "constant", "edge", "reflect", "symmetric" })[random(4)],
    pad_if_needed = true }) end,
  function() return T.RandomResizedCrop(random(40), { scale = range(0.01, 1),
    ratio = range(0.1, 9) }) end,
  function() return T.Pad { random(-3, 9), random(-3, 9), random(-3, 9), random(-3, 9) } end,
  function() return T.RandomRotation(range(-400, 400), { expand = random(2) == 1,
    interpolation = ({ "nearest", "bilinear" })[random(2)] }) end,
  function() return T.RandomAffine(range(-400, 400), { scale = range(0.05, 8),
    translate = { random(), random() }, shear = range(-80, 80) }) end,
  function() return T.RandomPerspective { p = 1, distortion_scale = random() } end,
  function() return T.ColorJitter { brightness = range(0, 4), contrast = range(0, 4),
    saturation = range(0, 4), hue = range(-0.5, 0.5) } end,
  function() return T.GaussianBlur(2 * random(0, 6) + 1, { sigma = range(0.01, 9) }) end,
  function() return T.RandomHorizontalFlip {} end,
  function() return T.RandomVerticalFlip {} end,
  function() return T.RandomPosterize(random(0, 8)) end,
  function() return T.RandomSolarize(random(0, 255)) end,
  function() return T.RandomAdjustSharpness(random() * 4) end,
  function() return T.RandomAutocontrast {} end,
  function() return T.RandomEqualize {} end,
  function() return T.RandomInvert {} end,
  function() return T.RandomErasing { p = 1,
    value = random(2) == 1 and "random" or random(255) } end,
  function() return T.RandAugment { num_ops = random(3), magnitude = random(0, 30) } end,
  function() return T.TrivialAugmentWide {} end,
  function() return T.RandomGrayscale {} end,
  function() return T.Grayscale { num_output_channels = ({ 1, 3 })[random(2)] } end,
  function() return T.ToDtype(({ "f32", "u8" })[random(2)], { scale = random(2) == 1 }) end,
}

local function chain()
  local list = {}
  for k = 1, random(1, 5) do list[k] = MAKERS[random(#MAKERS)]() end
  return T.Compose(list)
end

-- Runs a random chain on an image, a mask and boxes; refusing is fine.
local function transform(image)
  local h, w = image.shape[2], image.shape[3]
  if image.dtype == "i32" or h > 200 or w > 200 then return 0 end
  local ok, out = pcall(chain(), { image = image, mask = lt.randint(0, 9, { h, w }),
    boxes = lt.rand(3, 4) * 20 })
  if not ok then
    assert(out:find "transforms", out)
    return 0
  end
  assert(out.image.shape[2] == out.mask.shape[1] and out.image.shape[3] == out.mask.shape[2])
  return 1
end

lt.seed(SEED)
local files, read, changed = {}, 0, 0
for k, case in ipairs(recorded) do
  files[k] = case.file:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
end
for run = 1, RUNS do
  local bytes <const>, start <const> = damaged(files[random(#files)]), clock()
  local image, why = lt.image.decode(bytes, { mode = MODES[random(4)],
    apply_exif_orientation = random(2) == 1 })
  assert(image or why:find "^image.decode: the bytes: ", why)
  assert(clock() - start < 10, ("run %d took %g s"):format(run, clock() - start))
  if image then read, changed = read + 1, changed + transform(image) end
end
print(("%d runs from seed %d: %d read, %d transformed"):format(RUNS, SEED, read, changed))
