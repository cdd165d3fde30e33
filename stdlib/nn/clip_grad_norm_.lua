-- stdlib/nn/clip_grad_norm_.lua: clips the total norm of gradients.

local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local cuts = require "ltrain.core.cuts"
local grads_of = require "ltrain.nn.grads_of"
local total_norm = require "ltrain.nn.total_norm"

local NAME <const> = "clip_grad_norm_"

local OPTIONS <const> = {
  norm_type = { type = "number|string", default = 2.0, doc = "p of the p-norm; math.huge or 'inf'",
    check = function(value)
      if type(value) == "string" and value ~= "inf" then return "must be a number or 'inf'" end
    end },
  error_if_nonfinite = { type = "boolean", default = false,
    doc = "raise an error if the norm is inf or nan" },
  keep_nonfinite = { type = "boolean", default = false,
    doc = "do not change the gradients if the norm is inf or nan" },
}

-- The ranks that have the parts of parameters which are cut; nil: all are whole.
local function group_of(parameters)
  for _, parameter in ipairs(c.is_tensor(parameters) and { parameters } or parameters) do
    local cut = cuts.of(parameter)
    if cut then return cut.group end
  end
end

-- The same where a rank has parts of parameters: the norm is that of the whole ones. All ranks of
-- the group call it.
local function clip_parts(parameters, max_norm, o, p, group)
  local list = c.is_tensor(parameters) and { parameters } or parameters
  local _ <close> = c.no_grad()
  local own = total_norm.get_total_norm(grads_of(cuts.counted(list, group:rank() == 0), NAME),
    { norm_type = p })
  local norms = collectives.all_gather(own:to "f64", { group = group })
  local norm = total_norm.get_total_norm({ norms }, { norm_type = p,
    error_if_nonfinite = o.error_if_nonfinite }):to(own.dtype)
  if not o.keep_nonfinite or norm:isfinite():item() then
    total_norm.clip_grads_with_norm_(list, max_norm, norm)
  end
  return norm
end

--- Scales the gradients of a list of parameters, or of one, in place so that their total norm is at
--- most `max_norm`. Options: norm_type (2), error_if_nonfinite (false), keep_nonfinite (false).
--- Returns the norm before clipping, a tensor without dims: under lt.parallelize that of whole
--- parameters, on all ranks that call it.
return call_form.method(function(parameters, max_norm, options)
  config.argument(max_norm, "number", NAME, "max_norm")
  local grads = grads_of(parameters, NAME)
  local group = group_of(parameters)
  if options == nil and not group then return c.clip_grad_norm(grads, max_norm) end
  local o = config.check(options, OPTIONS, NAME)
  local p = o.norm_type == "inf" and math.huge or o.norm_type
  if group then return clip_parts(parameters, max_norm, o, p, group) end
  return c.clip_grad_norm(grads, { max_norm = max_norm, norm_type = p,
    error_if_nonfinite = o.error_if_nonfinite, keep_nonfinite = o.keep_nonfinite })
end, NAME, 2, "norm_type error_if_nonfinite")
