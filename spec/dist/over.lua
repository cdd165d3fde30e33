-- spec/dist/over.lua: one case for each of the ways in which ranks are started.
local busted = require "busted"
local job = require "spec.dist.job"

--- For each of the ways ("shm", "mpi", "two hosts") a case `NAME over WAY` that is fn(way), or the
--- reason why there can be none here.
return function(ways, name, fn)
  for _, way in ipairs(ways) do
    local can, why = job.can(way)
    local sentence = ("%s over %s"):format(name, way)
    if can then
      busted.it(sentence, function() fn(way) end)
    else
      busted.pending(("%s (%s)"):format(sentence, why))
    end
  end
end
