-- spec/parity/written.lua: what the operations of stdlib/ops take, as lt.ops() says it of the
-- others: inputs, arguments in PyTorch's order, `places`: arguments by place, `named`: tensors by
-- name. tensordot, whose dims may be two lists, is left to spec/parity/images.lua.
local function row(inputs, args, more)
  local list = {}
  for name, kind in args:gmatch "([%w_]+):(%w+)" do list[#list + 1] = {name = name, type = kind} end
  local out = {inputs = inputs, args = list, kind = "written", list = false}
  for key, value in pairs(more or {}) do out[key] = value end
  return out
end

return {
  affine_grid = row({"theta"}, "size:sizes align_corners:flag", {places = {"size"}}),
  channel_shuffle = row({"x"}, "groups:int", {places = {"groups"}}),
  embedding_bag = row({"weight", "ids"}, "mode:choice padding_idx:int include_last_offset:flag",
    {named = {"offsets", "per_sample_weights"}}),
  grid_sample = row({"x", "grid"}, "mode:choice padding_mode:choice align_corners:flag"),
  interpolate = row({"x"}, "size:sizes scale_factor:number mode:choice align_corners:flag "
    .. "recompute_scale_factor:flag antialias:flag"),
  pixel_shuffle = row({"x"}, "upscale_factor:int", {places = {"upscale_factor"}}),
  pixel_unshuffle = row({"x"}, "downscale_factor:int", {places = {"downscale_factor"}}),
  trace = row({"x"}, ""),
}
