-- spec/image/pil_check.lua: our side of pil_check.py: pixels of the files of a list, and resized.
local lt = require "ltrain"

local function write(path, image)
  local file <close> = assert(io.open(path, "wb"))
  for _, rows in ipairs(image:tolist()) do
    for _, row in ipairs(rows) do file:write(string.char(table.unpack(row))) end
  end
end

for line in io.lines(arg[1]) do
  local path, mode, h, w, filter = line:match "^(%S+) (%a+) (%d+) (%d+) (%a+)$"
  local image = assert(lt.image.read(path, { mode = mode }))
  write(path .. ".raw", image)
  local resize = lt.transforms.Resize({ tonumber(h), tonumber(w) }, { interpolation = filter })
  write(path .. ".resized", resize(image))
end
