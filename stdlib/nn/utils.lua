--- stdlib/nn/utils.lua: lt.nn.utils, what PyTorch has in torch.nn.utils and torch.utils.checkpoint.
--
local c = require "ltrain.c"
local closed = require "ltrain.core.closed"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"
local parameter_vector = require "ltrain.nn.parameter_vector"
local parametrize = require "ltrain.nn.parametrize"
local prune = require "ltrain.nn.prune"

local utils = {}

--- nn.utils.checkpoint(fn, ...): fn(...), whose intermediate values are not kept for backward but
--- computed again when it wants them: less memory for one more forward. The gradients have the same
--- bits, with the random numbers and modes that the first call had. fn must do the same when it is
--- called again, which ends once all values are there; calls may be nested, and recursive. What fn
--- changes beside its results may be changed twice; running averages of batch norm are not.
utils.checkpoint = require "ltrain.nn.checkpoint"

--- nn.utils.clip_grad_norm_(parameters, max_norm): see nn.clip_grad_norm_.
utils.clip_grad_norm_ = require "ltrain.nn.clip_grad_norm_"

--- nn.utils.clip_grad_value_(parameters, clip_value): see nn.clip_grad_value_.
utils.clip_grad_value_ = require "ltrain.nn.clip_grad_value_"

--- nn.utils.weight_norm(module, {name = "weight", dim = 1}): makes a parameter of a module the
--- product of a length for each position of `dim` (false: one for all) and a direction; returns the
--- module. As PyTorch's torch.nn.utils.parametrizations.weight_norm: the parameters are
--- parametrizations.weight.original0, the lengths, and original1, the directions, and the weight is
--- computed whenever it is read. Files of the older one, with weight_g and weight_v, load too.
--- Create optimizers after this.
utils.weight_norm = require "ltrain.nn.weight_norm"

--- nn.utils.spectral_norm(module, {name = "weight", n_power_iterations = 1, eps = 1e-12, dim = 1}):
--- makes a parameter of a module what it is, divided by its largest singular value; returns the
--- module. As PyTorch's torch.nn.utils.parametrizations.spectral_norm: the parameter is
--- parametrizations.weight.original; the singular vectors are buffers beside it, which each read in
--- training mode makes better by `n_power_iterations`. `dim` is that of the outputs: 1, of
--- transposed convolutions 2.
utils.spectral_norm = require "ltrain.nn.spectral_norm"

local REMOVE <const> = {
  leave_parametrized = { type = "boolean", default = true,
    doc = "whether it keeps the computed value, else that which it was computed from" },
}

--- nn.utils.remove_parametrizations(module, name, {leave_parametrized = true}): makes what
--- weight_norm or spectral_norm computes a parameter again, with the value it has, or, with
--- leave_parametrized = false, with that from which it was computed; returns the module.
function utils.remove_parametrizations(module, name, options)
  local who <const> = "remove_parametrizations"
  local o = config.check(options, REMOVE, who)
  local made = parametrize.made(module, name, who)
  local value = made.original
  if o.leave_parametrized then
    local _ <close> = c.no_grad()
    value = made:forward():detach()
  elseif not value then
    errors.blame("%s: '%s' is computed from several parameters: only its value can be left", who,
      name)
  end
  parametrize.remove(module, name, value)
  return module
end

--- nn.utils.is_parametrized(module, name): whether the parameter `name`, or any, is computed.
function utils.is_parametrized(module, name) return parametrize.has(module, name) end

--- nn.utils.parameters_to_vector(parameters): the elements of a list of parameters as one vector,
--- with their history.
utils.parameters_to_vector = parameter_vector.parameters_to_vector

--- nn.utils.vector_to_parameters(vector, parameters): copies the elements of a vector into the
--- parameters, in the order of parameters_to_vector.
utils.vector_to_parameters = parameter_vector.vector_to_parameters

--- nn.utils.prune: see nn.utils.prune below.
utils.prune = closed(prune, "nn.utils.prune")

return exact.all(utils, "nn.utils")
