--- stdlib/trainer/overrides.lua: what the command line says to every Trainer of the main script.
--
-- The CLI fills `values` with options; each Trainer that is built takes them over the script's own
-- and tells each in one line. `ran` counts the loops that the script called itself: what it returns
-- is then not fitted again.
local overrides = {
  values = {}, -- option -> value
  ckpt_path = nil, -- for loops that are given none
  ran = 0,
}

return overrides
