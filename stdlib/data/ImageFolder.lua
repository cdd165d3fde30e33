-- stdlib/data/ImageFolder.lua: images in one folder per class.
--
-- `root/cat/1.jpg`, `root/cat/more/2.png`, `root/dog/3.jpeg`: the folders' names, sorted, are the
-- classes. Files are .jpg, .jpeg, .png, .bmp and .webp; others are skipped, with one warning that
-- counts them. Label k is `classes[k + 1]`.

local Images = require "ltrain.data.Images"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local ImageFolder = Images:extend("ImageFolder")

ImageFolder.__index = dataset_protocol.by_position(ImageFolder)

local OPTIONS <const> = {
  transform = { type = "function|object", doc = "of lt.transforms, or function(image)" },
  mode = { type = "string", default = "rgb", choices = { "rgb", "grey", "rgba", "as_is" },
    doc = "see lt.image.read" },
  apply_exif_orientation = { type = "boolean", default = false,
    doc = "rotate photographs by their EXIF orientation" },
}
local EXTENSIONS <const> = { jpg = true, jpeg = true, png = true, bmp = true, webp = true }

local function names_in(folder)
  local names, message = c.io.list_folder(folder)
  if not names then
    errors.blame("data.ImageFolder: %s", message:match "^[%w_]+: (.*)$" or message)
  end
  return names
end

-- Adds the images in a folder and in those within it; counts other files by how their names end.
local function find(folder, paths, others)
  for _, name in ipairs(names_in(folder)) do
    local path <const> = folder .. "/" .. name
    local kind <const>, extension = c.io.kind(path), (name:match "%.(%w+)$" or ""):lower()
    if kind == "folder" then
      find(path, paths, others)
    elseif kind == "file" and EXTENSIONS[extension] then
      paths[#paths + 1] = path
    else
      extension = extension ~= "" and "." .. extension or "without an ending"
      others[extension] = (others[extension] or 0) + 1
    end
  end
end

local function report(root, paths, others)
  local parts, count = {}, 0
  for extension, n in tree.pairs(others) do
    parts[#parts + 1], count = ("%d %s"):format(n, errors.printable(extension)), count + n
  end
  if count == 0 then return end
  console.warn(("data.ImageFolder: %s: %d of %d files are left out, not being .jpg, .jpeg, .png, "
    .. ".bmp or .webp: %s"):format(errors.printable(root), count, count + #paths,
    table.concat(parts, ", ")))
end

local function classes_in(root)
  local classes = {}
  for _, name in ipairs(names_in(root)) do
    if c.io.kind(root .. "/" .. name) == "folder" then classes[#classes + 1] = name end
  end
  if #classes == 0 then
    errors.blame("data.ImageFolder: there are no folders in %s: each is a class", root)
  end
  return classes
end

--- data.ImageFolder("photos", {transform = t})
---@param root string
function ImageFolder:init(root, options)
  config.argument(root, "string", "data.ImageFolder", "root")
  local o <const> = config.check(options, OPTIONS, "data.ImageFolder")
  local paths, labels, others = {}, {}, {}
  self.classes = classes_in(root)
  for k, name in ipairs(self.classes) do
    local before <const> = #paths
    find(root .. "/" .. name, paths, others)
    if #paths == before then
      errors.blame("data.ImageFolder: there are no images (.jpg, .jpeg, .png, .bmp, .webp) in "
        .. "%s/%s", root, name)
    end
    for i = before + 1, #paths do labels[i] = k - 1 end
  end
  report(root, paths, others)
  self:_begin(paths, labels, o)
end

return ImageFolder
