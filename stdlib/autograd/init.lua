-- stdlib/autograd/init.lua: lt.autograd, what PyTorch has in torch.autograd.

local backward = require "ltrain.autograd.backward"
local c = require "ltrain.c"
local closed = require "ltrain.core.closed"
local functional = require "ltrain.autograd.functional"
local load_place = require "ltrain.core.load_place"

return {
  Function = load_place "Function", gradcheck = load_place "gradcheck",
  gradgradcheck = load_place "gradgradcheck",
  functional = closed(functional, "autograd.functional"), backward = backward, grad = c.grad,
  no_grad = c.no_grad, enable_grad = c.enable_grad, set_grad_enabled = c.set_grad_enabled,
  is_grad_enabled = c.is_grad_enabled, detect_anomaly = c.detect_anomaly,
}
