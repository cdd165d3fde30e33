-- tools/docs/module_pages.lua: the page of lt.Module.
local markdown = require "markdown"
local methods = require "methods"
local source = require "source"

-- Files whose functions are methods of a module, and the titles of their lists.
local PARTS <const> = {
  { "stdlib/nn/Module.lua", "Parameters and submodules" },
  { "stdlib/nn/module_hooks.lua", "Hooks" },
  { "stdlib/nn/module_trainer.lua", "In the loops of a Trainer" },
  { "stdlib/nn/module_state.lua", "Saving and loading" },
  { "stdlib/nn/module_parts.lua", "Parts that are set by name" },
  { "stdlib/nn/module_memory.lua", "Parameters on the meta device" },
  { "stdlib/nn/state_hooks.lua", "Hooks of saving and loading" },
}

return function(root)
  local first = source.read(root .. PARTS[1][1])
  local parts = {
    "# Module", first.about, first.more,
    "Layers are modules too. Methods that the loops call on a module: [hooks](hooks.md). Computed "
      .. "fields: `device`, `dtype` (of the first parameter), `on_gpu`, `current_epoch`, "
      .. "`global_step`, `global_rank`, `local_rank`, `logger`, `loggers` (of the trainer); "
      .. "`training` and `automatic_optimization` are plain fields.",
  }
  for _, part in ipairs(PARTS) do
    parts[#parts + 1] = "## " .. part[2]
    parts[#parts + 1] = methods(source.read(root .. part[1]), "net", "lt.Module")
  end
  return { {
    file = "module.md", title = "Module", about = "the base class of models and layers",
    source = "stdlib/nn/Module.lua, module_*.lua and state_hooks.lua",
    text = markdown.join(parts),
  } }
end
