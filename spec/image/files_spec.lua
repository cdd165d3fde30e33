-- Image files: what PIL reads of them, limits, what is refused.

local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local lt = require "ltrain"
local recorded = require("spec.recorded")("spec/image/recorded.jsonl")

local image = lt.image

local function bytes_of(hex)
  return (hex:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

local function pixels_of(case)
  local format = case.dtype == "i32" and "<i4" or "B"
  local raw, list, at = bytes_of(case.pixels), {}, 1
  while at <= #raw do list[#list + 1], at = format:unpack(raw, at) end
  return lt.tensor(list, {dtype = case.dtype}):view(table.unpack(case.shape))
end

local function crc32(text)
  local crc = 0xffffffff
  for k = 1, #text do
    crc = crc ~ text:byte(k)
    for _ = 1, 8 do crc = crc >> 1 ~ (crc & 1) * 0xedb88320 end
  end
  return crc ~ 0xffffffff
end

local function named(name, mode)
  for _, case in ipairs(recorded) do
    if case.name == name and case.mode == (mode or "rgb") then return case end
  end
end

for k, case in ipairs(recorded) do case.bytes, case.number = bytes_of(case.file), k end

describe("image.decode", function()
  for _, case in ipairs(recorded) do
    it(("reads %s in mode %s as PIL (%d)"):format(case.name, case.mode, case.number), function()
      local expected, got = pixels_of(case), image.decode(case.bytes, {mode = case.mode})
      assert.are.equal(case.dtype, got.dtype)
      assert.are.same(case.shape, got.shape)
      local apart = (got:to "i32" - expected:to "i32"):abs():max():item()
      local is_lossy = case.name:find "^jpeg" or case.name:find "lossy"
      assert.is_true(apart <= (is_lossy and 1 or 0), ("%d apart"):format(apart))
    end)
  end

  it("refuses 16 bits but as they are", function()
    for _, case in ipairs(recorded) do
      if case.dtype == "i32" then
        local got, why = image.decode(case.bytes)
        assert.is_nil(got)
        assert.are.equal('image.decode: the bytes: 16 bits a channel: mode = "as_is" reads it, '
          .. "as i32", why)
      end
    end
  end)

  it("says of what ends early that it is cut off, at every length", function()
    for _, name in ipairs{"jpeg 4:2:0", "jpeg progressive", "rgb 8 bits", "rgb interlaced",
        "bmp 24 bits", "bmp 4 bits", "webp lossless", "webp lossy"} do
      for _, case in ipairs(recorded) do
        for n = 0, case.name == name and #case.bytes - 24 or -1, 7 do
          local got, why = image.decode(case.bytes:sub(1, n))
          assert.is_nil(got, ("%s: %d bytes"):format(name, n))
          assert.matches("^image.decode: the bytes: ", why)
        end
      end
    end
    local _, why = image.decode(recorded[#recorded].bytes:sub(1, -20))
    assert.are.equal("image.decode: the bytes: the file is cut off", why)
  end)

  it("is not made to crash, or to take much memory, by flipped bits", function()
    lt.seed(3)
    local read = 0
    for _, case in ipairs(recorded) do
      for _ = 1, 25 do
        local list = {case.bytes:byte(1, -1)}
        for _ = 1, math.random(1, 4) do
          list[math.random(1, #list)] = math.random(0, 255)
        end
        local got, why = image.decode(string.char(table.unpack(list)), {mode = case.mode})
        assert.is_true(got ~= nil or why:find "^image.decode: the bytes: " ~= nil, why)
        read = read + (got and 1 or 0)
      end
    end
    assert.is_true(read > 0)
  end)

  it("survives what the fuzzer makes of them, as transforms do", function()
    local seed = tostring(os.time() % 100000)
    local code, out, err = child.run({"spec/fuzz/images.lua", "2000", seed},
      {env = {LUA_PATH_5_4 = "./?.lua;;"}})
    assert.are.equal(0, code, ("seed %s: %s"):format(seed, err))
    assert.matches("^2000 runs from seed " .. seed .. ": %d+ read", out)
  end)

  it("refuses an image of more pixels than any has, before it takes memory", function()
    local png = recorded[1].bytes
    -- 60,000 x 60,000: the header's sum is right again
    local header = "IHDR" .. string.pack(">I4I4", 60000, 60000) .. png:sub(25, 29)
    local bomb = png:sub(1, 12) .. header .. string.pack(">I4", crc32(header))
      .. png:sub(34)
    local _, why = image.decode(bomb)
    assert.are.equal("image.decode: the bytes: an image of 60000 x 60000: sides are 1 to 65535, "
      .. "pixels at most 178956970", why)
  end)

  it("refuses it of a JPEG file too", function()
    local jpeg = named "jpeg 4:2:0".bytes
    local at = jpeg:find("\xff\xc0", 1, true)
    local _, why = image.decode(jpeg:sub(1, at + 4) .. string.pack(">I2I2", 65000, 65000)
      .. jpeg:sub(at + 9))
    assert.matches("the bytes: an image of 65000 x 65000: sides are", why, 1, true)
  end)

  it("gives the ids of a BMP file's palette as they are", function()
    local case = named "bmp 4 bits"
    local ids, colours = image.decode(case.bytes, {mode = "as_is"}), image.decode(case.bytes)
    assert.are.same({1, 9, 13}, ids.shape)
    for y = 1, 9 do
      for x = 1, 13 do
        local at = 14 + 40 + 4 * ids[1][y][x]:item() -- blue, green, red
        assert.are.equal(case.bytes:byte(at + 3), colours[1][y][x]:item())
      end
    end
  end)

  it("refuses BMP files whose header contradicts itself, and those compressed by runs", function()
    local bytes = named "bmp 24 bits".bytes
    local function why(at, format, value, mode)
      local text = format:pack(value)
      return select(2, image.decode(bytes:sub(1, at) .. text .. bytes:sub(at + #text + 1),
        {mode = mode}))
    end
    assert.matches("BMP: its header is damaged", why(14, "<I4", 41 << 20))
    assert.matches("BMP: its header is damaged", why(14, "<I4", 13))
    assert.matches("BMP: its header is damaged", why(28, "<I2", 7))
    assert.matches("BMP: its header is damaged", why(30, "<I4", 9))
    assert.matches("BMP: its header is damaged", why(30, "<I4", 3))
    assert.matches("BMP: compressed by runs, which is not read", why(30, "<I4", 1))
    assert.matches("an image of 0 x 9: sides are", why(18, "<I4", 0))
    assert.matches("an image of 13 x 2147483648", why(22, "<i4", -1 << 31))
    assert.matches("the file is cut off", why(10, "<I4", 1 << 31))
    assert.matches("the file is cut off", why(28, "<I2", 32))
  end)

  it("refuses an animated WebP file", function()
    local animated = "RIFF" .. ("<I4"):pack(22) .. "WEBPVP8X" .. ("<I4"):pack(10) .. "\2\0\0\0"
      .. ("\0"):rep(6)
    local _, why = image.decode(animated)
    assert.matches("the bytes: WebP: it is an animation", why)
  end)

  it("turns photographs as EXIF says, when it is asked", function()
    local jpeg = named "jpeg 4:4:4".bytes
    local stored = image.decode(jpeg)
    local turned = {stored, stored:flip(3), stored:flip{2, 3}, stored:flip(2),
      stored:transpose(2, 3), stored:transpose(2, 3):flip(3),
      stored:transpose(2, 3):flip{2, 3}, stored:transpose(2, 3):flip(2)}
    for k, expected in ipairs(turned) do
      for _, order in ipairs{"<", ">"} do
        local tiff = (order == "<" and "II*\0" or "MM\0*")
          .. string.pack(order .. "I4I2I2I2I4I2I2", 8, 1, 0x0112, 3, 1, k, 0)
        local exif = "\xff\xe1" .. string.pack(">I2", #tiff + 8) .. "Exif\0\0" .. tiff
        local file = jpeg:sub(1, 2) .. exif .. jpeg:sub(3)
        assert.is_true(lt.equal(stored, image.decode(file)))
        local got = image.decode(file, {apply_exif_orientation = true})
        assert.is_true(lt.equal(expected:contiguous(), got), ("orientation %d"):format(k))
      end
    end
  end)

  it("names formats that it does not read", function()
    for name, bytes in pairs{GIF = "GIF89a", TIFF = "II*\0abc",
        AVIF = "\0\0\0 ftypavif", HEIC = "\0\0\0 ftypheic",
        PNM = "P6 1 1 255 "} do
      local got, why = image.decode(bytes)
      assert.is_nil(got)
      assert.are.equal(("image.decode: the bytes: %s is not read: JPEG, PNG, WebP and BMP "
        .. "are"):format(name), why)
    end
    assert.are.same({nil, "image.decode: the bytes: neither JPEG, PNG, WebP nor BMP"},
      {image.decode "hello"})
    assert.are.same({nil, "image.decode: the bytes: it is empty"}, {image.decode ""})
  end)
end)

describe("image.write", function()
  local folder = child.folder()
  teardown(function() child.remove(folder) end)

  it("writes PNG files that are read as they were", function()
    lt.seed(1)
    for channels = 1, 4 do
      local picture = lt.randint(0, 256, {channels, 5, 7}):to "u8"
      assert.is_true(image.write(folder .. "/a.png", picture))
      local got = image.read(folder .. "/a.png", {mode = "as_is"})
      assert.is_true(lt.equal(picture, got))
      local wide = lt.randint(0, 65536, {channels, 5, 7}):to "i32"
      image.write(folder .. "/a.png", wide, {compression_level = 0})
      assert.is_true(lt.equal(wide, image.read(folder .. "/a.png", {mode = "as_is"})))
    end
  end)

  it("writes views, and f32 in 0..1", function()
    local picture = lt.arange(24):view(2, 4, 3):to "u8"
    local view = picture:transpose(2, 3):flip(3)[{{1, 1}}]
    assert.is_true(lt.equal(view:contiguous(),
      image.decode(image.encode(view, "png"), {mode = "as_is"})))
    local got = image.decode(image.encode(lt.tensor{{{0, 0.25, 0.5, 1}}}, "png"), {mode = "grey"})
    assert.are.same({{{0, 64, 128, 255}}}, got:tolist())
  end)

  it("writes JPEG files near what they were given", function()
    local y = lt.linspace(0, 1, 40):view(1, 40, 1):expand(3, 40, 30)
    image.write(folder .. "/a.jpg", y, {quality = 95})
    local got = image.read(folder .. "/a.jpg"):to "f32" / 255
    assert.is_true((got - y):abs():max():item() < 0.02)
    image.write(folder .. "/b.jpeg", y[{{1, 1}}])
    assert.are.same({1, 40, 30}, image.read(folder .. "/b.jpeg", {mode = "as_is"}).shape)
    assert.is_true(#image.encode(y, "jpeg", {quality = 10}) < #image.encode(y, "jpeg"))
  end)

  it("replaces a file and nothing else, and leaves whoever reads it the former one", function()
    local path = folder .. "/again.png"
    image.write(path, lt.rand(3, 64, 64))
    local reader <close> = assert(io.open(path, "rb"))
    local size = reader:seek "end"
    assert.is_true(image.write(path, lt.zeros(1, 2, 2)))
    assert.equal(size, reader:seek "end")
    assert.are.same({1, 2, 2}, image.read(path, {mode = "as_is"}).shape)
    os.execute(("cd '%s' && mkdir folder.png && mkfifo pipe.png"):format(folder))
    for _, name in ipairs{"folder.png", "pipe.png"} do
      local ok, why = image.write(folder .. "/" .. name, lt.zeros(1, 2, 2))
      assert.is_nil(ok)
      assert.matches(name, why, 1, true)
    end
  end)

  it("refuses what a file does not hold", function()
    local here = debug.getinfo(1, "S").short_src:gsub("%p", "%%%0")
    local picture = lt.zeros(3, 2, 2)
    local function fails(text, ...)
      local err = error_of(function(f, ...) f(...) return end, ...)
      assert.matches(text, err, 1, true)
      assert.matches(here, err)
    end
    fails("image.write: the name must end in .png, .jpg or .jpeg: got 'a.bmp'", image.write,
      "a.bmp", picture)
    fails("image.write: jpeg has 1, 3 channels: got a tensor [2, 2, 2]", image.write, "a.jpg",
      lt.zeros(2, 2, 2))
    fails("image.write: png has 1, 2, 3, 4 channels: got a tensor [2, 2]", image.write, "a.png",
      lt.zeros(2, 2))
    fails("image.write: values of f32 must be in 0..1: got 0 to 1.5", image.write, "a.png",
      lt.tensor{{{0, 1.5}}})
    fails("image.write: values of f32 must be in 0..1: got", image.write, "a.png",
      lt.full({1, 2, 2}, 0 / 0))
    fails("image.write: an image is u8, or f32 in 0..1: got", image.write, "a.jpg",
      picture:to "i64")
    fails("image.read: unknown option 'modes'; did you mean 'mode'?", image.read, "a",
      {modes = 1})
  end)

  it("says what the world spoils", function()
    local _, why = image.write(folder .. "/none/a.png", lt.zeros(1, 2, 2))
    assert.matches("^image.write: .*none/a.png", why)
    _, why = image.read(folder .. "/none.png")
    assert.matches("image.read: cannot open .*none.png: No such file", why)
    child.write(folder .. "/text.png", "hello")
    _, why = image.read(folder .. "/text.png")
    assert.are.equal(("image.read: %s/text.png: neither JPEG, PNG, WebP nor BMP")
      :format(folder), why)
  end)
end)

describe("image.grid", function()
  it("puts images in rows, with padding between them", function()
    local images = lt.arange(1, 6):to "f32":view(5, 1, 1, 1):expand(5, 1, 2, 1)
    local got = image.grid(images, {nrow = 3, padding = 1, pad_value = 9})
    assert.are.same({3, 7, 7}, got.shape)
    assert.are.same({
      {9, 9, 9, 9, 9, 9, 9}, {9, 1, 9, 2, 9, 3, 9}, {9, 1, 9, 2, 9, 3, 9}, {9, 9, 9, 9, 9, 9, 9},
      {9, 4, 9, 5, 9, 9, 9}, {9, 4, 9, 5, 9, 9, 9}, {9, 9, 9, 9, 9, 9, 9},
    }, got[2]:tolist())
  end)

  it("takes a list, u8, and moves values to 0..1", function()
    local list = {lt.zeros(3, 2, 2, {dtype = "u8"}), lt.ones(3, 2, 2, {dtype = "u8"})}
    assert.are.equal("u8", image.grid(list).dtype)
    local got = image.grid({lt.full({1, 1, 1}, -1), lt.full({1, 1, 1}, 3)},
      {normalize = true, padding = 0})
    assert.are.same({{0, 1}}, got[1]:tolist())
    assert.matches("image.grid: images must be a tensor [N, C, H, W] or a list of [C, H, W]",
      error_of(image.grid, {}), 1, true)
  end)
end)

describe("a library that is missing", function()
  it("is said in a sentence, with what to install", function()
    local folder = child.folder()
    child.write(folder .. "/libturbojpeg.so.0", "") -- is found first, and is no library
    child.write(folder .. "/libspng.so.0", "")
    child.write(folder .. "/a.jpg", named "jpeg grey".bytes)
    local script = "local lt = require 'ltrain' " .. [[
      print(pcall(lt.image.read, "%s/a.jpg"))
      print(pcall(lt.image.encode, lt.zeros(1, 2, 2), "png"))]]
    local _, out = child.run({"-e", script:format(folder)}, {env = {LD_LIBRARY_PATH = folder}})
    child.remove(folder)
    assert.matches("JPEG files need libturbojpeg: apt install libturbojpeg0", out, 1, true)
    assert.matches("PNG files need libspng: apt install libspng0", out, 1, true)
  end)
end)

if os.getenv "LT_EXHAUSTIVE" then
  describe("200 odd images", function()
    it("are read and resized as PIL does", function()
      local venv = os.getenv "LT_TORCH_VENV" or (os.getenv "LT_BUILD" or "build") .. "/venv-torch"
      local python = venv .. "/bin/python"
      if not os.execute(python .. " -c 'import PIL, numpy' 2>&1") then
        return pending("there is no PIL in " .. venv)
      end
      local ltrain = os.getenv "LTRAIN" or "build/ltrain"
      local pipe <close> = io.popen(("%s -W ignore spec/image/pil_check.py %s 2>&1"):format(python,
        ltrain))
      assert.matches("200 images, 0 differ\n$", pipe:read "a")
    end)
  end)
end
