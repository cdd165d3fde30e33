--- stdlib/parallel/PrepareModuleInput.lua: changes the layouts of a module's arguments.
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local c = require "ltrain.c"
local layout_lists = require "ltrain.parallel.layout_lists"
local transitions = require "ltrain.parallel.transitions"

local PrepareModuleInput = ParallelStyle:extend("PrepareModuleInput")

--- Its options.
PrepareModuleInput.options = {
  input_layouts = layout_lists.row("of the arguments: one, or a list with false for those that "
    .. "stay as they are"),
  desired_input_layouts = layout_lists.row "what they become",
  sum_gradients = { type = "boolean", default = false,
    doc = "what is desired is Replicate(), for layers with sum_gradients = false: add up the "
      .. "gradients here, once" },
  use_local_output = ParallelStyle.USE_LOCAL_OUTPUT,
}

--- PrepareModuleInput{input_layouts = Shard(2), desired_input_layouts = Replicate()}
function PrepareModuleInput:init(options)
  ParallelStyle.init(self, options)
  layout_lists.check(self, "input_layouts", "desired_input_layouts")
end

function PrepareModuleInput:apply(module, site)
  local from, to = self.input_layouts, self.desired_input_layouts
  site.wrap(module, function(forward, own, ...)
    local args, known = table.pack(...), {}
    for i = 1, args.n do
      local x = args[i]
      if from[i] and c.is_tensor(x) then
        known[x] = known[x] or self.sum_gradients and transitions.enter(x, from[i], site.group)
          or transitions.change(x, from[i], to[i], site.group)
        args[i] = known[x]
      end
    end
    return forward(own, table.unpack(args, 1, args.n))
  end)
end

return PrepareModuleInput
