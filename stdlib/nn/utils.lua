--- stdlib/nn/utils.lua: lt.nn.utils, the functions of torch.nn.utils and torch.utils.checkpoint.
--
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local parameter_vector = require "ltrain.nn.parameter_vector"
local parametrize = require "ltrain.nn.parametrize"
local strict_arity = require "ltrain.core.strict_arity"
local strict_table = require "ltrain.core.strict_table"
local total_norm = require "ltrain.nn.total_norm"

local utils = {}

--- nn.utils.checkpoint(fn, ...): calls fn(...) without saving its intermediate values, which
--- backward recomputes: less memory for one additional forward pass. The gradients are bitwise
--- equal, with the same random numbers and modes as in the first call. fn must be deterministic
--- otherwise; the recomputation stops once all values are available; calls may be nested and
--- recursive. Side effects of fn may happen twice, except updates of batch-norm statistics.
utils.checkpoint = require "ltrain.nn.checkpoint"

--- nn.utils.clip_grad_norm_(parameters, max_norm): see nn.clip_grad_norm_.
utils.clip_grad_norm_ = require "ltrain.nn.clip_grad_norm_"

--- nn.utils.clip_grad_value_(parameters, clip_value): see nn.clip_grad_value_.
utils.clip_grad_value_ = require "ltrain.nn.clip_grad_value_"

--- Returns the number of floating-point operations of forward_fn(), as counted by Lightning's
--- measure_flops and PyTorch's FlopCounterMode: those of matrix products, convolutions, attention
--- and recurrent layers, two for each multiply-add. With loss_fn, those of
--- loss_fn(result):backward() are added. The callback ModelSummary shows them by layer.
function utils.measure_flops(model, forward_fn, loss_fn)
  return require "ltrain.nn.flops".measure_flops(model, forward_fn, loss_fn)
end

--- nn.utils.weight_norm(module, {name = "weight", dim = 1}): weight normalization: parametrizes a
--- parameter of a module as the product of a norm for each position of `dim` (false: one norm) and
--- a direction; returns the module. As PyTorch's torch.nn.utils.parametrizations.weight_norm: the
--- parameters are parametrizations.weight.original0, the norms, and original1, the directions, and
--- the weight is computed whenever it is read. Files of PyTorch's older weight_norm, with weight_g
--- and weight_v, can be loaded. Create optimizers after this.
utils.weight_norm = require "ltrain.nn.weight_norm"

--- nn.utils.spectral_norm(module, {name = "weight", n_power_iterations = 1, eps = 1e-12, dim = 1}):
--- spectral normalization: divides a parameter of a module by its largest singular value; returns
--- the module. As PyTorch's torch.nn.utils.parametrizations.spectral_norm: the parameter is
--- parametrizations.weight.original; the singular vectors are buffers, which are updated with
--- `n_power_iterations` at each read in training mode. `dim` is the output dim: 1, for transposed
--- convolutions 2.
utils.spectral_norm = require "ltrain.nn.spectral_norm"

local REMOVE <const> = config.signature {
  { "leave_parametrized", type = "boolean", default = true,
    doc = "whether it keeps the computed value, else that which it was computed from" },
}

--- nn.utils.remove_parametrizations(module, name, {leave_parametrized = true}): removes the
--- parametrizations of a parameter, which becomes a plain parameter with its current value, or,
--- with leave_parametrized = false, with the original value; returns the module.
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

--- nn.utils.register_parametrization(module, name, parametrization, {unsafe = false}): parametrizes
--- a parameter: whenever it is read, it is the result of the module `parametrization`; returns the
--- module. As torch.nn.utils.parametrize: the parameter is parametrizations.weight.original. An
--- optional method right_inverse(value) returns the input of forward for a value, when it is
--- registered and when the parameter is assigned; it may return a list of tensors, for a forward
--- with several arguments. Several parametrizations are applied in order. Shape and dtype must not
--- change, unless `unsafe`.
utils.register_parametrization = require "ltrain.nn.parametrization_list"

--- nn.utils.cached(fn, ...): `local _ <close> = nn.utils.cached()`, or fn(...) in it: computes the
--- results of parametrizations only once until the end of the block.
function utils.cached(fn, ...)
  local scope <close> = fn ~= nil and parametrize.keep() or nil
  if not scope then return parametrize.keep() end
  local results = table.pack(fn(...))
  return table.unpack(results, 1, results.n)
end

--- nn.utils.is_parametrized(module, name): whether the parameter `name`, or any parameter, is
--- parametrized.
function utils.is_parametrized(module, name) return parametrize.has(module, name) end

--- nn.utils.type_before_parametrizations(module): the original class of a module.
function utils.type_before_parametrizations(module) return parametrize.plain_class(module) end

--- nn.utils.get_total_norm(tensors, norm_type, error_if_nonfinite): the total norm of a tensor or a
--- list of tensors, such as gradients for clip_grads_with_norm_.
utils.get_total_norm = total_norm.get_total_norm

--- nn.utils.clip_grads_with_norm_(parameters, max_norm, total_norm): scales the gradients of a
--- parameter or a list of parameters like clip_grad_norm_, with a known total norm.
utils.clip_grads_with_norm_ = total_norm.clip_grads_with_norm_

--- nn.utils.fuse_conv_bn_eval(conv, bn, transpose): a copy of a convolution (transpose = true: a
--- transposed one) fused with the batch norm `bn` that follows it. Both must be in evaluation mode.
function utils.fuse_conv_bn_eval(conv, bn, transpose)
  return require "ltrain.nn.fusion".conv(conv, bn, transpose)
end

--- nn.utils.fuse_linear_bn_eval(linear, bn): likewise for a Linear.
function utils.fuse_linear_bn_eval(linear, bn)
  return require "ltrain.nn.fusion".linear(linear, bn)
end

--- nn.utils.parameters_to_vector(parameters): the elements of a list of parameters as one vector,
--- with their history.
utils.parameters_to_vector = parameter_vector.parameters_to_vector

--- nn.utils.vector_to_parameters(vector, parameters): copies the elements of a vector into the
--- parameters, in the order of parameters_to_vector.
utils.vector_to_parameters = parameter_vector.vector_to_parameters

strict_arity.all(utils, "nn.utils")

--- nn.utils.parametrize: register_parametrization, remove_parametrizations, is_parametrized, cached
--- and type_before_parametrizations, under PyTorch's module name.
utils.parametrize = strict_table({ register_parametrization = utils.register_parametrization,
  remove_parametrizations = utils.remove_parametrizations,
  is_parametrized = utils.is_parametrized, cached = utils.cached,
  type_before_parametrizations = utils.type_before_parametrizations }, "nn.utils.parametrize")

--- nn.utils.parametrizations: weight_norm and spectral_norm, likewise, and
--- orthogonal(module, name, orthogonal_map, use_trivialization), which makes a parameter a matrix
--- whose columns, or rows if those are fewer, are orthonormal, as PyTorch's does: by 'matrix_exp'
--- (of square ones), 'householder' (of others) or 'cayley'. The parameter is
--- parametrizations.weight.original; what it started from is the buffer `base`, without
--- use_trivialization = false.
utils.parametrizations = strict_table({ weight_norm = utils.weight_norm,
  spectral_norm = utils.spectral_norm, orthogonal = function(module, ...)
    return require "ltrain.nn.orthogonal"(module, ...)
  end }, "nn.utils.parametrizations")

--- nn.utils.rnn: empty; lt.data.pad_sequence and unpad_sequence are the functions of that name, and
--- instead of packed sequences layers take {lengths = n}.
utils.rnn = strict_table({}, "nn.utils.rnn")

return strict_table(utils, "nn.utils", {
  prune = function() return require "ltrain.nn.prune" end })
