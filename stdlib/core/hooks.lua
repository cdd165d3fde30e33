--- stdlib/core/hooks.lua: the table of hooks and overridable methods that the loops call.
--
-- The check for misspelt names, the permissions of `self:log`, the resolved lists of functions and
-- the generated page of hooks all come from these rows. Nothing else may name a hook that is not
-- here.
local hooks = {}

-- A row: name, who may define it (m module, c callback, d data module), what `self:log` may do in
-- it, arguments after self (callbacks get trainer and module before them), meaning.
--   "step"  on_step by default, both allowed      "epoch" on_epoch only
--   "eval"  on_epoch by default, both allowed     false   logging is an error
local ROWS <const> = {
  { "prepare_data", "md", false, "",
    "download or generate data, before setup: on one rank per machine, or on rank 0 only if the "
      .. "object has prepare_data_per_node = false" },
  { "setup", "mcd", false, "stage", "create what depends on the data: data sets, layers" },
  { "configure_model", "m", false, "", "create layers late; must not create them twice" },
  { "configure_callbacks", "m", false, "",
    "return callbacks; they replace the Trainer's of the same class" },
  { "configure_optimizers", "m", false, "", "return optimizers and schedulers" },
  { "configure_ddp", "m", false, "",
    "on several ranks: return the object whose `backward(loss, weight)` and `sync(...)` reduce "
      .. "gradients; by default that of the strategy, made by lt.dist.ddp" },
  { "teardown", "mcd", false, "stage", "undo setup" },

  { "train_dataloader", "md", false, "", "return the training loader" },
  { "val_dataloader", "md", false, "", "return a validation loader or a list" },
  { "test_dataloader", "md", false, "", "return a test loader or a list" },
  { "predict_dataloader", "md", false, "", "return a loader to predict on, or a list" },
  { "on_before_batch_transfer", "md", false, "batch, dataloader_idx",
    "return the batch, changed on the host" },
  { "transfer_batch_to_device", "md", false, "batch, device, dataloader_idx",
    "return the batch on the device" },
  { "on_after_batch_transfer", "md", false, "batch, dataloader_idx",
    "return the batch, changed on the device" },

  { "on_fit_start", "mc", false, "", "after setup, before anything runs" },
  { "on_fit_end", "mc", false, "", "at the end of fit" },
  { "on_sanity_check_start", "c", false, "", "before the validation batches of the sanity check" },
  { "on_sanity_check_end", "c", false, "", "after them" },
  { "on_train_start", "mc", "epoch", "", "training starts" },
  { "on_train_end", "mc", false, "", "training has ended" },
  { "on_train_epoch_start", "mc", "epoch", "", "an epoch starts" },
  { "on_train_epoch_end", "mc", "epoch", "", "an epoch has ended" },
  { "on_train_batch_start", "mc", "step", "batch, batch_idx",
    "return -1 to skip the rest of the epoch" },
  { "on_train_batch_end", "mc", "step", "outputs, batch, batch_idx", "a batch has ended" },

  { "training_step", "m", "step", "batch, batch_idx",
    "return the loss, a table with `loss`, or nil to skip the batch" },
  { "training_step_end", "m", "step", "outputs",
    "older name: its result replaces that of training_step" },
  { "on_before_zero_grad", "mc", "step", "optimizer", "before gradients are cleared" },
  { "optimizer_zero_grad", "m", "step", "epoch, batch_idx, optimizer", "clears gradients" },
  { "on_before_backward", "mc", "step", "loss", "before the backward pass" },
  { "backward", "m", "step", "loss", "runs the backward pass" },
  { "on_after_backward", "mc", "step", "", "the gradients of this batch have been computed" },
  { "on_before_optimizer_step", "mc", "step", "optimizer", "gradients are complete, unclipped" },
  { "configure_gradient_clipping", "m", "step",
    "optimizer, gradient_clip_val, gradient_clip_algorithm", "decides how to clip gradients" },
  { "clip_gradients", "m", "step", "optimizer, gradient_clip_val, gradient_clip_algorithm",
    "clips gradients" },
  { "optimizer_step", "m", "step", "epoch, batch_idx, optimizer, closure",
    "takes an optimizer step; calls the closure, which runs training_step and backward" },
  { "on_after_optimizer_step", "mc", "step", "optimizer",
    "an optimizer has taken a step, on every rank; weights may be changed here without "
    .. "lt.allow_update" },
  { "lr_scheduler_step", "m", false, "scheduler, metric", "steps one scheduler" },

  { "on_validation_start", "mc", "epoch", "", "validation starts" },
  { "on_validation_end", "mc", false, "", "validation has ended; its metrics are known" },
  { "on_validation_epoch_start", "mc", "epoch", "", "a pass over the validation data starts" },
  { "on_validation_epoch_end", "mc", "epoch", "", "the pass has ended" },
  { "on_validation_batch_start", "mc", "eval", "batch, batch_idx, dataloader_idx",
    "before validation_step" },
  { "on_validation_batch_end", "mc", "eval", "outputs, batch, batch_idx, dataloader_idx",
    "after validation_step" },
  { "validation_step", "m", "eval", "batch, batch_idx, dataloader_idx", "one validation batch" },
  { "validation_step_end", "m", "eval", "outputs",
    "older name: its result replaces that of validation_step" },
  { "on_validation_model_eval", "m", false, "", "puts the module in evaluation mode" },
  { "on_validation_model_train", "m", false, "",
    "restores its mode; by default that of every submodule" },
  { "on_validation_model_zero_grad", "m", false, "",
    "before validation within fit, outside of an accumulation window: may clear gradients; by "
    .. "default they are kept" },

  { "on_test_start", "mc", "epoch", "", "testing starts" },
  { "on_test_end", "mc", false, "", "testing has ended" },
  { "on_test_epoch_start", "mc", "epoch", "", "the pass over the test data starts" },
  { "on_test_epoch_end", "mc", "epoch", "", "the pass has ended" },
  { "on_test_batch_start", "mc", "eval", "batch, batch_idx, dataloader_idx", "before test_step" },
  { "on_test_batch_end", "mc", "eval", "outputs, batch, batch_idx, dataloader_idx",
    "after test_step" },
  { "test_step", "m", "eval", "batch, batch_idx, dataloader_idx", "one test batch" },
  { "test_step_end", "m", "eval", "outputs",
    "older name: its result replaces that of test_step" },
  { "on_test_model_eval", "m", false, "", "as on_validation_model_eval" },
  { "on_test_model_train", "m", false, "", "as on_validation_model_train" },

  { "on_predict_start", "mc", false, "", "prediction starts" },
  { "on_predict_end", "mc", false, "", "prediction has ended" },
  { "on_predict_epoch_start", "mc", false, "", "the pass starts" },
  { "on_predict_epoch_end", "mc", false, "results", "the pass has ended" },
  { "on_predict_batch_start", "mc", false, "batch, batch_idx, dataloader_idx",
    "before predict_step" },
  { "on_predict_batch_end", "mc", false, "outputs, batch, batch_idx, dataloader_idx",
    "after predict_step" },
  { "predict_step", "m", false, "batch, batch_idx, dataloader_idx",
    "returns what predict collects; by default forward(batch)" },
  { "on_predict_model_eval", "m", false, "", "as on_validation_model_eval" },

  { "on_save_checkpoint", "mc", false, "checkpoint", "add values to the checkpoint" },
  { "on_load_checkpoint", "mc", false, "checkpoint", "restore values from the checkpoint" },
  { "on_exception", "cd", false, "exception", "the run ends with an error or an interrupt" },
}

-- Of the hooks that take no metrics, those that every rank runs with all others there.
local ENDS <const> = {
  on_fit_start = true, on_fit_end = true, on_train_end = true, on_validation_end = true,
  on_test_end = true, on_predict_start = true, on_predict_end = true,
}

local WHO <const> = { module = "m", callback = "c", data_module = "d" }

hooks.rows = {}
hooks.by_name = {}
for i, row in ipairs(ROWS) do
  local entry = { name = row[1], who = row[2], log = row[3], args = row[4], doc = row[5] }
  entry.together = entry.log == "epoch" or ENDS[entry.name] or false
  hooks.rows[i] = entry
  hooks.by_name[entry.name] = entry
end

--- Names that `kind` ("module", "callback", "data_module") may define, in the order of the list.
function hooks.names(kind)
  local letter, names = WHO[kind], {}
  for _, row in ipairs(hooks.rows) do
    if row.who:find(letter, 1, true) then names[#names + 1] = row.name end
  end
  return names
end

return hooks
