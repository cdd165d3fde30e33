-- stdlib/core/lightning_names.lua: public names of Lightning that are not here, and what to write
-- in place of each; loaded when an error asks for one.
--
-- By room ("lt" is the library itself), by class of which objects lack a member, by function that
-- lacks a parameter. A text is what to write; { text } says why there is nothing. spec/api compares
-- this with the names that Lightning has.
local names = {}

local TPU <const> = { "there are no TPUs here" }
local WHOLE <const> = { "each rank has the whole module here: strategy = 'ddp', or 'zero1', "
  .. "which shards the state of optimizers" }
local NO_GRAPH <const> = { "modules run as Lua, which is not exported: net:to_onnx(path, x) writes "
  .. "an ONNX file" }
local OWN_LOOP <const> = "a loop of your own with lt.dist, or trainer:steps('fit', net, loader)"

-- Names of rooms.

local lt = {
  LightningModule = "lt.Module", LightningDataModule = "lt.DataModule",
  pytorch = "lt: lt.Trainer, lt.Module, lt.callbacks", Fabric = OWN_LOOP, fabric = OWN_LOOP,
  is_wrapped = { "modules and optimizers are not wrapped" },
  Tuner = "the callbacks lt.callbacks.LearningRateFinder and BatchSizeFinder",
  tuner = "the callbacks lt.callbacks.LearningRateFinder and BatchSizeFinder",
  cli = "a script that returns {model =, data =}: ltrain run; --model.lr, --data.x",
  plugins = "lt.strategies.DDP{precision =, checkpoint_io =, cluster_environment =}",
  accelerators = "lt.Trainer{accelerator = 'cpu'}: 'cpu', 'gpu', 'auto', or an lt.Accelerator",
  profilers = "lt.Trainer{profiler = 'simple'}, 'advanced' or 'trace'; trainer.profiler:profile",
  utilities = "lt.data, lt.nn.utils or lt.dist",
  AttributeDict = "a table: t.name", GradClipAlgorithmType = "'norm' or 'value'",
  EarlyStoppingReason = "a text, 'patience_exhausted' and others: callback.stopping_reason",
  find_usable_cuda_devices = "lt.cuda.device_count()",
  disable_possible_user_warnings = { "warnings go to stderr, each once" },
  find_shared_parameters = "net:named_modules(), and rawequal(a, b) of their parameters",
  set_shared_parameters = "net.decoder.weight = net.encoder.weight",
  grad_norm = "lt.nn.clip_grad_norm_(net:parameters(), math.huge), which returns the norm",
  is_picklable = { "lt.save says what it cannot write, with its path" },
  is_shared_filesystem = { "ranks agree through messages, not through files" },
  move_data_to_device = "x:to(device); a Trainer moves batches itself",
  measure_flops = "lt.nn.utils.measure_flops(net, forward_fn, loss_fn)",
  rank_zero_only = "if lt.dist.rank() == 0 then", rank_zero_info = "self:print(text)",
  suggested_max_num_workers = { "num_workers is a number that you choose; 0 reads in the loop" },
  sized_len = "#loader", tree_unflatten = "a table with the names of the batch",
}
for _, name in ipairs { "LightningCLI", "LightningArgumentParser", "SaveConfigCallback",
  "instantiate_class", "instantiate_module" } do
  lt[name] = lt.cli
end
for _, name in ipairs { "SimpleProfiler", "AdvancedProfiler", "PyTorchProfiler", "Profiler",
  "PassThroughProfiler" } do
  lt[name] = lt.profilers
end
for _, name in ipairs { "CPUAccelerator", "CUDAAccelerator", "MPSAccelerator" } do
  lt[name] = lt.accelerators
end
for _, name in ipairs { "XLAAccelerator", "XLAProfiler", "XLACheckpointIO", "XLAPrecision" } do
  lt[name] = TPU
end
lt.AsyncCheckpointIO = { "checkpoints are written by the loop, which waits for them" }
lt.TorchCheckpointIO = "lt.CheckpointIO"
lt.TorchSyncBatchNorm = "lt.Trainer{sync_batchnorm = true}"
lt.LayerSync = lt.TorchSyncBatchNorm
lt.DoublePrecision = "lt.Trainer{precision = '64-true'}"
lt.HalfPrecision = "lt.Trainer{precision = 'bf16-true'}, or '16-true'"
lt.MixedPrecision = "lt.Trainer{precision = 'bf16-mixed'}, or '16-mixed'"
lt.BitsandbytesPrecision = { "weights are f64, f32, f16 or bf16 here" }
lt.TransformerEnginePrecision = lt.BitsandbytesPrecision
lt.DeepSpeedPrecision, lt.FSDPPrecision = WHOLE, WHOLE

local BAR <const> = "lt.callbacks.ProgressBar{interval = 0.5}"
local BOARD <const> = "lt.loggers.CSVLogger, JSONLinesLogger, TensorBoardLogger, WandbLogger or "
  .. "MLFlowLogger, or a subclass of lt.Logger; `ltrain dashboard` shows the runs"

names.rooms = {
  lt = lt,
  callbacks = {
    Callback = "lt.Callback",
    Checkpoint = "lt.callbacks.ModelCheckpoint",
    GPUStatsMonitor = "lt.callbacks.DeviceStatsMonitor",
    LearningRateLogger = "lt.callbacks.LearningRateMonitor",
    RichProgressBarTheme = BAR,
    QuantizationAwareTraining = { "weights are f64, f32, f16 or bf16 here" },
    HPUStatsMonitor = { "there are no HPUs here" }, TerminateOnNaN = { "a loss that is not finite "
      .. "ends the fit: nonfinite of the Trainer" },
    LearningRateScheduler = "lr_scheduler of configure_optimizers",
    ReduceLROnPlateau = "lt.optim.ReduceLROnPlateau",
    ProgressBarBase = BAR, RichModelSummary = "lt.callbacks.ModelSummary", RichProgressBar = BAR,
    SpikeDetection = "lt.callbacks.SpikeMonitor", TQDMProgressBar = BAR,
    XLAStatsMonitor = "lt.callbacks.DeviceStatsMonitor",
  },
  loggers = {
    Logger = "lt.Logger", LightningLoggerBase = "lt.Logger", CometLogger = BOARD,
    LoggerCollection = "logger = {a, b} of the Trainer", DummyLogger = "logger = false",
    NeptuneLogger = BOARD, LitLogger = BOARD, TestTubeLogger = BOARD,
  },
  strategies = {
    DDPStrategy = "lt.strategies.DDP", SingleDeviceStrategy = "lt.strategies.SingleDevice",
    DeepSpeedStrategy = WHOLE, FSDPStrategy = WHOLE, ModelParallelStrategy = WHOLE,
    XLAStrategy = TPU, SingleDeviceXLAStrategy = TPU,
  },
  clusters = {
    ClusterEnvironment = "lt.ClusterEnvironment", KubeflowEnvironment = "lt.clusters.Kubeflow",
    LSFEnvironment = "lt.clusters.LSF", LightningEnvironment = "lt.clusters.Local",
    MPIEnvironment = "lt.clusters.MPI", SLURMEnvironment = "lt.clusters.SLURM",
    TorchElasticEnvironment = "lt.clusters.TorchElastic", XLAEnvironment = TPU,
  },
}

-- Members of objects.

names.members = {
  Trainer = {
    distributed_sampler_kwargs = "lt.data.DistributedSampler, with use_distributed_sampler = false",
    progress_bar_callback = "the callback itself: local bar = lt.callbacks.ProgressBar{}, bar.task",
    fit_loop = "trainer.current_epoch, trainer.global_step or trainer.num_training_batches",
    validate_loop = "trainer.num_val_batches, or what validate returns",
    test_loop = "trainer.num_test_batches, or what test returns",
    predict_loop = "trainer.num_predict_batches, or what predict returns",
    lr_schedulers = "trainer.lr_scheduler_configs, or self:lr_schedulers()",
    tuner = lt.Tuner, gpus = "trainer.num_devices", num_gpus = "trainer.num_devices",
    root_device = "trainer.strategy.root_device", logger_connector = "trainer.logged_metrics",
    reset_train_dataloader = "reload_dataloaders_every_n_epochs of the Trainer",
    tune = lt.Tuner, weights_save_path = "dirpath of the callback ModelCheckpoint",
  },
  Module = {
    compile = { "nothing is compiled: call the module as it is" },
    configure_sharded_model = "configure_model", device_mesh = WHOLE,
    fabric = OWN_LOOP, hparams_initial = "self.hparams",
    ipu = { "there are no IPUs here" }, mtia = { "there are no MTIAs here" },
    xpu = { "there are no XPUs here" },
    register_backward_hook = "net:register_full_backward_hook(fn)",
    remove_ignored_hparams = "self:save_hyperparameters(o, {ignore = {'name'}})",
    share_memory = { "each rank has its own module, which its strategy keeps equal" },
    to_empty = { "a module's tensors have memory from the start" },
    to_torchscript = NO_GRAPH, to_tensorrt = NO_GRAPH, ipython_display = "print(net)",
    summarize = "the callback ModelSummary, or print(net)",
  },
  DataModule = {
    hparams_initial = "self.hparams", remove_ignored_hparams =
      "self:save_hyperparameters(o, {ignore = {'name'}})",
  },
  Logger = {
    after_save_checkpoint = "a callback with on_save_checkpoint",
    experiment = "self:log_image, self:log_text or self:log_histogram; "
      .. "logger:log_metrics(row, step)",
    group_separator = "'/'", log_graph = "the callback ModelSummary, or net:to_onnx(path, x)",
    root_dir = "logger.save_dir and logger.name", watch = "the callback LayerMonitor",
    log_table = "self:log_text(name, text)",
  },
  Tuner = {
    lr_find = lt.Tuner, scale_batch_size = lt.Tuner,
  },
  Fabric = {
    all_gather = "lt.dist.all_gather(x)", all_reduce = "lt.dist.all_reduce(x)",
    autocast = "local _ <close> = lt.autocast('bf16')", backward = "loss:backward()",
    barrier = "lt.dist.barrier()", broadcast = "lt.dist.broadcast(x)",
    call = "a call of each: for _, callback in ipairs(list) do callback:name() end",
    clip_gradients = "lt.nn.clip_grad_norm_(net:parameters(), 1)", device = "net.device",
    global_rank = "lt.dist.rank()", init_module = "net:to('cuda', 'bf16')",
    init_tensor = "lt.zeros(2, {device = 'cuda', dtype = 'bf16'})",
    is_global_zero = "lt.dist.rank() == 0", launch = "`ltrain run script.lua --devices N`",
    load = "lt.load(path)", load_raw = "net:load_state_dict(lt.load(path))",
    local_rank = "lt.dist.world().local_rank", log = "logger:log_metrics({name = x}, step)",
    log_dict = "logger:log_metrics(values, step)", logger = "the logger itself",
    loggers = "the loggers themselves",
    no_backward_sync = "lt.dist.ddp, whose sync reduces gradients", node_rank =
      "lt.dist.world().node_rank",
    print = "if lt.dist.rank() == 0 then print(x) end",
    rank_zero_first = "lt.dist.barrier() after rank 0's part", run = OWN_LOOP,
    save = "lt.save(path, values)", seed_everything = "lt.seed_everything(n)",
    setup = "lt.dist.ddp(net)", setup_module = "lt.dist.ddp(net)",
    setup_dataloaders = "lt.data.DistributedSampler", sharded_model = WHOLE,
    setup_optimizers = { "optimizers are not wrapped" }, strategy = "lt.dist",
    to_device = "x:to(device)", world_size = "lt.dist.world_size()",
    accelerator = "net.device",
  },
}

-- Parameters of functions and constructors.

local ONCE <const> = { remove_duplicate = { "each comes once" } }

names.parameters = {
  named_buffers = ONCE, named_parameters = ONCE,
  ["callbacks.BackboneFinetuning"] = {
    initial_denom_lr = "backbone_initial_lr or backbone_initial_ratio_lr",
    rounding = { "learning rates are printed with %g" },
  },
  ["callbacks.EarlyStopping"] = {
    log_rank_zero_only = { "rank 0 alone prints" },
  },
  ["callbacks.ProgressBar"] = {
    refresh_rate = "interval, in seconds", leave = { "the line of each epoch stays" },
    theme = { "it has one" }, process_position = { "rank 0 alone draws one" },
  },
  ["loggers.TensorBoardLogger"] = {
    log_graph = "net:to_onnx(path, x): the file has the graph",
    default_hp_metric = { "hyper-parameters are written with the metrics that the run logs" },
    sub_dir = "name = 'name/sub'",
  },
  ["loggers.WandbLogger"] = {
    dir = "save_dir", anonymous = { "`wandb sync` knows the account" },
    log_model = "`wandb artifact put` with the checkpoint", checkpoint_name = "filename of the "
      .. "callback ModelCheckpoint", experiment = { "runs are written here, not by W&B's package" },
    config = "self:save_hyperparameters(o)",
    add_file_policy = { "files of the run stay in its folder" },
  },
  ["loggers.MLFlowLogger"] = {
    log_model = "`mlflow artifacts log-artifact` with the checkpoint",
    artifact_location = { "artifacts are in the folder of the run, in the store" },
    run_id = "ckpt_path: a resumed run continues its own",
    synchronous = "flush_logs_every_n_steps",
  },
  all_gather = { group = "group:all_gather(x) of the group" },
  to = {
    non_blocking = { "copies to a device are ordered with its work anyway" },
    copy = "net:to(device) of a copy",
  },
  save_checkpoint = { storage_options = "checkpoint_io of the strategy" },
}

return names
