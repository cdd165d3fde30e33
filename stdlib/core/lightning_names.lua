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
LightningArgumentParser LightningCLI SaveConfigCallback cli instantiate_* = a script that returns
  {model =, data =}: ltrain run; --model.lr, --data.x
*Profiler profilers = lt.Trainer{profiler = 'simple'}, 'advanced' or 'trace';
  trainer.profiler:profile
*Accelerator accelerators = lt.Trainer{accelerator = 'cpu'}: 'cpu', 'gpu', 'auto', or an
  lt.Accelerator
plugins = lt.strategies.DDP{precision =, checkpoint_io =, cluster_environment =}
utilities = lt.data, lt.nn.utils or lt.dist
*Precision GradClipAlgorithmType EarlyStoppingReason AttributeDict = a text or a table:
  lt.Trainer{precision = 'bf16-mixed', gradient_clip_algorithm = 'norm'}
LayerSync TorchSyncBatchNorm = lt.Trainer{sync_batchnorm = true}
*CheckpointIO = lt.CheckpointIO
find_usable_cuda_devices = lt.cuda.device_count()
find_shared_parameters = net:named_modules(), and rawequal(a, b) of their parameters
set_shared_parameters = net.decoder.weight = net.encoder.weight
grad_norm = lt.nn.clip_grad_norm_(net:parameters(), math.huge), which returns the norm
measure_flops = lt.nn.utils.measure_flops(net, forward_fn, loss_fn)
move_data_to_device = x:to(device); a Trainer moves batches itself
rank_zero_only = if lt.dist.rank() == 0 then
rank_zero_info = self:print(text)
]]

texts.callbacks = [[
Callback = lt.Callback
Checkpoint = lt.callbacks.ModelCheckpoint
*StatsMonitor = lt.callbacks.DeviceStatsMonitor
LearningRateLogger = lt.callbacks.LearningRateMonitor
LearningRateScheduler = lr_scheduler of configure_optimizers
*ProgressBar* = lt.callbacks.ProgressBar{interval = 0.5}
QuantizationAwareTraining: weights are f64, f32, f16 or bf16 here
ReduceLROnPlateau = lt.optim.ReduceLROnPlateau
RichModelSummary = lt.callbacks.ModelSummary
SpikeDetection = lt.callbacks.SpikeMonitor
TerminateOnNaN: a loss that is not finite ends the fit: nonfinite of the Trainer
]]

texts.clusters = [[
ClusterEnvironment = lt.ClusterEnvironment
LightningEnvironment = lt.clusters.Local
*Environment = lt.clusters.%1
]]

texts.loggers = [[
LightningLoggerBase Logger = lt.Logger
LoggerCollection = logger = {a, b} of the Trainer
DummyLogger = logger = false
*Logger = lt.loggers.CSVLogger, JSONLinesLogger, TensorBoardLogger, WandbLogger or MLFlowLogger, or
  a subclass of lt.Logger; `ltrain dashboard` shows the runs
]]

texts.strategies = [[
DDPStrategy = lt.strategies.DDP
SingleDeviceStrategy = lt.strategies.SingleDevice
DataParallelStrategy = lt.strategies.DP
DDP2Strategy = lt.strategies.DDP2
HorovodStrategy = lt.strategies.Horovod
*Strategy = lt.strategies.DDP, or Sharded, FSDPStrategy and DeepSpeedStrategy of lt.strategies
]]

-- Members of objects.

texts.Trainer = [[
progress_bar_callback = the callback itself: local bar = lt.callbacks.ProgressBar{}, bar.task
fit_loop = trainer.current_epoch, trainer.global_step or trainer.num_training_batches
validate_loop test_loop predict_loop = trainer.num_test_batches, or what the method returns
lr_schedulers = trainer.lr_scheduler_configs, or self:lr_schedulers()
tune tuner = the callbacks lt.callbacks.LearningRateFinder and BatchSizeFinder
gpus num_gpus = trainer.num_devices
root_device = trainer.strategy.root_device
logger_connector = trainer.logged_metrics
reset_train_dataloader = reload_dataloaders_every_n_epochs of the Trainer
distributed_sampler_kwargs = lt.data.DistributedSampler, with use_distributed_sampler = false
weights_save_path = dirpath of the callback ModelCheckpoint
]]

texts.Module = [[
compile: nothing is compiled: call the module as it is
configure_sharded_model = configure_model
fabric = a loop of your own with lt.dist, or trainer:steps('fit', net, loader)
hparams_initial = self.hparams
ipu mtia xpu: devices are "cpu" and "cuda": net:to "cuda"
register_backward_hook = net:register_full_backward_hook(fn)
remove_ignored_hparams = self:save_hyperparameters(o, {ignore = {'name'}})
share_memory: each rank has its own module, which its strategy keeps equal
summarize ipython_display = the callback ModelSummary, or print(net)
to_tensorrt to_torchscript: modules run as Lua, which is not exported: net:to_onnx(path, x) writes
  an ONNX file
]]

texts.DataModule = [[
hparams_initial = self.hparams
remove_ignored_hparams = self:save_hyperparameters(o, {ignore = {'name'}})
]]

texts.Logger = [[
after_save_checkpoint = a callback with on_save_checkpoint
experiment = self:log_image, self:log_text or self:log_histogram; logger:log_metrics(row, step)
group_separator = '/'
log_graph = the callback ModelSummary, or net:to_onnx(path, x)
log_table = self:log_text(name, text)
root_dir = logger.save_dir and logger.name
watch = the callback LayerMonitor
]]

-- Parameters of functions and constructors.

texts["callbacks.BackboneFinetuning()"] = [[
initial_denom_lr = backbone_initial_lr or backbone_initial_ratio_lr
rounding: learning rates are printed with %g
]]

texts["callbacks.EarlyStopping()"] = [[
log_rank_zero_only: rank 0 alone prints
]]

texts["callbacks.ProgressBar()"] = [[
refresh_rate = interval, in seconds
leave theme process_position: rank 0 alone draws one, of one form; the line of each epoch stays
]]

texts["loggers.MLFlowLogger()"] = [[
artifact_location: artifacts are in the folder of the run, in the store
log_model = `mlflow artifacts log-artifact` with the checkpoint
run_id = ckpt_path: a resumed run continues its own
synchronous = flush_logs_every_n_steps
]]

texts["loggers.TensorBoardLogger()"] = [[
default_hp_metric: hyper-parameters are written with the metrics that the run logs
log_graph = net:to_onnx(path, x): the file has the graph
sub_dir = name = 'name/sub'
]]

texts["loggers.WandbLogger()"] = [[
add_file_policy experiment anonymous: runs are written here; `wandb sync` sends them, and knows the
  account
checkpoint_name = filename of the callback ModelCheckpoint
config = self:save_hyperparameters(o)
dir = save_dir
log_model = `wandb artifact put` with the checkpoint
]]

texts["named_buffers()"] = [[
remove_duplicate: each comes once
]]
texts["named_parameters()"] = texts["named_buffers()"]

texts["all_gather()"] = [[
group = group:all_gather(x) of the group
]]

texts["save_checkpoint()"] = [[
storage_options = checkpoint_io of the strategy
]]

texts["to()"] = [[
copy = net:to(device) of a copy
non_blocking: copies to a device are ordered with its work anyway
]]

return texts
