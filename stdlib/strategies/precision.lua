--- stdlib/strategies/precision.lua: what the Trainer's `precision` means: names of built-in
--- precisions.
local Precision = require "ltrain.core.Precision"
local errors = require "ltrain.core.errors"

local precision = {}

local SAME <const> = { ["32"] = "32-true", ["bf16"] = "bf16-mixed", ["16"] = "16-mixed",
  ["64"] = "64-true" }

local PLUGINS <const> = {
  ["32-true"] = Precision(),
  -- Weights and updates stay f32.
  ["bf16-mixed"] = Precision.adopt({ name = "bf16-mixed", autocast = "bf16" }, "precision"),
}

-- Names of Lightning that are refused, and why.
local ABSENT <const> = {
  ["16-mixed"] = "needs a GPU: write 'bf16-mixed'",
  ["16-true"] = "needs a GPU: write 'bf16-mixed'",
  ["bf16-true"] = "weights are kept in f32: write 'bf16-mixed'",
  ["64-true"] = "not supported: write module:to('f64') and '32-true'",
  ["transformer-engine"] = "needs a GPU",
}

--- Returns the precision of a name or number; an unknown one is an error. `where`: "Trainer".
function precision.plugin(value, where)
  local word = tostring(value):lower()
  word = SAME[word] or word
  if PLUGINS[word] then return PLUGINS[word] end
  errors.blame("%s: precision = %s: %s", where or "Trainer", errors.show(value),
    ABSENT[word] or "must be '32-true' or 'bf16-mixed'")
end

return precision
