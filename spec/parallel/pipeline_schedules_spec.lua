-- spec/parallel/pipeline_schedules_spec.lua: the schedules of pipelines, run by a simulator: each
-- is complete, free of deadlocks, and has the bubble of its formula.
local BlockTimes = require "ltrain.strategies.pipeline.BlockTimes"
local lt = require "ltrain"
local partition = require "ltrain.strategies.pipeline.partition"
local schedules = require "ltrain.strategies.pipeline.schedules"

-- What an action waits for: an action of this or another rank, as a key; nil: nothing.
local function needs(kind, g, k, virtual)
  if kind == "F" then return g > 1 and ("F %d %d"):format(g - 1, k) or nil end
  if kind == "W" then return ("I %d %d"):format(g, k) end
  if g == virtual then return ("F %d %d"):format(g, k) end
  return ("%s %d %d"):format(kind, g + 1, k)
end

-- Runs the lists of all ranks; `times`: of each kind. Returns when the last action ends, and when
-- each rank has begun and how long it has worked; raises where no rank can go on.
local function simulate(ranks, chunks, times)
  local stages = #ranks
  local at, now, ends, live = {}, {}, {}, {}
  for r = 1, stages do at[r], now[r], live[r] = 1, 0, { n = 0, most = 0 } end
  local left = 0
  for _, list in ipairs(ranks) do left = left + #list end
  while left > 0 do
    local moved = false
    for r, list in ipairs(ranks) do
      local one = list[at[r]]
      while one do
        local g = schedules.stage_of(r - 1, one.chunk, stages)
        local wanted = needs(one.kind, g, one.microbatch, stages * chunks)
        if wanted and not ends[wanted] then break end
        now[r] = math.max(now[r], wanted and ends[wanted] or 0) + times[one.kind]
        ends[("%s %d %d"):format(one.kind, g, one.microbatch)] = now[r]
        if one.kind == "F" then live[r].n = live[r].n + 1 end
        live[r].most = math.max(live[r].most, live[r].n)
        if one.kind == "B" or one.kind == "W" then live[r].n = live[r].n - 1 end
        at[r], left, moved = at[r] + 1, left - 1, true
        one = list[at[r]]
      end
    end
    if not moved then error "deadlock" end
  end
  local last, most = 0, {}
  for r = 1, stages do last, most[r] = math.max(last, now[r]), live[r].most end
  return last, most
end

-- Times of which a third is a forward; of a chunk.
local function times_of(name, chunks)
  return name == "zero_bubble" and { F = 1, I = 1, W = 1 } or { F = 1 / chunks, B = 2 / chunks }
end

-- Each action that must be there, once.
local function count_actions(name, list, microbatches, chunks)
  local seen, count = {}, 0
  for _, one in ipairs(list) do
    local key = ("%s %d %d"):format(one.kind, one.chunk, one.microbatch)
    assert.is_nil(seen[key], key)
    assert.is_true(one.chunk <= chunks and one.microbatch <= microbatches)
    seen[key], count = true, count + 1
  end
  assert.equal((name == "zero_bubble" and 3 or 2) * microbatches * chunks, count)
end

local function each_case(name, fn)
  for stages = 1, 5 do
    for microbatches = 1, 10 do
      for chunks = name == "interleaved" and 2 or 1, name == "interleaved" and 3 or 1 do
        fn(stages, microbatches, chunks)
      end
    end
  end
end

describe("strategies.pipeline.schedules", function()
  for _, name in ipairs(schedules.names) do
    it(name .. " runs each action once, and ends", function()
      each_case(name, function(stages, microbatches, chunks)
        local ranks = schedules.of(name, stages, microbatches, chunks)
        for _, list in ipairs(ranks) do count_actions(name, list, microbatches, chunks) end
        simulate(ranks, chunks, times_of(name, chunks))
      end)
    end)

    it(name .. " has the bubble of its formula", function()
      each_case(name, function(stages, microbatches, chunks)
        if microbatches < stages and name == "zero_bubble" then return end
        if microbatches % stages ~= 0 and name == "interleaved" then return end
        local ranks = schedules.of(name, stages, microbatches, chunks)
        local last = simulate(ranks, chunks, times_of(name, chunks))
        local wanted = schedules.bubble(name, stages, microbatches, chunks)
        local what = ("%d stages, %d microbatches, %d chunks"):format(stages, microbatches, chunks)
        assert.is_true(math.abs(wanted - (1 - 3 * microbatches / last)) < 1e-12, what)
      end)
    end)
  end

  it("1f1b and zero_bubble keep at most as many microbatches as there are stages behind", function()
    for _, name in ipairs { "1f1b", "zero_bubble" } do
      local _, most = simulate(schedules.of(name, 4, 16), 1, times_of(name, 1))
      if name == "1f1b" then assert.same({ 4, 3, 2, 1 }, most) end
      for r = 1, 4 do assert.is_true(most[r] <= 4, name) end
    end
    local _, most = simulate(schedules.of("gpipe", 4, 16), 1, times_of("gpipe", 1))
    assert.same({ 16, 16, 16, 16 }, most)
  end)

  it("backwards of a stage are in the order of microbatches", function()
    for _, name in ipairs { "gpipe", "1f1b" } do
      for _, list in ipairs(schedules.of(name, 3, 5)) do
        local next_one = 1
        for _, one in ipairs(list) do
          if one.kind == "B" then
            assert.equal(next_one, one.microbatch)
            next_one = next_one + 1
          end
        end
      end
    end
  end)
end)

describe("strategies.pipeline.partition", function()
  -- The least largest sum, by trying all.
  local function best(costs, parts, from)
    if parts == 1 then
      local sum = 0
      for i = from, #costs do sum = sum + costs[i] end
      return sum
    end
    local sum, least = 0, math.huge
    for i = from, #costs - parts + 1 do
      sum = sum + costs[i]
      least = math.min(least, math.max(sum, best(costs, parts - 1, i + 1)))
    end
    return least
  end

  local function largest(costs, ends)
    local most, from = 0, 1
    for _, to in ipairs(table.move(ends, 1, #ends, 1, { [#ends + 1] = #costs })) do
      local sum = 0
      for i = from, to do sum = sum + costs[i] end
      assert.is_true(to >= from)
      most, from = math.max(most, sum), to + 1
    end
    return most
  end

  it("finds the least largest part", function()
    math.randomseed(7)
    for _ = 1, 40 do
      local costs = {}
      for i = 1, math.random(4, 9) do costs[i] = math.random(1, 20) end
      for parts = 1, 4 do
        local ends = partition(costs, parts)
        assert.equal(parts - 1, #ends)
        assert.equal(best(costs, parts, 1), largest(costs, ends))
      end
    end
  end)

  it("gives each layer a part where there are as many", function()
    assert.same({ 1, 2 }, partition({ 5, 1, 1 }, 3))
  end)
end)

describe("strategies.pipeline.BlockTimes", function()
  it("has forward and backward of each block, and what is before and behind them", function()
    local time = 0.0
    local times = BlockTimes(3, function() return time end)
    -- Takes so long in forward, and so long in backward.
    local function layer(forward, backward)
      return lt.Function {
        forward = function(_, x)
          time = time + forward
          return x * 2
        end,
        backward = function(_, grad)
          time = time + backward
          return grad * 2
        end,
      }
    end
    local before, behind = layer(1, 2), layer(5, 10)
    local blocks = { layer(10, 20), layer(100, 200), layer(1000, 2000) }
    for _ = 1, 2 do
      times:begin()
      local x = lt.ones(2)
      x.requires_grad = true
      local h = before(x)
      for i, block in ipairs(blocks) do h = times:watch(i, block, h) end
      local loss = behind(h):sum()
      times:begin_backward()
      loss:backward()
      times:end_backward()
    end
    assert.same({ 1 + 2 + 10 + 20, 300.0, 3000.0 + 5 + 10 }, times:costs())
  end)

  it("has zeros where nothing ran", function()
    assert.same({ 0.0, 0.0 }, BlockTimes(2):costs())
  end)
end)
