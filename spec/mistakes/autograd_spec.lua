-- spec/mistakes/autograd_spec.lua: backward, writes in place, gradients that are off.
local mistakes = require "spec.mistakes.mistakes"

mistakes("gradients", {
  { "backward twice", [[
local w = lt.parameter(lt.ones(2))
local l = (w * w):sum()
l:backward()
l:backward() --!]],
    "backward of mul: its saved values were freed by an earlier backward; pass {retain_graph = "
    .. "true} to that one" },
  { "backward of a vector", [[
local w = lt.parameter(lt.ones(2))
local l = w * 2
l:backward() --!]],
    "backward: needs a tensor of one element, got [2]; sum it or pass a gradient" },
  { "backward without parameters", [[
local l = lt.ones(2):sum()
l:backward() --!]],
    "backward: this tensor has no history (made under no_grad, detached, or from tensors that "
    .. "do not require grad)" },
  { "a loss under no_grad", [[
local w = lt.parameter(lt.ones(2))
local l = lt.no_grad(function() return (w * w):sum() end)
l:backward() --!]],
    "backward: this tensor has no history (made under no_grad, detached, or from tensors that "
    .. "do not require grad)" },
  { "backward of a number", [[
local w = lt.parameter(lt.ones(2))
local l = (w * w):sum():item()
l:backward() --!]],
    "attempt to index a number value (local 'l')" },
  { "a parameter changed in place", [[
local w = lt.parameter(lt.ones(2))
w:add_(1) --!]],
    "add_: in-place write into a leaf that requires grad; do it under lt.no_grad()" },
  { "a saved value changed in place", [[
local w = lt.parameter(lt.ones(2))
local h = w:exp()
h:mul_(2)
h:sum():backward() --!]],
    "backward of exp (script.lua:2): a value of shape [2] that it saved was written in place "
    .. "since by mul at script.lua:3" },
  { "gradients of integers", [[
local w = lt.tensor({1, 2}, {requires_grad = true}) --!]],
    "requires_grad: only floating tensors have gradients, this is i64" },
  { "a gradient before backward", [[
local w = lt.parameter(lt.ones(2))
local g = w.grad:norm() --!]],
    "attempt to index a nil value (field 'grad'); gradients are there after backward" },
  { "a detached loss", [[
local w = lt.parameter(lt.ones(2))
local l = (w * w):detach():sum()
l:backward() --!]],
    "backward: this tensor has no history (made under no_grad, detached, or from tensors that "
    .. "do not require grad)" },
  { "gradients that are off", [[
local w = lt.parameter(lt.ones(2))
local _ <close> = lt.no_grad()
local loss = (w * w):sum()
loss:backward() --!]],
    "backward: this tensor has no history: gradients are off here; after `local _ <close> = "
    .. "lt.no_grad()` they are until the block ends" },
  { "a gradient of another shape", [[
local w = lt.parameter(lt.ones(2))
local y = w * 2
y:backward(lt.ones(3)) --!]],
    "backward: the gradient has shape [3], the tensor [2]" },
})
