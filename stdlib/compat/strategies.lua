-- stdlib/compat/strategies.lua: Lightning's names of strategies that are not here, and the right
-- word for each.
local WHOLE <const> = "each rank holds the whole module here: write 'ddp', or 'zero1', which "
  .. "shards the state of optimizers"
local ZERO1 <const> = "write 'zero1', which shards the state of optimizers"

-- Names as patterns, and what to write.
local ABSENT <const> = {
  { "^ddp_spawn", "comes with CUDA, where a forked process cannot use the devices; here 'ddp' "
    .. "forks at fit, and closures just work" },
  { "^fsdp", WHOLE },
  { "^deepspeed_stage_1", ZERO1 },
  { "^deepspeed", WHOLE },
  { "^model_parallel", WHOLE },
  { "^ddp_sharded", ZERO1 },
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

--- Why there is no strategy of a name, and what to write; nil when it is not known either.
return function(name)
  for _, row in ipairs(ABSENT) do
    if name:find(row[1]) then return row[2] end
  end
end
