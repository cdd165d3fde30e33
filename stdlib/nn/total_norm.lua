-- stdlib/nn/total_norm.lua: the norm of several tensors together, and gradients scaled by it.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local grads_of = require "ltrain.nn.grads_of"
local load_export = require "ltrain.core.load_export"

local total_norm = {}

local NORM <const> = config.signature {
  { "norm_type", type = "number|string", default = 2.0,
    doc = "p of the p-norm; math.huge or 'inf'" },
  { "error_if_nonfinite", type = "boolean", default = false,
    doc = "raise an error if the norm is inf or nan" },
}

function total_norm.get_total_norm(tensors, ...)
  local who <const> = "get_total_norm"
  local o = config.arguments(who, NORM, ...)
  local list, norms = c.is_tensor(tensors) and { tensors } or tensors, {}
  config.argument(list, "table", who, "tensors")
  local _ <close> = c.no_grad()
  local p = o.norm_type == "inf" and math.huge or o.norm_type
  local norm_of = load_export "linalg".vector_norm
  for k, x in ipairs(list) do
    if not c.is_tensor(x) then
      errors.blame("%s: element %d of the list must be a tensor: got %s", who, k, errors.show(x))
    end
    norms[k] = norm_of(x:detach(), p):to(list[1].device)
  end
  local norm = #norms > 0 and norm_of(c.stack(norms), p) or c.tensor(0.0)
  if o.error_if_nonfinite and not norm:isfinite():item() then
    errors.blame("%s: the norm is %s", who, norm:item())
  end
  return norm
end

function total_norm.clip_grads_with_norm_(parameters, max_norm, norm)
  local who <const> = "clip_grads_with_norm_"
  config.argument(max_norm, "number", who, "max_norm")
  config.argument(norm, "tensor", who, "total_norm")
  local grads = grads_of(parameters, who)
  local _ <close> = c.allow_update()
  local factor = (max_norm / (norm + 1e-6)):clamp(nil, 1.0)
  for _, grad in ipairs(grads) do grad:mul_(factor:to(grad.device):to(grad.dtype)) end
end

return total_norm
