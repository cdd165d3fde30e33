-- stdlib/core/lightning_names.lua: public names of Lightning that are not here, and what to write
-- in place of them, as rows of core/torch_names.lua.
--
-- By namespace ("lt" is the library itself), by class of which objects lack a member, and by
-- function that lacks a parameter, "to()". spec/api/lightning_spec.lua compares it with what
-- Lightning has.
local texts = {}

-- Names of namespaces.

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
utilities = lt.data, lt.nn.utils or lt.dist
*SyncBatchNorm = lt.Trainer{sync_batchnorm = true}
grad_norm = lt.nn.clip_grad_norm_(net:parameters(), math.huge), which returns the norm
move_data_to_device = x:to(device); a Trainer moves batches itself
rank_zero_only rank_zero_info = if lt.dist.rank() == 0 then
]]

texts.callbacks = [[
Callback = lt.Callback
Checkpoint = lt.callbacks.ModelCheckpoint
*StatsMonitor = lt.callbacks.DeviceStatsMonitor
LearningRateScheduler = lr_scheduler of configure_optimizers
*ProgressBar* = lt.callbacks.ProgressBar{interval = 0.5}
ReduceLROnPlateau = lt.optim.ReduceLROnPlateau
RichModelSummary = lt.callbacks.ModelSummary
TerminateOnNaN: a loss that is not finite ends the fit: nonfinite of the Trainer
]]

texts.clusters = [[
ClusterEnvironment = lt.ClusterEnvironment
LightningEnvironment = lt.clusters.Local
*Environment = lt.clusters.%1
]]

texts.loggers = [[
Logger = lt.Logger
*Logger = lt.loggers.CSVLogger, JSONLinesLogger, TensorBoardLogger, WandbLogger or MLFlowLogger, or
  a subclass of lt.Logger; `ltrain dashboard` shows the runs
]]

texts.strategies = [[
*Strategy = lt.strategies.%1
*Strategy = lt.strategies.DDP, or Sharded, FSDPStrategy and DeepSpeedStrategy of lt.strategies
]]

-- Members of objects.

texts.Trainer = [[
fit_loop = trainer.current_epoch, trainer.global_step or trainer.num_training_batches
lr_schedulers = trainer.lr_scheduler_configs, or self:lr_schedulers()
tune tuner = the callbacks lt.callbacks.LearningRateFinder and BatchSizeFinder
gpus num_gpus = trainer.num_devices
root_device = trainer.strategy.root_device
]]

texts.Module = [[
compile: nothing is compiled: call the module as it is
configure_sharded_model = configure_model
hparams_initial = self.hparams
summarize = the callback ModelSummary, or print(net)
to_tensorrt to_torchscript: modules run as Lua, which is not exported: net:to_onnx(path, x) writes
  an ONNX file
]]

texts.Logger = [[
experiment = self:log_image, self:log_text or self:log_histogram; logger:log_metrics(row, step)
log_graph = the callback ModelSummary, or net:to_onnx(path, x)
watch = the callback LayerMonitor
]]

-- Parameters of functions and constructors.

texts["callbacks.ProgressBar()"] = [[
refresh_rate = interval, in seconds
leave theme process_position: rank 0 alone draws one, of one form; the line of each epoch stays
]]

texts["loggers.MLFlowLogger()"] = [[
log_model = `mlflow artifacts log-artifact` with the checkpoint
run_id = ckpt_path: a resumed run continues its own
]]

texts["loggers.TensorBoardLogger()"] = [[
default_hp_metric: hyper-parameters are written with the metrics that the run logs
log_graph = net:to_onnx(path, x): the file has the graph
]]

texts["loggers.WandbLogger()"] = [[
add_file_policy experiment anonymous: runs are written here; `wandb sync` sends them, and knows the
  account
config = self:save_hyperparameters(o)
dir = save_dir
log_model = `wandb artifact put` with the checkpoint
]]

texts["to()"] = [[
non_blocking: copies to a device are ordered with its work anyway
]]

return texts
