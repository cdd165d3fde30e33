-- stdlib/nn/SwiGLU.lua: silu(a) * b of the halves a and b of x along a dim.
--
-- The gate is the first half (in nn.GLU the last). After one projection to both halves it is the
-- SwiGLU of Shazeer's "GLU Variants Improve Transformer", silu(x W) * (x V), with W above V in the
-- weight: nn.Sequential(nn.Linear(d, 2 * h), nn.SwiGLU(), nn.Linear(h, d)). With two projections,
-- as Llama has them, it is self.w1(x):silu() * self.w3(x).

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.SwiGLU() or nn.SwiGLU(2)
return activation_layer("SwiGLU", "swiglu", {
  { "dim", type = "integer", default = -1, doc = "the dim to split" },
})
