-- spec/apps/plan/simulation_spec.lua: the discrete-event model of a step, and what collectives cost
-- on links.
local collective_costs = require "ltrain.apps.plan.collective_costs"
local links = require "ltrain.apps.plan.links"
local simulation = require "ltrain.apps.plan.simulation"

local MACHINE <const> = { intra = { bandwidth = 1e9, latency = 0 }, overlaps = true }

local function issue(kind, bytes, ranks) return { issue = kind, bytes = bytes, ranks = ranks } end

describe("the model of a step", function()
  local a, b = issue("all_reduce", 1), issue("all_reduce", 1)

  local function seconds(timeline, cost, overlaps)
    return (simulation.run(timeline, function() return cost end, overlaps))
  end

  it("takes the time of what a rank computes where it sends nothing", function()
    local all, computing = simulation.run({ { seconds = 2 }, { seconds = 3 } })
    assert.same({ 5, 5 }, { all, computing })
    assert.same({ 0, 0 }, { simulation.run {} })
  end)

  it("hides a collective behind what is computed until the wait", function()
    local timeline = { { seconds = 1 }, a, { seconds = 4 }, { wait = a }, { seconds = 1 } }
    assert.equal(6, seconds(timeline, 3, true))
    assert.equal(7, seconds(timeline, 5, true))
    assert.equal(6, seconds(timeline, 0, true))
  end)

  it("adds collectives that ranks move themselves", function()
    local timeline = { { seconds = 1 }, a, { seconds = 4 }, { wait = a } }
    assert.equal(8, seconds(timeline, 3, false))
  end)

  it("moves one collective after another", function()
    local timeline = { a, b, { seconds = 1 }, { wait = a }, { seconds = 1 }, { wait = b } }
    assert.equal(6, seconds(timeline, 3, true))
  end)

  it("does not wait for collectives of another step", function()
    assert.equal(1, seconds({ { wait = a }, { seconds = 1 } }, 3, true))
  end)
end)

describe("the cost of a collective", function()
  local function cost(kind, bytes, ranks, per_node, on)
    return collective_costs.seconds(issue(kind, bytes, ranks),
      { ranks = ranks, per_node = per_node or ranks }, on or MACHINE)
  end

  it("is that of a ring, where latency is small", function()
    for _, n in ipairs { 2, 3, 8 } do
      assert.near(2 * (n - 1) / n * 8e6 / 1e9, cost("all_reduce", 8e6, n), 1e-12)
      assert.near((n - 1) / n * 8e6 / 1e9, cost("all_gather", 8e6, n), 1e-12)
      assert.near((n - 1) / n * 8e6 / 1e9, cost("reduce_scatter", 8e6, n), 1e-12)
    end
    assert.equal(0, cost("all_reduce", 8e6, 1))
  end)

  it("is that of a tree, where messages are small", function()
    local slow = { intra = { bandwidth = 1e9, latency = 1 } }
    assert.near(2 * 3, cost("all_reduce", 0, 8, 8, slow), 1e-9)
    assert.near(3, cost("all_gather", 0, 8, 8, slow), 1e-9)
    assert.near(2, cost("all_reduce", 0, 2, 2, slow), 1e-9)
  end)

  it("is that of the links between machines", function()
    local on = { intra = { bandwidth = 1e12, latency = 0 },
      inter = { bandwidth = 1e9, latency = 0 } }
    assert.near(2 * 15 / 16 * 8e6 / 1e9, cost("all_reduce", 8e6, 16, 8, on), 1e-12)
    local outer = { issue = "all_reduce", bytes = 1e6, ranks = 2, stride = 8 }
    assert.near(2 / 2 * 8e6 / 1e9, -- the eight ranks of a machine share its link
      collective_costs.seconds(outer, { ranks = 16, per_node = 8 }, on), 1e-12)
    local inner = { issue = "all_reduce", bytes = 8e6, ranks = 8 }
    assert.near(2 * 7 / 8 * 8e6 / 1e12,
      collective_costs.seconds(inner, { ranks = 16, per_node = 8 }, on), 1e-12)
  end)

  it("does not fall with ranks, nor rise with bandwidth", function()
    local on = links.parse "intra=300GB 2us, inter=100Gb 10us"
    local wider = links.parse "intra=300GB 2us, inter=200Gb 10us"
    for _, kind in ipairs { "all_reduce", "all_gather", "reduce_scatter" } do
      for _, bytes in ipairs { 8, 1e5, 1e9 } do
        local before = 0
        for power = 0, 12 do
          local ranks = 1 << power
          local now = cost(kind, bytes, ranks, math.min(ranks, 8), on)
          assert.is_true(now >= before, ("%s of %d on %d ranks"):format(kind, bytes, ranks))
          assert.is_true(cost(kind, bytes, ranks, math.min(ranks, 8), wider) <= now)
          before = now
        end
      end
    end
  end)
end)

describe("--link", function()
  it("has bits or bytes a second, and a latency", function()
    local found = links.parse "100Gb 5us"
    assert.equal(12.5e9, found.inter.bandwidth)
    assert.near(5e-6, found.inter.latency, 1e-15)
    assert.equal(found.inter, found.intra)
    found = links.parse "intra=450GB/s 300ns, inter=100Gb"
    assert.near(450e9, found.intra.bandwidth, 1)
    assert.near(300e-9, found.intra.latency, 1e-15)
    assert.near(5e-6, found.inter.latency, 1e-15)
    for _, text in ipairs { "", "100", "100G", "100Gb 5", "100Gb fast", "outer=1GB", "-1GB" } do
      assert.is_nil(links.parse(text), text)
    end
  end)
end)
