--- stdlib/apps/plan/pipeline_step.lua: what a step takes under Pipeline: computed from the blocks
--- of one rank that has all stages.
--
-- Each stage has its blocks' parameters with their gradients and state, and those outside of the
-- blocks; for backward it keeps as many microbatches as the schedule says. The slowest stage sets
-- the pace, and the schedule's bubble (strategies/pipeline/schedules.lua) is added.
local PlannedPipeline = require "ltrain.apps.plan.PlannedPipeline"
local collective_costs = require "ltrain.apps.plan.collective_costs"
local links_of = require "ltrain.apps.plan.links"
local partition = require "ltrain.strategies.pipeline.partition"
local rehearsal = require "ltrain.apps.plan.rehearsal"
local schedules = require "ltrain.strategies.pipeline.schedules"
local times = require "ltrain.apps.plan.times"
local traffic = require "ltrain.apps.plan.traffic"

-- The virtual stages of each rank: a list of { first =, last = } by rank; blocks from 1.
local function stages_of(own, costs, stages)
  local virtual = stages * own.chunks
  local ends = own.split and #own.split == virtual - 1 and own.split or partition(costs, virtual)
  local ranks = {}
  for rank = 0, stages - 1 do
    ranks[rank + 1] = {}
    for chunk = 1, own.chunks do
      local g = schedules.stage_of(rank, chunk, stages)
      ranks[rank + 1][chunk] = { first = (ends[g - 1] or 0) + 1, last = ends[g] or #costs }
    end
  end
  return ranks
end

-- Bytes that a virtual stage keeps of a microbatch: what it has received, too.
local function kept_by(stage, profile)
  local count = profile.count
  local bytes = stage.first > 1 and profile.passed[stage.first - 1] or 0
  bytes = bytes + profile.kept[0] + (stage.last == count and profile.kept[count + 1] or 0)
  for i = stage.first, stage.last do bytes = bytes + profile.kept[i] end
  return bytes
end

-- The most that a rank keeps at once, by its actions.
local function most_kept(actions, stages, profile)
  local now, most = 0, 0
  for _, action in ipairs(actions) do
    local bytes = kept_by(stages[action.chunk], profile)
    if action.kind == "F" then now = now + bytes end
    most = math.max(most, now)
    if action.kind == "B" or action.kind == "W" then now = now - bytes end
  end
  return most
end

local function sum(list, stages)
  local total = 0
  for _, stage in ipairs(stages) do
    for i = stage.first, stage.last do total = total + list[i] end
  end
  return total
end

-- Messages of a rank and reductions of its gradients, as a timeline; `mesh`: how many ranks are in
-- a stage of a pipeline (`inner`), stages and pipelines.
local function timeline_of(stages, profile, count, gradients, mesh)
  local list = {}
  local function send(bytes)
    for _ = 1, count do list[#list + 1] = { issue = "send", bytes = bytes, ranks = 2 } end
  end
  for _, stage in ipairs(stages) do
    if stage.last < profile.count then send(profile.passed[stage.last]) end
    if stage.first > 1 then send(profile.passed[stage.first - 1]) end
  end
  if mesh.stages > 1 and gradients.common > 0 then
    list[#list + 1] = { issue = "all_reduce", bytes = gradients.common, ranks = mesh.stages,
      stride = mesh.inner }
  end
  if mesh.pipelines > 1 then
    list[#list + 1] = { issue = "all_reduce", bytes = gradients.own, ranks = mesh.pipelines,
      stride = mesh.inner * mesh.stages }
  end
  return list
end

-- Bytes of a rank with these stages. `found`: of a rank that has all of them.
local function bytes_of(stages, actions, found, profile, count, mesh)
  local common = found.parameters
  for _, bytes in ipairs(profile.parameters) do common = common - bytes end
  local parameters = common + sum(profile.parameters, stages)
  local function part(bytes, of)
    return found.parameters > 0 and math.floor(bytes * of / found.parameters) or 0
  end
  local row = { parameters = parameters, gradients = part(found.gradients, parameters),
    state = part(found.state, parameters), temporaries = found.temporaries,
    activations = most_kept(actions, stages, profile), device = found.device }
  row.peak = row.parameters + row.gradients + row.state + row.activations + row.temporaries
  row.timeline = timeline_of(stages, profile, count,
    { common = part(found.gradients, common), own = row.gradients }, mesh)
  row.sent = traffic.of(row.timeline) + part(found.inner_sent, parameters)
  return row
end

-- The link between neighbouring stages, and how long a rank's messages and reductions take that
-- nothing hides.
local function communication(row, ranks, profile, count, mesh, o, hardware)
  local links = hardware.measured[links_of.count(o.per_node)] or hardware.links
  local is_far = mesh.inner * mesh.stages > o.per_node
  local link, bytes, reductions = is_far and links.inter or links.intra, 0, 0
  for _, stages in ipairs(ranks) do
    for _, stage in ipairs(stages) do
      if stage.last < profile.count then bytes = math.max(bytes, profile.passed[stage.last]) end
    end
  end
  for _, entry in ipairs(row.timeline) do
    if entry.issue == "all_reduce" then
      reductions = reductions + collective_costs.seconds(entry, o, links)
    end
  end
  local message = link.latency + bytes / link.bandwidth
  local chunks = #ranks[1]
  local exposed = 2 * (mesh.stages * chunks - 1) + (links.overlaps and 0 or 2 * count * chunks)
  return exposed * message + reductions
end

-- Adds seconds: the share of the slowest rank of what one rank computes, and the bubble.
local function add_times(row, one, own, costs, ranks, communicates)
  local slowest, total = 0, 0
  for _, stages in ipairs(ranks) do
    local cost = sum(costs, stages)
    slowest, total = math.max(slowest, cost), total + cost
  end
  local share = total > 0 and slowest / total or 1 / #ranks
  local bubble = schedules.bubble(own.schedule, #ranks, one.count, own.chunks)
  row.computing = one.computing * share
  row.seconds = one.seconds * share / (1 - bubble) + communicates
  row.bubble, row.method, row.threads = bubble, one.method, one.threads
end

-- A step of a rank that has all stages: bytes, and with hardware seconds; `costs` of its blocks.
local function measure_whole(row, o, virtual, mesh, hardware)
  local own = row.own
  local one = setmetatable({ strategy = PlannedPipeline(own, virtual),
    ranks = mesh.inner * mesh.pipelines }, { __index = o })
  local found, message = rehearsal.run(one)
  if not found then return nil, message end
  local costs, profile = {}, one.strategy.profile
  for i, bytes in ipairs(profile.parameters) do costs[i] = bytes + 1 end
  found.count, found.samples = one.strategy.count, one.strategy.samples
  found.profile = profile
  found.inner_sent = 0
  local whole = { issue = "all_reduce", bytes = found.gradients, ranks = mesh.pipelines,
    stride = mesh.inner }
  if mesh.inner > 1 then
    found.inner_sent = math.max(traffic.of(found.timeline) - traffic.sent(whole), 0)
  end
  if hardware then
    one.strategy = PlannedPipeline(own, virtual)
    local ok
    ok, message = times.add(found, one, hardware)
    if not ok then return nil, message end
    if own.balance == "time" then costs = one.strategy.profile:costs() end
    if mesh.inner == 1 then found.seconds = found.computing end -- without sums of gradients
  end
  return found, costs
end

--- What rehearsal.run and times.add give, of the stage that needs most. `row.own`: the Pipeline;
--- nil and a message where it cannot run.
return function(row, o, hardware)
  local own = row.own
  local ok, sizes = pcall(own.mesh_sizes, own, o.ranks)
  if not ok then return nil, tostring(sizes) end
  local stages = sizes.pipeline_parallel
  local mesh = { stages = stages, pipelines = sizes.data_parallel,
    inner = sizes.context_parallel * sizes.tensor_parallel }
  local found, costs = measure_whole(row, o, stages * own.chunks, mesh, hardware)
  if not found then return nil, costs end
  local profile, most = found.profile, nil
  local ranks = stages_of(own, costs, stages)
  local actions = schedules.of(own.schedule, stages, found.count, own.chunks)
  for r, of_rank in ipairs(ranks) do
    local bytes = bytes_of(of_rank, actions[r], found, profile, found.count, mesh)
    if not most or bytes.peak > most.peak then most = bytes end
  end
  most.samples, most.data_ranks = found.samples, found.data_ranks
  if hardware then
    add_times(most, found, own, costs, ranks,
      communication(most, ranks, profile, found.count, mesh, o, hardware))
  end
  return most
end
