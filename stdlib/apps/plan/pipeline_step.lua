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

-- What the ranks with the same stage exchange for it by its sharding stage, `count` microbatches a
-- step. `bytes`: of gradients `all`, and `blocks` of these; and parameters `stepped`.
local function add_sharing(list, own, count, bytes, mesh)
  local function add(issue, size)
    list[#list + 1] = { issue = issue, bytes = size, ranks = mesh.shards,
      stride = mesh.inner * mesh.stages }
  end
  if mesh.shards == 1 or own.stage < 2 then
    list[#list + 1] = { issue = "all_reduce", bytes = bytes.all, ranks = mesh.pipelines,
      stride = mesh.inner * mesh.stages }
    if mesh.shards > 1 then add("all_gather", bytes.stepped) end
    return
  end
  for _ = 1, own.accumulate == "shards" and count or 1 do add("reduce_scatter", bytes.blocks) end
  add("reduce_scatter", bytes.all - bytes.blocks)
  local gathers = own.reshard_after_forward and 2 * count or 1
  for _ = 1, own.stage == 3 and gathers or 0 do add("all_gather", bytes.blocks) end
  add("all_gather", own.stage == 3 and bytes.stepped - bytes.blocks or bytes.stepped)
end

-- Messages of `count` microbatches of a rank and reductions of its gradients, as a timeline;
-- `mesh`: see mesh_of.
local function timeline_of(stages, own, profile, count, gradients, mesh)
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
  add_sharing(list, own, count, gradients, mesh)
  return list
end

-- The largest block of a rank's stages.
local function largest_block(list, stages)
  local most = 0
  for _, stage in ipairs(stages) do
    for i = stage.first, stage.last do most = math.max(most, list[i]) end
  end
  return most
end

-- Bytes of a rank with these stages. `found`: of a rank that has all of them.
local function bytes_of(stages, actions, own, found, mesh)
  local profile = found.profile
  local common = found.parameters
  for _, bytes in ipairs(profile.parameters) do common = common - bytes end
  local parameters = common + sum(profile.parameters, stages)
  local function part(bytes, of)
    return found.parameters > 0 and math.floor(bytes * (of / found.parameters)) or 0
  end
  local row = { parameters = parameters, gradients = part(found.gradients, parameters),
    state = part(found.state, parameters) // mesh.shards,
    activations = most_kept(actions, stages, profile), device = found.device }
  -- Gradients of a microbatch beside their sums, in two dtypes, and what backward makes.
  row.temporaries = math.min(found.temporaries, 2 * row.gradients + row.activations)
  local gradients = { common = part(found.gradients, common), all = row.gradients,
    blocks = part(found.gradients, parameters - common), stepped = parameters }
  local block = largest_block(profile.parameters, stages)
  if mesh.shards > 1 and own.stage > 1 and own.accumulate == "shards" then
    row.gradients = gradients.common + gradients.blocks // mesh.shards
    row.temporaries = row.temporaries + part(found.gradients, block) -- until they are reduced
  end
  if mesh.shards > 1 and own.stage == 3 then
    row.parameters = common + (parameters - common) // mesh.shards
    row.temporaries = row.temporaries
      + (own.reshard_after_forward and block or parameters - common)
  end
  row.peak = row.parameters + row.gradients + row.state + row.activations + row.temporaries
  row.timeline = timeline_of(stages, own, profile, found.count * found.batches, gradients, mesh)
  row.sent = traffic.of(row.timeline) + part(found.inner_sent, parameters)
  return row
end

-- The link between neighbouring stages, and how long a rank's messages and reductions take that
-- nothing hides.
local function communication(row, ranks, found, mesh, o, hardware)
  local profile, count = found.profile, found.count
  local links = hardware.measured[links_of.count(o.per_node)] or hardware.links
  local is_far = mesh.inner * mesh.stages > o.per_node
  local link, bytes, reductions = is_far and links.inter or links.intra, 0, 0
  for _, stages in ipairs(ranks) do
    for _, stage in ipairs(stages) do
      if stage.last < profile.count then bytes = math.max(bytes, profile.passed[stage.last]) end
    end
  end
  for _, entry in ipairs(row.timeline) do
    if entry.issue ~= "send" then
      reductions = reductions + collective_costs.seconds(entry, o, links)
    end
  end
  local message = link.latency + bytes / link.bandwidth
  local chunks = #ranks[1]
  local exposed = 2 * (mesh.stages * chunks - 1) + (links.overlaps and 0 or 2 * count * chunks)
  return exposed * message * found.batches + reductions
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

-- What rehearsal.run takes for a rank that has all stages.
local function whole_of(row, o, mesh)
  return setmetatable({ strategy = PlannedPipeline(row.own, mesh.stages * row.own.chunks),
    ranks = mesh.inner * mesh.pipelines }, { __index = o })
end

-- The bytes of the stage that needs most, with stages of equal costs; and the blocks of all.
local function largest(own, found, costs, mesh)
  local ranks, most = stages_of(own, costs, mesh.stages), nil
  local actions = schedules.of(own.schedule, mesh.stages, found.count, own.chunks)
  for r, of_rank in ipairs(ranks) do
    local bytes = bytes_of(of_rank, actions[r], own, found, mesh)
    if not most or bytes.peak > most.peak then most = bytes end
  end
  return most, ranks
end

-- By dim of the mesh how many ranks: stages, pipelines and, of a stage of one, inner.
local function mesh_of(own, ranks)
  local sizes = own:mesh_sizes(ranks)
  return { stages = sizes.pipeline_parallel, pipelines = sizes.data_parallel,
    inner = sizes.context_parallel * sizes.tensor_parallel,
    shards = own.stage > 0 and sizes.data_parallel * sizes.context_parallel or 1 }
end

local pipeline_step = {}

--- What rehearsal.run gives, of the stage that needs most. `row.own`: the Pipeline. nil and a
--- message where it cannot run.
function pipeline_step.bytes(row, o)
  local ok, mesh = pcall(mesh_of, row.own, o.ranks)
  if not ok then return nil, tostring(mesh) end
  local one = whole_of(row, o, mesh)
  local found, message = rehearsal.run(one)
  if not found then return nil, message end
  found.count, found.profile = one.strategy.count, one.strategy.profile
  found.batches = o.trainer.accumulate_grad_batches * (o.half_batch and 2 or 1) -- of a step
  local sums = { issue = "all_reduce", bytes = found.gradients, ranks = mesh.pipelines }
  found.inner_sent = mesh.inner > 1
    and math.max(traffic.of(found.timeline) - traffic.sent(sums), 0) or 0
  local costs = {}
  for i, bytes in ipairs(found.profile.parameters) do costs[i] = bytes + 1 end
  local most = largest(row.own, found, costs, mesh)
  most.samples, most.data_ranks = one.strategy.samples, found.data_ranks
  most.whole, most.costs = found, costs
  return most
end

--- Adds what times.add does, to what pipeline_step.bytes has returned; the stages are those of
--- equal time, and their bytes are put in.
function pipeline_step.add_times(most, row, o, hardware)
  local own, found, mesh = row.own, most.whole, mesh_of(row.own, o.ranks)
  local one = whole_of(row, o, mesh)
  local ok, message = times.add(found, one, hardware)
  if not ok then return nil, message end
  if mesh.inner == 1 then found.seconds = found.computing end -- without sums of gradients
  local costs = own.balance == "time" and one.strategy.profile:costs() or most.costs
  local bytes, ranks = largest(own, found, costs, mesh)
  for name, value in next, bytes do most[name] = value end
  add_times(most, found, own, costs, ranks,
    communication(most, ranks, found, mesh, o, hardware))
  return true
end

return pipeline_step
