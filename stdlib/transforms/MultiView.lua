-- stdlib/transforms/MultiView.lua: makes several views of an image with independent random
-- parameters.
--
-- The result is a list of images, {view 1, view 2}, which a loader collates to a list of batches.

local Transform = require "ltrain.transforms.Transform"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local values = require "ltrain.transforms.values"

local MultiView = Transform:extend("MultiView")

local WHERE <const> = "transforms.MultiView"

--- transforms.MultiView{t1, t2}: a list of transforms or functions; the same one may be repeated
---@param transforms table
function MultiView:init(transforms)
  self.transforms = values.parts(transforms, WHERE)
  if #self.transforms < 1 or #self.transforms > 8 then
    errors.blame("%s: it makes 1 to 8 views: got %d", WHERE, #self.transforms)
  end
end

function MultiView:_steps() -- it is not part of another transform's chain
  return nil
end

function MultiView:_by_parts(sample)
  local views = {}
  for k, transform in ipairs(self.transforms) do views[k] = transform(sample) end
  return views
end

-- The chain of each view; nil where Lua has to make one.
function MultiView:_chains()
  local chains = {}
  for k, transform in ipairs(self.transforms) do
    chains[k] = class.is_a(transform, Transform) and transform:_compiled() or nil
    if not chains[k] then return nil end
  end
  return chains
end

return MultiView
