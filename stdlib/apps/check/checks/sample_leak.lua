--- stdlib/apps/check/checks/sample_leak.lua: checks that the samples of a batch do not influence
--- each other's outputs.
--
-- Two runs, of samples 1 and 2, and of samples 1 and 3: what the modules give for sample 1 must be
-- the same; with samples 3 and 2 the same of sample 2. A run with three samples tells which dim of
-- a tensor counts samples. Modes are those of evaluation, in which batch norm sees no other sample.
local Experiment = require "ltrain.apps.check.experiment"
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local compare = require "ltrain.apps.check.compare"
local walk = require "ltrain.core.walk"

-- Batches {1, 3}, {3, 2} and {1, 2, 3}; nil and a reason where there are none.
local function batches_of(context)
  local whole = context.whole
  local n = whole and batch_samples.size(whole)
  if not whole or context.uncut then return nil, "the batch cannot be cut into samples" end
  if n < 3 then return nil, "a batch has fewer than three samples" end
  return { batch_samples.rows(whole, { 1, 3 }, n), batch_samples.rows(whole, { 3, 2 }, n),
    batch_samples.rows(whole, { 1, 2, 3 }, n) }
end

-- How a tensor stands in the runs: "same" in all of it, "clean" where the part of the sample that
-- both have is, "mixed" where that differs, "other" where it has no such part.
local function state_of(a, b, three, sample)
  local same = compare.same(a, b)
  if same == nil then return "other" end
  if same then return "same" end
  local dim, each = compare.batch_dim(a, three)
  if not dim then return "other" end
  return compare.same(compare.part(a, dim, each, sample), compare.part(b, dim, each, sample))
    and "clean" or "mixed"
end

local function aligned(one, two, three)
  if #one.calls ~= #two.calls or #one.calls ~= #three.calls
    or #one.modules ~= #two.modules or #one.modules ~= #three.modules then
    return false
  end
  for i, call in ipairs(one.calls) do
    if call.op ~= two.calls[i].op or call.op ~= three.calls[i].op then return false end
  end
  return true
end

-- The worst state of the tensors of a call.
local function worst(lists, sample)
  local states = {}
  for k, a in ipairs(lists[1]) do
    local b, three = lists[2][k], lists[3][k]
    if a and b and three then states[state_of(a, b, three, sample)] = true end
  end
  return states
end

-- Statistics of the batch by design: a batch norm that keeps none, the capacity of experts.
local function is_excused(module)
  local name = walk.class_name(module)
  return name:find "BatchNorm" ~= nil or name == "MoE" and module.capacity_factor ~= nil
end

-- The line at which the samples first meet, among the operations of a module's call.
local function line_of(runs, from, to)
  local mixer
  for i = from, to do
    local a, b, three = runs[1].calls[i], runs[2].calls[i], runs[3].calls[i]
    local inputs = worst({ a.inputs, b.inputs, three.inputs }, runs.sample)
    local outputs = worst({ a.outputs, b.outputs, three.outputs }, runs.sample)
    if outputs.mixed and not inputs.mixed then
      return mixer and inputs.other and mixer or { line = a.line, op = a.op }
    elseif outputs.other and not inputs.other and not mixer and inputs.clean then
      mixer = { line = a.line, op = a.op }
    end
  end
end

local function find(runs)
  local excused
  for i, record in ipairs(runs[1].modules) do
    local two, three = runs[2].modules[i], runs[3].modules[i]
    local inputs = worst({ record.inputs, two.inputs, three.inputs }, runs.sample)
    local outputs = worst({ record.outputs, two.outputs, three.outputs }, runs.sample)
    if outputs.mixed and not inputs.mixed and not inputs.other then
      if is_excused(record.module) then
        excused = true
      elseif not excused then
        return record
      end
    end
  end
end

-- Whether something was found in the runs {first, second, with three samples; sample = the one that
-- the first two have in common}.
local function judge(context, runs)
  if not aligned(table.unpack(runs)) then
    context.report:skip "samples that depend on each other: the code branches on their values"
    return true
  end
  local record = find(runs)
  if not record then return false end
  local meet = line_of(runs, record.first, record.last)
  local last = runs[1].calls[record.last]
  context.report:error("leak", meet and meet.line or last and last.line,
    ("%s%s: its output for sample %d changes with sample %d%s"):format(
      record.name ~= "" and record.name .. ": " or "", walk.class_name(record.module), runs.sample,
      3 - runs.sample, meet and (": they meet in %s"):format(meet.op) or ""),
    "dim 1 counts samples: reduce, normalise, reshape and attend over the other dims")
  return true
end

return {
  before = function(context, state)
    if not context.first then return end
    if context.varies then
      context.report:skip("samples that depend on each other: training_step gives other results "
        .. "when "
        .. "it is called again with the same batch")
      return
    end
    local given, why = batches_of(context)
    if not given then
      context.report:skip(("samples that depend on each other: %s"):format(why))
      return
    end
    local found = {}
    for k, one in ipairs(given) do
      local ok, run = Experiment.try(Experiment.watch, state, one, context.draws)
      if not ok then
        context.report:skip "samples that depend on each other: training_step raised an error"
        return
      end
      found[k] = run
    end
    local _ <close> = c.no_grad()
    for sample = 1, 2 do
      if judge(context, { context.first, found[sample], found[3], sample = sample }) then return end
    end
  end,
}
