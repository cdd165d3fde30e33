--- stdlib/trainer/state.lua: the state of one call of fit, validate, test or predict: `state`, with
--- the states of its loop, its data and its ranks.
--
-- Every field is here, with the files that set it and what it is; none is added elsewhere
-- (tools/lint_state.lua). Fields that begin as nil are set once, when what they are of begins; what
-- comes and goes is false when it is not there: a key of a table that comes and goes has the table
-- rebuilt from time to time. Of an object only methods are used: its fields are its own.
local LossScaling = require "ltrain.trainer.steps.LossScaling"
local NonfiniteChecks = require "ltrain.trainer.steps.nonfinite"
local Rerun = require "ltrain.trainer.steps.nonfinite.Rerun"
local ResumePoint = require "ltrain.trainer.saving.ResumePoint"
local StepCount = require "ltrain.trainer.steps.StepCount"
local Stopping = require "ltrain.trainer.fit.Stopping"
local ValidationSchedule = require "ltrain.trainer.fit.ValidationSchedule"

-- The loop: the current stage, epoch and batch.
local function new_loop()
  return {
    stage = nil, -- loop: what is being done, as trainer.state.stage; nil between
    pending = {}, -- fit/train_batch: the table that progress.pending becomes after a batch
    results = nil, -- fit/start, eval_loop, run, steps/nonfinite/Rerun, steps/side_effects: what
    -- self:log gathers
    evaluated = false, -- eval_loop: metrics of the last validation or test
    modes_before = false, -- eval_loop: module -> the mode that it goes back to
    batch_indices = nil, -- predict_loop: those of the batch, where the loader knows them
    epoch_indices = nil, -- predict_loop: those of all batches
    reported = false, -- logged/metrics: name -> that some ranks did not log it, or logged nan

    -- The batch.
    batch = false, -- loop: as its hooks get it
    batch_idx = nil, -- loop: its number in the epoch, from 0
    batch_count = false, -- loop, data/batches: its samples; -1: unknown
    slice_batches = false, -- fit/train_batch, steps/nonfinite/Rerun: those of this rank's slices
    in_microbatches = false, -- steps/microbatches, steps/batch: whether the batch is a part of one
    outside = false, -- fit/train_batch, steps/nonfinite/Rerun: that only other ranks have a sample
    outputs = false, -- loop, eval_loop, steps/batch, steps/microbatches: what its step returned
    has_stepped = false, -- steps/batch: whether a training_step has returned a loss

    -- The parameters.
    parameters = nil, -- steps/parameters: those that the optimizers were made for
    places = nil, -- ranks/replica_checks: the ways to them, and lt.parameter's count at that time
  }
end

-- The data: where batches come from, and how they are cut.
local function new_data()
  return {
    train = nil, -- data/sources: the source of the training data
    val = nil, -- data/sources: the list of those of the validation data
    expects_val = nil, -- data/sources: whether there will be some, as all ranks know
    val_epoch = false, -- data/sources: the epoch in which it was asked for; false: not yet
    loaded_epoch = nil, -- data/sources: the epoch in which the training data was loaded
    warned_short = false, -- data/sources: that an epoch has fewer batches than log_every_n_steps
    served = {}, -- data/sources: loader -> the kind of loop that it serves
    sharded = {}, -- data/shards: loaders that give this rank's part
    pass = false, -- data/sources: the pass over the training data that is open
    global_batch = nil, -- data/data_position: samples of a step of all ranks
    cut_before = nil, -- data/data_position: how the checkpoint's run had cut the data
    transfers = false, -- data/batches: whether anything is done to a batch on its way
    converts = false, -- data/batches: whether the precision changes it
    warned_sizes = false, -- data/batches: that its tensors have several first sizes
  }
end

-- The ranks: what they share and agree on.
local function new_ranks()
  return {
    many = false, -- ranks/rank_setup: whether there are several
    may_leave = false, -- ranks/rank_setup: whether a callback, of any rank, may end an epoch
    began = nil, -- ranks/rank_setup: when the run began here
    waited = nil, -- ranks/rank_setup: seconds that this process had waited for others by then
    agreed = nil, -- ranks/consensus: agreed at the last step: stop, interrupt, signal, now
    groups = nil, -- ranks/consensus: count -> the group of the first ranks
    active = false, -- ranks/consensus: the group of those that have a sample in this step; nil: all
    asks_save = false, -- batch_boundary, ranks/consensus: whether this rank wants all to save
    notices = false, -- ranks/rank_warnings: texts for the console that other ranks do not know yet
    synced = nil, -- ranks/shared_gradients: optimizer -> whether its gradients are shared
    slices = false, -- ranks/slices: this rank's part of a batch under deterministic = "world"
    parts = 1, -- ranks/elastic: in how many parts this rank computes its share of a batch
    left_metrics = false, -- logged/partial_metrics: metrics of all ranks, when a fit has ended
  }
end

--- The state of a run `fn` ("fit", ...) of a trainer; `fit_args`: the arguments of the call.
return function(trainer, fn, module, fit_args)
  local state = {
    trainer = trainer, -- state: the Trainer
    fn = fn, -- state: "fit", "validate", "test" or "predict"
    module = module, -- state, run: the module, as the strategy has set it up
    fit_args = fit_args, -- state: the loaders and options of the call
    data_module = fit_args.data_module, -- state: the DataModule; nil without one
    strategy = trainer.strategy, -- state: the strategy
    precision = trainer.strategy.precision, -- state: its precision
    scaler = trainer.strategy.precision.scaler or false, -- state: its GradScaler
    progress = trainer.progress, -- state: where the Trainer's loops stand, as checkpoints have it
    stepped = trainer.stepped, -- state: whether trainer:steps runs it
    callback_metrics = trainer.callback_metrics, -- state: metrics for callbacks
    progress_bar_metrics = trainer.progress_bar_metrics, -- state: metrics for the bar
    loop = new_loop(), -- state: as above
    data = new_data(), -- state: as above
    ranks = new_ranks(), -- state: as above
    stopping = nil, -- state, object: when a fit ends
    validation = nil, -- state, object: when a fit validates
    nonfinite = nil, -- state, object: checks for NaN and infinities
    rerun = nil, -- state, object: runs a batch again to find what made one
    scaling = nil, -- state, object: of losses, where the precision has a GradScaler
    step_count = nil, -- state, object: which optimizer steps were taken
    resume_point = nil, -- state, object: where the run stands, as checkpoints keep it
    late_rows = false, -- fit/train_batch, object: rows whose values are on their way from a device
    step_times = false, -- fit_loop, object: of this rank, of several
    optimizer_steps = false, -- optimize, object: what surrounds each step of an optimizer; of a fit
    window = false, -- optimize, object: the batches since the last optimizer step; fits have one
    verification = false, -- optimize, object: computes batches of other ranks; with verify_every
    step_graph = false, -- optimize, object: training_step and backward as CUDA graphs
    step_closure = false, -- optimize, object: what optimizer_step hands to the optimizer

    forks = nil, -- run: whether ranks are forked for this run
    draws = nil, -- run: where draws stood outside; nil outside of loops
    outer_hook = nil, -- run: the hook that has begun this run
    outer_module = nil, -- run: the module that the strategy had before
    outer_matmul = nil, -- run: lt.get_float32_matmul_precision() before
    attached = {}, -- run: object -> the trainer that it had before
    system_rows = false, -- run_files: measures this process (runs/system_metrics.lua)
    inbox = false, -- run_files: where a fit is asked to stop or to save
    began = nil, -- run_files: when the loop of a rank began, in seconds since 1970
    finished = false, -- run: whether it came to its end
    closed = false, -- run: whether it has ended, in whatever way
    failed = false, -- fit_loop: whether an error has ended the fit

    hooks = {}, -- hook_calls: name -> who defines the hook; false: none
    last_callbacks = false, -- hook_calls: callbacks whose on_train_epoch_end comes after all others
    callbacks = {}, -- hook_calls: those whose hooks were looked up
    hooks_version = nil, -- hook_calls: the count of hooks' assignments by then
    hook = false, -- hook_calls, run: the name of the hook that runs

    automatic = module.automatic_optimization, -- optimize: whether the loop steps
    optimizers = {}, -- optimizers: those of configure_optimizers
    schedulers = {}, -- optimizers: tables of their schedulers
    read_schedulers = nil, -- optimizers: set of the tables that were checked

    resumed = false, -- saving/checkpoint: whether a file was taken up
    resumed_from = nil, -- saving/resume: its path, where it is a link that of the file
    snapshots = false, -- run, object: snapshots of a fit in memory of a launcher
    saves = false, -- batch_boundary: files that were asked for, for the next boundary
    save = false, -- batch_boundary: what Ctrl-C in a read calls
    pending_writes = false, -- saving/pending_writes: files that are on their way
    saved_path = false, -- batch_boundary: the last file that is whole
    interrupted_path = nil, -- batch_boundary: where the run was saved at Ctrl-C
  }
  state.stopping, state.validation = Stopping.new(state), ValidationSchedule.new(state)
  state.rerun = Rerun.new(state)
  state.nonfinite, state.scaling = NonfiniteChecks.new(state), LossScaling.new(state)
  state.step_count, state.resume_point = StepCount.new(state), ResumePoint.new(state)
  return state
end
