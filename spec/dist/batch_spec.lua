-- spec/dist/batch_spec.lua: lt.dist.batch, several collectives at once.
-- tags: slow
local over = require "spec.dist.over"
local support = require "spec.dist.support"

-- Both neighbours at once, all sends first: one call after the other would wait in a circle.
local RING <const> = [[
  local n = dist.world_size()
  local right, left = (rank + 1) % n, (rank + n - 1) % n
  for _, size in ipairs{0, 3, 300000} do
    local x = lt.full({size}, rank + 1.0)
    local got = dist.batch{
      {"send", x, right}, {"send", x * 10, left}, {"recv", left}, {"recv", right},
    }
    same({nil, nil}, {got[1], got[2]})
    same(lt.full({size}, left + 1.0), got[3])
    same(lt.full({size}, (right + 1.0) * 10), got[4])
  end
]]

describe("a batch", function()
  over({ "shm", "mpi" }, "exchanges with both neighbours, whatever the sizes", function(way)
    local status, output = support.over(way, 3, ("dist.launch(3, function(rank) %s end)"):format(
      RING))
    assert.equal(0, status, output)
  end)

  it("has collectives and messages, with options, and a result for each", function()
    support.ranks(3, [[
      local room = lt.zeros{2}
      local calls = {
        {"all_reduce", lt.ones{2} * rank}, {"all_reduce", rank, {op = "max"}}, {"barrier"},
        {"gather", rank, {to = 1}}, {"scatter", rank == 2 and {"a", "b", "c"} or nil, {from = 2}},
        {"all_gather", lt.full({rank}, rank), {cat = true}}, {"broadcast", rank, {from = 1}},
        {"all_to_all", lt.arange(6), {splits = {1, 2, 3}}},
        rank == 0 and {"send", lt.ones{2}, 1} or rank == 1 and {"recv", room, {from = 0}} or nil,
      }
      local got = dist.batch(calls)
      same(lt.ones{2} * 3, got[1])
      same({2, rank == 1 and {0, 1, 2} or nil}, {got[2], got[4]})
      same({("abc"):sub(rank + 1, rank + 1), 1}, {got[5], got[7]})
      same(lt.tensor{1, 2, 2}, got[6])
      same({3 * (rank + 1)}, got[8].shape)
      if rank == 1 then same({true, lt.ones{2}}, {rawequal(room, got[9]), room}) end
      same({}, dist.batch{})
    ]])
  end)

  it("may be waited for later, and be that of a group", function()
    support.ranks(4, [[
      local pair = dist.split(rank // 2)
      local calls = {{"send", rank, 1 - pair:rank()}, {"recv", 1 - pair:rank()},
        {"all_reduce", 1, {group = dist.split(0)}}, {"all_reduce", 1}}
      local handle = pair:batch(calls, {async = true})
      local sum = dist.all_reduce(1)
      local got = handle:wait()
      same(true, handle:test())
      same({rank // 2 * 2 + 1 - rank % 2, 4, 2, 4}, {got[2], got[3], got[4], sum})
      same(got[2], dist.batch(calls, {group = pair})[2])
    ]])
  end)

  over({ "shm", "mpi" }, "passes gradients back around a ring", function(way)
    local status, output = support.over(way, 3, [[dist.launch(3, function(rank)
      local x = lt.full({2}, rank + 1.0, {requires_grad = true})
      local right, left = (rank + 1) % 3, (rank + 2) % 3
      local got = dist.batch{{"recv", left}, {"recv", right}, {"send", x, right}, {"send", x, left}}
      local loss = (got[1] * 10 ^ rank + got[2] * 2 * 10 ^ rank):sum() + got[3] + got[4]
      loss:backward()
      same(lt.full({2}, 10.0 ^ right + 2 * 10.0 ^ left), x.grad)
    end)]])
    assert.equal(0, status, output)
  end)

  it("says what is wrong with its calls", function()
    support.passes[[
      local function refused(wanted, ...)
        local message = error_of(dist.batch, ...)
        if not message:find(wanted, 1, true) then error(message) end
      end
      refused("batch: calls[1] must be a list of a collective's name and its arguments: got "
        .. "'al_reduce'; did you mean 'all_reduce'", {{"al_reduce", 1}})
      refused("batch: calls[2] must be a list of a collective's name and its arguments: got 3",
        {{"barrier"}, 3})
      refused("unknown option 'opp'; did you mean 'op'", {{"all_reduce", 1, {opp = "sum"}}})
      refused("all_reduce: one argument too many: 3", {{"all_reduce", 1, {}, 3}})
      refused("send: to must be another rank: this is rank 0", {{"send", 1, 0}})
      refused("batch: calls must be a table: got 3", 3)
    ]]
  end)
end)
