--- stdlib/dist/debug_rank.lua: checks that the rank of --debug_rank exists.
local errors = require "ltrain.core.errors"

local debug_rank = {
  wanted = nil, -- its number, where the command line names one
  wrong = nil, -- the message that was raised
}

--- A launch, or a loop of a Trainer, has so many ranks: raises where the wanted one is not among
--- them, nor was in a launch before.
function debug_rank.check(ranks)
  if not debug_rank.wanted then return end
  if debug_rank.wanted < ranks then
    debug_rank.wanted = nil
    return
  end
  debug_rank.wrong = ("--debug_rank must be below the number of ranks, %d: got %d"):format(ranks,
    debug_rank.wanted)
  errors.blame("%s", debug_rank.wrong)
end

return debug_rank
