-- stdlib/compat/strategies.lua: Lightning's names of strategies that do not exist here, and
-- what to write instead of each.
local FSDP <const> = "write 'fsdp', which divides parameters, gradients and the state of optimizers"

-- Names as patterns, and what to write.
local ABSENT <const> = {
  { "^ddp_spawn", "is for CUDA, which a forked process cannot use: write 'ddp', which forks when "
    .. "fit starts" },
  { "^model_parallel", FSDP },
  { "^colossalai", FSDP },
  { "^hpu_", "write 'ddp', with accelerator = 'hpu' where LTRAIN_BACKENDS has a backend of that "
    .. "kind" },
  { "^bagua", "its algorithms by other names: gradient_allreduce: 'ddp'; bytegrad: 'ddp' with "
    .. "ddp_comm_hook = 'int8'; async and decentralized: 'local_sgd'" },
  { "^hivemind", "ranks cannot join and leave here: write 'ddp', and start ranks on many machines "
    .. "with `mpirun -n N ltrain run SCRIPT`" },
}

--- Returns why there is no strategy of a name, and what to write; nil if the name is unknown.
return function(name)
  for _, row in ipairs(ABSENT) do
    if name:find(row[1]) then return row[2] end
  end
end
