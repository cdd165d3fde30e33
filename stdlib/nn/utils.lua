--- stdlib/nn/utils.lua: lt.nn.utils, what PyTorch has in torch.nn.utils and torch.utils.checkpoint.
--
local c = require "ltrain.c"
local closed = require "ltrain.core.closed"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"
local fusion = require "ltrain.nn.fusion"
local has_shape = require "ltrain.core.has_shape"
local parameter_vector = require "ltrain.nn.parameter_vector"
local parametrize = require "ltrain.nn.parametrize"
local prune = require "ltrain.nn.prune"
local total_norm = require "ltrain.nn.total_norm"

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

--- The floating point operations of forward_fn(), as Lightning's measure_flops and PyTorch's
--- FlopCounterMode count them: of products of matrices, convolutions, attention and recurrent
--- layers, two for a multiplication and an addition. With loss_fn those of
--- loss_fn(result):backward() are added. The callback ModelSummary has them by layer.
function utils.measure_flops(model, forward_fn, loss_fn)
  return require "ltrain.nn.flops".measure_flops(model, forward_fn, loss_fn)
end

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

local REMOVE <const> = config.signature {
  { "leave_parametrized", type = "boolean", default = true,
    doc = "whether it keeps the computed value, else that which it was computed from" },
}

--- nn.utils.remove_parametrizations(module, name, {leave_parametrized = true}): makes what
--- weight_norm, spectral_norm or another parametrization computes a parameter again, with the value
--- it has, or, with leave_parametrized = false, with that from which it was computed; returns the
--- module.
function utils.remove_parametrizations(module, name, ...)
  local who <const> = "remove_parametrizations"
  local o = config.arguments(who, REMOVE, ...)
  local made = parametrize.made(module, name, who)
  local original = made.original
  if o.leave_parametrized then
    local _ <close> = c.allow_update()
    local value = made:forward():detach()
    if original and has_shape(original, value) then original:copy_(value) else original = value end
  elseif not original then
    errors.blame("%s: '%s' is computed from several parameters: only its value can be left", who,
      name)
  end
  parametrize.remove(module, name, original)
  return module
end

--- nn.utils.register_parametrization(module, name, parametrization, {unsafe = false}): makes a
--- parameter what the module `parametrization` makes of it, whenever it is read; returns the
--- module. As torch.nn.utils.parametrize: the parameter is parametrizations.weight.original. A
--- method right_inverse(value) of the parametrization makes of a value what forward gets, when it
--- is registered and when the parameter is assigned to; it may return a list of tensors, for a
--- forward of several. Several are applied in turn. Shape and dtype must stay, without `unsafe`.
utils.register_parametrization = require "ltrain.nn.parametrization_list"

--- nn.utils.cached(fn, ...): `local _ <close> = nn.utils.cached()`, or fn(...) in it: what
--- parametrizations compute is computed once, until the end of the block.
function utils.cached(fn, ...)
  local scope <close> = fn ~= nil and parametrize.keep() or nil
  if not scope then return parametrize.keep() end
  local results = table.pack(fn(...))
  return table.unpack(results, 1, results.n)
end

--- nn.utils.is_parametrized(module, name): whether the parameter `name`, or any, is computed.
function utils.is_parametrized(module, name) return parametrize.has(module, name) end

--- nn.utils.type_before_parametrizations(module): the class that the module was made of.
function utils.type_before_parametrizations(module) return parametrize.plain_class(module) end

--- nn.utils.get_total_norm(tensors, norm_type, error_if_nonfinite): the norm of a list of tensors,
--- or of one, as of one vector: of gradients, for clip_grads_with_norm_.
utils.get_total_norm = total_norm.get_total_norm

--- nn.utils.clip_grads_with_norm_(parameters, max_norm, total_norm): scales the gradients of a list
--- of parameters, or of one, as clip_grad_norm_ does, by a norm that is known.
utils.clip_grads_with_norm_ = total_norm.clip_grads_with_norm_

--- nn.utils.fuse_conv_bn_eval(conv, bn, transpose): a copy of a convolution (transpose = true: a
--- transposed one) that gives what the batch norm `bn` makes of its results. Both are in evaluation
--- mode.
utils.fuse_conv_bn_eval = fusion.conv

--- nn.utils.fuse_linear_bn_eval(linear, bn): likewise, of a Linear.
utils.fuse_linear_bn_eval = fusion.linear

--- nn.utils.parameters_to_vector(parameters): the elements of a list of parameters as one vector,
--- with their history.
utils.parameters_to_vector = parameter_vector.parameters_to_vector

--- nn.utils.vector_to_parameters(vector, parameters): copies the elements of a vector into the
--- parameters, in the order of parameters_to_vector.
utils.vector_to_parameters = parameter_vector.vector_to_parameters

--- nn.utils.prune: see nn.utils.prune below.
utils.prune = closed(prune, "nn.utils.prune")

exact.all(utils, "nn.utils")

--- nn.utils.parametrize: register_parametrization, remove_parametrizations, is_parametrized, cached
--- and type_before_parametrizations, under PyTorch's name of their room.
utils.parametrize = closed({ register_parametrization = utils.register_parametrization,
  remove_parametrizations = utils.remove_parametrizations,
  is_parametrized = utils.is_parametrized, cached = utils.cached,
  type_before_parametrizations = utils.type_before_parametrizations }, "nn.utils.parametrize")

--- nn.utils.parametrizations: weight_norm and spectral_norm, likewise.
utils.parametrizations = closed({ weight_norm = utils.weight_norm,
  spectral_norm = utils.spectral_norm }, "nn.utils.parametrizations")

return utils
