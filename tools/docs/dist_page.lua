-- tools/docs/dist_page.lua: the page of lt.dist.
local DistributedOptimizer = require "ltrain.dist.DistributedOptimizer"
local Reducer = require "ltrain.dist.Reducer"
local hooks = require "ltrain.dist.hooks.registry"
local markdown = require "markdown"
local methods = require "methods"
local options_of = require "ltrain.dist.options"
local options_table = require "options_table"
local source = require "source"

-- A section for each collective, and for several at once: what it says, and its options.
local function collectives(root)
  local file = source.read(root .. "stdlib/dist/collectives.lua")
  local rows = source.read(root .. "stdlib/dist/options.lua").text
  local parts, functions = {}, file.functions
  for _, entry in ipairs(source.read(root .. "stdlib/dist/batch.lua").functions) do
    functions[#functions + 1] = entry
  end
  for _, entry in ipairs(functions) do
    local options = options_of[entry.name]
    if options then
      local arguments = entry.arguments:gsub(",? ?options$", "")
      local separator = arguments == "" and "" or ", "
      parts[#parts + 1] = ("### dist.%s(%s%s{...})"):format(entry.name, arguments, separator)
      parts[#parts + 1] = entry.doc
      parts[#parts + 1] = options_table(options, rows)
    end
  end
  return file, markdown.join(parts)
end

-- The hooks of lt.dist.hooks: name and file.
local HOOKS <const> = { { "powerSGD", "PowerSGD" }, { "topk", "TopK" }, { "random_k", "RandomK" },
  { "int8", "Quantized" }, { "sign", "Quantized" }, { "fp16", "Cast" }, { "bf16", "Cast" } }

-- A section for each file of hooks: what it says, and their options.
local function hook_sections(root)
  local parts, names = {}, {}
  for i, hook in ipairs(HOOKS) do
    names[#names + 1] = ("hooks.%s{...}"):format(hook[1])
    if not HOOKS[i + 1] or HOOKS[i + 1][2] ~= hook[2] then
      local path = ("%sstdlib/dist/hooks/%s.lua"):format(root, hook[2])
      local file, options = source.read(path), hooks.find(hook[1]).options
      local rows = file.text .. source.read(root .. "stdlib/dist/hooks/Hook.lua").text
      parts[#parts + 1] = "### " .. table.concat(names, ", ")
      parts[#parts + 1] = file.about
      parts[#parts + 1] = file.more
      if next(options) then parts[#parts + 1] = options_table(options, rows) end
      names = {}
    end
  end
  return markdown.join(parts)
end

return function(root)
  local first = source.read(root .. "stdlib/dist/init.lua")
  local launch = source.read(root .. "stdlib/dist/launch.lua")
  local group = source.read(root .. "stdlib/dist/Group.lua")
  local mesh = source.read(root .. "stdlib/dist/Mesh.lua")
  local handle = source.read(root .. "stdlib/dist/Handle.lua")
  local rank_zero = source.read(root .. "stdlib/dist/rank_zero.lua")
  local ddp = source.read(root .. "stdlib/dist/ddp.lua")
  local optimizer = source.read(root .. "stdlib/dist/DistributedOptimizer.lua")
  local reduction = source.read(root .. "stdlib/dist/horovod_reduction.lua")
  local horovod = source.read(root .. "stdlib/dist/horovod.lua")
  local hook_names = source.read(root .. "stdlib/dist/hooks/init.lua")
  local hook = source.read(root .. "stdlib/dist/hooks/Hook.lua")
  local file, sections = collectives(root)
  local said
  for _, entry in ipairs(launch.functions) do
    if not entry.name then said = entry.doc end
  end
  return { {
    file = "dist.md", title = "Ranks",
    about = "lt.dist: launching functions, collectives, groups, meshes",
    source = "the files of stdlib/dist",
    text = markdown.join {
      "# Ranks", first.about, first.more, "How to use it: [Processes]"
        .. "(../guide/processes.md).",
      "## Launching", "`dist.launch(n, fn, {timeout =, fork_with_threads =})`: " .. said,
      launch.more, methods(first, "dist", "dist"), methods(rank_zero, "dist", "dist"),
      "## Collectives", file.about, file.more, sections,
      "## Gradients", ddp.about, ddp.more,
      "### dist.ddp(module, {...})", "Returns an object that reduces gradients over the ranks; "
      .. "parameters and buffers are initialized from rank 0.",
      options_table(Reducer.options, source.read(root .. "stdlib/dist/Reducer.lua").text),
      methods(ddp, "ddp", "DistributedDataParallel"),
      "### dist.DistributedOptimizer(optimizer, {...})", optimizer.about, optimizer.more,
      options_table(DistributedOptimizer.options, optimizer.text .. reduction.text),
      methods(optimizer, "optimizer", "methods"),
      "## lt.horovod", horovod.about, horovod.more, methods(horovod, "hvd", "hvd"),
      "## Hooks", hook_names.about, hook_names.more, methods(hook_names, "hooks", "hooks"),
      hook_sections(root),
      "### hooks.Hook", hook.about, hook.more, methods(hook, "hook", "Hook"),
      "## Handles", handle.about, methods(handle, "handle", "Handle"),
      "## Groups", group.about .. " All collectives are methods of it, with ranks of its own.",
      methods(group, "group", "Group"),
      "## Meshes", mesh.about, mesh.more, methods(mesh, "mesh", "Mesh"),
    },
  } }
end
