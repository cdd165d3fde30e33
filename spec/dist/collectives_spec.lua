-- spec/dist/collectives_spec.lua: lt.dist over shared memory, against numbers computed on paper.
-- tags: slow
local support = require "spec.dist.support"

describe("collectives on tensors", function()
  it("reduce every dtype by every operation", function()
    support.ranks(3, support.every_reduction)
  end)

  it("take strided, empty and scalar tensors", function()
    support.ranks(2, [[
      local x = lt.tensor{{1.0, 2, 3}, {4, 5, 6}} * (rank + 1)
      same(x:t():contiguous() / (rank + 1) * 3, dist.all_reduce(x:t()))
      same({2, 3, 2}, dist.all_gather(x:t()).shape)
      same((x:t():contiguous() / (rank + 1) * 2), dist.all_gather(x:t())[2])
      same({0, 3}, dist.all_reduce(lt.zeros{0, 3}).shape)
      same(3, dist.all_reduce(lt.tensor(rank + 1.0)):item() // 1 | 0)
      same(lt.tensor{0, 1}, dist.all_gather(lt.tensor(rank)))
      local part = lt.zeros{3, 2}
      part:select(2, 1):fill_(rank + 1.0)
      dist.all_reduce_(part:select(2, 1))
      same(lt.tensor{{3.0, 0}, {3, 0}, {3, 0}}, part) -- the other column stayed
    ]])
  end)

  it("send and receive, into memory too", function()
    support.ranks(3, [[
      local next_rank, before = (rank + 1) % 3, (rank - 1) % 3
      if rank == 0 then
        dist.send(lt.tensor{1.5, 2.5}, 1)
        same({x = "back", n = {1, 2}}, dist.recv(2))
      else
        local got = dist.recv(before)
        if rank == 1 then dist.send(got + 1, next_rank)
        else
          same(lt.tensor{2.5, 3.5}, got)
          dist.send({x = "back", n = {1, 2}}, next_rank)
        end
      end
      local handle = dist.send(lt.full({2, 2}, rank, {dtype = "i64"}), next_rank, {async = true})
      local room = lt.zeros({2, 2}, {dtype = "i64"})
      same(true, rawequal(room, dist.recv(room, {from = before})))
      same(lt.full({2, 2}, before, {dtype = "i64"}), room)
      handle:wait()
    ]])
  end)

  it("continue while the script does something else", function()
    support.ranks(2, [[
      local handles = {}
      for i = 1, 20 do handles[i] = dist.all_reduce(lt.full({i}, rank + i), {async = true}) end
      local values = dist.all_gather({rank}, {async = true})
      for i = 20, 1, -1 do same(lt.full({i}, 2.0 * i + 1), handles[i]:wait() * 1.0) end
      same({{0}, {1}}, values:wait())
      while not handles[1]:test() do end
      local dropped = dist.all_reduce(lt.ones{5}, {async = true})
      dropped = nil
      collectgarbage()
      same(2, dist.all_reduce(1))
    ]])
  end)
end)

describe("collectives on values", function()
  it("reduce numbers as Lua computes", function()
    support.ranks(4, [[
      same(10, dist.all_reduce(rank + 1))
      same(10.0, dist.all_reduce(rank + 1.0))
      same(2.5, dist.all_reduce(rank + 1, {op = "mean"}))
      same(24, dist.all_reduce(rank + 1, {op = "prod"}))
      same(0, dist.all_reduce(rank, {op = "min"}))
      same(3.5, dist.all_reduce(rank + 0.5, {op = "max"}))
      local huge = rank == 0 and math.maxinteger or rank == 1 and 1 or 0
      same(math.mininteger, dist.all_reduce(huge))
      same(0.5, dist.all_reduce(rank == 3 and 0.5 or 0)) -- a rank without data has an integer
    ]])
  end)

  it("move values of every kind", function()
    support.ranks(3, [[
      local value = {rank, "r\0" .. rank, {deep = {rank / 0}}, lt.full({rank}, 1.0)}
      local all = dist.all_gather(value)
      for r = 0, 2 do
        same({r, "r\0" .. r, {deep = {r / 0}}, lt.full({r}, 1.0)}, all[r + 1])
      end
      local got = dist.broadcast(rank == 2 and value or nil, {from = 2})
      same({2, "r\0" .. 2}, {got[1], got[2]})
      local at_root = dist.gather(rank > 0 and rank or nil, {to = 1})
      if rank == 1 then same({nil, 1, 2}, at_root) else same(nil, at_root) end
      same("for " .. rank, dist.scatter(rank == 0 and {"for 0", "for 1", "for 2"} or "ignored"))
      same(false, dist.broadcast(false))
      same(nil, dist.broadcast(nil))
      same(("x"):rep(3000000), dist.broadcast(("x"):rep(3000000)))
    ]])
  end)

  it("of ranks that combine differently say so on each", function()
    support.ranks(2, [[
      local op = rank == 0 and "sum" or "max"
      same("all_reduce: ranks combine differently: rank 0: sum; rank 1: max",
        error_of(dist.all_reduce, 1, {op = op}):match("all_reduce.*"))
    ]])
  end)
end)

describe("groups", function()
  it("are split by color, ordered by key, and talk among themselves", function()
    support.ranks(4, [[
      local group = dist.split(rank % 2, {key = -rank})
      same(2, group:world_size())
      same({2 + rank % 2, rank % 2}, group:ranks())
      same(rank < 2 and 1 or 0, group:rank())
      same(rank % 2 * 2 + 2, group:all_reduce(rank))
      same(lt.tensor{rank % 2 * 2 + 2}, dist.all_reduce(lt.tensor{rank}, {group = group}))
      same({2 + rank % 2, rank % 2}, group:all_gather(rank))
      same(2 + rank % 2, group:broadcast(rank))
      if group:rank() == 0 then group:send("hi", 1) else same("hi", group:recv(0)) end
      group:barrier()
      local last = dist.split(rank == 3 and 0 or -1)
      same(rank == 3, last ~= nil)
      if last then same(3, last:all_reduce(3)) end
      local pair = group:split(0)
      same(2, pair:all_reduce(1))
      same(6, dist.all_reduce(rank))
    ]])
  end)

  it("are those of a mesh's dims", function()
    support.ranks(8, [[
      local mesh = dist.mesh({2, 2, 2}, {"replicate", "shard", "tensor"})
      same({rank // 4, rank // 2 % 2, rank % 2},
        {mesh:rank "replicate", mesh:rank "shard", mesh:rank "tensor"})
      same({8, 2}, {mesh:size(), mesh:size "shard"})
      same({rank % 4, rank % 4 + 4}, mesh:group("replicate"):ranks())
      same({rank // 2 * 2, rank // 2 * 2 + 1}, mesh:group("tensor"):ranks())
      local data = mesh:group("shard", "replicate")
      same({rank % 2, rank % 2 + 2, rank % 2 + 4, rank % 2 + 6}, data:ranks())
      same(data, mesh:group("replicate", "shard"))
      same(12 + 4 * (rank % 2), data:all_reduce(rank))
    ]])
  end)

  it("are those of a sub-mesh too", function()
    support.ranks(8, [[
      local mesh = dist.mesh({2, 2, 2}, {"replicate", "shard", "tensor"})
      local part = mesh:sub("tensor", "replicate")
      same("mesh(replicate = 2, tensor = 2)", tostring(part))
      same({{2, 2}, {"replicate", "tensor"}}, {part.sizes, part.names})
      same({4, 2, rank // 4 * 2 + rank % 2}, {part:size(), part:size "tensor", part:rank()})
      same({rank // 4, rank % 2}, part:place())
      same({1, 0}, part:place(2))
      same({rank // 4 * 2 + rank % 2, 4}, {mesh:number {"tensor", "replicate"}})
      same({3, 4}, {mesh:number({"replicate", "tensor"}, 5)})
      same({1, 2}, {part:number({"tensor"}, 3)})
      local first = rank // 2 % 2 * 2
      same({first, first + 1, first + 4, first + 5}, part:group():ranks())
      same(part:rank(), part:group():rank())
      same(true, rawequal(mesh:group("tensor"), part:sub("tensor"):group()))
      same(true, rawequal(mesh:group("replicate", "tensor"), part:group()))
      local message = error_of(function() part:group("shard") end)
      same("Mesh.group: there is no dim 'shard': this mesh has replicate, tensor",
        message:match("Mesh.*"))
    ]])
  end)

  it("end with their launch", function()
    support.passes([[
      local kept = dist.launch(2, function()
        return {dist.split(0), dist.all_reduce(lt.ones{1}, {async = true})}
      end)
      local message = error_of(function() local y = kept[1]:all_reduce(1) return y end)
      local ended = " belongs to a launch that has ended"
      same("all_reduce: this group" .. ended, message:match("all_reduce.*"))
      message = error_of(function() local y = kept[2]:wait() return y end)
      ended = "the launch that it belongs to has ended"
      same("all_reduce: " .. ended, message:match("all_reduce.*"))
      collectgarbage()
    ]])
  end)
end)

describe("what one rank does for all", function()
  it("runs on rank zero, and all have its results", function()
    support.ranks(3, [[
      local ran = 0
      local a, b, c = dist.on_rank_zero(function(x)
        ran = ran + 1
        return x, nil, {rank}
      end, "given")
      same({"given", {0}}, {a, c})
      same(nil, b)
      same(rank == 0 and 1 or 0, ran)
      local message = error_of(dist.on_rank_zero, function() error "boom" end)
      same(true, message:find "boom" ~= nil)
      same(rank > 0, message:find "on_rank_zero: rank 0: " ~= nil)
      message = error_of(dist.on_rank_zero, function() return print end)
      same(true, message:find "is a function" ~= nil)
      same(3, dist.all_reduce(1))
    ]])
  end)

  it("runs on rank zero first", function()
    support.passes([[
      local name = os.tmpname()
      local function lines()
        local n = 0
        for _ in io.lines(name) do n = n + 1 end
        return n
      end
      dist.launch(3, function(rank)
        local found = dist.rank_zero_first(function()
          local n = lines()
          if rank == 0 then
            local file <close> = io.open(name, "w")
            file:write "ready\n"
          end
          return n
        end)
        same(rank == 0 and 0 or 1, found)
        local message = error_of(dist.rank_zero_first, function() error "boom" end)
        same(true, message:find "boom" ~= nil)
      end)
      os.remove(name)
    ]])
  end)
end)

describe("many ranks", function()
  it("add in the order of the tree, several times in a row", function()
    support.ranks(20, [[
      local function value(r, k) return lt.tensor {1 / (1 + r + k), 3e7 * (r % 3) - 1e7 * k} end
      local function tree(lo, hi, k)
        if hi - lo == 1 then return value(lo, k) end
        local half = 1
        while 2 * half < hi - lo do half = 2 * half end
        return tree(lo, lo + half, k) + tree(lo + half, hi, k)
      end
      for k = 1, 6 do same(tree(0, 20, k), dist.all_reduce(value(rank, k))) end
      local long = lt.ones(5000) * (rank + 1)
      same(lt.ones(5000) * 210, dist.all_reduce(long))
    ]])
  end)
end)

describe("ranks that disagree", function()
  local function table_of(body)
    return support.fails(("dist.launch(2, function(rank) %s end)"):format(body))
  end

  it("all get the table, with lines and hooks", function()
    local output = table_of[[
      local c = require "ltrain.c"
      c.dist.set_hook "training_step"
      dist.all_reduce(lt.ones{2})
      if rank == 0 then dist.all_gather(lt.ones{8, 10}) else dist.broadcast(lt.ones{8, 10}) end
    ]]
    assert.matches("ranks disagree at collective 2: rank 0: all_gather %[8, 10%] f32 at "
      .. "script.lua:4 %(training_step%); rank 1: broadcast .*%[8, 10%] f32 .*at script.lua:4",
      output)
    local _, times = output:gsub("ranks disagree", "")
    assert.equal(1, times, output)
  end)

  it("in first sizes that all_gather cannot put side by side", function()
    local output = table_of[[ dist.all_gather(lt.ones{rank + 1, 2}) ]]
    assert.matches("cat = true", output)
  end)

  it("after one has left", function()
    local output = table_of[[ if rank == 0 then dist.all_gather(lt.ones{3}) end ]]
    assert.matches("rank 0: all_gather %[3%] f32 at script.lua:1; rank 1: left", output)
  end)

  it("keep failing in what they call later, with the same words", function()
    local output = table_of[[
      local first = error_of(dist.all_reduce, rank == 0 and lt.ones{1} or lt.ones{2})
      for _ = 1, 3 do same(first, error_of(dist.barrier)) end
      same("ranks", lt.last_error().code)
    ]]
    assert.matches("ranks disagree at collective 1", output)
  end)
end)
