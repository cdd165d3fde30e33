-- spec/dist/gather_parts_spec.lua: states in parts, gathered on rank 0.
local support = require "spec.dist.support"

describe("gather_parts", function()
  it("makes whole tensors of the parts of all ranks, and keeps rank 0's other values", function()
    support.ranks(3, [[
      local parts = require "ltrain.core.parts"
      local gather = require "ltrain.dist.gather_parts"
      local rank, whole = dist.rank(), lt.arange(12.0):reshape {3, 4}
      local cuts = {[0] = {8, 4}, {0, 5}, {5, 3}}
      local from, n = table.unpack(cuts[rank])
      local state = { name = "rank " .. rank, list = {}, kept = rank == 0 and lt.ones(2) or nil }
      state.list[1] = parts.new{shape = {3, 4}, from = from, tensor = parts.read(whole, from, n)}
      if rank == 1 then -- the only one that has it
        state.own = {["1"] = {step = 7, x = parts.of(lt.full({2, 2}, 3.0))}}
      end
      local all = gather(state)
      if rank > 0 then return same(nil, all) end
      same({ name = "rank 0", list = { whole }, kept = lt.ones(2),
        own = {["1"] = {step = 7, x = lt.full({2, 2}, 3.0)}} }, all)
    ]])
  end)

  it("names what no rank has", function()
    support.ranks(2, [[
      local parts = require "ltrain.core.parts"
      local gather = require "ltrain.dist.gather_parts"
      if dist.rank() == 0 then
        local message = error_of(gather, {w = {s = parts.new{shape = {4, 2}, from = 0,
          tensor = lt.ones(3)}}})
        assert(message:find("no rank has element 3 of .w.s [4, 2]", 1, true), message)
      else
        gather {w = {s = parts.new{shape = {4, 2}, from = 5, tensor = lt.ones(3)}}}
      end
    ]])
  end)
end)
