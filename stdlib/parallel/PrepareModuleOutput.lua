--- stdlib/parallel/PrepareModuleOutput.lua: changes the layouts of a module's results.
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local c = require "ltrain.c"
local layout_lists = require "ltrain.parallel.layout_lists"
local transitions = require "ltrain.parallel.transitions"

local PrepareModuleOutput = ParallelStyle:extend("PrepareModuleOutput")

--- Its options.
PrepareModuleOutput.options = {
  output_layouts = layout_lists.row("of the results: one, or a list with false for those that stay "
    .. "as they are"),
  desired_output_layouts = layout_lists.row "what they become",
  use_local_output = ParallelStyle.USE_LOCAL_OUTPUT,
}

--- PrepareModuleOutput{output_layouts = Replicate(), desired_output_layouts = Shard(2)}
function PrepareModuleOutput:init(options)
  ParallelStyle.init(self, options)
  layout_lists.check(self, "output_layouts", "desired_output_layouts")
end

function PrepareModuleOutput:apply(module, site)
  local from, to = self.output_layouts, self.desired_output_layouts
  site.wrap(module, function(forward, own, ...)
    local results = table.pack(forward(own, ...))
    for i = 1, results.n do
      if from[i] and c.is_tensor(results[i]) then
        results[i] = transitions.change(results[i], from[i], to[i], site.group)
      end
    end
    return table.unpack(results, 1, results.n)
  end)
end

return PrepareModuleOutput
