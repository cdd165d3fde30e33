-- spec/dist/deadlock_spec.lua: ranks that wait for each other are reported at once, over groups and
-- messages; ranks that are late, stopped, or have messages under way are not deadlock.
-- tags: half, slow
local support = require "spec.dist.support"

-- The timeout is far longer than a case may take: what is found is found without a clock.
local SCRIPT <const> = "dist.launch(%d, function(rank) %s end, {timeout = 300})"

local CASES <const> = {
  {
    "collectives of crossed groups", 4,
    [[
      local columns, rows = dist.split(rank % 2), dist.split(rank // 2)
      if rank == 0 then columns:all_reduce(1) end
      if rank == 1 then rows:all_reduce(lt.ones{3}) end
      if rank == 2 then rows:broadcast(1) end
      if rank == 3 then columns:barrier() end
    ]],
    "deadlock: rank 0 waits for rank 2, rank 2 for rank 3, rank 3 for rank 1, rank 1 for rank 0: "
      .. "rank 0: all_reduce of a value at script.lua:2 in the group of ranks 0, 2; "
      .. "rank 2: broadcast of a value from 2 at script.lua:4 in the group of ranks 2, 3; "
      .. "rank 3: barrier at script.lua:5 in the group of ranks 1, 3; "
      .. "rank 1: all_reduce sum [3] f32 at script.lua:3 in the group of ranks 0, 1",
  },
  {
    "two groups of the same ranks", 3,
    [[
      local one, two = dist.split(rank // 2), dist.split(rank // 2)
      dist.barrier()
      if rank == 0 then one:all_reduce(1) end
      if rank == 1 then two:all_reduce(1) end
      dist.barrier()
    ]],
    "deadlock: rank 0 waits for rank 1, rank 1 for rank 0: "
      .. "rank 0: all_reduce of a value at script.lua:3 in the group of ranks 0, 1; "
      .. "rank 1: all_reduce of a value at script.lua:4 in another group of ranks 0, 1",
  },
  {
    "a recv and a collective", 3,
    [[
      if rank == 1 then dist.recv(0) end
      dist.barrier()
    ]],
    "deadlock: rank 0 waits for rank 1, rank 1 for rank 0: rank 0: barrier at script.lua:2; "
      .. "rank 1: recv of a value from 0 at script.lua:1",
  },
  {
    "two that receive from each other", 3,
    [[
      if rank ~= 1 then dist.recv(2 - rank) end
      dist.barrier()
    ]],
    "deadlock: rank 0 waits for rank 2, rank 2 for rank 0: "
      .. "rank 0: recv of a value from 2 at script.lua:1; "
      .. "rank 2: recv of a value from 0 at script.lua:1",
  },
  {
    "two that send to each other", 3,
    [[
      if rank ~= 1 then dist.send(lt.ones{8}, 2 - rank) end
      dist.barrier()
    ]],
    "deadlock: rank 0 waits for rank 2, rank 2 for rank 0: "
      .. "rank 0: send of a value to 2 at script.lua:1; "
      .. "rank 2: send of a value to 0 at script.lua:1",
  },
  {
    "a ring that only receives", 3,
    [[
      dist.barrier()
      dist.recv((rank + 1) % 3)
    ]],
    "deadlock: rank 0 waits for rank 1, rank 1 for rank 2, rank 2 for rank 0: "
      .. "rank 0: recv of a value from 1 at script.lua:2; "
      .. "rank 1: recv of a value from 2 at script.lua:2; "
      .. "rank 2: recv of a value from 0 at script.lua:2",
  },
  {
    "a second recv where one message was sent, in a group", 3,
    [[
      local pair = dist.split(rank // 2)
      if rank == 0 then pair:send(lt.ones{2}, 1) end
      if rank == 1 then pair:recv(0) pair:recv(0) end
      dist.barrier()
    ]],
    "deadlock: rank 0 waits for rank 1, rank 1 for rank 0: rank 0: barrier at script.lua:4; "
      .. "rank 1: recv of a value from 0 at script.lua:3 in the group of ranks 0, 1",
  },
}

for _, over in ipairs { "shm", "mpi" } do
  describe("deadlocks over " .. over, function()
    for _, case in ipairs(CASES) do
      local name <const>, n <const>, body <const>, wanted <const> = table.unpack(case)
      it("are found at once: " .. name, function()
        local status, output = support.over(over, n, SCRIPT:format(n, body))
        if over == "shm" then assert.equal(1, status, output) end
        assert.truthy(output:find(wanted, 1, true), output)
      end)
    end

    it("are not seen where ranks are late, and messages under way", function()
      local _, output = support.over(over, 3, SCRIPT:format(3, [[
        local pair = dist.split(rank // 2)
        local function sleep(s) s = s + os.clock() repeat until os.clock() >= s end
        local sent
        if rank == 0 then sent = pair:send(lt.full({2}, 7.0), 1, {async = true}) end
        if rank == 1 then
          sleep(0.3) -- rank 0 waits in the barrier, rank 2 too
          same(7.0, pair:recv(0):sum():item() / 2)
        end
        dist.barrier()
        if sent then sent:wait() end
        local early = rank < 2 and pair:all_reduce(rank, {async = true})
        if rank == 2 then sleep(0.3) end
        dist.barrier() -- before the group's own, which is under way
        if early then same(1, early:wait()) end
        if rank == 0 then print "well" end
      ]]))
      assert.equal("well\n", output)
    end)
  end)
end
