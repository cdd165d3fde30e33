-- stdlib/nn/clip_grad_norm_.lua: clips the total norm of gradients.

local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local grads_of = require "ltrain.nn.grads_of"

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

--- Scales the gradients of a list of parameters, or of one, in place so that their total norm is at
--- most `max_norm`. Options: norm_type (2), error_if_nonfinite (false), keep_nonfinite (false).
--- Returns the norm before clipping, a tensor without dims.
return call_form.method(function(parameters, max_norm, options)
  config.argument(max_norm, "number", NAME, "max_norm")
  local grads = grads_of(parameters, NAME)
  if options == nil then return c.clip_grad_norm(grads, max_norm) end
  local o = config.check(options, OPTIONS, NAME)
  local p = o.norm_type == "inf" and math.huge or o.norm_type
  return c.clip_grad_norm(grads, { max_norm = max_norm, norm_type = p,
    error_if_nonfinite = o.error_if_nonfinite, keep_nonfinite = o.keep_nonfinite })
end, NAME, 2, "norm_type error_if_nonfinite")
