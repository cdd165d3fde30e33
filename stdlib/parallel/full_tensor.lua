--- stdlib/parallel/full_tensor.lua: gathers a tensor of which each rank of a group has a part
--- (full_tensor of PyTorch's DTensor).
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local padded = require "ltrain.parallel.padded"

--- The whole of a tensor that is cut as `cut` says, on every rank of its group, who all call it.
return function(part, cut)
  local _ <close> = c.no_grad()
  local _, _, each = cuts.place_of(cut, cut.rank)
  local own = padded(part:detach(), cut.dim, each * cut.blocks):contiguous()
  local all = collectives.all_gather(own, { group = cut.group })
  local made = c.empty(cut.shape, { dtype = part.dtype, device = part.device })
  for r = 1, cut.ranks do cuts.put(cut, made, r - 1, all[r]) end
  return made
end
