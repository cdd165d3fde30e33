-- stdlib/onnx/resizing.lua: exports interpolate as ONNX's Resize.

local rules = {}

-- Whether dim k of the result is as large as that of the input in all runs.
local function keeps(call, k)
  for _, run in ipairs(call.runs) do
    if run.inputs[1].shape[k] ~= run.outputs[1].shape[k] then return false end
  end
  return true
end

-- The factors of all dims, from which positions are computed; nil: from the sizes. By lines, a dim
-- that keeps its size is the same whatever its factor.
local function scales_of(call)
  local args <const>, scales = call.runs[1].args, { 1, 1 }
  for k = 3, #call.inputs[1].shape do
    local is_same <const> = keeps(call, k) and args.kind == "linear"
    scales[k] = is_same and 1 or args.factors[k - 2]
    if not scales[k] then return nil end
  end
  return scales
end

--- Lines or cubic curves between elements: what scripts ask for by a factor follows the size of the
--- input, a size that they give stays.
function rules.interpolate(g, call)
  local args <const>, dtype = call.args, call.outputs[1].dtype
  g:fixed(call, "the factor", function(run) return run.args.factors end)
  local scales <const> = scales_of(call)
  local name <const> = g:add("Resize", { g:input(call, 1, "f32"), "",
    scales and g:constant(scales, "f32") or "", not scales and g:shape(call) or "" }, {
      mode = args.kind, cubic_coeff_a = -0.75, nearest_mode = "floor",
      coordinate_transformation_mode = args.align_corners and "align_corners" or "half_pixel" })
  return g:cast(name, "f32", dtype)
end

return rules
