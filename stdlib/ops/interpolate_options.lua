-- stdlib/ops/interpolate_options.lua: the options of interpolate, and of the layers that call it.

local errors = require "ltrain.core.errors"

local function is_positive(value)
  for _, factor in ipairs(type(value) == "table" and value or { value }) do
    if type(factor) ~= "number" or factor <= 0 or factor ~= factor then
      return ("must be positive: got %s"):format(errors.show(factor))
    end
  end
end

return {
  size = { type = "each", min = 1, max = 1 << 24,
    doc = "size of the result: one for each dim, or one for all" },
  scale_factor = { type = "number|table", check = is_positive,
    doc = "factor of the size, instead of `size`" },
  mode = { type = "string", default = "nearest",
    choices = { "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic",
      "area" } },
  align_corners = { type = "boolean",
    doc = "for the linear and cubic modes: align the centers of the corner pixels instead of "
      .. "their outer edges; false by default" },
  antialias = { type = "boolean", default = false,
    doc = "for bilinear and bicubic: antialias when downsampling" },
  recompute_scale_factor = { type = "boolean",
    doc = "recompute the scale from the sizes instead of using `scale_factor`" },
}
