--- stdlib/strategies/registry.lua: names of strategies: those built in, and those of scripts.
local tree = require "ltrain.core.tree"

local registry = {}

local DDP <const> = "every rank runs the loop on its share of the data; gradients are summed"

-- Built in: name -> class's file, description, options.
local BUILT_IN <const> = {
  single_device = { file = "SingleDevice", description = "one process, one device" },
}
for _, name in ipairs { "ddp", "ddp_fork", "ddp_notebook" } do
  BUILT_IN[name] = { file = "DDP", description = DDP }
  for _, truth in ipairs { true, false } do
    BUILT_IN[("%s_find_unused_parameters_%s"):format(name, truth)] = {
      file = "DDP", description = DDP, params = { find_unused_parameters = truth },
    }
  end
end

local WHOLE <const> = "each rank holds the whole module here: write 'ddp'"

-- Names of elsewhere, as patterns, and the right word.
local ABSENT <const> = {
  { "^ddp_spawn", "comes with CUDA, where a forked process cannot use the devices; here 'ddp' "
    .. "forks at fit, and closures just work" },
  { "^fsdp", WHOLE },
  { "^deepspeed", WHOLE },
  { "^model_parallel", WHOLE },
  { "^ddp_sharded", WHOLE },
  { "^colossalai", WHOLE },
  { "xla", "there are no TPUs here: write 'ddp'" },
  { "^tpu", "there are no TPUs here: write 'ddp'" },
  { "^hpu_", "there are no HPUs here: write 'ddp'" },
  { "^dp$", "a rank is a process of its own here: write 'ddp'" },
  { "^ddp2$", "write 'ddp'; self:all_gather(x) gives a step what the other ranks have" },
  { "^bagua", "its ways of adding gradients are not here: write 'ddp'; ddp_comm_hook of "
    .. "lt.strategies.DDP says how they travel" },
  { "^hivemind", "ranks cannot come and go here: write 'ddp', and start ranks on many machines "
    .. "with `mpirun -n N ltrain run SCRIPT`" },
  { "^horovod$", "write 'ddp' and start `mpirun -n N ltrain run SCRIPT`; Horovod multiplied the "
    .. "learning rate by N, which is never done silently here: set lr yourself" },
}

--- What scripts registered, by name: { class =, description =, params = }.
registry.own = {}

--- The row of a name: { name =, class =, description =, params = }; nil when there is none.
function registry.find(name)
  local row = registry.own[name] or BUILT_IN[name]
  if not row then return nil end
  return {
    name = name, class = row.class or require("ltrain.strategies." .. row.file),
    description = row.description, params = row.params or {},
  }
end

--- Whether a name is of the library's own.
function registry.is_built_in(name) return BUILT_IN[name] ~= nil end

--- All names, sorted.
function registry.names()
  local all = {}
  for name in next, BUILT_IN do all[name] = true end
  for name in next, registry.own do all[name] = true end
  return tree.keys(all)
end

--- Why a name of elsewhere is not here, and what to write; nil when it is not known either.
function registry.absent(name)
  for _, row in ipairs(ABSENT) do
    if name:find(row[1]) then return row[2] end
  end
end

return registry
