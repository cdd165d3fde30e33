--- stdlib/strategies/sharded/optimizer_guard.lua: keeps scripts from the state of an optimizer of
--- which this rank has shards alone.
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local optimizer_guard = {}

--- Makes its state_dict an error, and its load_state_dict one that shards: load(optimizer, saved).
--- `who`: the strategy.
function optimizer_guard.guard(optimizer, who, load)
  local name = "optim." .. class.of(optimizer).__name
  rawset(optimizer, "state_dict", function()
    errors.blame("%s: state_dict: under %s each rank has a part of it: "
      .. "trainer.strategy:optimizer_state(optimizer), called on all ranks, returns it on rank 0",
      name, who)
  end)
  rawset(optimizer, "load_state_dict", load)
end

--- The optimizer has all of its state.
function optimizer_guard.unguard(optimizer)
  rawset(optimizer, "state_dict", nil)
  rawset(optimizer, "load_state_dict", nil)
end

--- Stands for a state whose parts on other ranks are lost: an error, until another is loaded.
function optimizer_guard.lose(optimizer, who)
  local function refuse()
    errors.blame("optim.%s: its state is incomplete: a fit under %s failed, and the other ranks "
      .. "ended with their parts of it: resume from a checkpoint with ckpt_path, or create a new "
      .. "optimizer", class.of(optimizer).__name, who)
  end
  optimizer.state = setmetatable({}, { __index = refuse, __newindex = refuse, __pairs = refuse })
end

return optimizer_guard
