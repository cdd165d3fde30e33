--- stdlib/precision/init.lua: what the Trainer's `precision` means.
--
-- A plugin is {name =, autocast = dtype or nil}: the steps run with autocast to that dtype, weights
-- and updates stay f32.
local errors = require "ltrain.core.errors"

local precision = {}

local SAME <const> = { ["32"] = "32-true", ["bf16"] = "bf16-mixed", ["16"] = "16-mixed",
  ["64"] = "64-true" }

local PLUGINS <const> = {
  ["32-true"] = { name = "32-true" },
  ["bf16-mixed"] = { name = "bf16-mixed", autocast = "bf16" },
}

-- Known elsewhere, and why not here.
local ABSENT <const> = {
  ["16-mixed"] = "needs a GPU: write 'bf16-mixed'",
  ["16-true"] = "needs a GPU: write 'bf16-mixed'",
  ["bf16-true"] = "weights are kept in f32: write 'bf16-mixed'",
  ["64-true"] = "not there: write module:to('f64') and '32-true'",
  ["transformer-engine"] = "needs a GPU",
}

--- The plugin of a name or number; raises a sentence when there is none.
function precision.plugin(value)
  local word = tostring(value):lower()
  word = SAME[word] or word
  if PLUGINS[word] then return PLUGINS[word] end
  errors.blame("Trainer: precision = %s: %s", errors.show(value),
    ABSENT[word] or "must be '32-true' or 'bf16-mixed'")
end

return precision
