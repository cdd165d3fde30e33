-- stdlib/autograd/init.lua: lt.autograd, what PyTorch has in torch.autograd.

local backward = require "ltrain.autograd.backward"
local c = require "ltrain.c"
local functional = require "ltrain.autograd.functional"
local load_export = require "ltrain.core.load_export"
local strict_table = require "ltrain.core.strict_table"

return {
  Function = load_export "Function", gradcheck = load_export "gradcheck",
  gradgradcheck = load_export "gradgradcheck",
  functional = strict_table(functional, "autograd.functional"), backward = backward, grad = c.grad,
  no_grad = c.no_grad, enable_grad = c.enable_grad, set_grad_enabled = c.set_grad_enabled,
  is_grad_enabled = c.is_grad_enabled, detect_anomaly = c.detect_anomaly,
}
