-- stdlib/core/lightning_names.lua: public names of Lightning that are not here, and what to write
-- in place of them, as rows of core/torch_names.lua: by namespace ("lt" is the library itself), and
-- by class of which objects lack a member. spec/api/lightning_spec.lua compares it with what
-- Lightning has.
local texts = {}

texts.lt = [[
LightningModule = lt.Module
LightningDataModule = lt.DataModule
pytorch = lt: lt.Trainer, lt.Module, lt.callbacks
Fabric fabric = a loop of your own with lt.dist, or trainer:steps('fit', net, loader)
Tuner tuner = the callbacks lt.callbacks.LearningRateFinder and BatchSizeFinder
LightningArgumentParser LightningCLI SaveConfigCallback cli = a script that returns
  {model =, data =}: ltrain run; --model.lr, --data.x
*Profiler profilers = lt.Trainer{profiler = 'simple'}, 'advanced', 'trace' or 'xla'
*Accelerator accelerators = lt.Trainer{accelerator = 'cpu'}: 'cpu', 'gpu', 'auto', or an
  lt.Accelerator
plugins *Precision *CheckpointIO = lt.Trainer{precision = 'bf16-mixed'}, or
  lt.strategies.DDP{checkpoint_io =, cluster_environment =}
rank_zero_only rank_zero_info = if lt.dist.rank() == 0 then
]]

texts.callbacks = [[
Callback = lt.Callback
Checkpoint = lt.callbacks.ModelCheckpoint
*ProgressBar* = lt.callbacks.ProgressBar{interval = 0.5}
RichModelSummary = lt.callbacks.ModelSummary
]]

texts.clusters = [[
*Environment = lt.clusters.%1
]]

texts.loggers = [[
*Logger = lt.loggers.CSVLogger, JSONLinesLogger, TensorBoardLogger, WandbLogger or MLFlowLogger, or
  a subclass of lt.Logger; `ltrain dashboard` shows the runs
]]

texts.strategies = [[
*Strategy = lt.strategies.%1
*Strategy = lt.strategies.DDP, or Sharded, FSDPStrategy and DeepSpeedStrategy of lt.strategies
]]

texts.Trainer = [[
fit_loop = trainer.current_epoch, trainer.global_step or trainer.num_training_batches
tune tuner = the callbacks lt.callbacks.LearningRateFinder and BatchSizeFinder
]]

texts.Module = [[
to_tensorrt to_torchscript: modules run as Lua, which is not exported: net:to_onnx(path, x) writes
  an ONNX file
]]

texts.Logger = [[
experiment = self:log_image, self:log_text or self:log_histogram; logger:log_metrics(row, step)
]]

return texts
