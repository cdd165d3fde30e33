--- stdlib/trainer/overrides.lua: what the command line says to every Trainer of the main script.
--
-- The CLI sets options; each Trainer that is built takes them over the script's own and tells each
-- in one line. `ran` counts the loops that were called: what a script that called one returns is
-- not fitted again.
local overrides = {
  values = {}, -- option -> value
  ckpt_path = nil, -- for loops that are given none
  only = nil, -- the loop of the command word, nil for `run`
  seed = nil, -- whatever the script says
  ran = 0,
}

--- Sets an option of every Trainer to come.
function overrides.set(name, value)
  overrides.values[name] = value
end

return overrides
