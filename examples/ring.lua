-- examples/ring.lua: several processes without a Trainer: a token goes round, tensors are added up.
--
--   ltrain examples/ring.lua
--
-- Four ranks pass a token on, each writing its name into it; then each holds one part of a vector
-- and all find its length. Prints where the token was, the length, and the world.
local lt = require "ltrain"
local dist = lt.dist

local RANKS <const> = 4

-- What every rank runs. Upvalues are there; what a rank changes is its own copy.
local function ring(rank)
  local next_rank, before = (rank + 1) % RANKS, (rank - 1) % RANKS

  -- Values of Lua travel as data: tables, numbers, strings, tensors.
  local token
  if rank == 0 then
    token = {path = {"rank 0"}, steps = 0}
    dist.send(token, next_rank)
    token = dist.recv(before)
  else
    token = dist.recv(before)
    token.steps = token.steps + 1
    token.path[#token.path + 1] = "rank " .. rank
    dist.send(token, next_rank)
  end

  -- Each rank has 1,000 of 4,000 elements: 1, 2, ..., 4000.
  local part = lt.arange(1, 1001, {dtype = "f64"}) + rank * 1000
  local sum_of_squares = dist.all_reduce((part * part):sum())

  -- Asynchronous: the sum is on its way while this rank does something else.
  local handle = dist.all_reduce(part:max(), {op = "max", async = true})
  local process = dist.all_gather(dist.world().pid)
  local largest = handle:wait()

  return token, sum_of_squares:sqrt():item(), largest:item(), #process
end

-- Forks three processes; this one is rank 0. Returns rank 0's results.
local token, length, largest, processes = dist.launch(RANKS, ring)

print(("token: %s, back after %d steps"):format(table.concat(token.path, ", "), token.steps + 1))
print(("length %.3f, largest element %g, on %d processes"):format(length, largest, processes))
print(("afterwards: rank %d of %d"):format(dist.rank(), dist.world_size()))
