-- stdlib/data/Images.lua: a data set of image files, with labels.
--
-- A loader reads and transforms them in C threads, ahead of the step, unless the transform or the
-- loader's `collate` is a Lua function. The images of a batch must have the same size: end the
-- transforms with a resize or crop.

local Dataset = require "ltrain.data.Dataset"
local MultiView = require "ltrain.transforms.MultiView"
local Transform = require "ltrain.transforms.Transform"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local Images = Dataset:extend("Images")

Images.__index = dataset_protocol.by_position(Images)

local OPTIONS <const> = {
  paths = { type = "table", required = true, doc = "list of files" },
  labels = { type = "table|tensor", doc = "one per file: a list of numbers, or a tensor [N, ...]" },
  transform = { type = "function|object", doc = "of lt.transforms, or function(image)" },
  mode = { type = "string", default = "rgb", choices = { "rgb", "grey", "rgba", "as_is" },
    doc = "see lt.image.read" },
  apply_exif_orientation = { type = "boolean", default = false,
    doc = "rotate photographs by their EXIF orientation" },
}

local function labels_of(labels, n, where)
  if labels == nil then return nil end
  local tensor <const> = c.is_tensor(labels) and labels or #labels > 0 and c.tensor(labels) or nil
  if not tensor or tensor.ndim < 1 or tensor.shape[1] ~= n then
    errors.blame("%s: %d paths have %s", where, n,
      tensor and ("labels " .. errors.show_shape(tensor)) or "no labels")
  end
  return tensor:detach():to("cpu"):contiguous()
end

-- Sets what both this class and those below it have.
function Images:_begin(paths, labels, o)
  local where <const> = "data." .. getmetatable(self).__name
  if #paths == 0 then errors.blame("%s: there are no images", where) end
  self._paths = c.runtime.data.paths(paths)
  self.labels = labels_of(labels, #paths, where)
  self.transform, self.mode = o.transform, o.mode
  self.apply_exif_orientation = o.apply_exif_orientation
end

--- data.Images{paths = {"a.jpg", "b.png"}, labels = {0, 1}}
function Images:init(options)
  local o <const> = config.check(options, OPTIONS, "data.Images")
  for k, path in ipairs(o.paths) do
    config.argument(path, "string", "data.Images", ("paths[%d]"):format(k))
  end
  self:_begin(o.paths, o.labels, o)
end

function Images:__len()
  return #self._paths
end

--- Returns the path of the file at position i.
function Images:path(i)
  dataset_protocol.check_position(i, #self, getmetatable(self).__name)
  return self._paths:at(i)
end

--- Returns the image at position i, after the transform, and its label, if there are labels.
function Images:get(i)
  local image, message = c.runtime.image.read(self:path(i), self.mode, self.apply_exif_orientation)
  if not image then errors.blame("%s", message) end
  if self.transform then image = self.transform(image) end
  if not self.labels then return image end
  return image, self.labels[i]
end

--- Converts the images read by a loader to the structure of a batch.
function Images:form(rows)
  local views <const> = self._n_views
  if views then rows = { table.move(rows, 1, views, 1, {}), rows[views + 1] } end
  return self.labels and rows or rows[1]
end

-- The chains of the views that are made of an image; nil where Lua has to make them.
local function chains_of(transform)
  if transform == nil then return { c.runtime.image.chain {} } end
  if class.is_a(transform, MultiView) then return transform:_chains() end
  local chain <const> = class.is_a(transform, Transform) and transform:_compiled()
  return chain and { chain }
end

--- For loaders: what is read in C threads; nil if this is not possible.
function Images:images()
  local views <const> = chains_of(self.transform)
  if not views then return nil end
  self._n_views = class.is_a(self.transform, MultiView) and #views or nil
  return {
    source = { paths = self._paths, views = views, mode = self.mode,
      orient = self.apply_exif_orientation },
    tensors = { self.labels }, owner = self,
  }
end

return Images
