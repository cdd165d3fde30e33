--- stdlib/apps/plan/PlannedPipeline.lua: a Pipeline of one stage that measures its blocks: of these
--- a plan computes what stages take (pipeline_step.lua).
local BlockProfile = require "ltrain.apps.plan.BlockProfile"
local Pipeline = require "ltrain.strategies.Pipeline"
local batch_samples = require "ltrain.apps.check.batch_samples"

local PlannedPipeline = Pipeline:extend("Pipeline")

--- PlannedPipeline(own, virtual): with the options of `own`, a Pipeline, for so many virtual
--- stages.
function PlannedPipeline:init(own, virtual)
  PlannedPipeline.super.init(self, { stages = 1, microbatches = own.microbatches,
    module = own.container_name, tensor_parallel_size = own.given_sizes.tensor_parallel,
    context_parallel_size = own.given_sizes.context_parallel, sequence_dim = own.sequence_dim,
    context_parallel_attention = own.context_parallel_attention,
    bucket_cap_mb = own.bucket_cap_mb })
  self.schedule, self.chunks = own.schedule, virtual -- so many blocks are needed
end

function PlannedPipeline:setup_module(module)
  module = PlannedPipeline.super.setup_module(self, module)
  local meter = self.meter
  self.profile = BlockProfile(self.chain.blocks, self.root_device, meter and function()
    return meter:now()
  end)
  self.whole.times = self.profile
  return module
end

--- Notes how many microbatches and samples a batch has.
function PlannedPipeline:run_microbatches(work)
  self.count = work.count
  self.samples = batch_samples.size(self.module.trainer.running.loop.batch)
  return PlannedPipeline.super.run_microbatches(self, work)
end

return PlannedPipeline
