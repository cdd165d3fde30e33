-- stdlib/compat/hooks.lua: hook names of older Lightning versions: rejected with the current name,
-- or still called.
local hooks = {}

--- Names that scripts may still write, and what took their place.
hooks.removed = {
  training_epoch_end = "on_train_epoch_end",
  validation_epoch_end = "on_validation_epoch_end",
  test_epoch_end = "on_test_epoch_end",
  predict_epoch_end = "on_predict_epoch_end",
  on_epoch_start = "on_train_epoch_start",
  on_epoch_end = "on_train_epoch_end or on_validation_epoch_end",
  on_batch_start = "on_train_batch_start",
  on_batch_end = "on_train_batch_end",
  on_init_start = "setup",
  on_init_end = "setup",
  on_pretrain_routine_start = "on_fit_start",
  on_pretrain_routine_end = "on_fit_start",
  on_keyboard_interrupt = "on_exception",
  on_hpc_save = "on_save_checkpoint",
  on_hpc_load = "on_load_checkpoint",
  configure_sharded_model = "configure_model",
  init_ddp_connection = "lt.strategies.DDP{cluster_environment = ...}",
}

--- What is called with the outputs of all devices of a process (dp, ddp2), by step: name, and the
--- message for it where there is one device.
hooks.step_ends = {}
for _, step in ipairs { "training_step", "validation_step", "test_step" } do
  hooks.step_ends[step] = { name = step .. "_end",
    note = ("%s_end is called with this rank's own output: move it into %s"):format(
      step, step) }
end

return hooks
