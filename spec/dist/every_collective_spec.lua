-- spec/dist/every_collective_spec.lua: every collective over every transport, on groups, and what
-- is reported when two ranks of a group call different ones.
-- tags: slow
local every_collective = require "spec.dist.every_collective"
local over = require "spec.dist.over"
local support = require "spec.dist.support"

describe("every collective", function()
  for n = 1, 4 do
    over({ "shm", "mpi" }, ("of %d ranks and of groups of them"):format(n), function(way)
      local status, output = support.over(way, n, ("dist.launch(%d, function(rank)\n%s\nend)")
        :format(n, every_collective))
      assert.equal(0, status, output)
    end)
  end
end)

-- What rank 0 and rank 1 of a group call, and how each is reported.
local PAIRS <const> = [[
  local ones, other = lt.ones{4}, lt.ones({4}, {dtype = "f64"})
  -- The call of a group, at once or by a handle; `x`: its argument, nil: it has none.
  local function of(name, x, options)
    return function(g, async)
      local o = {async = async}
      for key, value in next, options or {} do o[key] = key ~= "peer" and value or nil end
      local got
      if options and options.peer then got = g[name](g, x, options.peer, o)
      elseif x ~= nil then got = g[name](g, x, o)
      else got = g[name](g, o) end
      if async then got:wait() end
    end
  end
  local pairs_of_calls = {
    {of("all_reduce", ones), of("broadcast", ones), "all_reduce sum [4] f32", "broadcast [4] f32"},
    {of("all_reduce", ones), of("all_reduce", ones, {op = "max"}), "all_reduce sum [4] f32",
      "all_reduce max [4] f32"},
    {of("all_reduce", 1), of("all_reduce", ones), "all_reduce of a value",
      "all_reduce sum [4] f32"},
    {of("all_gather", ones), of("all_gather", ones, {cat = true}), "all_gather [4] f32",
      "all_gather {cat = true} [4] f32"},
    {of("all_to_all", ones), of("all_to_all", ones:view(2, 2)), "all_to_all [4] f32",
      "all_to_all [2, 2] f32"},
    {of("gather", ones, {to = 1}), of("gather", ones), "gather [4] f32 to 2",
      "gather [4] f32 to 0"},
    {of("scatter", {1, 2}), of("barrier"), "scatter of a value from 0", "barrier"},
    {of("send", 1, {peer = 1}), of("send", 1, {peer = 0}), "send of a value to 2",
      "send of a value to 0"},
    {of("recv", 1), of("recv", 0), "recv of a value from 2", "recv of a value from 0"},
  }
  for _, name in ipairs{"all_reduce", "all_reduce_", "broadcast", "all_gather", "reduce_scatter",
    "all_to_all", "reduce", "gather"} do
    local shown = name:gsub("_$", "")
    table.insert(pairs_of_calls, {of(name, ones * 1), of(name, other), shown, shown, "f32", "f64"})
    table.insert(pairs_of_calls, {of(name, ones * 1), of(name, lt.ones{4, 2}), shown, shown,
      "[4] f32", "[4, 2] f32"})
  end
]]

describe("two ranks of a group", function()
  it("that call different collectives are reported, with the group", function()
    support.passes(PAIRS .. [[
      for i, row in ipairs(pairs_of_calls) do
        local message = error_of(dist.launch, 3, function(rank)
          local group = dist.split(rank % 2)
          if rank == 1 then dist.barrier() end
          row[rank // 2 + 1](group, i % 2 == 0) -- each second one by handles
          dist.barrier()
        end, {timeout = 300})
        for k = 3, #row do
          if not message:find(row[k], 1, true) then error(row[k] .. " is not in " .. message) end
        end
        local is_message = row[3]:find "^send" or row[3]:find "^recv"
        local said = is_message and "deadlock: .*in the group of ranks 0, 2"
          or "ranks disagree at collective 1 of the group of ranks 0, 2: rank 0: .*; rank 2: "
        if not message:find(said) then error(message) end
        if not message:find "at script.lua:%d+" then error(message) end
      end
    ]])
  end)
end)
