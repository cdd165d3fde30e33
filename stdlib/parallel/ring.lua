--- stdlib/parallel/ring.lua: tensors that go from rank to rank round a ring.
local collectives = require "ltrain.dist.collectives"
local split = require "ltrain.parallel.split_sequence"

local ring = {}

--- The ring of a group (nil: of all ranks): { group =, rank =, size =, options = of messages }.
function ring.of(group)
  local rank, size = split.place(group)
  return { rank = rank, size = size, options = { group = group, async = true } }
end

--- Begins to send a list of tensors to the next rank, and to receive that of the rank before;
--- returns a function that waits for both and returns what came, on `device`. Other work may be
--- done in between; the tensors must not be written to. All ranks call it the same number of times.
function ring.shift(self, list, device)
  local sent = collectives.send(list, (self.rank + 1) % self.size, self.options)
  local received = collectives.recv((self.rank - 1) % self.size, self.options)
  return function()
    local came = received:wait()
    sent:wait()
    for i, tensor in ipairs(came) do
      if tensor.device ~= device then came[i] = tensor:to(device) end
    end
    return came
  end
end

--- Releases the memory of a list of tensors at once; they cannot be used any more.
function ring.release(list)
  for _, tensor in ipairs(list) do
    local _ <close> = tensor
  end
end

--- The rank whose block is here after `step` shifts.
function ring.source(self, step) return (self.rank - step) % self.size end

return ring
