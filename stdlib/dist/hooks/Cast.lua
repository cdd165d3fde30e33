--- stdlib/dist/hooks/Cast.lua: gradients sent in 16 bits (PyTorch's fp16_compress_hook and
--- bf16_compress_hook).
--
-- The mean's parts are rounded to 16 bits, and so is each sum of two of them on the way; nothing is
-- kept of what is rounded off.
local Hook = require "ltrain.dist.hooks.Hook"

local Cast = Hook:extend("Cast")

Cast.options = {}
Cast.has_state = false
Cast.takes_all = false
Cast.error_feedback = false
Cast.start = 0

function Cast:compress(x, _, group) self:all_reduce_(x, group) end

local Fp16, Bf16 = Cast:extend("Fp16"), Cast:extend("Bf16")
Fp16.name, Fp16.wire = "fp16", "f16"
Bf16.name, Bf16.wire = "bf16", "bf16"

return { fp16 = Fp16, bf16 = Bf16 }
