-- stdlib/data/ImageFolder.lua: images in a folder for each class.
--
-- `root/cat/1.jpg`, `root/cat/more/2.png`, `root/dog/3.jpeg`: the folders' names, sorted, are the
-- classes. Files are .jpg, .jpeg and .png; others are left out. Label k is `classes[k + 1]`.

local Images = require "ltrain.data.Images"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local samples = require "ltrain.data.loading.samples"

local ImageFolder = Images:extend("ImageFolder")

ImageFolder.__index = samples.by_position(ImageFolder)

local OPTIONS <const> = {
  transform = { type = "function|object", doc = "of lt.transforms, or function(image)" },
  mode = { type = "string", default = "rgb", choices = { "rgb", "grey", "rgba", "as_is" },
    doc = "see lt.image.read" },
  apply_exif_orientation = { type = "boolean", default = false,
    doc = "turn photographs as their files say" },
}
local EXTENSIONS <const> = { jpg = true, jpeg = true, png = true }

local function names_in(folder)
  local names, message = c.io.list_folder(folder)
  if not names then
    errors.blame("data.ImageFolder: %s", message:match "^[%w_]+: (.*)$" or message)
  end
  return names
end

-- Adds the images in a folder and in those within it.
local function find(folder, paths)
  for _, name in ipairs(names_in(folder)) do
    local path <const> = folder .. "/" .. name
    local extension <const> = name:match "%.(%w+)$"
    if extension and EXTENSIONS[extension:lower()] and c.io.kind(path) == "file" then
      paths[#paths + 1] = path
    elseif c.io.kind(path) == "folder" then
      find(path, paths)
    end
  end
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
  local paths, labels = {}, {}
  self.classes = classes_in(root)
  for k, name in ipairs(self.classes) do
    local before <const> = #paths
    find(root .. "/" .. name, paths)
    if #paths == before then
      errors.blame("data.ImageFolder: there are no images (.jpg, .jpeg, .png) in %s/%s", root, name)
    end
    for i = before + 1, #paths do labels[i] = k - 1 end
  end
  self:_begin(paths, labels, o)
end

return ImageFolder
