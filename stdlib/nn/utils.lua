--- stdlib/nn/utils.lua: lt.nn.utils, what PyTorch has in torch.nn.utils and torch.utils.checkpoint.
--
local exact = require "ltrain.core.exact"

local utils = {}

--- nn.utils.checkpoint(fn, ...): fn(...), whose intermediate values are not kept for backward but
--- computed again when it wants them: less memory for one more forward. The gradients have the same
--- bits, with the random numbers and modes that the first call had. fn must do the same when it is
--- called again; calls may be nested. What fn changes beside its results is changed twice; running
--- averages of batch norm are not.
utils.checkpoint = require "ltrain.nn.checkpoint"

--- nn.utils.clip_grad_norm_(parameters, max_norm): see nn.clip_grad_norm_.
utils.clip_grad_norm_ = require "ltrain.nn.clip_grad_norm_"

--- nn.utils.clip_grad_value_(parameters, clip_value): see nn.clip_grad_value_.
utils.clip_grad_value_ = require "ltrain.nn.clip_grad_value_"

return exact.all(utils, "nn.utils")
