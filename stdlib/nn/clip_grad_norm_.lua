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

-- The groups of ranks that have the parts of parameters which are cut: a list, empty where all are
-- whole.
local function groups_of(parameters)
  local groups, known = {}, {}
  for _, parameter in ipairs(c.is_tensor(parameters) and { parameters } or parameters) do
    local cut = cuts.of(parameter)
    if cut and not known[cut.group] then
      known[cut.group], groups[#groups + 1] = true, cut.group
    end
  end
  return groups
end

-- The same where a rank has parts of parameters: the norm is that of the whole ones. All ranks of
-- the groups call it.
local function clip_parts(parameters, max_norm, o, p, groups)
  local list = c.is_tensor(parameters) and { parameters } or parameters
  local _ <close> = c.no_grad()
  local function norm_of(counts)
    return total_norm.get_total_norm(grads_of(cuts.counted(list, counts), NAME), { norm_type = p })
  end
  local norms, dtype = {}, nil
  for i, group in ipairs(groups) do
    local own = norm_of(function(cut) return cut ~= nil and cut.group == group end)
    norms[i], dtype = collectives.all_gather(own:to "f64", { group = group }), dtype or own.dtype
  end
  table.insert(norms, norm_of(function(cut) return cut == nil end):to "f64")
  local norm = total_norm.get_total_norm(norms, { norm_type = p,
    error_if_nonfinite = o.error_if_nonfinite }):to(dtype)
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
  local groups = groups_of(parameters)
  if options == nil and #groups == 0 then return c.clip_grad_norm(grads, max_norm) end
  local o = config.check(options, OPTIONS, NAME)
  local p = o.norm_type == "inf" and math.huge or o.norm_type
  if #groups > 0 then return clip_parts(parameters, max_norm, o, p, groups) end
  return c.clip_grad_norm(grads, { max_norm = max_norm, norm_type = p,
    error_if_nonfinite = o.error_if_nonfinite, keep_nonfinite = o.keep_nonfinite })
end, NAME, 2, "norm_type error_if_nonfinite")
